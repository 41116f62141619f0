/* Where few elements are not zero, found by the host: indexing.located. */
#include "gather.h"

/* Where a row of ``n`` elements of ``dtype`` is not zero, without a branch: how often. -1: no such dtype. */
static Py_ssize_t nonzero_in(const char *at, Py_ssize_t n, PyObject *dtype, int64_t *places)
{
    Py_ssize_t count = 0;
#define FIND(type) do { for (Py_ssize_t i = 0; i < n; i++) { type value; memcpy(&value, at + i * (Py_ssize_t)sizeof value, \
    sizeof value); places[count] = i; count += value != 0; } return count; } while (0)
    if (dtype == the_bool)
        FIND(char);
    if (dtype == the_float32)
        FIND(float);
    if (dtype == the_int64)
        FIND(int64_t);
    if (dtype == the_float64)
        FIND(double);
    if (dtype == the_int32)
        FIND(int32_t);
    return -1;
#undef FIND
}

/* The coordinates of what was found: ``counts`` of the rows, whose last coordinates are ``places``; one dimension after another, each of ``total`` numbers. */
static void tell_coordinates(const Layout *l, const Py_ssize_t *counts, const int64_t *places, Py_ssize_t total, int64_t *to)
{
    Py_ssize_t at[MOST_DIMS] = {0}, rows = l->sizes[l->rank - 1] ? l->numel / l->sizes[l->rank - 1] : 0, done = 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        for (int d = 0; d < l->rank - 1; d++)
            for (Py_ssize_t i = done; i < done + counts[row]; i++)
                to[d * total + i] = at[d];
        done += counts[row];
        for (int d = l->rank - 2; d >= 0 && ++at[d] == l->sizes[d]; d--)
            at[d] = 0;
    }
    memcpy(to + (l->rank - 1) * total, places, (size_t)total * sizeof *to);
}

/* The lock is held, and nothing runs: a tensor (dimensions, count). None where the memory is not that of few elements in rows. */
PyObject *find_all(PyObject *x, PyObject *device, PyObject *state)
{
    Layout l;
    Plan p = {.rank = 2, .dim = 0};
    int64_t places[MOST];
    Py_ssize_t counts[MOST], total = 0;
    PyObject *size = trait(AT(x, Tensor_dtype), itemsize), *source = settled_buffer(AT(x, Tensor__storage)), *alloc = of_device(state, alloc);
    PyObject *nbytes = NULL, *buf = NULL, *result = NULL;
    void *memory = NULL, *target = NULL;
    Py_ssize_t itemsize = size == NULL ? -1 : PyLong_AsSsize_t(size);
    Py_XDECREF(size);
    if (itemsize > 0 && source != NULL && alloc != NULL && layout_of(x, &l) > 0 && l.rank && l.numel && l.numel <= MOST && is_dense(&l, 0) && address_in(device,
        source, &memory) > 0) {
        Py_ssize_t width = l.sizes[l.rank - 1];
        for (Py_ssize_t row = 0; row < l.numel / width && total >= 0; row++) {
            counts[row] = nonzero_in((char *)memory + (l.offset + row * width) * itemsize, width, AT(x, Tensor_dtype), places + total);
            total = counts[row] < 0 ? -1 : total + counts[row];
        }
        p.sizes[0] = l.rank, p.sizes[1] = total;
        if (total > 0 && (nbytes = PyLong_FromSsize_t(l.rank * total * (Py_ssize_t)sizeof *places)) != NULL && (buf = PyObject_CallOneArg(alloc, nbytes)) != NULL
                && address_in(device, buf, &target) > 0 && !PyDict_SetItem(state, s_peek, Py_None)) {
            tell_coordinates(&l, counts, places, total, target);
            result = result_of(device, buf, the_int64, nbytes, &p, l.rank * total);
        }
    }
    Py_XDECREF(nbytes), Py_XDECREF(buf);
    if (result != NULL && count_transfer(state) < 0)
        Py_CLEAR(result);
    return result != NULL ? result : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
