/* Buffers of a pool, and the most that were in use: Memory.alloc and alloc_all. */
#include "native.h"

/* How many bytes may be given before the peak of ``memory``, as it was then, can be exceeded. */
static struct { PyObject *memory, *peak; Py_ssize_t left; } below_peak;

/* Ask how much is in use, and note the most that ever was. */
static int note_peak(PyObject *memory)
{
    clear_shelves();
    PyObject *active = PyObject_GetAttr(AT(memory, Memory__pool), s_active_bytes);
    int more = active == NULL ? -1 : PyObject_RichCompareBool(active, AT(memory, Memory_peak), Py_GT);
    if (more > 0)
        change(memory, Memory_peak, Py_NewRef(active));
    if (more >= 0) {
        below_peak.memory = memory, below_peak.left = PyLong_AsSsize_t(AT(memory, Memory_peak)) - PyLong_AsSsize_t(active);
        Py_XSETREF(below_peak.peak, Py_NewRef(AT(memory, Memory_peak)));
    }
    Py_XDECREF(active);
    return more < 0 ? -1 : 0;
}

/* Note that ``n`` buffers of ``bytes`` together were given: of their classes of sizes, which are a fourth larger at most. */
static int count_buffers(PyObject *memory, Py_ssize_t n, Py_ssize_t bytes)
{
    PyObject *count = PyLong_FromSsize_t(n), *total = count == NULL ? NULL : PyNumber_Add(AT(memory, Memory_requests), count);
    Py_XDECREF(count);
    if (total == NULL)
        return -1;
    change(memory, Memory_requests, total);
    below_peak.left -= bytes + bytes / 2 + 64 * n;
    return below_peak.left < 0 || below_peak.memory != memory || below_peak.peak != AT(memory, Memory_peak) ? note_peak(memory) : 0;
}

static int add_all(PyObject *list, PyObject *more)             /* takes the reference of ``more`` */
{
    int failed = more == NULL || PyList_SetSlice(list, PyList_GET_SIZE(list), PyList_GET_SIZE(list), more);
    Py_XDECREF(more);
    return failed ? -1 : 0;
}

/* Add what Memory.alloc_all gives to a list. */
int allocate_onto(PyObject *list, PyObject *alloc_all, PyObject *sizes)
{
    PyObject *memory = PyMethod_Check(alloc_all) ? PyMethod_GET_SELF(alloc_all) : NULL;
    if (memory == NULL || !IS(memory, Memory))
        return add_all(list, PyObject_CallOneArg(alloc_all, sizes));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sizes), before = PyList_GET_SIZE(list), bytes = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *buf = new_buffer(memory, AT(memory, Memory__allocate), PySequence_Fast_GET_ITEM(sizes, i));
        if (buf == NULL) {                  /* a shortage is dealt with there */
            if (!PyErr_ExceptionMatches(PyExc_Exception))
                return -1;
            PyErr_Clear();
            return PyList_SetSlice(list, before, PyList_GET_SIZE(list), NULL) ? -1 : add_all(list, PyObject_CallOneArg(alloc_all, sizes));
        }
        if (add(list, buf))
            return -1;
        bytes += PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(sizes, i));
    }
    return count_buffers(memory, n, bytes);
}

/* Memory.alloc */
static PyObject *alloc(PyObject *memory, PyObject *nbytes)
{
    Py_ssize_t size = PyLong_CheckExact(nbytes) ? PyLong_AsSsize_t(nbytes) : -1;
    if (size >= 0 && size < 16)
        nbytes = the_fewest;                /* MIN_BYTES */
    if (size >= 0 && size < 2 << 20) {      /* less than what may want huge pages */
        PyObject *buf = new_buffer(memory, AT(memory, Memory__allocate), nbytes), *type, *value, *trace;
        if (buf == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
            PyErr_Fetch(&type, &value, &trace);
            PyErr_NormalizeException(&type, &value, &trace);
            buf = PyObject_CallMethodObjArgs(memory, s__retry, nbytes, value, NULL);
            Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
        }
        if (buf != NULL && count_buffers(memory, 1, size))
            Py_CLEAR(buf);
        return buf;
    }
    PyErr_Clear();
    return PyObject_CallFunctionObjArgs(the_Memory_alloc, memory, nbytes, NULL);
}

PyMethodDef alloc_method = {"alloc", alloc, METH_O, "A buffer of at least so many bytes; its contents are whatever was there."};
