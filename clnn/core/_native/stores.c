/* Values put straight into memory: inplace.put and applied, indexing._put, store.store. */
#include "native.h"
#include <math.h>

/* Count a write to ``t``. */
int bump(PyObject *t)
{
    PyObject *st = AT(t, Tensor__storage), *own = history(t, _ver), *version, *more;
    int counted = own == NULL ? -1 : own == Py_None ? 0 : PyObject_IsTrue(own);
    if (counted < 0) {
        Py_XDECREF(own);
        return -1;
    }
    version = counted ? PyObject_GetAttr(own, s_version) : Py_NewRef(AT(st, Storage_version)), more = version == NULL ? NULL : PyNumber_Add(version, one);
    int failed = more == NULL || (counted && PyObject_SetAttr(own, s_version, more));
    if (!failed && !counted)
        change(st, Storage_version, Py_NewRef(more));
    Py_XDECREF(own), Py_XDECREF(version), Py_XDECREF(more);
    return failed ? -1 : 0;
}

/* What tells how a value is stored: see store.store. ``from``: the step of each dimension in the memory of a tensor that is copied, NULL for a number. */
static PyObject *key_of(PyObject *device, PyObject *dtype, PyObject *shape, PyObject *strides, PyObject *offset, PyObject *first, PyObject *from)
{
    PyObject *moved = PyObject_IsTrue(offset) ? Py_True : Py_False, *copied = from == NULL ? Py_NewRef(Py_None) : PyTuple_Pack(2, PyObject_IsTrue(first)
        ? Py_True : Py_False, from);
    PyObject *key = copied == NULL ? NULL : PyTuple_Pack(6, device, dtype, shape, strides, moved, copied);
    Py_XDECREF(copied);
    return key;
}

/* The places of the launch's buffers, with these. */
static PyObject *picked(PyObject *launch, PyObject *read, PyObject *written)
{
    PyObject *places = AT(launch, _Launch_places), *both[] = {read == NULL ? written : read, written};
    Py_ssize_t n = read == NULL ? 1 : 2;
    PyObject *tuple = PyList_GET_SIZE(places) == 2 * n ? PyTuple_New(2 * n) : NULL;
    for (Py_ssize_t i = 0; tuple != NULL && i < n; i++) {
        PyTuple_SET_ITEM(tuple, 2 * i, Py_NewRef(PyList_GET_ITEM(places, 2 * i)));
        PyTuple_SET_ITEM(tuple, 2 * i + 1, Py_NewRef(both[i]));
    }
    return tuple;
}

/* The numbers of the launch. */
static PyObject *numbers_of(PyObject *launch, PyObject *first, PyObject *number, PyObject *offset)
{
    PyObject *list = PyList_New(0);
    int moved = AT(launch, _Launch_moved) == Py_True, failed = list == NULL;
    if (!failed && moved && first != NULL && PyObject_IsTrue(first))
        failed = PyList_Append(list, first);
    if (!failed && number != NULL)
        failed = PyList_Append(list, number);
    if (!failed && moved && PyObject_IsTrue(offset))
        failed = PyList_Append(list, offset);
    if (failed)
        Py_CLEAR(list);
    return list;
}

/* Launch what is known: 1; 0 where it is not known yet. ``read``, ``first``, ``from``: a tensor's buffer, offset and steps; ``number``: in place of these. */
static int store(PyObject *device, PyObject *dtype, PyObject *shape, PyObject *strides, PyObject *offset, PyObject *written, PyObject *read, PyObject *first,
    PyObject *from,
                 PyObject *number)
{
    PyObject *stores = variable(the_store, s__stores), *key, *launch = NULL, *where = NULL, *numbers = NULL, *got = NULL;
    if (stores == NULL || !PyDict_CheckExact(stores))       /* in a trace it is another */
        return stores == NULL ? -1 : 0;
    if ((key = key_of(device, dtype, shape, strides, offset, first, from)) == NULL)
        return -1;
    launch = PyDict_GetItemWithError(stores, key);
    Py_DECREF(key);
    if (launch == NULL || AT(launch, _Launch_prepared) == Py_None || !PyObject_TypeCheck(AT(launch, _Launch_prepared), Prepared_type))
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(launch);
    if ((where = picked(launch, read, written)) != NULL && (numbers = numbers_of(launch, first, number, offset)) != NULL) {
        PyObject *args[] = {device, where, numbers};
        got = run_prepared(AT(launch, _Launch_prepared), args, 3);
    }
    Py_DECREF(launch);
    Py_XDECREF(where), Py_XDECREF(numbers), Py_XDECREF(got);
    return got != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Whether nobody keeps a history of ``t``, and its memory, which is computed then, is a buffer of a device. */
int is_open(PyObject *t)
{
    PyObject *st = AT(t, Tensor__storage), *early = variable(the_foreign, s_early), *dispatched = variable(the_foreign, s_dispatched), *base, *got;
    if (early == NULL || dispatched == NULL)
        return -1;
    if (!IS(st, Storage) || AT(st, Storage_pinned) != Py_False || early != Py_None || dispatched != Py_None)
        return 0;
    int good = PyObject_RichCompareBool(AT(st, Storage_version), zero, Py_GE), some = 0;
    if (good <= 0 || (some = is_true(own(state, watched))) || (some = is_tracked(t)))
        return good < 0 || (good && some < 0) ? -1 : 0;
    if ((base = history(t, _base)) == NULL)
        return -1;
    some = base == Py_None ? 0 : is_tracked(base);
    Py_DECREF(base);
    if (some)
        return some < 0 ? -1 : 0;
    if (AT(st, Storage_node) != Py_None && IS(AT(st, Storage_node), Node)) {
        if ((got = realize(NULL, st)) == NULL)
            return -1;
        Py_DECREF(got);
    }
    return AT(st, Storage_node) == Py_None;
}

/* How many others refer to the buffer of ``st``, less those ``known``; -2: an error. */
static Py_ssize_t others_of(PyObject *st, Py_ssize_t known)
{
    PyObject *buf = AT(st, Storage_buf), *id = PyLong_FromVoidPtr(buf);
    int held = id == NULL ? -1 : PyDict_Contains(the_held, id);
    Py_XDECREF(id);
    return held < 0 ? -2 : Py_REFCNT(buf) - 1 - held - known;
}

/* Let ``st`` have a buffer of its own where others, less those ``known``, look at the one it has. */
int come_apart(PyObject *st, Py_ssize_t known)
{
    Py_ssize_t others = others_of(st, known);
    if (others <= 0)
        return others == -2 ? -1 : 0;
    PyObject *args[] = {AT(st, Storage_device), AT(st, Storage_buf), AT(st, Storage_nbytes)}, *fresh = PyObject_VectorcallMethod(s_duplicate, args, 3, NULL);
    if (fresh == NULL)
        return -1;
    change(st, Storage_buf, fresh);
    return 0;
}

/* A number as the launch takes it, a new reference. */
static PyObject *packed(PyObject *value, PyObject *dtype)
{
    PyObject *acc = trait(dtype, acc), *got = acc == NULL ? NULL : packed_number(value, acc);
    Py_XDECREF(acc);
    return got;
}

/* The steps of ``value`` over ``shape``, a new reference; NULL without an error where it is not that simple. */
static PyObject *steps_of(PyObject *value, PyObject *shape)
{
    int same = PyObject_RichCompareBool(AT(value, Tensor_shape), shape, Py_EQ);
    if (same)
        return same < 0 ? NULL : Py_NewRef(AT(value, Tensor__strides));
    if (PyTuple_GET_SIZE(AT(value, Tensor_shape)))
        return NULL;
    PyObject *steps = PyTuple_New(PyTuple_GET_SIZE(shape));
    for (Py_ssize_t i = 0; steps != NULL && i < PyTuple_GET_SIZE(shape); i++)
        PyTuple_SET_ITEM(steps, i, Py_NewRef(zero));
    return steps;
}

/* Put a tensor that is computed into a region of the memory of ``t``. */
static int put_tensor(PyObject *t, PyObject *shape, PyObject *strides, PyObject *offset, PyObject *value)
{
    PyObject *st = AT(t, Tensor__storage), *src = AT(value, Tensor__storage), *steps;
    int tracked = is_tracked(value);
    if (!tracked && src == st && AT(value, Tensor_dtype) == AT(t, Tensor_dtype) && PyObject_RichCompareBool(AT(value, Tensor_shape), shape, Py_EQ) == 1
            && PyObject_RichCompareBool(AT(value, Tensor__strides), strides, Py_EQ) == 1 && PyObject_RichCompareBool(AT(value, Tensor__offset), offset, Py_EQ) == 1)
        return 1;                                           /* it is there: ``x[i] += 1`` ends with this */
    if (tracked || !IS(src, Storage) || AT(src, Storage_node) != Py_None || AT(src, Storage_pinned) != Py_False || src == st
            || AT(src, Storage_device) != AT(st, Storage_device) || AT(value, Tensor_dtype) != AT(t, Tensor_dtype))
        return tracked < 0 ? -1 : 0;
    if ((steps = steps_of(value, shape)) == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int done = come_apart(st, 0) ? -1
        : store_here(AT(st, Storage_device), AT(t, Tensor_dtype), shape, strides, offset, AT(st, Storage_buf), AT(src, Storage_buf), AT(value, Tensor__offset),
            steps, NULL);
    if (!done)
        done = store(AT(st, Storage_device), AT(t, Tensor_dtype), shape, strides, offset, AT(st, Storage_buf), AT(src, Storage_buf), AT(value, Tensor__offset),
            steps, NULL);
    Py_DECREF(steps);
    return done;
}

/* How many operands of ``node`` are the region of ``st`` that is written; -1: there are reads of it, or of other nodes, that Python has to look at. */
static Py_ssize_t reads_of(PyObject *node, PyObject *st, PyObject *dtype, PyObject *strides, PyObject *offset)
{
    PyObject *refs = AT(node, Node_args);
    Py_ssize_t same = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(refs); i++) {
        PyObject *ref = PyTuple_GET_ITEM(refs, i);
        int again = 0;
        for (Py_ssize_t j = 0; j < i && !again; j++)
            again = PyTuple_GET_ITEM(refs, j) == ref;
        if (again || !PyTuple_CheckExact(ref) || PyTuple_GET_ITEM(ref, 0) != AT(st, Storage_buf))
            continue;
        if (PyTuple_GET_ITEM(ref, 1) != dtype || PyObject_RichCompareBool(PyTuple_GET_ITEM(ref, 2), offset, Py_EQ) != 1
                || PyObject_RichCompareBool(PyTuple_GET_ITEM(ref, 3), strides, Py_EQ) != 1)
            return -1;
        same++;
    }
    return same;
}

/* store.store_into of one node whose structure was launched before: 1; 0 where it was not. */
static int store_pending(PyObject *node, PyObject *buf, PyObject *dtype, PyObject *strides, PyObject *offset)
{
    PyObject *parts = told(NULL, node), *known = variable(the_fuse, s__known), *key = parts == NULL ? NULL : PyTuple_GET_ITEM(parts, 0), *all = NULL, *found = NULL;
    if (key != NULL && !PyList_Append(key, dtype) && !PyList_Append(key, PyObject_IsTrue(offset) ? Py_True : Py_False) && !PyList_Append(key, strides))
        all = PyList_AsTuple(key);
    if (all != NULL && known != NULL && PyDict_CheckExact(known))                               /* in a trace it is another */
        found = PyDict_GetItemWithError(known, all);
    if (found != NULL && IS(found, _Known))
        Py_INCREF(found);
    else
        found = NULL;
    Py_XDECREF(all);
    int done = found == NULL ? 0 : launch_known(found, AT(node, Node_device), PyTuple_GET_ITEM(parts, 1), PyTuple_GET_ITEM(parts, 2), buf, offset, 0);
    Py_XDECREF(found), Py_XDECREF(parts);
    return PyErr_Occurred() ? -1 : done;
}

/* Put a pending value of one node into a region of the memory of ``t``. ``gone``: nobody has it any more when this returns. */
static int put_pending(PyObject *t, PyObject *shape, PyObject *strides, PyObject *offset, PyObject *value, int gone)
{
    PyObject *st = AT(t, Tensor__storage), *src = AT(value, Tensor__storage), *node = AT(src, Storage_node), *dtype = AT(t, Tensor_dtype);
    int tracked = is_tracked(value);
    if (tracked || !IS(src, Storage) || !IS(node, Node) || src == st || AT(src, Storage_pinned) != Py_False || AT(src, Storage_device) != AT(st, Storage_device)
            || AT(node, Node_buf) != Py_None || AT(node, Node_reduce) != Py_None || AT(node, Node_dtype) != dtype || AT(value, Tensor_dtype) != dtype
            || AT(value, Tensor__dense) != Py_True || PyLong_AsLong(AT(node, Node_count)) != 1)
        return tracked < 0 ? -1 : 0;
    if (PyObject_RichCompareBool(AT(value, Tensor_shape), shape, Py_EQ) != 1 || PyObject_RichCompareBool(AT(node, Node_shape), shape, Py_EQ) != 1 || unheard() != 1)
        return PyErr_Occurred() ? -1 : 0;
    Py_ssize_t same = reads_of(node, st, dtype, strides, offset);
    if (same < 0 || (same && !gone))
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(node);
    int done = come_apart(st, same) ? -1 : store_pending(node, AT(st, Storage_buf), dtype, strides, offset);
    Py_DECREF(node);
    return done;
}

/* put(t, shape, strides, offset, numel, value, gone=False): inplace.put */
PyObject *put_region(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n < 6 || n > 7)
        return PyErr_Format(PyExc_TypeError, "put() takes a tensor, a region and a value");
    PyObject *t = args[0], *value = args[5], *number;
    PyObject *on = variable(the_repeat, s_on);
    int number_given = PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value), done = on == NULL ? -1 : PyObject_IsTrue(on);
    if (done > 0)                                           /* else a mode may have to be told of the write */
        done = simple(t);
    if (done > 0)
        done = is_open(t);
    if (done > 0 && number_given) {
        PyObject *st = AT(t, Tensor__storage);
        if (come_apart(st, 0))
            return NULL;
        if ((done = store_here(AT(st, Storage_device), AT(t, Tensor_dtype), args[1], args[2], args[3], AT(st, Storage_buf), NULL, NULL, NULL, value)))
            return done < 0 || bump(t) ? NULL : Py_NewRef(Py_True);
        if ((number = packed(value, AT(t, Tensor_dtype))) == NULL)
            return NULL;
        done = store(AT(st, Storage_device), AT(t, Tensor_dtype), args[1], args[2], args[3], AT(st, Storage_buf), NULL, NULL, NULL, number);
        Py_DECREF(number);
    } else if (done > 0) {
        done = !IS(value, Tensor) ? 0 : AT(AT(value, Tensor__storage), Storage_node) == Py_None ? put_tensor(t, args[1], args[2], args[3], value)
            : put_pending(t, args[1], args[2], args[3], value, n > 6 && args[6] == Py_True);
    }
    if (done > 0 && bump(t))
        done = -1;
    return done < 0 ? NULL : done ? Py_NewRef(Py_True) : PyObject_Vectorcall(the_put, args, n, NULL);
}

/* Whether the device of ``t`` has memory. */
static int has_memory(PyObject *t)
{
    PyObject *kind = PyObject_GetAttr(AT(AT(t, Tensor__storage), Storage_device), s_kind);
    int good = kind == NULL ? -1 : !PyUnicode_Check(kind) || PyUnicode_CompareWithASCIIString(kind, "meta") != 0;
    Py_XDECREF(kind);
    return good;
}

/* Whether ``value`` may be put into elements of ``dtype`` as it is, without a look at dtypes' limits. */
int is_storable(PyObject *value, PyObject *dtype)
{
    if (IS(value, Tensor))
        return AT(value, Tensor_dtype) == dtype;
    int overflow = 0, floats = dtype == the_float32 || dtype == the_float64;
    if (PyFloat_CheckExact(value))
        return floats && fabs(PyFloat_AS_DOUBLE(value)) < 1e38;
    if (!PyLong_Check(value) || !(floats || dtype == the_int64 || dtype == the_int32))
        return 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow && (PyLong_CheckExact(value) || PyBool_Check(value)) && (dtype != the_int32 || number == (int32_t)number);
}

/* put_at(x, index, value): indexing._put */
PyObject *put_at(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    PyObject *x = args[0], *found, *done = NULL;
    int good = n == 3 && IS(x, Tensor) && IS(AT(x, Tensor__storage), Storage) ? is_storable(args[2], AT(x, Tensor_dtype)) : 0;
    if (good)
        good = has_memory(x);
    if (good <= 0)
        return good < 0 ? NULL : PyObject_Vectorcall(the_put_at, args, n, NULL);
    if ((found = place(NULL, args, 2)) == NULL || found == Py_None)
        return found == NULL ? NULL : (Py_DECREF(found), Py_NewRef(Py_False));
    PyObject *steps = PyTuple_GET_ITEM(found, 1), *numel = PyTuple_GET_ITEM(found, 3);
    Py_ssize_t count = PyLong_AsSsize_t(numel);
    good = count && count != PyLong_AsSsize_t(AT(x, Tensor__numel)) && PySequence_Contains(steps, zero) == 0;
    if (good) {
        PyObject *all[] = {x, PyTuple_GET_ITEM(found, 0), steps, PyTuple_GET_ITEM(found, 2), numel, args[2]};
        done = put_region(NULL, all, 6);
    }
    Py_DECREF(found);
    return good || PyErr_Occurred() ? done : Py_NewRef(Py_False);
}

/* Whether ``target`` is some, but not all, of its memory: inplace.part_of_memory. */
static int is_part(PyObject *target)
{
    PyObject *size = trait(AT(target, Tensor_dtype), itemsize), *nbytes = size == NULL ? NULL : PyNumber_Multiply(AT(target, Tensor__numel), size);
    int part = nbytes == NULL ? -1 : PyObject_IsTrue(nbytes);
    if (part > 0)
        part = PyObject_RichCompareBool(nbytes, AT(AT(target, Tensor__storage), Storage_nbytes), Py_LT);
    Py_XDECREF(size), Py_XDECREF(nbytes);
    int still = part <= 0 ? 0 : PySequence_Contains(AT(target, Tensor__strides), zero);
    return part <= 0 ? part : still < 0 ? -1 : still ? 0 : has_memory(target);
}

/* applied(target, result): None once ``target`` holds ``result``, or ``result`` where that takes inplace.apply_inplace. */
PyObject *applied(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "applied() takes a tensor and what it shall hold");
    PyObject *target = args[0], *result = args[1], *done;
    if (!IS(target, Tensor) || !IS(result, Tensor) || !IS(AT(target, Tensor__storage), Storage))
        return Py_NewRef(result);
    if ((done = replaced(NULL, args, 2)) == NULL)
        return NULL;
    Py_DECREF(done);
    if (done == Py_True)
        Py_RETURN_NONE;
    PyObject *src = AT(result, Tensor__storage);
    int good = IS(src, Storage) && AT(src, Storage_node) != Py_None && AT(target, Tensor_dtype) == AT(result, Tensor_dtype)
        ? PyObject_RichCompareBool(AT(target, Tensor_shape), AT(result, Tensor_shape), Py_EQ) : 0;
    if (good > 0)
        good = is_part(target);
    if (good <= 0)
        return good < 0 ? NULL : Py_NewRef(result);
    PyObject *gone = Py_REFCNT(result) <= 1 && Py_REFCNT(src) <= 1 ? Py_True : Py_False;                /* the caller's reference, and the tensor's */
    PyObject *all[] = {target, AT(target, Tensor_shape), AT(target, Tensor__strides), AT(target, Tensor__offset), AT(target, Tensor__numel), result, gone};
    if ((done = put_region(NULL, all, 7)) == NULL)
        return NULL;
    Py_DECREF(done);
    return Py_NewRef(done == Py_True ? Py_None : result);
}
