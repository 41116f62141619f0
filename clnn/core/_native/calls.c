/* The whole of a call in the usual case: elementwise operators, in-place results, functions that are one entry of the tape. */
#include "native.h"
#include <float.h>
#include <math.h>

/* -- elementwise operators ---------------------------------------------------------------------------------------------------------- */

/* ``swift`` of an operator with one or two operands (see elementwise.swift_unary, swift_binary): called with these, it gives a tensor or None. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *op, *expr, *number, *known, *attach;      /* known: what follows from the kinds of the operands */
    int operands;
} Swift;

static long kind_of(PyObject *t)                        /* of a tensor, see dispatch.promote */
{
    return PyLong_AsLong(AT(AT(t, Tensor_dtype), dtype_index)) * 3 + (PyTuple_GET_SIZE(AT(t, Tensor_shape)) ? 2 : 1);
}

/* (compute dtype, result dtype), borrowed; NULL without an error where they are not known. */
static PyObject *promoted(Swift *self, PyObject *first, PyObject *second)
{
    PyObject *kinds = PyTuple_Pack(2, first, second), *key = kinds == NULL ? NULL : PyTuple_Pack(2, self->number, kinds), *found = NULL;
    if (key != NULL)
        found = PyDict_GetItemWithError(self->known, key);
    Py_XDECREF(kinds), Py_XDECREF(key);
    return found;
}

/* The same for one operand. */
static PyObject *promoted_alone(Swift *self, PyObject *a)
{
    PyObject *key = PyTuple_Pack(2, AT(a, Tensor_dtype), PyTuple_GET_SIZE(AT(a, Tensor_shape)) ? Py_False : Py_True), *found = NULL;
    if (key != NULL)
        found = PyDict_GetItemWithError(self->known, key);
    Py_XDECREF(key);
    return found;
}

enum { ALONE, NUMBER, ALIKE, APART };      /* what is beside the first operand: nothing, a number, a tensor that lies like it, any other tensor or layout */

/* The dtypes of a call, borrowed, and what its second operand is; NULL without an error where they are not known. */
static PyObject *told_of(Swift *self, PyObject *const *args, int *beside)
{
    PyObject *a = args[0], *b, *first, *second, *found;
    int dense = AT(a, Tensor__dense) == Py_True;
    if (self->operands == 1)
        return *beside = dense ? ALONE : APART, promoted_alone(self, a);
    b = args[1];
    if (PyFloat_CheckExact(b) || PyLong_CheckExact(b)) {
        PyObject *common = variable(the_dtypes, s__default_float);
        if (common == NULL)
            return NULL;
        *beside = dense ? NUMBER : APART;
        second = PyFloat_CheckExact(b) ? PyLong_FromLong(PyLong_AsLong(AT(common, dtype_index)) * 3) : Py_NewRef(the_integer);
    } else {
        if (simple(b) <= 0 || !PyObject_TypeCheck(AT(b, Tensor__storage), Storage_type)
                || AT(AT(a, Tensor__storage), Storage_device) != AT(AT(b, Tensor__storage), Storage_device))
            return NULL;
        int same = AT(a, Tensor_shape) == AT(b, Tensor_shape) ? 1 : PyObject_RichCompareBool(AT(a, Tensor_shape), AT(b, Tensor_shape), Py_EQ);
        if (same < 0)
            return NULL;
        *beside = dense && same && AT(b, Tensor__dense) == Py_True ? ALIKE : APART;
        second = PyLong_FromLong(kind_of(b));
    }
    first = PyLong_FromLong(kind_of(a));
    found = first == NULL || second == NULL ? NULL : promoted(self, first, second);
    Py_XDECREF(first), Py_XDECREF(second);
    return found;
}

/* The result, pending; None where it is not that simple. */
static PyObject *record_call(Swift *self, PyObject *const *args, PyObject *dtypes, int beside, PyObject *into)
{
    PyObject *a = args[0], *b = self->operands > 1 ? args[1] : Py_None, *compute = PyTuple_GET_ITEM(dtypes, 0), *result = PyTuple_GET_ITEM(dtypes, 1), *got = NULL;
    if (beside != APART) {
        PyObject *place = PyLong_FromLong(beside), *what[] = {self->expr, compute, result, a, b, place, into};
        if (place != NULL)
            got = brief(NULL, what, into == NULL ? 6 : 7);
        Py_XDECREF(place);
        return got;
    }
    if (self->operands > 1 && PyObject_TypeCheck(b, Tensor_type)) {
        PyObject *what[] = {self->op, compute, result, a, b, into};
        if ((got = pair(NULL, what, into == NULL ? 5 : 6)) != Py_None)
            return got;
        Py_DECREF(got);
    }
    PyObject *operands = self->operands > 1 ? PyTuple_Pack(2, a, b) : PyTuple_Pack(1, a), *what[] = {self->op, compute, result, operands};
    got = operands == NULL ? NULL : laid(NULL, what, 4);
    Py_XDECREF(operands);
    return got;
}

/* The same for a number before a tensor. */
static PyObject *number_first(Swift *self, PyObject *const *args)
{
    PyObject *b = args[1], *common = variable(the_dtypes, s__default_float), *found = NULL, *got = NULL;
    int good = common == NULL ? -1 : unheard();
    if (good > 0)
        good = PyObject_TypeCheck(b, Tensor_type) ? simple(b) : 0;
    if (good <= 0)
        return good < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *first = PyFloat_CheckExact(args[0]) ? PyLong_FromLong(PyLong_AsLong(AT(common, dtype_index)) * 3) : Py_NewRef(the_integer);
    PyObject *second = PyLong_FromLong(kind_of(b)), *operands = PyTuple_Pack(2, args[0], b);
    if (first != NULL && second != NULL && operands != NULL)
        found = promoted(self, first, second);
    Py_XDECREF(first), Py_XDECREF(second);
    if (found != NULL) {
        PyObject *what[] = {self->op, PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1), operands};
        got = laid(NULL, what, 4);
    } else if (!PyErr_Occurred()) {
        got = Py_NewRef(Py_None);
    }
    int tracked = got == NULL || got == Py_None ? 0 : is_tracked(b);
    if (tracked < 0 || (tracked && leave_entry(self->op, got, operands, Py_None)))
        Py_CLEAR(got);
    Py_XDECREF(operands);
    return got;
}

/* The result, pending, or ``into``, which holds it, where that is a tensor; None where it is not that simple. */
static PyObject *swiftly(Swift *self, PyObject *const *args, PyObject *into)
{
    PyObject *a = args[0], *found, *result;
    int good = unheard(), beside = ALONE;                   /* a profile puts functions of its own in the place of those that record */
    if (good > 0)
        good = simple(a);
    if (good > 0)
        good = PyObject_TypeCheck(AT(a, Tensor__storage), Storage_type);
    if (good <= 0 || (found = told_of(self, args, &beside)) == NULL)
        return good < 0 || PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    Py_INCREF(found);
    result = record_call(self, args, found, beside, into);
    Py_DECREF(found);
    if (result == NULL || result == Py_None || (into != NULL && result == into))
        return result;
    int tracked = is_tracked(a);
    if (!tracked && self->operands > 1 && PyObject_TypeCheck(args[1], Tensor_type))
        tracked = is_tracked(args[1]);
    if (tracked > 0) {
        PyObject *values = self->operands > 1 ? PyTuple_Pack(2, a, args[1]) : PyTuple_Pack(1, a), *what[] = {self->op, result, values}, *got = NULL;
        if (values != NULL)
            got = PyObject_Vectorcall(self->attach, what, 3, NULL);
        tracked = got == NULL ? -1 : 1;
        Py_XDECREF(values), Py_XDECREF(got);
    }
    if (tracked < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *swift_call(PyObject *callable, PyObject *const *args, size_t given, PyObject *names)
{
    Swift *self = (Swift *)callable;
    if (PyVectorcall_NARGS(given) != self->operands || names != NULL)
        return PyErr_Format(PyExc_TypeError, "takes %d operands", self->operands);
    if (self->operands == 2 && (PyFloat_CheckExact(args[0]) || PyLong_CheckExact(args[0])))
        return number_first(self, args);
    return swiftly(self, args, NULL);
}

static PyTypeObject Swift_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Swift", .tp_basicsize = sizeof(Swift), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Swift, call), .tp_call = PyVectorcall_Call,
};

/* swift(op, known, operands): lives as long as the operator, which is for ever */
PyObject *swift(PyObject *module, PyObject *args)
{
    PyObject *op, *known;
    int operands;
    if (!PyArg_ParseTuple(args, "OO!i", &op, &PyDict_Type, &known, &operands))
        return NULL;
    Swift *new = PyObject_New(Swift, &Swift_type);
    if (new == NULL)
        return NULL;
    new->call = swift_call, new->operands = operands, new->op = Py_NewRef(op), new->known = Py_NewRef(known);
    new->expr = PyObject_GetAttr(op, s_expr), new->number = PyObject_GetAttr(op, s_number), new->attach = PyObject_GetAttr(op, s_attach);
    if (new->expr == NULL || new->number == NULL || new->attach == NULL)
        Py_CLEAR(new);
    return (PyObject *)new;
}

/* -- the question for __torch_function__ -------------------------------------------------------------------------------------------- */

/* What a function does while overrides are active (see override._entry): called with the arguments of a call, as a tuple and a dictionary. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *inner, *python, *kinds;       /* the function as it was; the Python function; whether instances of a class take functions over */
} Asking;

/* Whether ``v`` is of no class that has to be asked, or looked at; items of lists count, too. */
static int is_unasked(PyObject *kinds, PyObject *v)
{
    PyObject *kind = PyDict_GetItemWithError(kinds, (PyObject *)Py_TYPE(v));
    if (kind == Py_False)
        return 1;
    if (kind != Py_None || !(PyList_CheckExact(v) || PyTuple_CheckExact(v)))
        return PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(v, i);
        if (!PyList_CheckExact(item) && !PyTuple_CheckExact(item) && PyDict_GetItemWithError(kinds, (PyObject *)Py_TYPE(item)) != Py_False)
            return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

static int are_plain(PyObject *kinds, PyObject *args, PyObject *named)
{
    PyObject *name, *value;
    Py_ssize_t place = 0;
    int plain = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && plain > 0; i++)
        plain = is_unasked(kinds, PyTuple_GET_ITEM(args, i));
    while (plain > 0 && PyDict_Next(named, &place, &name, &value))
        plain = is_unasked(kinds, value);
    return plain;
}

static PyObject *asking_call(PyObject *callable, PyObject *const *args, size_t given, PyObject *names)
{
    Asking *self = (Asking *)callable;
    if (PyVectorcall_NARGS(given) != 2 || names != NULL || !PyTuple_Check(args[0]) || !PyDict_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "takes the arguments of a call, as a tuple and a dictionary");
    PyObject *off = own(override, off);
    long level = off == NULL ? -1 : PyLong_AsLong(off);
    int plain = level < 0 ? -1 : level ? level == 2 : are_plain(self->kinds, args[0], args[1]), modes;
    if (plain > 0 && level != 2 && (modes = is_true(own(override, modes))))
        plain = modes < 0 ? -1 : 0;
    return plain < 0 ? NULL : plain ? PyObject_Call(self->inner, args[0], PyDict_GET_SIZE(args[1]) ? args[1] : NULL) : PyObject_Vectorcall(self->python, args, 2, NULL);
}

static int asking_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Asking *)self)->inner);
    Py_VISIT(((Asking *)self)->python);
    Py_VISIT(((Asking *)self)->kinds);
    return 0;
}

static int asking_clear(PyObject *self)
{
    Py_CLEAR(((Asking *)self)->inner);
    Py_CLEAR(((Asking *)self)->python);
    Py_CLEAR(((Asking *)self)->kinds);
    return 0;
}

static void asking_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    asking_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject Asking_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Asking", .tp_basicsize = sizeof(Asking), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Asking, call), .tp_call = PyVectorcall_Call, .tp_traverse = asking_traverse, .tp_clear = asking_clear,
    .tp_dealloc = asking_dealloc,
};

/* asking(inner, python, kinds) */
PyObject *asking(PyObject *module, PyObject *args)
{
    PyObject *inner, *python, *kinds;
    if (!PyArg_ParseTuple(args, "OOO!", &inner, &python, &PyDict_Type, &kinds))
        return NULL;
    Asking *new = PyObject_GC_New(Asking, &Asking_type);
    if (new == NULL)
        return NULL;
    new->call = asking_call, new->inner = Py_NewRef(inner), new->python = Py_NewRef(python), new->kinds = Py_NewRef(kinds);
    PyObject_GC_Track(new);
    return (PyObject *)new;
}

int ready_calls(void)
{
    return PyType_Ready(&Swift_type) || PyType_Ready(&Asking_type) ? -1 : 0;
}

/* -- results in place --------------------------------------------------------------------------------------------------------------- */

/* Whether ``result`` is all that ``target`` shall hold, and pending: writing.rebind. */
static int rebindable(PyObject *target, PyObject *result)
{
    PyObject *st = AT(target, Tensor__storage), *src = AT(result, Tensor__storage);
    if (!IS(st, Storage) || !IS(src, Storage) || st == src || AT(src, Storage_node) == Py_None || AT(st, Storage_pinned) != Py_False || AT(src,
        Storage_pinned) != Py_False)
        return 0;
    if (AT(target, Tensor__dense) != Py_True || AT(result, Tensor__dense) != Py_True || AT(target, Tensor_dtype) != AT(result, Tensor_dtype))
        return 0;
    PyObject *size = trait(AT(target, Tensor_dtype), itemsize), *whole = size == NULL ? NULL : PyNumber_Multiply(AT(target, Tensor__numel), size);
    int good = whole == NULL ? -1 : PyObject_RichCompareBool(whole, AT(st, Storage_nbytes), Py_EQ);
    if (good > 0)
        good = PyObject_RichCompareBool(AT(src, Storage_nbytes), AT(st, Storage_nbytes), Py_EQ);
    if (good > 0)
        good = PyObject_RichCompareBool(AT(st, Storage_version), zero, Py_GE);
    Py_XDECREF(size), Py_XDECREF(whole);
    return good;
}

/* writing.rebind of what is rebindable */
static int rebind(PyObject *target, PyObject *result)
{
    PyObject *st = AT(target, Tensor__storage), *src = AT(result, Tensor__storage), *node = AT(src, Storage_node), *out = PyWeakref_NewRef(st, NULL);
    if (out == NULL || bump(target)) {
        Py_XDECREF(out);
        return -1;
    }
    change(st, Storage_node, Py_NewRef(node));
    change(st, Storage_buf, Py_NewRef(AT(src, Storage_buf)));
    change(node, Node_out, out);
    return 0;
}

/* After a write: views of what has a history now have one, too. */
int wake(PyObject *target)
{
    PyObject *base = history(target, _base), *owner = base == Py_None ? target : base, *known, *got;
    int tracks = base == NULL ? -1 : needs_grad(owner), failed = tracks < 0;
    if (tracks > 0 && (known = history(owner, _views)) != NULL) {
        if (known != Py_None) {
            got = PyObject_CallOneArg(the_wake, owner);
            failed = got == NULL;
            Py_XDECREF(got);
        }
        Py_DECREF(known);
    }
    Py_XDECREF(base);
    return failed || PyErr_Occurred() ? -1 : 0;
}

/* replaced(target, result): inplace._replaced */
PyObject *replaced(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "replaced() takes a tensor and what it shall hold");
    PyObject *target = args[0], *result = args[1], *on = variable(the_repeat, s_on);
    int good = on == NULL ? -1 : PyObject_IsTrue(on), tracks = 0;
    if (!good)                                              /* a mode may have to be told of the write */
        return PyObject_Vectorcall(the_replaced, args, 2, NULL);
    if (good > 0)
        good = simple(target);
    if (good > 0)
        good = IS(result, Tensor);
    if (good > 0)
        good = AT(target, Tensor_shape) == AT(result, Tensor_shape) ? 1 : PyObject_RichCompareBool(AT(target, Tensor_shape), AT(result, Tensor_shape), Py_EQ);
    if (good > 0 && (tracks = is_tracked(target)) == 0)
        tracks = is_tracked(result);
    if (good > 0 && tracks)
        good = tracks < 0 ? -1 : 0;
    if (good > 0)
        good = rebindable(target, result);
    if (good > 0 && (rebind(target, result) || wake(target)))
        good = -1;
    return good < 0 ? NULL : Py_NewRef(good ? Py_True : Py_False);
}

/* refuse_overlap(target, inputs): inplace.refuse_overlap */
PyObject *refuse_overlap(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    int clear = n == 2 && PyTuple_Check(args[1]) ? simple(args[0]) : 0;
    for (Py_ssize_t i = 0; clear > 0 && i < PyTuple_GET_SIZE(args[1]); i++) {
        PyObject *t = PyTuple_GET_ITEM(args[1], i);
        if (t == args[0] || PyLong_CheckExact(t) || PyFloat_CheckExact(t) || t == Py_None)
            continue;
        if ((clear = simple(t)) > 0)
            clear = AT(t, Tensor__storage) != AT(args[0], Tensor__storage);
    }
    if (clear < 0)
        return NULL;
    if (clear)
        Py_RETURN_NONE;
    return PyObject_Vectorcall(the_refuse_overlap, args, n, NULL);
}

/* -- functions that are one entry --------------------------------------------------------------------------------------------------- */

/* splice.usual */
int calls_are_usual(void)
{
    PyObject *autocast;
    int good = unheard(), set;
    if (good <= 0 || (good = is_true(variable(the_repeat, s_on))) <= 0)
        return good;
    if ((set = is_true(own(state, watched))) || (set = is_true(own(state, pushing))))
        return set < 0 ? -1 : 0;
    if ((autocast = own(state, autocast)) != Py_None)
        return autocast == NULL ? -1 : 0;
    set = is_true(own(override, modes));
    return set < 0 ? -1 : !set;
}

/* Let ``t`` hold what was recorded for it, which is taken: whether it does; where nothing of its dtype was, without an error, not. */
static PyObject *held_by(PyObject *t, PyObject *result)
{
    PyObject *given[] = {t, result}, *left;
    if (result == t)
        return Py_DECREF(result), Py_NewRef(Py_True);
    if (result == NULL || !IS(result, Tensor) || AT(result, Tensor_dtype) != AT(t, Tensor_dtype)) {
        Py_XDECREF(result);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    }
    left = applied(NULL, given, 2);
    Py_DECREF(result);
    Py_XDECREF(left);
    return left == NULL ? NULL : PyBool_FromLong(left == Py_None);
}

/* overwritten(swift, target, operands): elementwise.overwritten */
PyObject *overwritten(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !Py_IS_TYPE(args[0], &Swift_type) || !PyTuple_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "overwritten() takes what records an operator, a tensor and a tuple");
    Swift *self = (Swift *)args[0];
    PyObject *t = args[1], *other = PyTuple_GET_SIZE(args[2]) ? PyTuple_GET_ITEM(args[2], 0) : NULL, *both[] = {t, other}, *dtype, *dispatched;
    int is_number = other != NULL && (PyFloat_CheckExact(other) || PyLong_CheckExact(other));
    if (PyTuple_GET_SIZE(args[2]) != self->operands - 1 || !IS(t, Tensor) || (other != NULL && !is_number && !IS(other, Tensor)))
        Py_RETURN_FALSE;
    dtype = AT(t, Tensor_dtype);
    if ((dtype != the_float32 && dtype != the_float64 && dtype != the_int64 && dtype != the_int32) || (dispatched = variable(the_foreign, s_dispatched)) != Py_None)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    int good = calls_are_usual();
    if (good > 0)
        good = (good = is_tracked(t)) ? good < 0 ? -1 : 0 : 1;
    if (good > 0 && other != NULL && !is_number && other != t) {
        good = (good = is_tracked(other)) ? good < 0 ? -1 : 0 : 1;
        good = good > 0 ? AT(other, Tensor__storage) != AT(t, Tensor__storage) : good;          /* else they may overlap */
    }
    return held_by(t, good > 0 ? swiftly(self, both, t) : NULL);
}

/* copied(swift, target, source): elementwise.copied, where ``swift`` records what an operand is */
PyObject *copied(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !Py_IS_TYPE(args[0], &Swift_type) || ((Swift *)args[0])->operands != 1)
        return PyErr_Format(PyExc_TypeError, "copied() takes what records an operator of one operand, and two tensors");
    PyObject *t = args[1], *source = args[2];
    if (!IS(t, Tensor) || !IS(source, Tensor) || AT(t, Tensor_dtype) != AT(source, Tensor_dtype) || AT(t, Tensor__storage) == AT(source, Tensor__storage)
            || AT(AT(t, Tensor__storage), Storage_device) != AT(AT(source, Tensor__storage), Storage_device) || variable(the_foreign, s_dispatched) != Py_None)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    int same = AT(t, Tensor_shape) == AT(source, Tensor_shape) ? 1 : PyObject_RichCompareBool(AT(t, Tensor_shape), AT(source, Tensor_shape), Py_EQ);
    int good = same > 0 ? calls_are_usual() : same, tracked = good > 0 ? is_tracked(t) : 0;
    if (good > 0 && !tracked)
        tracked = is_tracked(source);
    good = tracked < 0 ? -1 : good > 0 ? !tracked : good;
    return good < 0 ? NULL : held_by(t, good ? swiftly((Swift *)args[0], &source, t) : NULL);
}

/* What a function of a known kind gives; None where it is not known. */
static PyObject *run_known(PyObject *known, PyObject *operands, PyObject *key)
{
    PyObject *args[] = {operands, key, Py_None, own(state, grad)}, *told = args[3] == NULL ? NULL : kind(NULL, args, 4), *found, *got = NULL;
    if (told == NULL || told == Py_None)
        return told;
    found = PyDict_GetItemWithError(known, PyTuple_GET_ITEM(told, 0));
    if (found != NULL && IS(found, Template) && !PyObject_IsTrue(AT(found, Template_draws))) {
        PyObject *none = PyTuple_New(0), *args[] = {found, operands, PyTuple_GET_ITEM(told, 1), PyTuple_GET_ITEM(told, 2), Py_None, Py_None, none};
        Py_INCREF(found);
        got = none == NULL ? NULL : spliced(NULL, args, 7);
        Py_DECREF(found), Py_XDECREF(none);
    } else if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError)) {          /* an attribute without a hash */
        PyErr_Clear();
        got = Py_NewRef(Py_None);
    }
    Py_DECREF(told);
    return got;
}

/* known_call(known, values, tracked): splice._known_call */
PyObject *known_call(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyDict_CheckExact(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "known_call() takes a dictionary, the values of a call, and whether only those are meant that record gradients");
    int good = calls_are_usual();
    if (good <= 0)
        return good < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *parts = apart(NULL, args[1]), *got = NULL;
    if (parts == NULL)
        return NULL;
    if (PyTuple_GET_ITEM(parts, 1) == Py_None || (args[2] == Py_True && PyTuple_GET_ITEM(parts, 2) != Py_True))
        got = Py_NewRef(Py_None);
    else
        got = run_known(args[0], PyTuple_GET_ITEM(parts, 0), PyTuple_GET_ITEM(parts, 1));
    Py_DECREF(parts);
    return got;
}

/* -- composites that end in one operator -------------------------------------------------------------------------------------------- */

/* Add what tells a value of a call: 1; 0 where such a call goes as it is. ``free``: a usual fraction may be any other, and is an operand like tensors. */
static int describe_value(PyObject *v, int grad, int free, PyObject *key, PyObject *tensors)
{
    int plain = simple(v), known = 0;
    if (free && PyFloat_CheckExact(v) && fabs(PyFloat_AS_DOUBLE(v)) <= FLT_MAX)
        return PyList_Append(key, the_free) || PyList_Append(tensors, v) ? -1 : 1;
    for (Py_ssize_t i = 0; plain > 0 && i < PyList_GET_SIZE(tensors); i++)
        if (PyList_GET_ITEM(tensors, i) == v)                   /* an earlier operand once more */
            return PyList_Append(key, Py_Ellipsis) || add(key, PyLong_FromSsize_t(i)) ? -1 : 1;
    if (plain > 0) {
        PyObject *storage = AT(v, Tensor__storage);
        int tracked = grad ? needs_grad(v) : 0;
        if (tracked < 0 || !PyObject_TypeCheck(storage, Storage_type))
            return tracked < 0 ? -1 : 0;
        return PyList_Append(tensors, v) || PyList_Append(key, AT(v, Tensor_shape)) || PyList_Append(key, AT(v, Tensor__strides)) || PyList_Append(key,
            AT(v, Tensor_dtype))
            || PyList_Append(key, AT(storage, Storage_device)) || PyList_Append(key, tracked ? Py_True : Py_False) ? -1 : 1;
    }
    if (plain < 0 || (known = PySet_Contains(the_thin_attributes, (PyObject *)Py_TYPE(v))) <= 0)
        return plain < 0 || known < 0 ? -1 : 0;
    PyObject *text = PyFloat_CheckExact(v) && PyFloat_AS_DOUBLE(v) == 0.0 ? PyObject_Str(v) : Py_NewRef(v);                 /* 0.0 equals -0.0 */
    return add(key, text) || PyList_Append(key, (PyObject *)Py_TYPE(v)) ? -1 : 1;
}

/* Whether composites are looked at: 1; 0 while somebody listens, or dtypes and sizes do not say it all. */
static int is_looked_at(void)
{
    PyObject *early = variable(the_foreign, s_early), *tracing = variable(the_symbols, s_tracing), *autocast;
    if (early == NULL || tracing == NULL)
        return -1;
    int good = early != Py_None || tracing != Py_None ? 0 : unheard();
    if (good <= 0 || (good = is_true(variable(the_repeat, s_on))) <= 0)
        return good;
    autocast = own(state, autocast);
    return autocast == NULL ? -1 : autocast == Py_None;
}

/* Thinned.record */
static PyObject *record_known(PyObject *found, PyObject *tensors, PyObject *into)
{
    PyObject *places = AT(found, Thinned_places), *result = NULL;
    PyObject *operands = PyTuple_New(PySequence_Fast_GET_SIZE(places));
    for (Py_ssize_t i = 0; operands != NULL && i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *p = PySequence_Fast_GET_ITEM(places, i);
        PyTuple_SET_ITEM(operands, i, Py_NewRef(PyTuple_CheckExact(p) ? PyList_GET_ITEM(tensors, PyLong_AsSsize_t(PyTuple_GET_ITEM(p, 0))) : p));
    }
    if (operands != NULL && AT(found, Thinned_alike) == Py_True) {
        PyObject *what[] = {AT(found, Thinned_expr), AT(found, Thinned_compute), AT(found, Thinned_result), PyList_GET_ITEM(tensors, 0), operands, into};
        result = alike(NULL, what, into == NULL ? 5 : 6);
    }
    if (operands != NULL && (result == Py_None || (result == NULL && !PyErr_Occurred()))) {
        Py_XDECREF(result);
        result = PyObject_CallFunctionObjArgs(the_record_elementwise, AT(found, Thinned_expr), AT(found, Thinned_compute), AT(found, Thinned_result),
            AT(found, Thinned_shape),
                                              AT(found, Thinned_numel), operands, NULL);
    }
    if (result != NULL && result != into && AT(found, Thinned_tracked) == Py_True && leave_entry(AT(found, Thinned_op), result, operands, AT(found, Thinned_label)))
        Py_CLEAR(result);
    Py_XDECREF(operands);
    return result;
}

/* What is known of a call with this key. */
static PyObject *look_up(PyObject *known, PyObject *key, PyObject *tensors, PyObject *into)
{
    PyObject *whole = PyList_AsTuple(key), *found, *got = NULL;
    if (whole == NULL)
        return NULL;
    found = PyDict_GetItemWithError(known, whole);
    if (found != NULL && IS(found, Thinned)) {
        Py_INCREF(found);
        got = record_known(found, tensors, AT(found, Thinned_tracked) == Py_True ? NULL : into);
        Py_DECREF(found);
    } else if (!PyErr_Occurred()) {
        int often = found == NULL ? 0 : PyObject_RichCompareBool(found, the_thin_tries, Py_GT);
        if (!often && PyList_GET_SIZE(tensors))
            got = PyObject_CallFunctionObjArgs(the_thin_missed, whole, tensors, NULL);
        else if (often >= 0)
            got = Py_NewRef(Py_None);
    }
    Py_DECREF(whole);
    return got;
}

/* thin._again of ``first``, unless that is NULL, and the arguments behind it. */
static PyObject *thin_call(PyObject *known, int free, PyObject *first, PyObject *args, PyObject *given, PyObject *into)
{
    int good = is_looked_at(), grad = good > 0 ? is_true(own(state, grad)) : 0;
    PyObject *key, *tensors, *got = NULL, *name, *value;
    Py_ssize_t place = 0;
    if (good <= 0 || grad < 0)
        return good < 0 || grad < 0 ? NULL : Py_NewRef(Py_None);
    key = PyList_New(0), tensors = PyList_New(0);
    good = key == NULL || tensors == NULL ? -1 : first == NULL ? 1 : describe_value(first, grad, free, key, tensors);
    for (Py_ssize_t i = 0; good > 0 && i < PyTuple_GET_SIZE(args); i++)
        good = describe_value(PyTuple_GET_ITEM(args, i), grad, free, key, tensors);
    while (good > 0 && PyDict_Next(given, &place, &name, &value))
        good = PyUnicode_CompareWithASCIIString(name, "out") ? describe_value(value, grad, free, key, tensors) : 0;
    for (place = 0; good > 0 && PyDict_Next(given, &place, &name, &value);)
        good = PyList_Append(key, name) ? -1 : 1;
    if (good > 0)
        got = look_up(known, key, tensors, into);
    Py_XDECREF(key), Py_XDECREF(tensors);
    return good < 0 ? NULL : good ? got : Py_NewRef(Py_None);
}

/* thin(known, free, args, kwargs): thin._again */
PyObject *thin(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 4 || !PyDict_CheckExact(args[0]) || !PyTuple_Check(args[2]) || !PyDict_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "thin() takes a dictionary, a flag and the arguments of a call");
    return thin_call(args[0], args[1] == Py_True, NULL, args[2], args[3], NULL);
}

/* Whether ``v`` is a number, or a tensor that a write to ``t`` leaves alone, and neither is on the tape; -1: an error. */
static int beside(PyObject *t, PyObject *v)
{
    if (PyFloat_CheckExact(v) || PyLong_CheckExact(v) || v == t)
        return 1;
    if (!IS(v, Tensor) || AT(v, Tensor__storage) == AT(t, Tensor__storage))                          /* they may overlap */
        return 0;
    int tracked = is_tracked(v);
    return tracked < 0 ? -1 : !tracked;
}

/* overwritten_thinly(known, free, target, args, kwargs): thin.overwritten */
PyObject *overwritten_thinly(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 5 || !PyDict_CheckExact(args[0]) || !PyTuple_Check(args[3]) || !PyDict_Check(args[4]))
        return PyErr_Format(PyExc_TypeError, "overwritten_thinly() takes a dictionary, a flag, a tensor and the arguments of a call");
    PyObject *t = args[2], *dispatched = variable(the_foreign, s_dispatched), *dtype, *name, *value;
    Py_ssize_t place = 0;
    if (dispatched != Py_None || !IS(t, Tensor))
        return dispatched == NULL ? NULL : Py_NewRef(Py_False);
    dtype = AT(t, Tensor_dtype);
    int good = dtype == the_float32 || dtype == the_float64 ? calls_are_usual() : 0, tracked = good > 0 ? is_tracked(t) : 0;
    good = tracked ? tracked < 0 ? -1 : 0 : good;
    for (Py_ssize_t i = 0; good > 0 && i < PyTuple_GET_SIZE(args[3]); i++)
        good = beside(t, PyTuple_GET_ITEM(args[3], i));
    while (good > 0 && PyDict_Next(args[4], &place, &name, &value))
        good = beside(t, value);
    return held_by(t, good > 0 ? thin_call(args[0], args[1] == Py_True, t, args[3], args[4], t) : NULL);
}
