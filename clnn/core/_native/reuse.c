/* Where the values of fused computations go: reuse.allocate, and dispatch._counted_once. */
#include "native.h"

/* -- memory of operands that die with a launch ---------------------------------------------------------------------------------------- */

enum { MOST = 64 };                                         /* operands that are looked at here */
#define READ(i, k) PyTuple_GET_ITEM(PyList_GET_ITEM(reads, i), k)

static Py_ssize_t uses_of(PyObject *reads, PyObject *buf)
{
    Py_ssize_t uses = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(reads); i++)
        uses += READ(i, 0) == buf;
    return uses;
}

/* Whether nothing but tuples of ``reads`` refers to ``buf``, and it is no memory that is held by its address. */
static int ends(PyObject *reads, PyObject *buf)
{
    Py_ssize_t known = uses_of(reads, buf);
    if (PyDict_GET_SIZE(the_held)) {
        PyObject *id = PyLong_FromVoidPtr(buf);
        int held = id == NULL ? -1 : PyDict_Contains(the_held, id);
        Py_XDECREF(id);
        if (held < 0)
            return -1;
        known += held;
    }
    return Py_REFCNT(buf) <= known;
}

int may_end(PyObject *reads)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(reads); i++) {
        int some = ends(reads, READ(i, 0));
        if (some)
            return some;
    }
    return 0;
}

/* shape.is_contiguous; -1: an error */
static int in_order(PyObject *shape, PyObject *strides)
{
    Py_ssize_t n = PyTuple_GET_SIZE(shape), step = 1;
    if (PyTuple_GET_SIZE(strides) != n)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) == 0)
            return 1;
    for (Py_ssize_t i = n - 1; i >= 0; i--) {
        Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (size != 1 && PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i)) != step)
            return 0;
        step *= size;
    }
    return PyErr_Occurred() ? -1 : 1;
}

/* How many bytes each element of a read has; -1: an error. */
static long itemsize_at(PyObject *reads, Py_ssize_t i)
{
    PyObject *size = trait(READ(i, 1), itemsize);
    long bytes = size == NULL ? -1 : PyLong_AsLong(size);
    Py_XDECREF(size);
    return bytes;
}

/* The bytes of a buffer that every one of its readers walks in flat order from its beginning on; 0 where they do not, -1 with an error. */
static Py_ssize_t flat_bytes(PyObject *reads, Py_ssize_t first, PyObject *shape, Py_ssize_t numel)
{
    long size = itemsize_at(reads, first);
    for (Py_ssize_t i = first; i < PyList_GET_SIZE(reads); i++) {
        if (READ(i, 0) != READ(first, 0))
            continue;
        int flat = READ(i, 2) == zero && itemsize_at(reads, i) == size ? in_order(shape, READ(i, 3)) : 0;
        if (flat <= 0)
            return PyErr_Occurred() ? -1 : 0;
    }
    return size < 0 ? -1 : size * numel;
}

/* reuse._all_end; -1: an error */
static int all_end(PyObject *nodes, PyObject *outs)
{
    PyObject *node, *at, *other;
    Py_ssize_t place = 0;
    if (PyDict_GET_SIZE(nodes) == PyList_GET_SIZE(outs))
        return 1;
    while (PyDict_Next(nodes, &place, &node, &at)) {
        Py_ssize_t uses = 1, again = 0, kept = 0;           /* the dictionary's reference */
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outs); i++)
            kept |= PyTuple_GET_ITEM(PyList_GET_ITEM(outs, i), 0) == node;
        if (kept || Py_REFCNT(node) <= 2)
            continue;
        while (PyDict_Next(nodes, &again, &other, &at)) {
            PyObject *refs = AT(other, Node_args);
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(refs); i++)
                uses += PyTuple_CheckExact(PyTuple_GET_ITEM(refs, i)) && PyTuple_GET_ITEM(PyTuple_GET_ITEM(refs, i), 0) == node;
        }
        if (Py_REFCNT(node) > uses)
            return 0;
    }
    return 1;
}

/* Put the buffers that die, and their bytes, where ``found`` and ``sizes`` say: how many, -1 with an error. */
static Py_ssize_t dying(PyObject *reads, PyObject *nodes, PyObject *outs, PyObject **found, Py_ssize_t *sizes)
{
    PyObject *root = PyTuple_GET_ITEM(PyList_GET_ITEM(outs, 0), 0), *shape = AT(root, Node_shape);
    Py_ssize_t numel = PyLong_AsSsize_t(AT(root, Node_numel)), n = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(reads) && n < MOST; i++) {
        int first = 1, over;
        for (Py_ssize_t j = 0; j < i && first; j++)
            first = READ(j, 0) != READ(i, 0);
        if (!first || (over = ends(reads, READ(i, 0))) == 0)
            continue;
        Py_ssize_t bytes = over < 0 ? -1 : flat_bytes(reads, i, shape, numel);
        if (bytes < 0)
            return -1;
        if (bytes)
            found[n] = READ(i, 0), sizes[n++] = bytes;
    }
    int all = n ? all_end(nodes, outs) : 0;
    return all < 0 ? -1 : all ? n : 0;
}

/* reuse.allocate of large values, in no trace: a list */
PyObject *written_over(PyObject *device, PyObject *reads, PyObject *nodes, PyObject *outs)
{
    PyObject *found[MOST], *list = PyList_New(0), *alloc = PyObject_GetAttr(device, s_alloc);
    Py_ssize_t sizes[MOST], n = list == NULL || alloc == NULL ? -1 : dying(reads, nodes, outs, found, sizes);
    for (Py_ssize_t i = 0; n >= 0 && i < PyList_GET_SIZE(outs); i++) {
        PyObject *wanted = AT(PyTuple_GET_ITEM(PyList_GET_ITEM(outs, i), 1), Storage_nbytes), *buf = NULL;
        Py_ssize_t bytes = PyLong_AsSsize_t(wanted);
        for (Py_ssize_t k = 0; k < n && buf == NULL; k++)
            if (sizes[k] == bytes)
                buf = Py_NewRef(found[k]), sizes[k] = -1;
        if (add(list, buf != NULL ? buf : PyObject_CallOneArg(alloc, wanted)))
            n = -1;
    }
    Py_XDECREF(alloc);
    if (n < 0)
        Py_CLEAR(list);
    return list;
}

/* -- how much a chain reads ----------------------------------------------------------------------------------------------------------- */

enum { MOST_READS = 32, MOST_BELOW = 32 };

typedef struct {
    PyObject *nodes[MOST_BELOW], *reads[MOST_READS];
    int count, leaves;
} Once;

static int equal_reads(PyObject *a, PyObject *b)
{
    return a == b || (PyTuple_GET_ITEM(a, 0) == PyTuple_GET_ITEM(b, 0) && PyTuple_GET_ITEM(a, 1) == PyTuple_GET_ITEM(b, 1)
                      && PyObject_RichCompareBool(PyTuple_GET_ITEM(a, 2), PyTuple_GET_ITEM(b, 2), Py_EQ) > 0
                      && PyObject_RichCompareBool(PyTuple_GET_ITEM(a, 3), PyTuple_GET_ITEM(b, 3), Py_EQ) > 0);
}

/* Count what ``refs`` lead to: whether there was room for it. */
static int count_below(PyObject *refs, Once *once, long most)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(refs); i++) {
        PyObject *ref = PyTuple_GET_ITEM(refs, i), *source = PyTuple_CheckExact(ref) ? PyTuple_GET_ITEM(ref, 0) : NULL;
        int met = source == NULL;
        if (!met && IS(source, Node) && AT(source, Node_buf) == Py_None) {
            for (int j = 0; j < once->count && !met; j++)
                met = once->nodes[j] == source;
            if (!met && once->count == MOST_BELOW)
                return 0;
            if (!met) {
                once->nodes[once->count++] = source;
                if (!count_below(AT(source, Node_args), once, most))
                    return 0;
            }
        } else if (!met) {
            for (int j = 0; j < once->leaves && !met; j++)
                met = equal_reads(once->reads[j], ref);
            if (!met && (once->leaves == MOST_READS || once->leaves >= most))
                return 0;
            if (!met)
                once->reads[once->leaves++] = ref;
        }
    }
    return 1;
}

/* dispatch._counted_once: whether what ``refs`` read, what several have in common counted once, is at most ``most`` operands. */
int counted_once(PyObject *refs, long most, long *count, long *leaves)
{
    Once once = {{NULL}, {NULL}, 0, 0};
    if (!count_below(refs, &once, most))
        return 0;
    *count = 1 + once.count, *leaves = once.leaves;
    return 1;
}
