/* Elementwise operators that are recorded, and what tells a structure of them: dispatch.record_briefly, record_alike and structure.told. */
#include "native.h"

/* -- recording --------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    long count, leaves;
    int linear;
} Below;                                    /* what is pending below operands */

/* Whether a pending node takes part in what is recorded over ``shape``. */
static int fusable(PyObject *node, PyObject *t, PyObject *shape, PyObject *numel)
{
    if (AT(node, Node_buf) != Py_None || AT(node, Node_reduce) != Py_None || AT(t, Tensor_dtype) != AT(node, Node_dtype))
        return 0;
    int same = PyObject_RichCompareBool(AT(node, Node_numel), numel, Py_EQ);
    if (same <= 0 || AT(node, Node_linear) == Py_True)
        return same;
    return PyObject_RichCompareBool(AT(node, Node_shape), shape, Py_EQ);
}

/* The reference to what ``t`` is now, read with ``strides``; NULL without an error where Python has to look at it. */
static PyObject *reference(PyObject *t, PyObject *shape, PyObject *numel, PyObject *strides, int flat, Below *below)
{
    PyObject *storage = AT(t, Tensor__storage), *node = Py_None, *source = NULL;
    if (IS(storage, Storage)) {
        if ((node = AT(storage, Storage_node)) == Py_None)
            source = Py_NewRef(AT(storage, Storage_buf));
    } else if (PyObject_TypeCheck(storage, Storage_type)) {                     /* one whose values the host has */
        PyObject *pending = PyObject_GetAttr(storage, s_node);
        if (pending == Py_None)
            source = PyObject_CallMethodNoArgs(storage, s_leaf);
        Py_XDECREF(pending);
    }
    int fits = node != Py_None && IS(node, Node) ? fusable(node, t, shape, numel) : 1;
    if (!fits) {                                                                /* pending values that do not take part are computed */
        PyObject *done = realize(NULL, storage);
        Py_XDECREF(done);
        if (done == NULL || (node = AT(storage, Storage_node)) != Py_None)
            return NULL;
        source = Py_NewRef(AT(storage, Storage_buf));
    }
    if (node == Py_None) {
        if (source == NULL)
            return NULL;
        below->leaves++;
        below->linear &= flat;
        PyObject *ref = PyTuple_Pack(4, source, AT(t, Tensor_dtype), AT(t, Tensor__offset), strides);
        Py_DECREF(source);
        return ref;
    }
    if (!IS(node, Node) || fits < 0)
        return NULL;
    below->count += PyLong_AsLong(AT(node, Node_count));
    below->leaves += PyLong_AsLong(AT(node, Node_leaves));
    below->linear &= AT(node, Node_linear) == Py_True;
    return PyTuple_Pack(4, node, AT(t, Tensor_dtype), zero, strides);
}

enum { EXPR, REFS, COMPUTE, DTYPE, SHAPE, NUMEL, DEVICE, COUNT, LEAVES, LINEAR };              /* what node.record takes */

/* A new node whose values are for ``storage``; ``what``: as node.record takes it. */
static PyObject *new_node(PyObject *const *what, PyObject *storage)
{
    PyObject *node = new_object(Node_type), *out = node == NULL ? NULL : PyWeakref_NewRef(storage, NULL);
    PyObject *done = out == NULL ? NULL : PyObject_CallMethodOneArg(the_recent, s_append, out);
    if (done == NULL) {
        Py_XDECREF(out);
        Py_XDECREF(node);
        return NULL;
    }
    put(node, Node_expr, what[EXPR]), put(node, Node_args, what[REFS]), put(node, Node_compute, what[COMPUTE]), put(node, Node_dtype, what[DTYPE]);
    put(node, Node_shape, what[SHAPE]), put(node, Node_numel, what[NUMEL]), put(node, Node_device, what[DEVICE]), put(node, Node_count, what[COUNT]);
    put(node, Node_leaves, what[LEAVES]), put(node, Node_linear, what[LINEAR]), put(node, Node_buf, Py_None), put(node, Node_reduce, Py_None);
    AT(node, Node_out) = out;
    Py_DECREF(done);
    return node;
}

/* The storage of a new node. */
PyObject *new_pending(PyObject *const *what)
{
    PyObject *storage = new_object(Storage_type), *size = trait(what[DTYPE], itemsize), *nbytes = size == NULL ? NULL : PyNumber_Multiply(what[NUMEL], size);
    PyObject *node = storage == NULL || nbytes == NULL ? NULL : new_node(what, storage);
    if (node != NULL) {
        put(storage, Storage_device, what[DEVICE]), put(storage, Storage_buf, Py_None), put(storage, Storage_pinned, Py_False), put(storage, Storage_version, zero);
        AT(storage, Storage_nbytes) = Py_NewRef(nbytes), AT(storage, Storage_node) = node;
    } else {
        Py_CLEAR(storage);
    }
    Py_XDECREF(size), Py_XDECREF(nbytes);
    return storage;
}

/* Whether a tensor may hold a new node in place of what is in its memory, all of which it is: writing.rebind. */
static int may_hold(PyObject *target, PyObject *dtype, PyObject *shape)
{
    PyObject *st = AT(target, Tensor__storage), *size;
    if (!IS(st, Storage) || AT(st, Storage_pinned) != Py_False || AT(target, Tensor__dense) != Py_True || AT(target, Tensor_dtype) != dtype
            || (AT(target, Tensor_shape) != shape && PyObject_RichCompareBool(AT(target, Tensor_shape), shape, Py_EQ) != 1) || (size = trait(dtype, itemsize)) == NULL)
        return 0;
    Py_ssize_t bytes = PyLong_AsSsize_t(size) * PyLong_AsSsize_t(AT(target, Tensor__numel));
    Py_DECREF(size);
    return bytes == PyLong_AsSsize_t(AT(st, Storage_nbytes)) && PyObject_RichCompareBool(AT(st, Storage_version), zero, Py_GE) > 0;
}

/* Let ``target`` hold a new node: a new reference to it. */
static PyObject *holding(PyObject *target, PyObject *const *what)
{
    PyObject *st = AT(target, Tensor__storage), *node = new_node(what, st);
    if (node == NULL || bump(target)) {
        Py_XDECREF(node);
        return NULL;
    }
    change(st, Storage_node, node);
    change(st, Storage_buf, Py_NewRef(Py_None));
    return wake(target) ? NULL : Py_NewRef(target);
}

/* Whether a node may be made here: no array of the program is read, and versions begin at 0. */
static int recordable(void)
{
    PyObject *births = variable(the_node, s_births);
    return births == NULL ? -1 : births == Py_None && !PyDict_GET_SIZE(the_shared);
}

/* record(expr, refs, compute, dtype, shape, numel, device, count, leaves, linear): node.record */
PyObject *record(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    int here = n == 10 ? recordable() : 0;
    return here < 0 ? NULL : here ? new_pending(args) : PyObject_Vectorcall(the_record, args, n, NULL);
}

/* The storage of a new node over ``refs``, or ``into``, which holds it, where that is a tensor; NULL without an error where Python has to record it. */
static PyObject *pending(PyObject *expr, PyObject *compute, PyObject *dtype, PyObject *shape, PyObject *numel, PyObject *device, PyObject *refs, Below *below,
    PyObject *into)
{
    int failing = PyObject_IsTrue(AT(expr, Expr_failing)), eager = is_true(AT(the_config, Config_eager));
    long most = PyLong_AsLong(the_most_leaves);
    if (failing || eager || recordable() != 1 || below->count > PyLong_AsLong(the_most_nodes) || (into != NULL && !may_hold(into, dtype, shape)))
        return NULL;
    if (below->leaves > most && (below->count > PyLong_AsLong(the_worth_counting) || !counted_once(refs, most, &below->count, &below->leaves)))
        return NULL;
    PyObject *count = PyLong_FromLong(below->count), *leaves = PyLong_FromLong(below->leaves), *got = NULL;
    if (count != NULL && leaves != NULL) {
        PyObject *what[] = {expr, refs, compute, dtype, shape, numel, device, count, leaves, below->linear ? Py_True : Py_False};
        got = into == NULL ? new_pending(what) : holding(into, what);
    }
    Py_XDECREF(count), Py_XDECREF(leaves);
    return got;
}

/* The tensor of such a node. */
static PyObject *recorded(PyObject *expr, PyObject *compute, PyObject *dtype, PyObject *shape, PyObject *numel, PyObject *device, PyObject *refs, Below *below,
    PyObject *into)
{
    PyObject *storage = pending(expr, compute, dtype, shape, numel, device, refs, below, into), *parts[] = {storage, shape, dtype, numel};
    if (into != NULL)
        return storage;
    PyObject *tensor = storage == NULL ? NULL : make(NULL, parts, 4);
    Py_XDECREF(storage);
    return tensor;
}

/* refilled(target, (value,)): elementwise.refilled */
PyObject *refilled(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    PyObject *t = n == 2 ? args[0] : NULL, *value = n == 2 && PyTuple_Check(args[1]) && PyTuple_GET_SIZE(args[1]) == 1 ? PyTuple_GET_ITEM(args[1], 0) : NULL;
    if (value == NULL || !IS(t, Tensor) || !is_storable(value, AT(t, Tensor_dtype)) || AT(t, Tensor__numel) == zero)
        Py_RETURN_FALSE;
    int good = calls_are_usual(), eager = is_true(AT(the_config, Config_eager));
    if (good > 0)
        good = (good = is_tracked(t)) ? good < 0 ? -1 : 0 : !eager && variable(the_foreign, s_dispatched) == Py_None && recordable() == 1;
    if (good <= 0 || !may_hold(t, AT(t, Tensor_dtype), AT(t, Tensor_shape)))
        return good < 0 || PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    PyObject *dtype = AT(t, Tensor_dtype), *refs = PyTuple_Pack(1, value), *held = NULL;
    PyObject *what[] = {the_full, refs, dtype, dtype, AT(t, Tensor_shape), AT(t, Tensor__numel), AT(AT(t, Tensor__storage), Storage_device), one, zero, Py_True};
    if (refs != NULL)
        held = holding(t, what);
    Py_XDECREF(refs), Py_XDECREF(held);
    return held == NULL ? NULL : Py_NewRef(Py_True);
}

/* make(storage, shape, dtype, numel): tensor.make */
PyObject *make(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    PyObject *function = variable(the_dispatch, s_contiguous_strides), *strides, *t;
    if (n != 4)
        return PyErr_Format(PyExc_TypeError, "make() takes 4 arguments");
    if (function == NULL || (strides = PyObject_CallOneArg(function, args[1])) == NULL)
        return NULL;
    if ((t = new_object(Tensor_type)) != NULL) {
        put(t, Tensor__storage, args[0]), put(t, Tensor_shape, args[1]), put(t, Tensor__strides, strides), put(t, Tensor__offset, zero);
        put(t, Tensor_dtype, args[2]), put(t, Tensor__numel, args[3]), put(t, Tensor__dense, Py_True);
    }
    Py_DECREF(strides);
    return t;
}

/* brief(expr, compute, result, a, b, place): dispatch.record_briefly */
PyObject *brief(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 6 && n != 7)
        return PyErr_Format(PyExc_TypeError, "brief() takes 6 arguments, and a tensor that is to hold the result");
    PyObject *a = args[3], *b = args[4], *shape = AT(a, Tensor_shape), *numel = AT(a, Tensor__numel), *got = NULL, *refs = NULL, *other = NULL;
    long place = PyLong_AsLong(args[5]);
    Below below = {1, 0, 1};
    PyObject *first = reference(a, shape, numel, AT(a, Tensor__strides), 1, &below);
    if (first != NULL && place)
        other = place == 1 ? Py_NewRef(b) : reference(b, shape, numel, AT(b, Tensor__strides), 1, &below);
    if (first != NULL && (other != NULL || !place))
        refs = place ? PyTuple_Pack(2, first, other) : PyTuple_Pack(1, first);
    if (refs != NULL)
        got = recorded(args[0], args[1], args[2], shape, numel, AT(AT(a, Tensor__storage), Storage_device), refs, &below, n > 6 ? args[6] : NULL);
    Py_XDECREF(first), Py_XDECREF(other), Py_XDECREF(refs);
    return got != NULL || PyErr_Occurred() ? got : PyObject_Vectorcall(the_record_briefly, args, 6, NULL);
}

/* alike(expr, compute, result, first, operands): dispatch.record_alike */
PyObject *alike(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if ((n != 5 && n != 6) || !PyTuple_Check(args[4]))
        return PyErr_Format(PyExc_TypeError, "alike() takes 5 arguments, and a tensor that is to hold the result");
    PyObject *operands = args[4], *shape = AT(args[3], Tensor_shape), *numel = AT(args[3], Tensor__numel), *got = NULL;
    PyObject *refs = PyTuple_New(PyTuple_GET_SIZE(operands));
    Below below = {1, 0, 1};
    int good = refs != NULL;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *t = PyTuple_GET_ITEM(operands, i), *ref = NULL;
        if (PyFloat_CheckExact(t) || PyLong_CheckExact(t))
            ref = Py_NewRef(t);
        else if (PyObject_TypeCheck(t, Tensor_type))
            ref = reference(t, shape, numel, AT(t, Tensor__strides), 1, &below);
        if ((good = ref != NULL))
            PyTuple_SET_ITEM(refs, i, ref);
    }
    if (good)
        got = recorded(args[0], args[1], args[2], shape, numel, AT(AT(args[3], Tensor__storage), Storage_device), refs, &below, n > 5 ? args[5] : NULL);
    Py_XDECREF(refs);
    return got != NULL || PyErr_Occurred() ? got : PyObject_Vectorcall(the_record_alike, args, 5, NULL);
}

/* The reference to an operand that is walked over with ``strides``: pending values that do not take part are computed. NULL without an error where Python has to
   look at it. ``lies``: whether the elements lie in the order in which they are walked over. */
static PyObject *walked(PyObject *t, PyObject *shape, PyObject *numel, PyObject *strides, int flat, int lies, Below *below)
{
    PyObject *storage = AT(t, Tensor__storage), *ref = NULL;
    if (!IS(storage, Storage))
        return NULL;
    int part = AT(storage, Storage_node) == Py_None ? 1 : lies ? PyObject_RichCompareBool(AT(t, Tensor__numel), numel, Py_EQ) : 0;
    if (part > 0)
        ref = reference(t, shape, numel, strides, flat, below);
    if (part < 0 || ref != NULL || PyErr_Occurred() || AT(storage, Storage_node) == Py_None)
        return ref;
    PyObject *got = realize(NULL, storage);
    Py_XDECREF(got);
    return got == NULL || AT(storage, Storage_node) != Py_None ? NULL : reference(t, shape, numel, strides, flat, below);
}

/* pair(op, compute, result, a, b): dispatch.record_pair */
PyObject *pair(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 5 && n != 6)
        return PyErr_Format(PyExc_TypeError, "pair() takes 5 arguments, and a tensor that is to hold the result");
    PyObject *a = args[3], *b = args[4], *pairs = variable(the_dispatch, s__pairs), *found = NULL, *got = NULL, *first = NULL, *second = NULL, *refs = NULL, *expr;
    if (pairs == NULL)
        return NULL;
    if (PyDict_CheckExact(pairs)) {                         /* in a trace it is another */
        PyObject *key = PyTuple_Pack(4, AT(a, Tensor_shape), AT(a, Tensor__strides), AT(b, Tensor_shape), AT(b, Tensor__strides));
        found = key == NULL ? NULL : PyDict_GetItemWithError(pairs, key);
        Py_XDECREF(key);
    }
    if (found != NULL && PyTuple_CheckExact(found) && (expr = PyObject_GetAttr(args[0], s_expr)) != NULL) {
        PyObject *shape = PyTuple_GET_ITEM(found, 0), *numel = PyTuple_GET_ITEM(found, 1);
        Below below = {1, 0, 1};
        Py_INCREF(found);
        first = walked(a, shape, numel, PyTuple_GET_ITEM(found, 2), PyTuple_GET_ITEM(found, 4) == Py_True, AT(a, Tensor__dense) == Py_True, &below);
        second = first == NULL ? NULL
            : walked(b, shape, numel, PyTuple_GET_ITEM(found, 3), PyTuple_GET_ITEM(found, 5) == Py_True, AT(b, Tensor__dense) == Py_True, &below);
        if (second != NULL && (refs = PyTuple_Pack(2, first, second)) != NULL)
            got = recorded(expr, args[1], args[2], shape, numel, AT(AT(a, Tensor__storage), Storage_device), refs, &below, n > 5 ? args[5] : NULL);
        Py_XDECREF(first), Py_XDECREF(second), Py_XDECREF(refs);
        Py_DECREF(expr), Py_DECREF(found);
    }
    return got != NULL || PyErr_Occurred() ? got : PyObject_Vectorcall(the_record_pair, args, 5, NULL);
}

/* What follows from the shapes and strides of operands, borrowed; NULL without an error where Python has to find it. */
static PyObject *layout_of(PyObject *operands)
{
    PyObject *layouts = variable(the_dispatch, s__layouts), *found = NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(operands);
    PyObject *key = layouts != NULL && PyDict_CheckExact(layouts) ? PyTuple_New(n) : NULL;          /* in a trace it is another */
    for (Py_ssize_t i = 0; key != NULL && i < n; i++) {
        PyObject *t = PyTuple_GET_ITEM(operands, i);
        int plain = simple(t);
        PyObject *part = plain > 0 ? PyTuple_Pack(3, AT(t, Tensor_shape), AT(t, Tensor__strides), AT(t, Tensor__dense)) : plain == 0 ? Py_NewRef(Py_None) : NULL;
        if (part == NULL)
            Py_CLEAR(key);
        else
            PyTuple_SET_ITEM(key, i, part);
    }
    if (key != NULL)
        found = PyDict_GetItemWithError(layouts, key);
    Py_XDECREF(key);
    return found;
}

/* The references to operands that are walked over as ``found`` says; their device, borrowed. NULL without an error where Python has to look at them. */
static PyObject *references(PyObject *operands, PyObject *found, PyObject **device, Below *below)
{
    PyObject *shape = PyTuple_GET_ITEM(found, 0), *numel = PyTuple_GET_ITEM(found, 1), *walks = PyTuple_GET_ITEM(found, 2),
        *refs = PyTuple_New(PyTuple_GET_SIZE(operands));
    for (Py_ssize_t i = 0; refs != NULL && i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *t = PyTuple_GET_ITEM(operands, i), *walk = PyList_GET_ITEM(walks, i), *ref = NULL;
        if (walk == Py_None) {
            ref = Py_NewRef(t);
        } else if (PyObject_TypeCheck(AT(t, Tensor__storage), Storage_type)
                && (*device == NULL || *device == AT(AT(t, Tensor__storage), Storage_device))) {
            *device = AT(AT(t, Tensor__storage), Storage_device);
            ref = walked(t, shape, numel, PyTuple_GET_ITEM(walk, 0), PyTuple_GET_ITEM(walk, 1) == Py_True,
                         PyTuple_GET_ITEM(walk, 2) == Py_True && AT(t, Tensor__offset) == zero, below);
        }
        if (ref == NULL)
            Py_CLEAR(refs);
        else
            PyTuple_SET_ITEM(refs, i, ref);
    }
    return refs;
}

/* laid(op, compute, result, operands): dispatch.record_laid */
PyObject *laid(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 4 || !PyTuple_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "laid() takes 4 arguments");
    PyObject *found = layout_of(args[3]), *expr = PyObject_GetAttr(args[0], s_expr), *device = NULL, *refs = NULL, *storage = NULL, *tensor = NULL;
    Below below = {1, 0, 1};
    if (expr != NULL && found != NULL && !PyObject_IsTrue(AT(expr, Expr_uses_index))) {
        Py_INCREF(found);
        if ((refs = references(args[3], found, &device, &below)) != NULL && device != NULL)
            storage = pending(expr, args[1], args[2], PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1), device, refs, &below, NULL);
        if (storage != NULL && (tensor = new_object(Tensor_type)) != NULL) {
            put(tensor, Tensor__storage, storage), put(tensor, Tensor_shape, PyTuple_GET_ITEM(found, 3)), put(tensor, Tensor__strides, PyTuple_GET_ITEM(found, 4));
            put(tensor, Tensor__offset, zero), put(tensor, Tensor_dtype, args[2]), put(tensor, Tensor__numel, PyTuple_GET_ITEM(found, 1));
            put(tensor, Tensor__dense, PyTuple_GET_ITEM(found, 5));
        }
        Py_XDECREF(refs), Py_XDECREF(storage);
        Py_DECREF(found);
    }
    Py_XDECREF(expr);
    return tensor != NULL || PyErr_Occurred() ? tensor : PyObject_Vectorcall(the_record_laid, args, 4, NULL);
}

/* -- structures of what is pending -------------------------------------------------------------------------------------------------- */

/* structure.packed */
PyObject *packed_number(PyObject *value, PyObject *kind)
{
    int whole = PyLong_CheckExact(value);
    if (whole && (!PyUnicode_CompareWithASCIIString(kind, "int") || !PyUnicode_CompareWithASCIIString(kind, "long")))
        return Py_NewRef(value);
    int wide = !PyUnicode_CompareWithASCIIString(kind, "double");
    if ((whole || PyFloat_CheckExact(value)) && (wide || !PyUnicode_CompareWithASCIIString(kind, "float"))) {
        double number = whole ? PyLong_AsDouble(value) : PyFloat_AS_DOUBLE(value);
        if (number == -1.0 && PyErr_Occurred())
            return NULL;
        return wide ? PyBytes_FromStringAndSize((char *)&number, sizeof number) : whole ? PyFloat_FromDouble(number) : Py_NewRef(value);
    }
    return PyObject_CallFunctionObjArgs(the_packed, value, kind, NULL);
}

/* A number as launches take it. */
PyObject *number_of(PyObject *ref, PyObject *expr, PyObject *compute, Py_ssize_t place)
{
    PyObject *longs = AT(expr, Expr_longs), *kind = trait(compute, acc), *got = NULL;
    int some = kind == NULL ? -1 : PyObject_IsTrue(longs);
    if (some == 0 && PyUnicode_CompareWithASCIIString(kind, "float") == 0) {
        got = PyFloat_CheckExact(ref) || PyLong_CheckExact(ref) ? packed_number(ref, kind) : PyObject_CallOneArg(the_real, ref);
    } else if (some >= 0) {
        PyObject *at = PyLong_FromSsize_t(place);
        int whole = at == NULL ? -1 : some ? PySet_Contains(longs, at) : 0;
        if (whole >= 0)
            got = packed_number(ref, whole ? s_long : kind);
        Py_XDECREF(at);
    }
    Py_XDECREF(kind);
    return got;
}

static int tell(PyObject *node, PyObject *key, PyObject *reads, PyObject *numbers, PyObject *nodes);

/* One operand of a node that is a reference. */
static int tell_reference(PyObject *ref, PyObject *key, PyObject *reads, PyObject *numbers, PyObject *nodes)
{
    if (PyTuple_GET_SIZE(ref) != 4) {                                               /* what was recorded is no reference */
        PyErr_SetString(PyExc_TypeError, "an operand must be Tensor or Number, not tuple");
        return -1;
    }
    PyObject *source = PyTuple_GET_ITEM(ref, 0), *read;
    if (PyObject_TypeCheck(source, Node_type)) {
        PyObject *buf = IS(source, Node) ? Py_NewRef(AT(source, Node_buf)) : PyObject_GetAttr(source, s_buf);
        if (buf == NULL)
            return -1;
        if (buf == Py_None) {
            Py_DECREF(buf);
            PyObject *at = PyDict_GetItemWithError(nodes, source);
            if (at == NULL)
                return PyErr_Occurred() ? -1 : tell(source, key, reads, numbers, nodes);
            return add(key, PyNumber_Float(at));                                /* no number that a family may vary */
        }
        read = PyTuple_Pack(4, buf, PyTuple_GET_ITEM(ref, 1), PyTuple_GET_ITEM(ref, 2), PyTuple_GET_ITEM(ref, 3));
        Py_DECREF(buf);
    } else {
        read = Py_NewRef(ref);
    }
    int offset = PyObject_IsTrue(PyTuple_GET_ITEM(ref, 2));
    if (add(reads, read) || offset < 0 || PyList_Append(key, PyTuple_GET_ITEM(ref, 1)) || PyList_Append(key, offset ? Py_True : Py_False)
            || PyList_Append(key, PyTuple_GET_ITEM(ref, 3)))
        return -1;
    return 0;
}

/* structure._tell */
static int tell(PyObject *node, PyObject *key, PyObject *reads, PyObject *numbers, PyObject *nodes)
{
    PyObject *expr = AT(node, Node_expr), *compute = AT(node, Node_compute), *refs = AT(node, Node_args), *at = PyLong_FromSsize_t(PyDict_GET_SIZE(nodes));
    int failed = at == NULL || PyDict_SetItem(nodes, node, at) || PyList_Append(key, expr) || PyList_Append(key, compute)
        || PyList_Append(key, AT(node, Node_dtype)) || PyList_Append(key, AT(node, Node_shape));
    Py_XDECREF(at);
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(refs); i++) {
        PyObject *ref = PyTuple_GET_ITEM(refs, i);
        if (PyTuple_CheckExact(ref))
            failed = tell_reference(ref, key, reads, numbers, nodes);
        else
            failed = add(numbers, number_of(ref, expr, compute, i)) || PyList_Append(key, Py_None);
    }
    return failed ? -1 : 0;
}

/* Add which reads share an operand, where some do. */
static int add_equal_reads(PyObject *key, PyObject *reads)
{
    Py_ssize_t n = PyList_GET_SIZE(reads), same = 0;
#define READ(i, k) PyTuple_GET_ITEM(PyList_GET_ITEM(reads, i), k)
    for (Py_ssize_t i = 1; i < n && !same; i++)
        for (Py_ssize_t j = 0; j < i && !same; j++)
            same = READ(i, 0) == READ(j, 0);
    if (!same)
        return 0;
    PyObject *places = PyList_New(n);
    for (Py_ssize_t i = 0; places != NULL && i < n; i++) {
        Py_ssize_t j = 0;
        int equal = 0;
        for (; j < i && !equal; j += !equal)
            if (READ(i, 0) == READ(j, 0) && (equal = PyObject_RichCompareBool(READ(i, 2), READ(j, 2), Py_EQ)) < 0)
                break;
        PyObject *place = equal < 0 ? NULL : PyLong_FromSsize_t(j);
        if (place == NULL)
            Py_CLEAR(places);
        else
            PyList_SET_ITEM(places, i, place);
    }
#undef READ
    PyObject *text = places == NULL ? NULL : PyObject_Bytes(places);
    Py_XDECREF(places);
    return add(key, text);
}

/* structure.told */
PyObject *told(PyObject *module, PyObject *root)
{
    if (!IS(root, Node))
        return PyErr_Format(PyExc_TypeError, "told() takes a Node");
    PyObject *key = PyList_New(0), *reads = PyList_New(0), *numbers = PyList_New(0), *nodes = PyDict_New(), *got = NULL;
    if (key != NULL && reads != NULL && numbers != NULL && nodes != NULL && !PyList_Append(key, AT(root, Node_device))
            && !tell(root, key, reads, numbers, nodes) && !add_equal_reads(key, reads))
        got = PyTuple_Pack(4, key, reads, numbers, nodes);
    Py_XDECREF(key), Py_XDECREF(reads), Py_XDECREF(numbers), Py_XDECREF(nodes);
    return got;
}
