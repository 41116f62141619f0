/* Rows of tensors that an optimizer updates at once: multi._kind and multi._gather. */
#include "native.h"

/* Whether ``t`` is all of its memory, on ``device``, and no result on the tape; ``shape``: the row's, ``loose``: whether it may have no dimensions instead. */
static int is_whole(PyObject *t, PyObject *device, PyObject *shape, int loose)
{
    PyObject *storage = AT(t, Tensor__storage), *fn, *size, *whole;
    if (AT(t, Tensor__dense) != Py_True || AT(storage, Storage_device) != device || (fn = history(t, _grad_fn)) == NULL)
        return PyErr_Occurred() ? -1 : 0;
    Py_DECREF(fn);
    int good = fn == Py_None;
    if (good && AT(t, Tensor_shape) != shape && !(loose && !PyTuple_GET_SIZE(AT(t, Tensor_shape))))
        good = PyObject_RichCompareBool(AT(t, Tensor_shape), shape, Py_EQ);
    if (good <= 0)
        return good;
    size = trait(AT(t, Tensor_dtype), itemsize), whole = size == NULL ? NULL : PyNumber_Multiply(AT(t, Tensor__numel), size);
    good = whole == NULL ? -1 : PyObject_RichCompareBool(whole, AT(storage, Storage_nbytes), Py_EQ);
    Py_XDECREF(size), Py_XDECREF(whole);
    return good;
}

/* row_kind(row): multi._kind */
PyObject *row_kind(PyObject *module, PyObject *row)
{
    Py_ssize_t n = PyTuple_Check(row) ? PyTuple_GET_SIZE(row) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyObject_TypeCheck(PyTuple_GET_ITEM(row, i), Tensor_type) || !IS(AT(PyTuple_GET_ITEM(row, i), Tensor__storage), Storage))
            n = 0;
    if (n < 2 || simple(PyTuple_GET_ITEM(row, 0)) <= 0 || PyObject_IsTrue(AT(PyTuple_GET_ITEM(row, 0), Tensor__numel)) <= 0)
        return PyErr_Occurred() ? NULL : PyObject_CallOneArg(the_row_kind, row);
    PyObject *first = PyTuple_GET_ITEM(row, 0), *shape = AT(first, Tensor_shape), *device = AT(AT(first, Tensor__storage), Storage_device), *dtypes, *key = NULL;
    PyObject *kind = PyObject_GetAttr(device, s_kind);
    int good = kind == NULL ? -1 : PyUnicode_Check(kind) && PyUnicode_CompareWithASCIIString(kind, "meta");
    Py_XDECREF(kind);
    for (Py_ssize_t i = 0; i < n && good > 0; i++)
        good = is_whole(PyTuple_GET_ITEM(row, i), device, shape, i == 1);
    if (good <= 0)
        return good < 0 ? NULL : Py_NewRef(Py_None);
    int alike = PyObject_RichCompareBool(AT(PyTuple_GET_ITEM(row, 1), Tensor_shape), shape, Py_EQ);
    if (alike < 0 || (dtypes = PyTuple_New(n)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(dtypes, i, Py_NewRef(AT(PyTuple_GET_ITEM(row, i), Tensor_dtype)));
    key = PyTuple_Pack(3, device, dtypes, alike ? Py_True : Py_False);
    Py_DECREF(dtypes);
    return key;
}

/* The buffer that a result goes to: the target's own, unless somebody else still looks at what it holds. */
static PyObject *buffer_for(PyObject *storage, Py_ssize_t reads, PyObject *device)
{
    PyObject *buf = AT(storage, Storage_buf), *id = PyLong_FromVoidPtr(buf), *fresh;
    int held = id == NULL ? -1 : PySequence_Contains(the_held, id);
    Py_XDECREF(id);
    if (held < 0)
        return NULL;
    if (Py_REFCNT(buf) > 1 + reads + held && AT(storage, Storage_pinned) == Py_False) {
        PyObject *alloc = PyObject_GetAttr(device, s_alloc);
        fresh = alloc == NULL ? NULL : PyObject_CallOneArg(alloc, AT(storage, Storage_nbytes));
        Py_XDECREF(alloc);
        if (fresh == NULL)
            return NULL;
        change(storage, Storage_buf, fresh);
    }
    return Py_NewRef(AT(storage, Storage_buf));
}

/* (elements, buffers read, buffers written) of one row */
static PyObject *gather_row(PyObject *row, PyObject *columns, PyObject *targets, PyObject *device)
{
    Py_ssize_t reads = PyList_GET_SIZE(columns), writes = PyList_GET_SIZE(targets);
    PyObject *ins = PyList_New(0), *results = PyList_New(0), *got = NULL;
    int failed = ins == NULL || results == NULL;
    for (Py_ssize_t i = 0; i < reads && !failed; i++) {
        PyObject *t = PyTuple_GetItem(row, PyLong_AsSsize_t(PyList_GET_ITEM(columns, i)));
        failed = t == NULL || PyList_Append(ins, AT(AT(t, Tensor__storage), Storage_buf));
    }
    for (Py_ssize_t i = 0; i < writes && !failed; i++) {
        PyObject *target = PyList_GET_ITEM(targets, i), *t = PyTuple_GetItem(row, PyLong_AsSsize_t(PyTuple_GET_ITEM(target, 0)));
        failed = t == NULL || add(results, buffer_for(AT(t, Tensor__storage), PyLong_AsSsize_t(PyTuple_GET_ITEM(target, 1)), device)) || bump(t);
    }
    if (!failed)
        got = PyTuple_Pack(3, AT(PyTuple_GET_ITEM(row, 0), Tensor__numel), ins, results);
    Py_XDECREF(ins), Py_XDECREF(results);
    return got;
}

/* gather(device, group, columns, targets): multi._gather */
PyObject *gather(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 4 || !PyList_Check(args[1]) || !PyList_Check(args[2]) || !PyList_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "gather() takes a device, rows, columns and targets");
    PyObject *group = args[1], *rows;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(group); i++)
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(PyList_GET_ITEM(group, i)); k++) {
            PyObject *storage = AT(PyTuple_GET_ITEM(PyList_GET_ITEM(group, i), k), Tensor__storage);
            if (!IS(storage, Storage))                      /* before anything was done */
                return PyObject_Vectorcall(the_gather, args, n, NULL);
            PyObject *got = AT(storage, Storage_node) == Py_None ? Py_NewRef(Py_None) : realize(NULL, storage);
            Py_XDECREF(got);
            if (got == NULL)
                return NULL;
        }
    if ((rows = PyList_New(0)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(group); i++)
        if (add(rows, gather_row(PyList_GET_ITEM(group, i), args[2], args[3], args[0]))) {
            Py_DECREF(rows);
            return NULL;
        }
    return Py_BuildValue("(N())", rows);
}

/* rows_kind(rows): the kind that all rows are of, None where there are several or one goes by itself: multi._kind_of_all */
PyObject *rows_kind(PyObject *module, PyObject *rows)
{
    if (!PyList_Check(rows))
        return PyErr_Format(PyExc_TypeError, "rows_kind() takes a list");
    PyObject *all = NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *kind = row_kind(NULL, PyList_GET_ITEM(rows, i));
        int same = kind == NULL ? -1 : kind == Py_None ? 0 : all == NULL ? 1 : PyObject_RichCompareBool(kind, all, Py_EQ);
        if (all == NULL && same > 0)
            all = Py_NewRef(kind);
        Py_XDECREF(kind);
        if (same <= 0) {
            Py_XDECREF(all);
            return same < 0 ? NULL : Py_NewRef(Py_None);
        }
    }
    return all == NULL ? Py_NewRef(Py_None) : all;
}

/* Whether ``t`` is a dense tensor of which no more is to be known. */
static int is_dense(PyObject *t)
{
    return t != NULL && is_bare(t) && PyObject_TypeCheck(AT(t, Tensor__storage), Storage_type);
}

/* What the host counts with in state[name]: bytes, borrowed; NULL without an error where something else is there. */
static PyObject *counted(PyObject *state, PyObject *name)
{
    PyObject *t = PyDict_GetItemWithError(state, name), *storage = t == NULL || !IS(t, Tensor) ? NULL : AT(t, Tensor__storage);
    return storage != NULL && IS(storage, Counted) && AT(storage, Storage_mirror) != NULL && PyBytes_CheckExact(AT(storage, Storage_mirror))
        ? AT(storage, Storage_mirror) : NULL;
}

/* The row of ``p`` with its gradient and slots; NULL without an error where it is not a usual one. ``values``: its counters, told by the first such row. */
static PyObject *row_of(PyObject *p, PyObject *grad, PyObject *state, PyObject *counters, PyObject *names, PyObject **values)
{
    Py_ssize_t n = PyTuple_GET_SIZE(names), count = PyTuple_GET_SIZE(counters);
    if (*values == NULL && (*values = PyTuple_New(count)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *now = counted(state, PyTuple_GET_ITEM(counters, i)), *first = PyTuple_GET_ITEM(*values, i);
        if (now != NULL && first == NULL)
            PyTuple_SET_ITEM(*values, i, Py_NewRef(now));
        else if (now == NULL || (now != first && PyObject_RichCompareBool(now, first, Py_EQ) <= 0))
            return NULL;
    }
    PyObject *row = PyTuple_New(2 + n);
    if (row == NULL)
        return NULL;
    PyTuple_SET_ITEM(row, 0, Py_NewRef(p)), PyTuple_SET_ITEM(row, 1, Py_NewRef(grad));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *t = PyDict_GetItemWithError(state, PyTuple_GET_ITEM(names, i));
        if (!is_dense(t)) {
            Py_DECREF(row);
            return NULL;
        }
        PyTuple_SET_ITEM(row, 2 + i, Py_NewRef(t));
    }
    return row;
}

/* usual_rows(params, state, counters, names): _rule._usual_rows */
PyObject *usual_rows(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 4 || !PyList_Check(args[0]) || !PyDict_Check(args[1]) || !PyTuple_Check(args[2]) || !PyTuple_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "usual_rows() takes parameters, their states, and names of counters and of slots");
    PyObject *rows = PyList_New(0), *states = PyList_New(0), *values = NULL, *got = NULL;
    int needed = PyTuple_GET_SIZE(args[2]) || PyTuple_GET_SIZE(args[3]), good = rows == NULL || states == NULL ? -1 : 1;
    for (Py_ssize_t i = 0; good > 0 && i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *p = PyList_GET_ITEM(args[0], i), *grad = is_dense(p) ? AT(p, Tensor__grad) : NULL, *state = Py_None, *row;
        int complex = is_dense(p) ? has_trait(AT(p, Tensor_dtype), is_complex) : 1;
        if (complex || (grad != NULL && grad != Py_None && !is_dense(grad))) {
            good = complex < 0 ? -1 : 0;
            break;
        }
        if (grad == NULL || grad == Py_None)
            continue;
        if (needed && ((state = PyDict_GetItemWithError(args[1], p)) == NULL || !PyDict_Check(state))) {
            good = PyErr_Occurred() ? -1 : 0;
            break;
        }
        row = row_of(p, grad, state, args[2], args[3], &values);
        good = row == NULL ? PyErr_Occurred() ? -1 : 0 : PyList_Append(rows, row) || PyList_Append(states, state) ? -1 : 1;
        Py_XDECREF(row);
    }
    if (good > 0 && PyList_GET_SIZE(rows))
        got = PyTuple_Pack(3, values, rows, states);
    else if (good >= 0)
        got = Py_NewRef(Py_None);
    Py_XDECREF(rows), Py_XDECREF(states), Py_XDECREF(values);
    return got;
}

/* counted_on(states, name, packed): write the next number into the counters, all of which are the host's; whether they are, else nothing is done:
   _counters._counted_on */
PyObject *counted_on(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyList_Check(args[0]) || !PyBytes_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "counted_on() takes states, a name and bytes");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *now = PyDict_Check(PyList_GET_ITEM(args[0], i)) ? counted(PyList_GET_ITEM(args[0], i), args[1]) : NULL;
        if (now == NULL || PyBytes_GET_SIZE(now) != PyBytes_GET_SIZE(args[2]))
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *storage = AT(PyDict_GetItem(PyList_GET_ITEM(args[0], i), args[1]), Tensor__storage);
        PyObject *version = PyNumber_Add(AT(storage, Storage_version), one);
        if (version == NULL)
            return NULL;
        change(storage, Storage_mirror, Py_NewRef(args[2]));
        change(storage, Storage_version, version);
    }
    Py_RETURN_TRUE;
}

/* given_in_turn(positions, rows, first, limit): graph/multi._given */
PyObject *given_in_turn(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 4 || !PyList_Check(args[0]) || !PyList_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "given_in_turn() takes positions, rows, and which of them");
    Py_ssize_t first = PyLong_AsSsize_t(args[2]), end = first + PyLong_AsSsize_t(args[3]), count = PyList_GET_SIZE(args[0]), at = 0;
    PyObject *given = PyErr_Occurred() ? NULL : PyTuple_New(2 * count);
    for (Py_ssize_t i = first; given != NULL && at < count; i++) {
        PyObject *row = PyList_GET_ITEM(args[1], i < Py_MIN(end, PyList_GET_SIZE(args[1])) ? i : first);        /* sets that are not there take the first one's */
        for (int k = 1; k < 3; k++)
            for (Py_ssize_t j = 0; j < PyList_GET_SIZE(PyTuple_GET_ITEM(row, k)) && at < count; j++, at++) {
                PyTuple_SET_ITEM(given, 2 * at, Py_NewRef(PyList_GET_ITEM(args[0], at)));
                PyTuple_SET_ITEM(given, 2 * at + 1, Py_NewRef(PyList_GET_ITEM(PyTuple_GET_ITEM(row, k), j)));
            }
    }
    return given;
}

/* of_one_kind(tensors): the dtype of plain tensors of one dtype on one device; None of others: joining.of_one_kind */
PyObject *of_one_kind(PyObject *module, PyObject *tensors)
{
    Py_ssize_t n = PyList_CheckExact(tensors) ? PyList_GET_SIZE(tensors) : 0;
    PyObject *first = n ? PyList_GET_ITEM(tensors, 0) : NULL, *storage;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *t = PyList_GET_ITEM(tensors, i);
        if (!IS(t, Tensor) || AT(t, Tensor_dtype) != AT(first, Tensor_dtype) || !PyObject_TypeCheck(storage = AT(t, Tensor__storage), Storage_type)
                || AT(storage, Storage_device) != AT(AT(first, Tensor__storage), Storage_device))
            Py_RETURN_NONE;
    }
    return Py_NewRef(n ? AT(first, Tensor_dtype) : Py_None);
}

/* How many of the objects are tensors that ask for gradients, at most one; -1: an error. */
static int asking_for_gradients(PyObject *all)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all); i++) {
        PyObject *t = PySequence_Fast_GET_ITEM(all, i);
        int some = PyObject_TypeCheck(t, Tensor_type) ? needs_grad(t) : 0;
        if (some)
            return some;
    }
    return 0;
}

/* tracks(values, variadic): declare._tracks */
PyObject *tracks(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "tracks() takes the values of a call, and whether the first is a list");
    PyObject *values = PySequence_Fast(args[0], "values"), *list = NULL;
    int some = values == NULL ? -1 : asking_for_gradients(values);
    if (!some && args[1] == Py_True && PySequence_Fast_GET_SIZE(values)) {
        list = PySequence_Fast(PySequence_Fast_GET_ITEM(values, 0), "a list of tensors");
        some = list == NULL ? -1 : asking_for_gradients(list);
    }
    Py_XDECREF(values), Py_XDECREF(list);
    return some < 0 ? NULL : Py_NewRef(some ? Py_True : Py_False);
}
