/* Tensors as they lie in memory, and elements of them by index: gather.c and finding.c. */
#ifndef CLNN_GATHER_H
#define CLNN_GATHER_H
#include "native.h"

enum { MOST_DIMS = 8, MOST = 4096, FEW = 512 };         /* elements that are read; that are written to a region, which a launch does in vectors */

/* A tensor as it lies in memory. */
typedef struct {
    int rank;
    Py_ssize_t sizes[MOST_DIMS], steps[MOST_DIMS], offset, numel;
    char *memory;
} Layout;

/* What is read: ``places`` of dimension ``dim`` (or of all elements together, as offsets from the first: dim is -1), what follows after each, for each index before.
   From dimension ``tail`` on that are blocks of so many elements one after another. */
typedef struct {
    Layout base;
    int dim, rank, tail;
    Py_ssize_t count, block, marks, sizes[MOST_DIMS], places[MOST];
    const char *mask;                                       /* of ``marks`` elements that lie one after another, as those of the tensor; or NULL */
} Plan;

int layout_of(PyObject *t, Layout *l);
int is_dense(const Layout *l, int first);
PyObject *result_of(PyObject *device, PyObject *buf, PyObject *dtype, PyObject *nbytes, const Plan *p, Py_ssize_t numel);
PyObject *find_all(PyObject *x, PyObject *device, PyObject *state);

#endif
