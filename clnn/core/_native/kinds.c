/* Which calls are of a known kind: repeat.repeated and splice._kind. */
#include "native.h"

/* -- kinds of call ----------------------------------------------------------------------------------------------------------------- */

/* The memory of an operand, a new reference; a storage itself while it is to be computed later. NULL: ``*told`` says why. */
static PyObject *memory_of(PyObject *storage, Py_ssize_t ready, int *told)
{
    PyObject *node, *got;
    *told = PYTHON;
    if (!IS(storage, Storage)) {                            /* values that the host has are sent */
        if (!PyObject_TypeCheck(storage, Storage_type) || (node = PyObject_GetAttr(storage, s_node)) == NULL)
            return NULL;
        Py_DECREF(node);
        return node == Py_None ? PyObject_GetAttr(storage, s_buf) : NULL;
    }
    if ((node = AT(storage, Storage_node)) == Py_None)
        return Py_NewRef(AT(storage, Storage_buf));
    if (!IS(node, Node))
        return NULL;
    if (ready && AT(node, Node_buf) == Py_None) {
        if (PyLong_AsSsize_t(AT(node, Node_numel)) <= ready)
            return Py_NewRef(storage);
        *told = OTHER;
        return NULL;
    }
    if ((got = realize(NULL, storage)) == NULL)
        return NULL;
    Py_DECREF(got);
    return Py_NewRef(AT(storage, Storage_node) != Py_None ? storage : AT(storage, Storage_buf));
}

/* Whether the tensors of a list or tuple are in the memory of a device; those with more than their slots are looked at later. */
static int are_settled(PyObject *values)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
        PyObject *v = PySequence_Fast_GET_ITEM(values, i);
        if (PyObject_TypeCheck(v, Tensor_type) && simple(v) == 1 && (!IS(AT(v, Tensor__storage), Storage) || AT(AT(v, Tensor__storage), Storage_node) != Py_None))
            return 0;
    }
    return 1;
}

/* ``tensors``: a list that they are added to, or NULL. */
static int describe_tensor(PyObject *t, PyObject *key, PyObject *buffers, PyObject *tensors, Py_ssize_t ready)
{
    int good = simple(t), told = PYTHON;
    PyObject *storage = AT(t, Tensor__storage);
    if (good != 1)
        return good < 0 ? FAILED : PYTHON;
    PyObject *memory = memory_of(storage, ready, &told);
    if (memory == NULL)
        return PyErr_Occurred() ? FAILED : told;
    if (add(buffers, memory) || PyList_Append(key, AT(t, Tensor_shape)) || PyList_Append(key, AT(t, Tensor__strides)) || PyList_Append(key, AT(t, Tensor__offset))
            || PyList_Append(key, AT(t, Tensor_dtype)) || PyList_Append(key, AT(storage, Storage_device)) || (tensors != NULL && PyList_Append(tensors, t)))
        return FAILED;
    return TOLD;
}

/* Whether a tuple is told by its value: 1.0 and True in it would be taken for 1. */
int only_integers(PyObject *values)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(values, i)))
            return 0;
    return 1;
}

/* repeat._describe */
static int describe(PyObject *values, PyObject *key, PyObject *buffers, PyObject *tensors, Py_ssize_t ready)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
        PyObject *v = PySequence_Fast_GET_ITEM(values, i);
        int told = TOLD;
        if (PyObject_TypeCheck(v, Tensor_type)) {
            told = describe_tensor(v, key, buffers, tensors, ready);
        } else if (PyList_CheckExact(v) || (PyTuple_CheckExact(v) && !only_integers(v))) {
            Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
            int alike = 0;
            if (ready < 0 && !are_settled(v))
                return OTHER;
            if (add(key, PyFloat_FromDouble((double)n)))                        /* no number that a family may vary */
                return FAILED;
            if (n > 4 && tensors == NULL) {
                PyObject *got = PyObject_CallFunctionObjArgs(the_describe_alike, v, key, buffers, NULL);
                alike = got == NULL ? -1 : got == Py_True;
                Py_XDECREF(got);
            }
            told = alike < 0 ? FAILED : alike ? TOLD : describe(v, key, buffers, tensors, ready);
        } else {
            PyObject *text = PyFloat_CheckExact(v) && PyFloat_AS_DOUBLE(v) == 0.0 ? PyObject_Str(v) : Py_NewRef(v);     /* 0.0 equals -0.0 */
            if (add(key, text) || PyList_Append(key, (PyObject *)Py_TYPE(v)))
                return FAILED;
        }
        if (told != TOLD)
            return told;
    }
    return TOLD;
}

static int add_settings(PyObject *key)
{
    return PyList_Append(key, AT(the_config, Config_matmul_precision)) || PyList_Append(key, AT(the_config, Config_tensor_cores)) ? -1 : 0;
}

static int are_shared(PyObject *buffers)                /* whether operands are the same memory */
{
    Py_ssize_t n = PyList_GET_SIZE(buffers), same = 0;
    for (Py_ssize_t i = 1; i < n && !same; i++)
        for (Py_ssize_t j = 0; j < i && !same; j++)
            same = PyList_GET_ITEM(buffers, i) == PyList_GET_ITEM(buffers, j);
    return same != 0;
}

/* Add which operands are the same memory, where some are. */
static int add_sharing(PyObject *key, PyObject *buffers)
{
    Py_ssize_t n = PyList_GET_SIZE(buffers);
    if (!are_shared(buffers))
        return 0;
    PyObject *places = PyList_New(n);
    if (places == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t j = 0;
        while (PyList_GET_ITEM(buffers, j) != PyList_GET_ITEM(buffers, i))
            j++;
        PyObject *place = PyLong_FromSsize_t(j);
        if (place == NULL) {
            Py_DECREF(places);
            return -1;
        }
        PyList_SET_ITEM(places, i, place);
    }
    PyObject *text = PyObject_Str(places);
    Py_DECREF(places);
    return add(key, text);
}

/* repeat._computed */
static int compute_pending(PyObject *buffers)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(buffers); i++) {
        PyObject *storage = PyList_GET_ITEM(buffers, i);
        if (!IS(storage, Storage))
            continue;
        PyObject *buf = PyObject_CallMethodNoArgs(storage, s_buffer);
        if (buf == NULL || PyList_SetItem(buffers, i, buf))
            return -1;
    }
    return 0;
}

/* ``again`` of a repeated function: called with the values of a call. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *known, *python, *folds;       /* folds: what reductions of pending operands come to, or None */
    Recent *recent;
    Py_ssize_t ready;
    long tries;
    int entries;                            /* of composites, whether calls that record gradients are repeated; -1: of others */
} Again;

/* Add which tensors require gradients, where some do: whether there are some; -1: an error. */
static int add_flags(PyObject *key, PyObject *tensors)
{
    Py_ssize_t n = PyList_GET_SIZE(tensors);
    PyObject *flags = PyTuple_New(n);
    int some = 0;
    for (Py_ssize_t i = 0; flags != NULL && i < n; i++) {
        int tracks = needs_grad(PyList_GET_ITEM(tensors, i));
        if (tracks < 0)
            Py_CLEAR(flags);
        else
            PyTuple_SET_ITEM(flags, i, Py_NewRef(tracks ? Py_True : Py_False));
        some |= tracks > 0;
    }
    int failed = flags == NULL || (some && PyList_Append(key, flags));
    Py_XDECREF(flags);
    return failed ? -1 : some;
}

/* Recorded.run */
static PyObject *run_recorded(PyObject *found, PyObject *buffers, PyObject *tensors)
{
    PyObject *places = AT(found, Recorded_places), *values = AT(found, Recorded_values), *result = run_recipe(AT(found, Recorded_recipe), buffers);
    Py_ssize_t n = PyTuple_GET_SIZE(places);
    PyObject *given = result == NULL ? NULL : PyTuple_New(n);
    for (Py_ssize_t i = 0; given != NULL && i < n; i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
        PyTuple_SET_ITEM(given, i, Py_NewRef(at < 0 || at >= PyList_GET_SIZE(tensors) ? PyTuple_GET_ITEM(values, i) : PyList_GET_ITEM(tensors, at)));
    }
    if (given == NULL || leave_entry(AT(found, Recorded_op), result, given, AT(found, Recorded_label)))
        Py_CLEAR(result);
    Py_XDECREF(given);
    if (result != NULL && PyTuple_CheckExact(result))           /* the others are what the entry keeps */
        Py_SETREF(result, Py_NewRef(PyTuple_GET_ITEM(result, 0)));
    return result;
}

static PyObject *look_up(Again *self, PyObject *values, PyObject *key, PyObject *buffers, PyObject *tensors)
{
    int told = add_settings(key) ? FAILED : describe(values, key, buffers, tensors, self->ready), tracks;
    if (told == PYTHON)
        return PyObject_CallOneArg(self->python, values);
    if (told == OTHER) {
        PyObject *fold = self->folds == Py_None ? NULL : folded(self->folds, values, tensors != NULL);
        return fold != NULL || PyErr_Occurred() ? fold : Py_NewRef(the_LEFT);
    }
    if (told == FAILED || add_sharing(key, buffers) || (tracks = tensors == NULL ? 0 : add_flags(key, tensors)) < 0)
        return NULL;
    if (tracks && !self->entries)
        return Py_NewRef(the_LEFT);
    PyObject *whole = PyList_AsTuple(key);
    if (whole == NULL)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(self->known, whole), *got = NULL;
    Py_XINCREF(found);
    if (found == NULL && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {                          /* an argument without a hash */
            PyErr_Clear();
            got = Py_NewRef(the_LEFT);
        }
    } else if (found != NULL && (IS(found, Recipe) || IS(found, Recorded))) {
        if (IS(found, Recipe) == !tracks && !are_shared(buffers))
            self->recent = keep_recent(self->recent, self->known, values, found, tensors != NULL);
        if (!self->ready || !compute_pending(buffers))
            got = IS(found, Recipe) ? run_recipe(found, buffers) : run_recorded(found, buffers, tensors);
    } else if (found != NULL && PyLong_AsLong(found) > self->tries) {
        if (!are_shared(buffers))
            self->recent = keep_recent(self->recent, self->known, values, the_LEFT, tensors != NULL);
        got = Py_NewRef(the_LEFT);
    } else {
        got = PyObject_CallFunctionObjArgs(the_Missed, whole, buffers, found == NULL ? zero : found, NULL);
    }
    Py_XDECREF(found);
    Py_DECREF(whole);
    return got;
}

/* Whether a tensor among ``values``, or in a list of them, requires gradients; -1: an error. */
int some_track(PyObject *values)
{
    int some = 0;
    for (Py_ssize_t i = 0; !some && i < PySequence_Fast_GET_SIZE(values); i++) {
        PyObject *v = PySequence_Fast_GET_ITEM(values, i);
        some = PyObject_TypeCheck(v, Tensor_type) ? needs_grad(v) : PyTuple_CheckExact(v) || PyList_CheckExact(v) ? some_track(v) : 0;
    }
    return some;
}

/* What a function in C missed, for the same function in Python, which is called next and asks the same (see front.c). */
static struct {
    PyObject *again, *values, *missed;
    PyThreadState *thread;
} handed;

void drop_handed(void)
{
    if (handed.again == NULL || handed.thread != PyThreadState_Get())
        return;
    PyObject *values = handed.values, *missed = handed.missed;
    handed.again = handed.values = handed.missed = NULL;
    Py_DECREF(values), Py_DECREF(missed);
}

/* Takes the references of ``values`` and ``missed``. */
void hand_on(PyObject *again, PyObject *values, PyObject *missed)
{
    PyObject *before[] = {handed.values, handed.missed};
    handed.again = again, handed.values = values, handed.missed = missed, handed.thread = PyThreadState_Get();
    Py_XDECREF(before[0]), Py_XDECREF(before[1]);
}

static int are_same(PyObject *a, PyObject *b)           /* tuples of the same objects */
{
    if (a == b || !PyTuple_CheckExact(a) || !PyTuple_CheckExact(b) || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b))
        return a == b;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++)
        if (!are_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i)))
            return 0;
    return 1;
}

static PyObject *taken(PyObject *again, PyObject *values)
{
    if (handed.again != again || handed.thread != PyThreadState_Get() || !are_same(handed.values, values))
        return NULL;
    PyObject *missed = Py_NewRef(handed.missed);
    drop_handed();
    return missed;
}

static PyObject *again_call(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    Again *self = (Again *)callable;
    int quiet = unheard(), recording = 0;
    PyObject *on = variable(the_repeat, s_on);
    if (quiet < 0 || on == NULL)
        return NULL;
    if (quiet && self->entries >= 0) {
        PyObject *autocast = own(state, autocast);
        quiet = autocast == Py_None;
        recording = is_true(own(state, grad));
        if (autocast == NULL || recording < 0)
            return NULL;
    }
    if (!quiet || !PyObject_IsTrue(on))
        return Py_NewRef(the_LEFT);
    if (PyVectorcall_NARGS(count) != 1 || names != NULL || !PyTuple_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "takes the values of a call, as a tuple");
    PyObject *missed = taken(callable, args[0]);
    if (missed != NULL)
        return missed;
    if (recording && !self->entries && self->folds == Py_None) {                /* those that record gradients are no such calls */
        int some = some_track(args[0]);
        if (some)
            return some < 0 ? NULL : Py_NewRef(the_LEFT);
    }
    PyObject *given = NULL, *operands = NULL, *met = recent_recipe(self->recent, self->known, args[0], recording, &given, &operands), *got = NULL;
    if (met == the_LEFT) {
        Py_DECREF(given), Py_DECREF(operands);
        return met;
    }
    if (met != NULL) {
        got = operands == NULL ? run_recipe(met, given) : run_recorded(met, given, operands);
        Py_DECREF(met), Py_DECREF(given), Py_XDECREF(operands);
        return got;
    }
    PyObject *key = PyList_New(0), *buffers = PyList_New(0), *tensors = recording ? PyList_New(0) : NULL;
    if (key != NULL && buffers != NULL && (!recording || tensors != NULL))
        got = look_up(self, args[0], key, buffers, tensors);
    Py_XDECREF(key), Py_XDECREF(buffers), Py_XDECREF(tensors);
    return got;
}

static int again_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Again *)self)->known);
    Py_VISIT(((Again *)self)->python);
    Py_VISIT(((Again *)self)->folds);
    return 0;
}

static int again_clear(PyObject *self)
{
    Py_CLEAR(((Again *)self)->known);
    Py_CLEAR(((Again *)self)->python);
    Py_CLEAR(((Again *)self)->folds);
    return 0;
}

static void again_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    forget_recent(((Again *)self)->recent);
    again_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject Again_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Again", .tp_basicsize = sizeof(Again), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Again, call), .tp_call = PyVectorcall_Call, .tp_traverse = again_traverse, .tp_clear = again_clear, .tp_dealloc = again_dealloc,
};

int ready_kinds(void)
{
    return PyType_Ready(&Again_type);
}

PyObject *again(PyObject *module, PyObject *args)
{
    PyObject *known, *python, *folds;
    Py_ssize_t ready;
    long tries;
    int entries;
    if (!PyArg_ParseTuple(args, "O!OnliO", &PyDict_Type, &known, &python, &ready, &tries, &entries, &folds))
        return NULL;
    Again *new = PyObject_GC_New(Again, &Again_type);
    if (new == NULL)
        return NULL;
    new->call = again_call, new->recent = NULL, new->ready = ready, new->tries = tries, new->entries = entries;
    new->known = Py_NewRef(known), new->python = Py_NewRef(python), new->folds = Py_NewRef(folds);
    PyObject_GC_Track(new);
    return (PyObject *)new;
}

/* apart(values): splice._apart */
PyObject *apart(PyObject *module, PyObject *values)
{
    if (!PyTuple_Check(values))
        return PyErr_Format(PyExc_TypeError, "apart() takes a tuple");
    PyObject *operands = PyList_New(0), *key = PyList_New(0), *got = NULL;
    int tracked = 0, told = operands != NULL && key != NULL;
    for (Py_ssize_t i = 0; told && i < PyTuple_GET_SIZE(values); i++) {
        PyObject *v = PyTuple_GET_ITEM(values, i);
        PyTypeObject *type = Py_TYPE(v);
        if (IS(v, Tensor) || PyObject_TypeCheck(v, Tensor_type)) {
            int tracks = tracked ? 1 : needs_grad(v);
            if (tracks < 0 || PyList_Append(operands, v) || PyList_Append(key, (PyObject *)Tensor_type))
                goto end;
            tracked |= tracks;
            continue;
        }
        told = type->tp_hash != PyObject_HashNotImplemented;
        for (Py_ssize_t k = 0; told && PyTuple_CheckExact(v) && k < PyTuple_GET_SIZE(v); k++)
            told = !PyObject_TypeCheck(PyTuple_GET_ITEM(v, k), Tensor_type);
        PyObject *text = PyFloat_CheckExact(v) && PyFloat_AS_DOUBLE(v) == 0.0 ? PyObject_Str(v) : Py_NewRef(v);       /* 0.0 equals -0.0 */
        if (add(key, text) || PyList_Append(key, (PyObject *)type))
            goto end;
    }
    if (operands != NULL && key != NULL)
        got = PyTuple_Pack(3, operands, told ? key : Py_None, tracked ? Py_True : Py_False);
end:
    Py_XDECREF(operands), Py_XDECREF(key);
    return got;
}

/* The operands of splice._kind, each in ``edges`` or None; ``tracked`` and ``device`` are found. */
static int describe_operands(PyObject *operands, PyObject *edges, int grad, PyObject *key, PyObject *buffers, int *tracked, PyObject **device)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(operands); i++) {
        PyObject *t = PySequence_Fast_GET_ITEM(operands, i), *end = edges == Py_None ? NULL : PySequence_Fast_GET_ITEM(edges, i);
        int tracks = end != NULL && end != Py_None;
        if (t == Py_None) {
            if (PyList_Append(key, tracks ? Py_True : Py_False))
                return FAILED;
            continue;
        }
        PyObject *storage = AT(t, Tensor__storage);
        if (!PyObject_TypeCheck(storage, Storage_type))
            return PYTHON;
        int complex = has_trait(AT(t, Tensor_dtype), is_complex), told = PYTHON;
        if (complex || (*device != NULL && AT(storage, Storage_device) != *device))
            return complex < 0 ? FAILED : OTHER;
        *device = AT(storage, Storage_device);
        PyObject *memory = memory_of(storage, 0, &told);
        if (memory == NULL)
            return PyErr_Occurred() ? FAILED : told;
        if (add(buffers, memory))
            return FAILED;
        if (edges == Py_None && grad && (tracks = needs_grad(t)) < 0)
            return FAILED;
        tracks = tracks && grad;
        *tracked |= tracks;
        if (PyList_Append(key, AT(t, Tensor_shape)) || PyList_Append(key, AT(t, Tensor__strides))
                || PyList_Append(key, AT(t, Tensor__offset)) || PyList_Append(key, AT(t, Tensor_dtype)) || PyList_Append(key, tracks ? Py_True : Py_False))
            return FAILED;
    }
    return add_sharing(key, buffers) || PyList_Append(key, *device) ? FAILED : TOLD;
}

/* kind(operands, key, edges, grad): splice._kind */
PyObject *kind(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 4)
        return PyErr_Format(PyExc_TypeError, "kind() takes 4 arguments");
    PyObject *operands = args[0], *edges = args[2], *key = NULL, *buffers = NULL, *got = NULL, *device = NULL;
    Py_ssize_t total = 0, most = PyLong_AsSsize_t(the_most_elements);
    int listed = PyList_Check(operands) || PyTuple_Check(operands), told = PYTHON, tracked = 0;
    if (!listed || (edges != Py_None && (!PyList_Check(edges) || PyList_GET_SIZE(edges) < PySequence_Fast_GET_SIZE(operands))))
        return PyObject_Vectorcall(the_kind, args, 4, NULL);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(operands); i++) {
        PyObject *t = PySequence_Fast_GET_ITEM(operands, i);
        int good = t == Py_None ? 0 : simple(t);
        if (good < 0)
            return NULL;
        if (!good && t != Py_None)
            Py_RETURN_NONE;
        total += good ? PyLong_AsSsize_t(AT(t, Tensor__numel)) : 0;
    }
    if (total <= 0 || total > most)         /* before anything is computed that would gain by being fused */
        Py_RETURN_NONE;
    PyObject *parts = PySequence_Tuple(args[1]), *first = parts == NULL ? NULL : PyTuple_Pack(1, parts);
    Py_XDECREF(parts);
    if (first != NULL && (key = PyList_New(0)) != NULL && (buffers = PyList_New(0)) != NULL && !add_settings(key) && !PyList_Append(key, first)) {
        told = describe_operands(operands, edges, PyObject_IsTrue(args[3]), key, buffers, &tracked, &device);
        if (told == TOLD) {
            PyObject *whole = PyList_AsTuple(key);
            got = whole == NULL ? NULL : PyTuple_Pack(3, whole, buffers, tracked ? Py_True : Py_False);
            Py_XDECREF(whole);
        } else if (told == OTHER) {
            got = Py_NewRef(Py_None);
        }
    }
    int ask = told == PYTHON && key != NULL && buffers != NULL && !PyErr_Occurred();
    Py_XDECREF(first);
    Py_XDECREF(key);
    Py_XDECREF(buffers);
    return ask ? PyObject_Vectorcall(the_kind, args, 4, NULL) : got;
}

