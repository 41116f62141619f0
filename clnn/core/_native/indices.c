/* Indices with tensors among them: indexing._only_tensors, _beside_numbers, _read_numbers. */
#include "native.h"

static int is_whole_slice(PyObject *t)
{
    PySliceObject *s = (PySliceObject *)t;
    return PySlice_Check(t) && s->start == Py_None && s->stop == Py_None && s->step == Py_None;
}

/* Whether a mask has the shape of the first dimensions of ``shape``. */
static int masks(PyObject *mask, PyObject *shape)
{
    PyObject *mine = AT(mask, Tensor_shape), *sizes = PyTuple_GetSlice(shape, 0, PyTuple_GET_SIZE(mine)), *plain = PySequence_Tuple(mine);
    int same = sizes == NULL || plain == NULL ? -1 : PyObject_RichCompareBool(sizes, plain, Py_EQ);
    Py_XDECREF(sizes), Py_XDECREF(plain);
    return same;
}

static int add_nones(PyObject *list, Py_ssize_t n)
{
    for (; n > 0; n--)
        if (PyList_Append(list, Py_None))
            return -1;
    return 0;
}

/* Add what an index that is a tensor means: 1; 0 where that is to be worked out. */
static int add_tensor(PyObject *t, PyObject *device, PyObject *shape, Py_ssize_t entries, PyObject *found)
{
    if (!PyObject_TypeCheck(t, Tensor_type) || simple(t) <= 0 || !PyTuple_GET_SIZE(AT(t, Tensor_shape)) || !PyObject_TypeCheck(AT(t, Tensor__storage), Storage_type)
            || AT(AT(t, Tensor__storage), Storage_device) != device)
        return PyErr_Occurred() ? -1 : 0;
    if (AT(t, Tensor_dtype) != the_int64) {
        int good = AT(t, Tensor_dtype) == the_bool && entries == 1 ? masks(t, shape) : 0;
        if (good <= 0)
            return good;
    }
    return PyList_Append(found, t) ? -1 : 1;
}

/* only_tensors(x, index): indexing._only_tensors */
PyObject *only_tensors(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "only_tensors() takes a tensor and an index");
    PyObject *x = args[0], *index = args[1], *found, *shape, *device;
    int single = PyObject_TypeCheck(index, Tensor_type), good = simple(x), wide = 0;
    if (good <= 0 || !PyObject_TypeCheck(AT(x, Tensor__storage), Storage_type))
        return good < 0 ? NULL : PyObject_Vectorcall(the_only_tensors, args, 2, NULL);
    shape = AT(x, Tensor_shape), device = AT(AT(x, Tensor__storage), Storage_device);
    Py_ssize_t entries = single ? 1 : PyTuple_CheckExact(index) ? PyTuple_GET_SIZE(index) : 0, dims = PyTuple_GET_SIZE(shape);
    if (!entries || entries > dims)
        Py_RETURN_NONE;
    if ((found = PyList_New(0)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < entries && good > 0; i++) {
        PyObject *t = single ? index : PyTuple_GET_ITEM(index, i);
        if (is_whole_slice(t))
            good = PyList_Append(found, Py_None) ? -1 : 1;
        else if (t == Py_Ellipsis && !wide)
            wide = 1, good = add_nones(found, dims + 1 - entries) ? -1 : 1;
        else
            good = add_tensor(t, device, shape, entries, found);
    }
    if (good > 0 && add_nones(found, dims - PyList_GET_SIZE(found)))
        good = -1;
    if (good <= 0)
        Py_CLEAR(found);
    return good ? found : Py_NewRef(Py_None);
}

/* beside_numbers(x, index): indexing._beside_numbers */
PyObject *beside_numbers(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    PyObject *x = n == 2 ? args[0] : NULL, *index = n == 2 ? args[1] : NULL, *found, *rest, *base = NULL, *got = NULL;
    int good = x != NULL && PyTuple_CheckExact(index) ? simple(x) : 0;
    if (good <= 0 || !PyObject_TypeCheck(AT(x, Tensor__storage), Storage_type))
        return good < 0 ? NULL : Py_NewRef(Py_None);
    Py_ssize_t entries = PyTuple_GET_SIZE(index);
    found = PyList_New(0), rest = PyTuple_New(entries);
    good = found == NULL || rest == NULL ? -1 : 1;
    for (Py_ssize_t i = 0; i < entries && good > 0; i++) {
        PyObject *t = PyTuple_GET_ITEM(index, i);
        int number = PyLong_CheckExact(t), slice = PySlice_Check(t);
        if (slice)
            good = PyList_Append(found, Py_None) ? -1 : 1;
        else if (!number)
            good = add_tensor(t, AT(AT(x, Tensor__storage), Storage_device), AT(x, Tensor_shape), 2, found);
        PyTuple_SET_ITEM(rest, i, Py_NewRef(number || slice ? t : the_all));
    }
    if (good > 0) {
        PyObject *what[] = {x, rest};
        base = basic(NULL, what, 2);
        good = base == NULL ? -1 : base != Py_None;
    }
    if (good > 0 && (add_nones(found, PyTuple_GET_SIZE(AT(base, Tensor_shape)) - PyList_GET_SIZE(found)) || (got = PyTuple_Pack(2, base, found)) == NULL))
        good = -1;
    Py_XDECREF(found), Py_XDECREF(rest), Py_XDECREF(base);
    return good < 0 ? NULL : good ? got : Py_NewRef(Py_None);
}

/* The number of an integer tensor without dimensions, where it can be read at once; NULL without an error where it cannot. */
static PyObject *number_in(PyObject *t)
{
    if (simple(t) != 1 || AT(t, Tensor_dtype) != the_int64 || !PyObject_TypeCheck(AT(t, Tensor__storage), Storage_type))
        return NULL;
    PyObject *bytes = read_from(AT(t, Tensor__storage), 8, PyLong_AsSsize_t(AT(t, Tensor__offset)) * 8), *number = NULL;
    int64_t value;
    if (bytes != NULL) {
        memcpy(&value, PyByteArray_AS_STRING(bytes), sizeof value);
        number = PyLong_FromLongLong(value);
        Py_DECREF(bytes);
    }
    return number;
}

/* read_numbers(index): indexing._read_numbers */
PyObject *index_numbers(PyObject *module, PyObject *index)
{
    PyObject *modes = own(wrapped, modes), *items = NULL;
    int some = 0, good = modes == NULL ? -1 : PyTuple_CheckExact(modes) && !PyTuple_GET_SIZE(modes) && PyTuple_CheckExact(index) ? unheard() : 0;
    if (good > 0 && (items = PyTuple_New(PyTuple_GET_SIZE(index))) == NULL)
        good = -1;
    for (Py_ssize_t i = 0; good > 0 && i < PyTuple_GET_SIZE(index); i++) {
        PyObject *t = PyTuple_GET_ITEM(index, i);
        int number = PyObject_TypeCheck(t, Tensor_type) && !PyTuple_GET_SIZE(AT(t, Tensor_shape));
        PyObject *item = number ? number_in(t) : Py_NewRef(t);
        if (item == NULL)
            good = PyErr_Occurred() ? -1 : 0;
        else
            PyTuple_SET_ITEM(items, i, item);
        some |= number;
    }
    if (good > 0 && some)
        return items;
    Py_XDECREF(items);
    return good < 0 ? NULL : good ? Py_NewRef(Py_None) : PyObject_CallOneArg(the_read_numbers, index);
}
