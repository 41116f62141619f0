/* The state of a Mersenne Twister, and one number of it after the other. */
#include "native.h"
#include <math.h>

enum { SIZE = 624, SHIFT = 397 };

typedef struct {
    PyObject_HEAD
    uint32_t state[SIZE];
    int place;                      /* words of the state that were given */
} Words;

void twist(Words *w);

static inline uint32_t tempered(uint32_t y)
{
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static inline uint32_t next_word(Words *w)
{
    if (w->place == SIZE)
        twist(w);
    return tempered(w->state[w->place++]);
}

static inline uint64_t next_wide(Words *w)
{
    uint64_t high = next_word(w);
    return high << 32 | next_word(w);
}

static inline double next_double(Words *w)
{
    return (double)(next_wide(w) & ((1ull << 53) - 1)) * 0x1p-53;
}

/* A normal number and, in ``second``, the other of its pair. */
static inline double next_pair(Words *w, double *second)
{
    double angle = 6.28318530717958647692 * next_double(w), radius = sqrt(-2.0 * log1p(-next_double(w)));
    *second = radius * sin(angle);
    return radius * cos(angle);
}
