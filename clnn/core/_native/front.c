/* Functions of operators that first try what most calls come to, before a frame of Python's is made for them: see native.front. */
#include "native.h"

enum { ITEMS = 10 };

/* What is tried, by what is given of it; ``into``: the first argument shall hold the result. */
typedef struct {
    PyObject_HEAD
    PyObject *again, *named, *known, *rest, *seen, *thin, *swift, *same, *made, *op;       /* op: of a kernel, whose calls leave an entry on the tape */
    int operands, shown, listed, free, into, dense;     /* operands: how many the function takes; shown: how many of a kernel's results are no secret; dense: a
                                                           tensor whose elements lie in order is the result */
} Quick;

/* A function of Python's, to all who look at it. */
typedef struct {
    PyFunctionObject function;
    PyObject *code;                         /* what it had at first: with another one, it is another function */
    vectorcallfunc python;
    Quick *quick;
} Front;

static PyTypeObject Front_type;
static PyObject *nothing_named;             /* {} */

static int quick_traverse(PyObject *self, visitproc visit, void *arg)
{
    Quick *q = (Quick *)self;
    PyObject *parts[ITEMS] = {q->again, q->named, q->known, q->rest, q->seen, q->thin, q->swift, q->same, q->made, q->op};
    for (int i = 0; i < ITEMS; i++)
        Py_VISIT(parts[i]);
    return 0;
}

static int quick_clear(PyObject *self)
{
    Quick *q = (Quick *)self;
    PyObject **parts[ITEMS] = {&q->again, &q->named, &q->known, &q->rest, &q->seen, &q->thin, &q->swift, &q->same, &q->made, &q->op};
    for (int i = 0; i < ITEMS; i++)
        Py_CLEAR(*parts[i]);
    return 0;
}

static void quick_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    quick_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject Quick_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Quick", .tp_basicsize = sizeof(Quick), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = quick_traverse, .tp_clear = quick_clear, .tp_dealloc = quick_dealloc,
};

/* -- calls ------------------------------------------------------------------------------------------------------------------------------ */

static PyObject *tuple_from(PyObject *const *args, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple != NULL && i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    return tuple;
}

/* ((name, value), ...) of arguments by name. */
static PyObject *items_of(PyObject *const *values, PyObject *names)
{
    PyObject *items = PyTuple_New(PyTuple_GET_SIZE(names));
    for (Py_ssize_t i = 0; items != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *pair = PyTuple_Pack(2, PyTuple_GET_ITEM(names, i), values[i]);
        if (pair == NULL)
            Py_CLEAR(items);
        else
            PyTuple_SET_ITEM(items, i, pair);
    }
    return items;
}

static int has_out(PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
        if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "out"))
            return 1;
    return 0;
}

/* A call of ``again`` with ``values``, whose reference is taken. What it missed is for the function itself, which asks next. */
static PyObject *asked_again(PyObject *again, PyObject *values)
{
    PyObject *got = values == NULL ? NULL : PyObject_Vectorcall(again, &values, 1, NULL);
    if (got != NULL && (PyObject *)Py_TYPE(got) == the_Missed) {
        hand_on(again, values, got);
        return NULL;
    }
    Py_XDECREF(values);
    return got;
}

static PyObject *try_named(Quick *q, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    if (q->named == NULL || has_out(names))
        return NULL;
    PyObject *given = tuple_from(args, n), *items = given == NULL ? NULL : items_of(args + n, names), *both = items == NULL ? NULL : PyTuple_Pack(2, given, items);
    Py_XDECREF(given), Py_XDECREF(items);
    return asked_again(q->named, both);
}

/* What a kernel's call leaves on the tape, and those of its results that are meant for others. */
static PyObject *with_entry(Quick *q, PyObject *got, PyObject *const *args, Py_ssize_t n, int recording)
{
    if (recording) {
        PyObject *values = tuple_from(args, n);
        int failed = values == NULL || leave_entry(q->op, got, values, Py_None);
        Py_XDECREF(values);
        if (failed) {
            Py_DECREF(got);
            return NULL;
        }
    }
    if (PyTuple_CheckExact(got))
        Py_SETREF(got, q->shown == 1 ? Py_NewRef(PyTuple_GET_ITEM(got, 0)) : PyTuple_GetSlice(got, 0, q->shown));
    return got;
}

/* A call that records gradients, of a function that is one entry then: ``rest`` has the values of the parameters behind the first n that were given. */
static PyObject *try_entry(Quick *q, PyObject *const *args, Py_ssize_t n)
{
    PyObject *rest = PyList_Check(q->rest) && n < PyList_GET_SIZE(q->rest) ? PyList_GET_ITEM(q->rest, n) : Py_None;
    PyObject *given = PyTuple_CheckExact(rest) ? tuple_from(args, n) : NULL, *values = given == NULL ? NULL : PySequence_Concat(given, rest), *got = NULL;
    if (values != NULL) {
        PyObject *what[] = {q->known, values, Py_True};
        got = known_call(NULL, what, 3);
    }
    Py_XDECREF(given), Py_XDECREF(values);
    if (got == Py_None)
        Py_CLEAR(got);
    return got;
}

static int records(PyObject *const *args, Py_ssize_t n)
{
    int grad = is_true(own(state, grad)), some = 0;
    for (Py_ssize_t i = 0; grad > 0 && !some && i < n; i++)
        some = PyObject_TypeCheck(args[i], Tensor_type) ? needs_grad(args[i]) : 0;
    return grad < 0 ? -1 : some;
}

static PyObject *try_again(Quick *q, PyObject *const *args, Py_ssize_t n)
{
    int recording = q->op == NULL ? 0 : is_true(own(state, grad));
    if (recording < 0 || (q->op != NULL && (n != q->operands || (recording && q->listed))))
        return NULL;
    PyObject *got = asked_again(q->again, tuple_from(args, n));
    return got == NULL || q->op == NULL ? got : with_entry(q, got, args, n, recording);
}

/* Whether the first argument holds the result now: it, or NULL. */
static PyObject *try_into(Quick *q, PyObject *const *args, Py_ssize_t n)
{
    PyObject *rest = n ? tuple_from(args + 1, n - 1) : NULL, *done = NULL;
    if (rest == NULL)
        return NULL;
    if (q->same != NULL) {
        PyObject *what[] = {q->same, args[0], n == 2 ? args[1] : Py_None};
        done = copied(NULL, what, 3);
    } else if (q->swift != NULL) {
        PyObject *what[] = {q->swift, args[0], rest};
        done = overwritten(NULL, what, 3);
    } else if (q->thin != NULL) {
        PyObject *what[] = {q->thin, q->free ? Py_True : Py_False, args[0], rest, nothing_named};
        done = overwritten_thinly(NULL, what, 5);
    } else {
        PyObject *what[] = {args[0], rest};
        done = refilled(NULL, what, 2);
    }
    Py_DECREF(rest);
    PyObject *got = done == Py_True ? Py_NewRef(args[0]) : NULL;
    Py_XDECREF(done);
    return got;
}

/* A view that is known, or what a composite that ends in one operator records. */
static PyObject *try_known(Quick *q, PyObject *const *args, Py_ssize_t n)
{
    PyObject *values = tuple_from(args, n), *got = NULL;
    if (values == NULL)
        return NULL;
    if (q->seen != NULL) {
        PyObject *what[] = {q->seen, values};
        got = recalled(NULL, what, 2);
    } else {
        PyObject *what[] = {q->thin, q->free ? Py_True : Py_False, values, nothing_named};
        got = thin(NULL, what, 4);
    }
    Py_DECREF(values);
    if (got != NULL && !IS(got, Tensor))
        Py_CLEAR(got);
    return got;
}

/* A tensor of a factory that made such a one lately. */
static PyObject *try_made(Quick *q, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values = tuple_from(args, n), *named = names == NULL ? Py_NewRef(nothing_named) : PyDict_New(), *got = NULL;
    for (Py_ssize_t i = 0; named != NULL && names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(names, i), args[n + i]))
            Py_CLEAR(named);
    if (values != NULL && named != NULL) {
        PyObject *what[] = {values, named};
        got = PyObject_Vectorcall(q->made, what, 2, NULL);
    }
    Py_XDECREF(values), Py_XDECREF(named);
    if (got == Py_None)
        Py_CLEAR(got);
    return got;
}

/* The result, NULL without an error where the function itself is to be called, or NULL with one. */
static PyObject *tried(Quick *q, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    if (names != NULL && !PyTuple_GET_SIZE(names))
        names = NULL;
    if (q->made != NULL)
        return try_made(q, args, n, names);
    if (variable(the_foreign, s_early) != Py_None || own(state, autocast) != Py_None)
        return NULL;
    if (q->dense)
        return n == 1 && names == NULL && IS(args[0], Tensor) && AT(args[0], Tensor__dense) == Py_True ? Py_NewRef(args[0]) : NULL;
    if (names != NULL)
        return q->into ? NULL : try_named(q, args, n, names);
    if (q->into)
        return try_into(q, args, n);
    if (q->again != NULL || q->known != NULL) {
        PyObject *got = q->again == NULL ? NULL : try_again(q, args, n);
        if (got == NULL && !PyErr_Occurred() && q->known != NULL && records(args, n) > 0 && (got = try_entry(q, args, n)) != NULL)
            drop_handed();
        return got;
    }
    if (q->seen != NULL || q->thin != NULL)
        return try_known(q, args, n);
    PyObject *got = q->swift != NULL && n == q->operands ? PyObject_Vectorcall(q->swift, args, n, NULL) : NULL;
    if (got == Py_None)
        Py_CLEAR(got);
    return got;
}

static PyObject *front_call(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    Front *self = (Front *)callable;
    if (self->function.func_code != self->code)
        return self->python(callable, args, count, names);
    PyObject *got = tried(self->quick, args, PyVectorcall_NARGS(count), names);
    if (got != NULL || PyErr_Occurred())
        return got;
    got = self->python(callable, args, count, names);
    drop_handed();
    return got;
}

/* -- calls whose arguments were looked at before -------------------------------------------------------------------------------------------- */

/* What tells the class of an argument: of a list with that of its first item. */
static PyObject *class_of(PyObject *v)
{
    if (!PyList_CheckExact(v) && !PyTuple_CheckExact(v))
        return Py_NewRef(Py_TYPE(v));
    PyObject *first = PySequence_Fast_GET_SIZE(v) ? (PyObject *)Py_TYPE(PySequence_Fast_GET_ITEM(v, 0)) : Py_None;
    return PyTuple_Pack(2, Py_TYPE(v), first);
}

/* met(known, args, kwargs): worded.met */
PyObject *met(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyAnySet_Check(args[0]) || !PyTuple_Check(args[1]) || !PyDict_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "met() takes a set and the arguments of a call");
    Py_ssize_t count = PyTuple_GET_SIZE(args[1]), named = PyDict_GET_SIZE(args[2]), at = count, place = 0;
    PyObject *kinds = PyTuple_New(count + 2 * named), *name, *value;
    for (Py_ssize_t i = 0; kinds != NULL && i < count; i++) {
        PyObject *kind = class_of(PyTuple_GET_ITEM(args[1], i));
        if (kind == NULL)
            Py_CLEAR(kinds);
        else
            PyTuple_SET_ITEM(kinds, i, kind);
    }
    int out = 0;
    while (kinds != NULL && PyDict_Next(args[2], &place, &name, &value)) {
        out |= !PyUnicode_CompareWithASCIIString(name, "out");
        PyTuple_SET_ITEM(kinds, at, Py_NewRef(name)), PyTuple_SET_ITEM(kinds, at++ + named, Py_NewRef(Py_TYPE(value)));
    }
    int found = kinds == NULL ? -1 : out ? 0 : PySet_Contains(args[0], kinds);
    Py_XDECREF(kinds);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

/* -- functions -------------------------------------------------------------------------------------------------------------------------- */

static int front_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Front *)self)->code);
    Py_VISIT(((Front *)self)->quick);
    return PyFunction_Type.tp_traverse(self, visit, arg);
}

static int front_clear(PyObject *self)
{
    return PyFunction_Type.tp_clear(self);
}

static void front_dealloc(PyObject *self)
{
    Front *front = (Front *)self;
    PyObject *code = front->code, *quick = (PyObject *)front->quick;
    PyFunction_Type.tp_dealloc(self);
    Py_XDECREF(code), Py_XDECREF(quick);
}

/* As the name by which it is found, as functions are. */
static PyObject *front_reduce(PyObject *self, PyObject *nothing_given)
{
    return Py_NewRef(((Front *)self)->function.func_qualname);
}

static PyMethodDef front_methods[] = {{"__reduce__", front_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyTypeObject Front_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "function", .tp_basicsize = sizeof(Front),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(PyFunctionObject, vectorcall), .tp_call = PyVectorcall_Call, .tp_traverse = front_traverse, .tp_clear = front_clear,
    .tp_dealloc = front_dealloc, .tp_methods = front_methods,
};

/* What a function consists of, which both have then. */
static void copy(PyFunctionObject *from, PyFunctionObject *to)
{
#define SAME(X) X(func_globals) X(func_builtins) X(func_name) X(func_qualname) X(func_code) X(func_defaults) X(func_kwdefaults) X(func_closure) X(func_doc) X(func_dict) \
    X(func_module) X(func_annotations)
#define X(part) to->part = Py_XNewRef(from->part);
    SAME(X)
#if PY_VERSION_HEX >= 0x030C0000
    X(func_typeparams)
#endif
#if PY_VERSION_HEX >= 0x030E0000
    X(func_annotate)
#endif
#undef X
    to->func_weakreflist = NULL;
#if PY_VERSION_HEX >= 0x030B0000
    to->func_version = 0;
#endif
}

/* front(function, quick): the same function, which tries ``quick`` first. */
PyObject *front(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyObject_TypeCheck(args[0], &PyFunction_Type) || !Py_IS_TYPE(args[1], &Quick_type))
        return PyErr_Format(PyExc_TypeError, "front() takes a function and what it shall try first");
    PyObject *attributes = PyObject_GenericGetDict(args[0], NULL);              /* one for both */
    Front *new = attributes == NULL ? NULL : PyObject_GC_New(Front, &Front_type);
    Py_XDECREF(attributes);
    if (new == NULL)
        return NULL;
    PyFunctionObject *from = (PyFunctionObject *)args[0];
    copy(from, &new->function);
    new->python = Py_IS_TYPE(args[0], &Front_type) ? ((Front *)args[0])->python : from->vectorcall;
    new->function.vectorcall = front_call;
    new->code = Py_NewRef(from->func_code), new->quick = (Quick *)Py_NewRef(args[1]);
    PyObject_GC_Track(new);
    return (PyObject *)new;
}

/* tries(function): what that tries first, or None */
PyObject *tries(PyObject *module, PyObject *function)
{
    return Py_NewRef(Py_IS_TYPE(function, &Front_type) ? (PyObject *)((Front *)function)->quick : Py_None);
}

/* settled(function): it has the code that it is to keep */
PyObject *settled(PyObject *module, PyObject *function)
{
    if (Py_IS_TYPE(function, &Front_type))
        Py_SETREF(((Front *)function)->code, Py_NewRef(((Front *)function)->function.func_code));
    Py_RETURN_NONE;
}

/* quick(**parts) */
PyObject *quick(PyObject *module, PyObject *args, PyObject *given)
{
    static char *names[] = {"again", "named", "known", "rest", "seen", "thin", "swift", "same", "made", "op", "operands", "shown", "listed", "free", "into", "dense",
                            NULL};
    PyObject *parts[ITEMS] = {NULL};
    int operands = 0, shown = 0, listed = 0, free = 0, into = 0, dense = 0;
    if (!PyArg_ParseTupleAndKeywords(args, given, "|$OOOOOOOOOOiipppp", names, &parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &parts[5], &parts[6],
                                     &parts[7], &parts[8], &parts[9], &operands, &shown, &listed, &free, &into, &dense))
        return NULL;
    Quick *new = PyObject_GC_New(Quick, &Quick_type);
    if (new == NULL)
        return NULL;
    PyObject **places[ITEMS] = {&new->again, &new->named, &new->known, &new->rest, &new->seen, &new->thin, &new->swift, &new->same, &new->made, &new->op};
    for (int i = 0; i < ITEMS; i++)
        *places[i] = Py_XNewRef(parts[i]);
    new->operands = operands, new->shown = shown, new->listed = listed, new->free = free, new->into = into, new->dense = dense;
    PyObject_GC_Track(new);
    return (PyObject *)new;
}

int ready_front(void)
{
    Front_type.tp_base = &PyFunction_Type;
    if ((nothing_named = PyDict_New()) == NULL || PyType_Ready(&Quick_type) || PyType_Ready(&Front_type) || PyDict_DelItemString(Front_type.tp_dict, "__doc__"))
        return -1;                          /* a type's own documentation, none, would hide those of the functions */
    PyType_Modified(&Front_type);
    return 0;
}
