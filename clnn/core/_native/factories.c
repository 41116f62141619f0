/* Factories whose results follow from their arguments alone: calls that were met lately give the next tensor of their kind (see creation.factory). */
#include "native.h"

enum { CALLS = 8, ARGUMENTS = 6, BYTES = 1 << 14, SLOTS = 6 };
enum { NODE, VALUES, MEMORY };              /* what stands behind the tensor: a computation without operands, bytes that the host has, or memory shared by value */

typedef struct {
    int kind, n, named;
    PyObject *args[ARGUMENTS], *names[ARGUMENTS];               /* the names of the last ``named`` ones */
    PyObject *common, *home, *source;                           /* the default dtype and device then; what stands behind the tensor */
    PyObject *slots[SLOTS], *device, *nbytes;                   /* the tensor, and its storage */
} Made;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int next, shares;                       /* shares: memory is nobody's to write to, and given by value */
    Made made[CALLS];
} Remembered;

static void drop(Made *made)
{
    for (int i = 0; i < made->n; i++) {
        Py_CLEAR(made->args[i]);
        Py_CLEAR(made->names[i]);
    }
    made->n = 0;
    Py_CLEAR(made->common);
    Py_CLEAR(made->home);
    Py_CLEAR(made->source);
    Py_CLEAR(made->device);
    Py_CLEAR(made->nbytes);
    for (int i = 0; i < SLOTS; i++)
        Py_CLEAR(made->slots[i]);
}

static Py_ssize_t slot_at(int i)
{
    Py_ssize_t slots[SLOTS] = {Tensor_shape, Tensor__strides, Tensor__offset, Tensor_dtype, Tensor__numel, Tensor__dense};
    return slots[i];
}

/* Whether one argument is as good as another: the same object, or a number or shape of the same type and value. */
static int is_alike(PyObject *a, PyObject *b)
{
    if (a == b)
        return 1;
    if (Py_TYPE(a) != Py_TYPE(b))
        return 0;
    if (PyFloat_CheckExact(a))
        return memcmp(&PyFloat_AS_DOUBLE(a), &PyFloat_AS_DOUBLE(b), sizeof(double)) == 0;
    if (PyLong_CheckExact(a))
        return PyObject_RichCompareBool(a, b, Py_EQ) > 0;
    if (!PyTuple_CheckExact(a) && (PyObject *)Py_TYPE(a) != the_Size)
        return 0;
    return PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b) && only_integers(a) && only_integers(b) && PyObject_RichCompareBool(a, b, Py_EQ) > 0;
}

static int is_lasting(PyObject *v)          /* whether an argument cannot be changed, and no tensor is in it */
{
    if (PyLong_Check(v) || PyFloat_CheckExact(v) || v == Py_None || PyUnicode_CheckExact(v) || Py_IS_TYPE(v, dtype_type) || v == the_strided
            || (PyObject *)Py_TYPE(v) == the_Device || (PyObject *)Py_TYPE(v) == the_device)
        return 1;
    return (PyTuple_CheckExact(v) || (PyObject *)Py_TYPE(v) == the_Size) && only_integers(v);
}

/* Whether results may be told here: nobody is told of operators or launches, sizes are numbers, and versions begin at 0. */
static int is_usual(void)
{
    PyObject *births = variable(the_node, s_births), *tracing = variable(the_symbols, s_tracing);
    int good = births == NULL || tracing == NULL ? -1 : births == Py_None && tracing == Py_None && !PyDict_GET_SIZE(the_shared) && !PyList_GET_SIZE(the_context);
    if (good > 0 && (good = is_true(variable(the_repeat, s_on))) > 0)
        good = unheard();
    return good > 0 ? !is_true(AT(the_config, Config_eager)) : good;
}

static int is_like(const Made *made, PyObject *args, PyObject *named)
{
    PyObject *name, *value;
    Py_ssize_t n = PyTuple_GET_SIZE(args), place = 0;
    if (made->source == NULL || made->n != n + PyDict_GET_SIZE(named) || made->named != PyDict_GET_SIZE(named) || made->common != variable(the_dtypes, s__default_float)
            || made->home != variable(the_physical, s__default))
        return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_alike(PyTuple_GET_ITEM(args, i), made->args[i]))
            return 0;
    for (; PyDict_Next(named, &place, &name, &value); n++)
        if (name != made->names[n] || !is_alike(value, made->args[n]))
            return 0;
    return 1;
}

/* The storage of the next tensor of a kind. */
static PyObject *next_storage(const Made *made)
{
    PyObject *storage;
    if (made->kind == NODE) {
        PyObject *node = made->source, *what[] = {AT(node, Node_expr), AT(node, Node_args), AT(node, Node_compute), AT(node, Node_dtype), AT(node, Node_shape),
            AT(node, Node_numel),
                                                  AT(node, Node_device), AT(node, Node_count), AT(node, Node_leaves), AT(node, Node_linear)};
        return new_pending(what);
    }
    if ((storage = new_object(made->kind == VALUES ? Unsent_type : Storage_type)) == NULL)
        return NULL;
    put(storage, Storage_device, made->device), put(storage, Storage_nbytes, made->nbytes), put(storage, Storage_node, Py_None);
    put(storage, Storage_pinned, Py_False), put(storage, Storage_version, zero), put(storage, Storage_buf, made->kind == VALUES ? Py_None : made->source);
    if (made->kind == VALUES)
        put(storage, Storage_mirror, made->source);
    return storage;
}

static PyObject *next_of(const Made *made)
{
    PyObject *storage = next_storage(made), *new = storage == NULL ? NULL : new_object(Tensor_type);
    if (new != NULL)
        put(new, Tensor__storage, storage);
    for (int i = 0; new != NULL && i < SLOTS; i++)
        put(new, slot_at(i), made->slots[i]);
    Py_XDECREF(storage);
    return new;
}

/* remembered(args, kwargs): the tensor, or None where such a call was not met lately. */
static PyObject *remembered_call(PyObject *callable, PyObject *const *args, size_t given, PyObject *names)
{
    Remembered *self = (Remembered *)callable;
    if (PyVectorcall_NARGS(given) != 2 || names != NULL || !PyTuple_CheckExact(args[0]) || !PyDict_CheckExact(args[1]))
        return PyErr_Format(PyExc_TypeError, "takes the arguments of a call, as a tuple and a dictionary");
    int good = is_usual();
    for (int i = 0; good > 0 && i < CALLS; i++)
        if (is_like(&self->made[i], args[0], args[1]))
            return next_of(&self->made[i]);
    return good < 0 || PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* What stands behind a fresh tensor, borrowed, and of which kind that is; NULL where its values do not follow from the call alone. */
static PyObject *source_of(Remembered *self, PyObject *t, int *kind)
{
    PyObject *storage = AT(t, Tensor__storage), *node;
    if (!IS(t, Tensor) || needs_grad(t) || PyLong_AsSsize_t(AT(storage, Storage_nbytes)) < 1)
        return NULL;
    if (IS(storage, Unsent)) {
        PyObject *values = AT(storage, Storage_mirror);
        *kind = VALUES;
        return values != NULL && PyBytes_CheckExact(values) && PyBytes_GET_SIZE(values) <= BYTES ? values : NULL;
    }
    if (!IS(storage, Storage) || AT(storage, Storage_pinned) != Py_False)
        return NULL;
    if ((node = AT(storage, Storage_node)) == Py_None) {
        *kind = MEMORY;
        return self->shares && AT(storage, Storage_buf) != Py_None && AT(storage, Storage_version) == zero ? AT(storage, Storage_buf) : NULL;
    }
    *kind = NODE;
    if (!IS(node, Node) || AT(node, Node_buf) != Py_None || AT(node, Node_reduce) != Py_None)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(AT(node, Node_args)); i++)
        if (PyTuple_CheckExact(PyTuple_GET_ITEM(AT(node, Node_args), i)))
            return NULL;
    return node;
}

/* A node's description without its storage, and what is behind others. */
static PyObject *kept_source(PyObject *source, int kind)
{
    if (kind != NODE)
        return Py_NewRef(source);
    PyObject *copy = new_object(Node_type);
    Py_ssize_t slots[] = {Node_expr, Node_args, Node_compute, Node_dtype, Node_shape, Node_numel, Node_device, Node_count, Node_leaves, Node_linear};
    for (size_t i = 0; copy != NULL && i < sizeof slots / sizeof *slots; i++)
        put(copy, slots[i], AT(source, slots[i]));
    return copy;
}

/* Whether a call may be told: 1; 0 where it may not, -1 with an error. */
static int is_told(PyObject *args, PyObject *named, PyObject *t)
{
    PyObject *name, *value;
    Py_ssize_t place = 0;
    int good = PyTuple_CheckExact(args) && PyDict_CheckExact(named) && PyTuple_GET_SIZE(args) + PyDict_GET_SIZE(named) <= ARGUMENTS && PyObject_TypeCheck(t, Tensor_type)
        && PyObject_TypeCheck(AT(t, Tensor__storage), Storage_type) ? is_usual() : 0;
    for (Py_ssize_t i = 0; good > 0 && i < PyTuple_GET_SIZE(args); i++)
        good = is_lasting(PyTuple_GET_ITEM(args, i));
    while (good > 0 && PyDict_Next(named, &place, &name, &value))
        good = is_lasting(value) && PyUnicode_CHECK_INTERNED(name);
    return good;
}

/* keep(args, kwargs, tensor): let the next such call be answered here. */
static PyObject *keep(PyObject *callable, PyObject *const *args, Py_ssize_t n)
{
    Remembered *self = (Remembered *)callable;
    PyObject *t = n == 3 ? args[2] : NULL, *name, *value, *source;
    int kind = NODE, good = n == 3 ? is_told(args[0], args[1], t) : 0;
    if (good <= 0 || (source = source_of(self, t, &kind)) == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    Made *made = &self->made[self->next++ & (CALLS - 1)];
    drop(made);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++)
        made->args[made->n++] = Py_NewRef(PyTuple_GET_ITEM(args[0], i));
    for (Py_ssize_t place = 0; PyDict_Next(args[1], &place, &name, &value); made->n++)
        made->args[made->n] = Py_NewRef(value), made->names[made->n] = Py_NewRef(name);
    made->kind = kind, made->named = (int)PyDict_GET_SIZE(args[1]);
    made->common = Py_XNewRef(variable(the_dtypes, s__default_float)), made->home = Py_XNewRef(variable(the_physical, s__default));
    made->device = Py_NewRef(AT(AT(t, Tensor__storage), Storage_device)), made->nbytes = Py_NewRef(AT(AT(t, Tensor__storage), Storage_nbytes));
    for (int i = 0; i < SLOTS; i++)
        made->slots[i] = Py_NewRef(AT(t, slot_at(i)));
    made->source = kept_source(source, kind);                               /* last: what has none is nothing that was kept */
    return made->source == NULL ? NULL : Py_NewRef(Py_None);
}

static void free_remembered(PyObject *callable)
{
    for (int i = 0; i < CALLS; i++)
        drop(&((Remembered *)callable)->made[i]);
    Py_TYPE(callable)->tp_free(callable);
}

/* Remembered(shares) */
static PyObject *new_remembered(PyTypeObject *type, PyObject *args, PyObject *named)
{
    int shares;
    if (!PyArg_ParseTuple(args, "p", &shares))
        return NULL;
    Remembered *new = (Remembered *)type->tp_alloc(type, 0);
    if (new != NULL)
        new->call = remembered_call, new->shares = shares;
    return (PyObject *)new;
}

static PyMethodDef remembered_methods[] = {
    {"keep", (PyCFunction)(void (*)(void))keep, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Remembered_made = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Remembered", .tp_basicsize = sizeof(Remembered), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Remembered, call), .tp_call = PyVectorcall_Call, .tp_new = new_remembered, .tp_dealloc = free_remembered,
    .tp_methods = remembered_methods, .tp_doc = "Calls of a factory that were met lately: creation.factory.",
};
