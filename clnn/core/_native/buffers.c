/* Small buffers between two users, and where buffers lie in memory. pyopencl's pool would do the first, and tell the second, in twenty times as long. */
#include "native.h"

enum { SMALL = 1 << 16, MOST_BYTES = 1 << 23, MOST_EACH = 4, MEMORIES = 64, SHELVES = 512, SETS = 4096, WAYS = 4 };

/* Buffers that are nobody's, of one size each and one pool. */
typedef struct {
    PyObject *memory;
    Py_ssize_t size;
    int n;
    PyObject *buffers[MOST_EACH];
} Shelf;

/* What is known of a buffer that lives: the size it was asked for with, and its place in memory, NULL before that was asked for. */
typedef struct {
    PyObject *buffer, *memory;
    Py_ssize_t size;
    void *address;
} Known;

static Shelf shelves[SHELVES];
static Known known[SETS][WAYS];
static PyObject *memories[MEMORIES];            /* which pools these are of, for good */
static unsigned turn;
static Py_ssize_t shelved;                      /* bytes */
static PyTypeObject *pooled;                    /* the class of such buffers, and how it ends */
static destructor end_of_pooled;

static size_t mixed(uintptr_t a)
{
    return (size_t)((uint64_t)(a >> 4) * 0x9E3779B97F4A7C15ull >> 40);
}

static Shelf *shelf_of(PyObject *memory, Py_ssize_t size)
{
    return &shelves[mixed((uintptr_t)memory + ((uintptr_t)size << 8)) % SHELVES];
}

static Known *known_of(PyObject *buffer)
{
    Known *set = known[mixed((uintptr_t)buffer) % SETS];
    for (int i = 0; i < WAYS; i++)
        if (set[i].buffer == buffer)
            return &set[i];
    return NULL;
}

/* Keep ``buffer``, which nobody refers to: whether there is room. */
static int shelve(PyObject *buffer, Known *about)
{
    Shelf *shelf = about->size <= SMALL ? shelf_of(about->memory, about->size) : NULL;
    if (shelf == NULL || (shelf->n && (shelf->memory != about->memory || shelf->size != about->size || shelf->n == MOST_EACH)))
        return 0;
    shelf->memory = about->memory, shelf->size = about->size;
    shelf->buffers[shelf->n++] = buffer;
    shelved += about->size;
    return 1;
}

/* In place of what the class does when nobody refers to a buffer any more. */
static void end(PyObject *buffer)
{
    Known *about = known_of(buffer);
    if (about != NULL && shelved < MOST_BYTES && shelve(buffer, about)) {
        Py_SET_REFCNT(buffer, 1);               /* the shelf's */
        return;
    }
    if (about != NULL)
        about->buffer = NULL;
    end_of_pooled(buffer);
}

/* Give all that nobody uses back to the pools. */
void clear_shelves(void)
{
    for (int i = 0; i < SHELVES && shelved; i++)
        while (shelves[i].n) {
            PyObject *buffer = shelves[i].buffers[--shelves[i].n];
            Known *about = known_of(buffer);
            shelved -= shelves[i].size;
            if (about != NULL)
                about->buffer = NULL;           /* so that it ends */
            Py_DECREF(buffer);
        }
}

static int is_lasting(PyObject *memory)
{
    for (int i = 0; i < MEMORIES; i++) {
        if (memories[i] == NULL)
            memories[i] = Py_NewRef(memory);
        if (memories[i] == memory)
            return 1;
    }
    return 0;
}

static void remember(PyObject *buffer, PyObject *memory, Py_ssize_t size)
{
    if (pooled == NULL) {
        pooled = (PyTypeObject *)Py_NewRef(Py_TYPE(buffer)), end_of_pooled = pooled->tp_dealloc;
        pooled->tp_dealloc = end;
    }
    if (!Py_IS_TYPE(buffer, pooled) || !is_lasting(memory))
        return;
    Known *set = known[mixed((uintptr_t)buffer) % SETS], *place = &set[turn++ % WAYS];          /* another buffer's, of which nothing is known then */
    for (int i = 0; i < WAYS; i++)
        if (set[i].buffer == NULL)
            place = &set[i];
    place->buffer = buffer, place->memory = memory, place->size = size, place->address = NULL;
}

/* A buffer from the pool of ``memory``, by ``allocate``. */
PyObject *new_buffer(PyObject *memory, PyObject *allocate, PyObject *nbytes)
{
    Py_ssize_t size = PyLong_CheckExact(nbytes) ? PyLong_AsSsize_t(nbytes) : -1;
    Shelf *shelf = size >= 0 && size <= SMALL ? shelf_of(memory, size) : NULL;
    if (shelf != NULL && shelf->n && shelf->memory == memory && shelf->size == size) {
        shelved -= size;
        return shelf->buffers[--shelf->n];
    }
    if (shelved >= MOST_BYTES)
        clear_shelves();                        /* of sizes that do not come back, maybe */
    PyObject *buffer = PyObject_CallOneArg(allocate, nbytes);
    if (buffer != NULL && size >= 0)
        remember(buffer, memory, size);
    return buffer;
}

/* Where a buffer lies, as noted by the next; NULL where that is not known. */
void *noted_address(PyObject *buffer)
{
    Known *about = known_of(buffer);
    return about == NULL ? NULL : about->address;
}

void note_address(PyObject *buffer, void *address)
{
    Known *about = known_of(buffer);
    if (about != NULL)
        about->address = address;
}

/* -- what picks buffers from a list: operator.itemgetter of several places, which a C form asks without a list of all ---------------------- */

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc call;
    Py_ssize_t places[1];
} Picker;

static PyTypeObject Picker_type;

/* Items of two lists, as if the one followed the other. */
PyObject *picked_from(PyObject *pick, PyObject *first, PyObject *second)
{
    if (!Py_IS_TYPE(pick, &Picker_type))
        return PyErr_Format(PyExc_TypeError, "not what picks buffers");
    Py_ssize_t n = Py_SIZE(pick), before = PyList_GET_SIZE(first), all = before + (second == NULL ? 0 : PyList_GET_SIZE(second));
    PyObject *picked = PyTuple_New(n);
    for (Py_ssize_t i = 0; picked != NULL && i < n; i++) {
        Py_ssize_t at = ((Picker *)pick)->places[i];
        if (at >= all) {
            PyErr_SetString(PyExc_IndexError, "list index out of range");
            Py_CLEAR(picked);
        } else {
            PyTuple_SET_ITEM(picked, i, Py_NewRef(at < before ? PyList_GET_ITEM(first, at) : PyList_GET_ITEM(second, at - before)));
        }
    }
    return picked;
}

static PyObject *picker_call(PyObject *pick, PyObject *const *args, size_t count, PyObject *names)
{
    if (PyVectorcall_NARGS(count) != 1 || names != NULL || !PyList_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "takes a list");
    return picked_from(pick, args[0], NULL);
}

static void picker_dealloc(PyObject *pick)
{
    Py_TYPE(pick)->tp_free(pick);
}

static PyTypeObject Picker_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Picker", .tp_basicsize = offsetof(Picker, places), .tp_itemsize = sizeof(Py_ssize_t),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .tp_vectorcall_offset = offsetof(Picker, call), .tp_call = PyVectorcall_Call,
    .tp_dealloc = picker_dealloc,
};

/* picker(places): native.picker */
PyObject *picker(PyObject *module, PyObject *places)
{
    PyObject *list = PySequence_Fast(places, "places");
    Picker *new = list == NULL ? NULL : PyObject_NewVar(Picker, &Picker_type, PySequence_Fast_GET_SIZE(list));
    if (new != NULL)
        new->call = picker_call;
    for (Py_ssize_t i = 0; new != NULL && i < Py_SIZE(new); i++)
        if ((new->places[i] = PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(list, i))) < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "places are counted from the beginning");
            Py_CLEAR(new);
        }
    Py_XDECREF(list);
    return (PyObject *)new;
}

int ready_buffers(void)
{
    return PyType_Ready(&Picker_type);
}

/* unshelve(): give what nobody uses back to the pools */
PyObject *unshelve(PyObject *module, PyObject *nothing_given)
{
    clear_shelves();
    Py_RETURN_NONE;
}
