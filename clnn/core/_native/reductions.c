/* Reductions of what is pending: recorded as an earlier one of its kind was (repeat.fold_key), and computed as one launch (reduce.Call.run). */
#include "native.h"

/* -- recording --------------------------------------------------------------------------------------------------------------------- */

/* Add a value and its type, as 1, 1.0 and True are one key: whether that can be; -1: an error. */
static int add_value(PyObject *key, PyObject *value)
{
    if (PyObject_TypeCheck(value, Tensor_type) || (PyTuple_Check(value) && !only_integers(value)))
        return 0;
    return PyList_Append(key, value) || PyList_Append(key, (PyObject *)Py_TYPE(value)) ? -1 : 1;
}

static int add_values(PyObject *key, PyObject *values, Py_ssize_t first)
{
    int good = 1;
    for (Py_ssize_t i = first; i < PyTuple_GET_SIZE(values) && good > 0; i++)
        good = add_value(key, PyTuple_GET_ITEM(values, i));
    return good;
}

/* repeat.fold_key of the values of a call, whose tensor is ``*tensor`` then (borrowed); NULL without an error where a tensor does not come first, and alone. */
static PyObject *key_of(PyObject *values, PyObject **tensor)
{
    PyObject *first = PyTuple_GET_SIZE(values) ? PyTuple_GET_ITEM(values, 0) : Py_None, *given = NULL, *key, *whole = NULL;
    if (PyTuple_CheckExact(first)) {                            /* (arguments, those by name) */
        if (PyTuple_GET_SIZE(values) != 2 || !PyTuple_GET_SIZE(first) || !PyTuple_CheckExact(given = PyTuple_GET_ITEM(values, 1)))
            return NULL;
        values = first;
        first = PyTuple_GET_ITEM(values, 0);
    }
    if (!PyObject_TypeCheck(first, Tensor_type) || simple(first) != 1 || (key = PyList_New(0)) == NULL)
        return NULL;
    *tensor = first;
    int good = PyList_Append(key, AT(first, Tensor_shape)) || PyList_Append(key, AT(first, Tensor_dtype))
        || PyList_Append(key, AT(AT(first, Tensor__storage), Storage_device)) ? -1 : add_values(key, values, 1);
    for (Py_ssize_t i = 0; given != NULL && i < PyTuple_GET_SIZE(given) && good > 0; i++)
        good = PyTuple_CheckExact(PyTuple_GET_ITEM(given, i)) ? add_values(key, PyTuple_GET_ITEM(given, i), 0) : 0;
    if (good > 0)
        whole = PyList_AsTuple(key);
    Py_DECREF(key);
    return whole;
}

/* The pending node that a reduction of ``t`` may have for a prologue (reductions.fold), borrowed, or NULL. */
static PyObject *prologue(PyObject *t)
{
    PyObject *storage = AT(t, Tensor__storage), *node = IS(storage, Storage) ? AT(storage, Storage_node) : Py_None;
    if (!IS(node, Node) || AT(node, Node_buf) != Py_None || AT(node, Node_reduce) != Py_None || AT(t, Tensor__dense) != Py_True
            || AT(t, Tensor_dtype) != AT(node, Node_dtype) || PyObject_RichCompareBool(AT(t, Tensor__numel), AT(node, Node_numel), Py_EQ) != 1)
        return NULL;
    return AT(node, Node_linear) == Py_True || PyObject_RichCompareBool(AT(node, Node_shape), AT(t, Tensor_shape), Py_EQ) == 1 ? node : NULL;
}

/* Let ``call`` be what computes the value of a storage: reduce.defer. */
static int defer(PyObject *storage, PyObject *call)
{
    PyObject *node = AT(storage, Storage_node);
    change(node, Node_reduce, Py_NewRef(call));
    PyObject *got = PyObject_CallMethodOneArg(the_unread, s_append, AT(node, Node_out)), *oldest, *alive;
    Py_XDECREF(got);
    if (got == NULL || PyObject_Size(the_unread) <= PyLong_AsSsize_t(the_most_unread))
        return got == NULL ? -1 : 0;
    oldest = PySequence_GetItem(the_unread, 0);
    alive = oldest == NULL ? NULL : PyObject_CallNoArgs(oldest);
    got = alive == NULL ? NULL : alive == Py_None ? PyObject_CallMethodNoArgs(the_unread, s_popleft) : PyObject_CallNoArgs(the_read_some);
    Py_XDECREF(oldest), Py_XDECREF(alive), Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* The tensor of a reduction of ``t`` that is like an earlier one: ``like`` is (what computes it, dtype of the sum, dtype, shape, elements). */
static PyObject *folded_like(PyObject *t, PyObject *node, PyObject *like)
{
    PyObject *ref = PyTuple_Pack(4, node, AT(t, Tensor_dtype), zero, AT(t, Tensor__strides)), *refs = ref == NULL ? NULL : PyTuple_Pack(1, ref);
    PyObject *call = PyTuple_GET_ITEM(like, 0), *dtype = PyTuple_GET_ITEM(like, 2), *shape = PyTuple_GET_ITEM(like, 3), *numel = PyTuple_GET_ITEM(like, 4);
    PyObject *what[] = {Py_None, refs, PyTuple_GET_ITEM(like, 1), dtype, shape, numel, AT(node, Node_device), one, one, Py_True};
    PyObject *storage = refs == NULL ? NULL : record(NULL, what, 10), *tensor = NULL;
    if (storage != NULL && !defer(storage, call)) {
        PyObject *parts[] = {storage, shape, dtype, numel};
        tensor = make(NULL, parts, 4);
    }
    Py_XDECREF(ref), Py_XDECREF(refs), Py_XDECREF(storage);
    return tensor;
}

/* What a call gives whose operand is pending, if ``folds`` knows its kind; NULL without an error where it does not. ``recording``: gradients may have to be. */
PyObject *folded(PyObject *folds, PyObject *values, int recording)
{
    PyObject *t = NULL, *key = key_of(values, &t), *node = key == NULL ? NULL : prologue(t), *like = NULL, *births = variable(the_node, s_births);
    int eager = is_true(AT(the_config, Config_eager)), tracked = recording && node != NULL ? needs_grad(t) : 0;
    if (node != NULL && births == Py_None && !PyDict_GET_SIZE(the_shared) && eager == 0 && tracked == 0)
        like = PyDict_GetItemWithError(folds, key);
    Py_XDECREF(key);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Clear();                                          /* an argument without a hash */
    if (like == NULL)
        return NULL;
    Py_INCREF(like), Py_INCREF(node);                           /* what is computed meanwhile may change a dictionary, or a storage's node */
    PyObject *got = folded_like(t, node, like);
    Py_DECREF(like), Py_DECREF(node);
    return got;
}

/* -- computing --------------------------------------------------------------------------------------------------------------------- */

/* Launch a reduce.Plan of one launch with operands (buffer, ..., offset), of which ``picks`` are taken unless it is NULL: 1; 0 where Python has to, -1 on errors. */
static int launch_plan(PyObject *plan, PyObject *call, PyObject *device, PyObject *reads, PyObject *picks, PyObject *numbers, PyObject *out)
{
    PyObject *prepared = IS(plan, Plan) ? AT(plan, Plan_prepared) : Py_None, *given, *picked, *got = NULL;
    if (!IS(prepared, Prepared) || AT(plan, Plan_rest) != Py_None)
        return 0;
    PyObject *places = AT(prepared, Prepared_buffers);
    Py_ssize_t n = PyList_GET_SIZE(picks == NULL ? reads : picks);
    if (PyList_GET_SIZE(places) != n + 1 || (given = PyList_New(0)) == NULL)
        return PyErr_Occurred() ? -1 : 0;
    if ((picked = PyTuple_New(2 * n + 2)) != NULL) {
        int failed = 0;
        for (Py_ssize_t i = 0; i <= n; i++) {
            PyObject *read = i == n ? NULL : PyList_GET_ITEM(reads, picks == NULL ? i : PyLong_AsSsize_t(PyList_GET_ITEM(picks, i)));
            PyTuple_SET_ITEM(picked, 2 * i, Py_NewRef(PyList_GET_ITEM(places, i)));
            PyTuple_SET_ITEM(picked, 2 * i + 1, Py_NewRef(read == NULL ? out : PyTuple_GET_ITEM(read, 0)));
            failed |= read != NULL && PyList_Append(given, PyTuple_GET_ITEM(read, 2));
        }
        for (Py_ssize_t i = 0; numbers != NULL && i < PyList_GET_SIZE(numbers) && !failed; i++)
            failed = PyList_Append(given, PyList_GET_ITEM(numbers, i));
        if (!failed && !PyList_Append(given, AT(call, Call_number))) {
            PyObject *args[] = {device, picked, given};
            got = run_prepared(prepared, args, 3);
        }
    }
    Py_DECREF(given), Py_XDECREF(picked), Py_XDECREF(got);
    return got == NULL ? -1 : 1;
}

/* Whether somebody may ask for the pending value of ``node`` itself: its storage, a new reference, or None. */
static PyObject *keeper(PyObject *node)
{
    PyObject *owner = PyObject_CallNoArgs(AT(node, Node_out));
    if (owner != NULL && (!PyObject_TypeCheck(owner, Storage_type) || AT(owner, Storage_node) != node))
        Py_SETREF(owner, Py_NewRef(Py_None));
    return owner;
}

/* The value of a key that begins with what ``key`` holds, borrowed from one of the module's dictionaries; NULL where there is none. */
static PyObject *plan_for(PyObject *name, PyObject *key, PyObject *call, PyObject *dtype)
{
    PyObject *plans = look_up_in(the_reduce, name, NULL), *whole = NULL, *found = NULL;
    if (plans != NULL && PyDict_CheckExact(plans) && !PyList_Append(key, AT(call, Call_kind)) && !PyList_Append(key, dtype)
            && (whole = PyList_AsTuple(key)) != NULL)           /* in a trace it is another */
        found = PyDict_GetItemWithError(plans, whole);
    Py_XDECREF(whole);
    return found;
}

/* Reduce what is pending as it is computed: Call._fused. 2: it has to be in memory. */
static int fused(PyObject *root, PyObject *source, PyObject *call, PyObject *out)
{
    PyObject *parts = told(NULL, source);
    if (parts == NULL)
        return -1;
    PyObject *known = plan_for(s__fusions, PyTuple_GET_ITEM(parts, 0), call, AT(root, Node_dtype));
    int done = known == NULL ? (PyErr_Occurred() ? -1 : 0) : 2;
    if (known != NULL && PyTuple_CheckExact(known) && PyList_CheckExact(PyTuple_GET_ITEM(known, 1))) {
        Py_INCREF(known);
        done = launch_plan(PyTuple_GET_ITEM(known, 0), call, AT(root, Node_device), PyTuple_GET_ITEM(parts, 1), PyTuple_GET_ITEM(known, 1),
                           PyTuple_GET_ITEM(parts, 2), out);
        Py_DECREF(known);
    }
    Py_DECREF(parts);
    return done;
}

/* Reduce what ``ref`` reads, which is in memory. */
static int from_memory(PyObject *root, PyObject *ref, PyObject *call, PyObject *out)
{
    PyObject *source = PyTuple_GET_ITEM(ref, 0), *device = AT(root, Node_device), *key = PyList_New(0), *reads = NULL;
    PyObject *read = IS(source, Node) ? PyTuple_Pack(3, AT(source, Node_buf), Py_None, PyTuple_GET_ITEM(ref, 2)) : NULL, *plan = NULL;
    if (read != NULL && key != NULL && !PyList_Append(key, device) && !PyList_Append(key, PyTuple_GET_ITEM(ref, 1)) && !PyList_Append(key, PyTuple_GET_ITEM(ref, 3)))
        plan = plan_for(s__plans, key, call, AT(root, Node_dtype));
    int done = PyErr_Occurred() ? -1 : 0;
    if (plan != NULL && (reads = PyList_New(0)) != NULL && !PyList_Append(reads, read)) {
        Py_INCREF(plan);
        done = launch_plan(plan, call, device, reads, NULL, NULL, out);
        Py_DECREF(plan);
    }
    Py_XDECREF(key), Py_XDECREF(read), Py_XDECREF(reads);
    return done;
}

/* Call.run of what was launched before: 1; 0 where Python has to, -1 on errors. The device's lock is held. */
int reduced(PyObject *storage, PyObject *root)
{
    PyObject *call = AT(root, Node_reduce), *args = AT(root, Node_args), *device = AT(root, Node_device), *owner = NULL, *alloc = NULL, *out = NULL;
    PyObject *longest = variable(the_reduce, s_LONG), *tracing = variable(the_symbols, s_tracing);
    if (longest == NULL || tracing == NULL)
        return -1;
    if (tracing != Py_None || !IS(call, Call) || AT(call, Call_number) == Py_None || PyTuple_GET_SIZE(args) != 1 || PyObject_IsTrue(AT(root, Node_numel)) != 1)
        return 0;
    PyObject *ref = PyTuple_GET_ITEM(args, 0), *source = PyTuple_GET_ITEM(ref, 0);
    if (!IS(source, Node) || (AT(source, Node_buf) == Py_None && AT(source, Node_reduce) != Py_None))
        return 0;
    int done = AT(source, Node_buf) != Py_None ? 2 : PyLong_AsLong(AT(source, Node_count)) > PyLong_AsLong(longest) ? 0 : 1;
    Py_INCREF(ref), Py_INCREF(call);
    if (done == 1 && (owner = keeper(source)) == NULL)
        done = -1;
    if (done == 1 && owner != Py_None) {                        /* it is wanted itself */
        PyObject *got = realize(NULL, owner);
        done = got == NULL ? -1 : 2;
        Py_XDECREF(got);
    }
    if (done > 0 && ((alloc = PyObject_GetAttr(device, s_alloc)) == NULL || (out = PyObject_CallOneArg(alloc, AT(storage, Storage_nbytes))) == NULL))
        done = -1;
    if (done == 1)
        done = fused(root, source, call, out);
    if (done == 2)
        done = AT(source, Node_buf) != Py_None ? from_memory(root, ref, call, out) : 0;
    if (done == 1) {
        finish_node(root, storage, out);
        change(root, Node_reduce, Py_NewRef(Py_None));
    }
    Py_DECREF(ref), Py_DECREF(call), Py_XDECREF(owner), Py_XDECREF(alloc), Py_XDECREF(out);
    return done;
}
