/* Threads that share the work of a launch (crew.c). */
#ifndef CLNN_CREW_H
#define CLNN_CREW_H
#include <stddef.h>

typedef void Work(void *given, unsigned member, size_t first, size_t last);     /* groups from ``first`` to before ``last``; 0 is the calling thread */

enum { MOST_MEMBERS = 8 };       /* more would mostly look out */

int hire(int n, int placed);
double work_together(Work *work, void *given, size_t groups, double seconds);

#endif
