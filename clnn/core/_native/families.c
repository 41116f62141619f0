/* Keys of calls without their numbers: families.split. */
#include "native.h"

/* Whether ``part``, a tuple, has nothing but integers. */
static int has_integers(PyObject *part)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(part, i)))
            return 0;
    return PyTuple_GET_SIZE(part) > 0;
}

static int split(PyObject *key, PyObject *kind, PyObject *numbers, int deep)
{
    int failed = Py_EnterRecursiveCall(" in a key") ? -1 : 0;
    if (failed)
        return -1;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(key); i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        int plain = PyTuple_CheckExact(part), sizes = (plain || Py_IS_TYPE(part, (PyTypeObject *)the_Size)) && has_integers(part);
        if (PyLong_CheckExact(part)) {
            failed = PyList_Append(numbers, part) || PyList_Append(kind, the_one_number);
        } else if (sizes) {
            failed = PyList_SetSlice(numbers, PyList_GET_SIZE(numbers), PyList_GET_SIZE(numbers), part)
                || add(kind, Py_BuildValue("(OOn)", the_one_number, (PyObject *)Py_TYPE(part), PyTuple_GET_SIZE(part)));
        } else if (deep && plain) {
            failed = add(kind, Py_BuildValue("(OOn)", the_one_number, Py_None, PyTuple_GET_SIZE(part))) || split(part, kind, numbers, deep);
        } else {
            failed = PyList_Append(kind, part);
        }
    }
    Py_LeaveRecursiveCall();
    return failed ? -1 : 0;
}

/* split_key(key, deep): families.split */
PyObject *split_key(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1 || n > 2 || !PyTuple_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "split_key() takes a tuple, and whether tuples in it are split, too");
    PyObject *kind = PyList_New(0), *numbers = PyList_New(0), *whole = NULL, *got = NULL;
    int deep = n > 1 ? PyObject_IsTrue(args[1]) : 0;
    if (kind != NULL && numbers != NULL && deep >= 0 && !split(args[0], kind, numbers, deep) && (whole = PyList_AsTuple(kind)) != NULL)
        got = PyTuple_Pack(2, whole, numbers);
    Py_XDECREF(kind), Py_XDECREF(numbers), Py_XDECREF(whole);
    return got;
}
