/* Arrays of the values of tensors: interop.to_numpy. */
#include "native.h"

/* -- memory that arrays see --------------------------------------------------------------------------------------------------------- */

/* Memory of a buffer that arrays see: one that nobody else has goes back with the last of them; of another, ``seen`` counts who looks (sharing.Shared). */
typedef struct {
    PyObject_HEAD
    PyObject *buf, *seen;
    void *memory;
    Py_ssize_t nbytes;
} Kept;

/* One window more or less, ``by``, of what is shared: how many there are. */
static long count_windows(PyObject *seen, long by)
{
    PyObject *count = PyObject_GetAttr(seen, s_windows), *more = NULL;
    long n = count == NULL ? -1 : PyLong_AsLong(count) + by;
    int failed = PyErr_Occurred() || (more = PyLong_FromLong(n)) == NULL || PyObject_SetAttr(seen, s_windows, more);
    Py_XDECREF(count), Py_XDECREF(more);
    return failed ? -1 : n;
}

static void kept_dealloc(PyObject *self)
{
    Kept *kept = (Kept *)self;
    if (kept->seen != NULL) {
        PyObject *type, *value, *trace, *got;
        PyErr_Fetch(&type, &value, &trace);
        if (!count_windows(kept->seen, -1)) {
            got = PyObject_CallMethodNoArgs(kept->seen, s_watched);
            Py_XDECREF(got);
        }
        if (PyErr_Occurred())
            PyErr_WriteUnraisable(kept->seen);
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(kept->buf), Py_XDECREF(kept->seen);
    PyObject_Free(self);
}

static int kept_buffer(PyObject *self, Py_buffer *view, int flags)
{
    Kept *kept = (Kept *)self;
    return PyBuffer_FillInfo(view, self, kept->memory, kept->nbytes, 0, flags);
}

static PyBufferProcs kept_procs = {kept_buffer, NULL};

static PyTypeObject Kept_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Kept", .tp_basicsize = sizeof(Kept), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_dealloc = kept_dealloc, .tp_as_buffer = &kept_procs,
};

/* The memory of ``storage``, whose buffer is ``buf``; ``seen``: who counts, or NULL. */
static PyObject *keep(PyObject *device, PyObject *storage, PyObject *buf, PyObject *seen)
{
    void *memory;
    int known = address_in(device, buf, &memory);
    Kept *new = known <= 0 || memory == NULL || (seen != NULL && count_windows(seen, 1) < 0) ? NULL : PyObject_New(Kept, &Kept_type);
    if (new != NULL)
        new->buf = Py_NewRef(buf), new->seen = Py_XNewRef(seen), new->memory = memory, new->nbytes = PyLong_AsSsize_t(AT(storage, Storage_nbytes));
    return (PyObject *)new;
}

/* An array of the elements of ``t`` in ``memory``, any object with a buffer. */
static PyObject *array_over(PyObject *t, PyObject *memory)
{
    PyObject *row = AT(AT(t, Tensor_dtype), dtype_np), *strides = AT(t, Tensor__strides), *offset = NULL, *steps = NULL, *got = NULL;
    PyObject *size = trait(AT(t, Tensor_dtype), itemsize);
    Py_ssize_t itemsize = size == NULL ? -1 : PyLong_AsSsize_t(size), n = PyTuple_GET_SIZE(strides), begin = PyLong_AsSsize_t(AT(t, Tensor__offset));
    Py_XDECREF(size);
    if (itemsize > 0 && !PyErr_Occurred() && (offset = PyLong_FromSsize_t(begin * itemsize)) != NULL) {
        int plain = AT(t, Tensor__dense) == Py_True;
        steps = plain ? Py_NewRef(Py_None) : PyTuple_New(n);
        for (Py_ssize_t i = 0; steps != NULL && !plain && i < n; i++) {
            PyObject *step = PyLong_FromSsize_t(PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i)) * itemsize);
            if (step == NULL)
                Py_CLEAR(steps);
            else
                PyTuple_SET_ITEM(steps, i, step);
        }
    }
    if (steps != NULL) {
        PyObject *args[] = {AT(t, Tensor_shape), row, memory, offset, steps};
        got = PyObject_Vectorcall(the_ndarray, args, 5, NULL);
    }
    Py_XDECREF(offset), Py_XDECREF(steps);
    return got;
}

/* -- whose memory that is ----------------------------------------------------------------------------------------------------------- */

/* References to the tensor of ``f(x).numpy()`` as this file counts them, which are fewer than to one that somebody else has; 0 where those cannot be told apart. */
static Py_ssize_t alone = 0;

/* counted_references(x): what the count is in a function that is called as interop.asked is. */
PyObject *counted_references(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    return n ? PyLong_FromSsize_t(Py_REFCNT(args[0])) : PyErr_Format(PyExc_TypeError, "counted_references() takes an object");
}

/* told_alone(n): how many they are */
PyObject *told_alone(PyObject *module, PyObject *count)
{
    alone = PyLong_AsSsize_t(count);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* Whether nobody finds the memory of ``t`` once this call is over. */
static int is_last(PyObject *t, PyObject *buf)
{
    PyObject *storage = AT(t, Tensor__storage);
    return alone > 0 && Py_REFCNT(t) <= alone && Py_REFCNT(storage) == 1 && Py_REFCNT(buf) == 1 && AT(storage, Storage_pinned) == Py_False;
}

/* Whether what was launched is complete, if need be by waiting for it. */
static int complete(PyObject *device, PyObject *state)
{
    PyObject *side = of_device(state, inline), *got;
    int good = short_way(state, side);
    if (good > 0)
        good = is_ready(state, side);
    if (good)
        return good;
    got = PyObject_CallMethodNoArgs(device, s_synchronize);
    Py_XDECREF(got);
    return got == NULL ? -1 : 1;
}

/* An array on the memory of a tensor that dies here; NULL without an error where it does not. */
static PyObject *taken(PyObject *t, PyObject *device, PyObject *state)
{
    PyObject *storage = AT(t, Tensor__storage), *buf = settled_buffer(storage), *memory, *got = NULL;
    if (buf == NULL || !is_last(t, buf))
        return NULL;
    int good = complete(device, state);
    if (good <= 0 || !is_last(t, buf) || AT(storage, Storage_buf) != buf || (memory = keep(device, storage, buf, NULL)) == NULL)
        return NULL;
    got = count_transfer(state) < 0 ? NULL : array_over(t, memory);
    Py_DECREF(memory);
    return got;
}

/* -- memory that both have ---------------------------------------------------------------------------------------------------------- */

/* A Mirror of the bytes of an array. */
static PyObject *mirror_of(PyObject *bytes, Py_ssize_t nbytes)
{
    PyObject *args[] = {bytes, the_uint8}, *host = PyObject_Vectorcall(the_frombuffer, args, 2, NULL), *seen = host == NULL ? NULL : new_object(Mirror_type);
    if (seen != NULL) {
        AT(seen, Mirror_known) = PyBytes_FromStringAndSize(PyByteArray_AS_STRING(bytes), nbytes);
        AT(seen, Mirror_place) = PyLong_FromVoidPtr(PyByteArray_AS_STRING(bytes));
        AT(seen, Mirror_nbytes) = PyLong_FromSsize_t(nbytes);
        put(seen, Mirror_span, Py_None);
        put(seen, Mirror__host, host);
        if (AT(seen, Mirror_known) == NULL || AT(seen, Mirror_place) == NULL || AT(seen, Mirror_nbytes) == NULL)
            Py_CLEAR(seen);
    }
    Py_XDECREF(host);
    return seen;
}

/* An array that is one with the memory of a storage from now on, of which it is a copy: mirror.of_storage. */
static PyObject *mirrored(PyObject *t, PyObject *storage, Py_ssize_t nbytes)
{
    PyObject *bytes = read_from(storage, nbytes, 0), *seen = bytes == NULL ? NULL : mirror_of(bytes, nbytes), *got = NULL;
    if (seen != NULL && IS(storage, Storage) && AT(storage, Storage_node) == Py_None && !PyObject_SetAttr(storage, s___class__, the_Mirrored)
            && !PyObject_SetAttr(storage, s_mirror, seen))
        got = array_over(t, AT(seen, Mirror__host));
    Py_XDECREF(bytes), Py_XDECREF(seen);
    return got;
}

/* An array beside others of the same storage. */
static PyObject *beside(PyObject *t, PyObject *storage)
{
    PyObject *seen = PyObject_GetAttr(storage, s_mirror), *got = NULL;
    if (seen != NULL && IS(seen, Mirror) && AT(seen, Mirror__host) != NULL && AT(seen, Mirror__host) != Py_None)
        got = array_over(t, AT(seen, Mirror__host));
    Py_XDECREF(seen);
    return got;
}

/* An array that looks into the memory of a storage (interop._window), which nobody else has by value; NULL without an error where somebody does. */
static PyObject *looking(PyObject *t, PyObject *storage, PyObject *device, PyObject *state)
{
    PyObject *buf = settled_buffer(storage), *seen = NULL, *memory, *got = NULL, *which;
    if (buf == NULL || buf == Py_None || complete(device, state) <= 0 || AT(storage, Storage_buf) != buf || AT(storage, Storage_node) != Py_None)
        return NULL;
    if (AT(storage, Storage_pinned) != Py_False) {
        seen = Py_NewRef(AT(storage, Storage_pinned));
    } else if ((which = PyLong_FromVoidPtr(buf)) != NULL) {
        int listed = PyDict_Contains(the_held, which);
        Py_DECREF(which);
        if (listed >= 0 && Py_REFCNT(buf) <= 1 + listed)
            seen = PyObject_CallOneArg(the_Shared, storage);
    }
    if (seen != NULL && (memory = keep(device, storage, buf, seen)) != NULL) {
        got = array_over(t, memory);
        Py_DECREF(memory);
    }
    Py_XDECREF(seen);
    return got;
}

/* asked(t, force): interop.asked */
PyObject *asked(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "asked() takes a tensor and whether it may require gradients");
    PyObject *t = args[0], *got = NULL, *storage, *device, *state;
    int good = simple(t), tracked = good > 0 ? is_tracked(t) : 0;
    if (good > 0)
        good = tracked ? tracked < 0 ? -1 : 0 : PyObject_IsTrue(AT(t, Tensor__numel));
    if (good > 0)
        good = AT(t, Tensor_dtype) != the_bfloat16 && AT(the_config, Config_share_memory) == Py_True && PyObject_TypeCheck(AT(t, Tensor__storage), Storage_type);
    if (good > 0 && (state = PyObject_GenericGetDict(device = AT(storage = AT(t, Tensor__storage), Storage_device), NULL)) != NULL) {
        PyObject *lock = of_device(state, lock);
        if (lock != NULL && is_near(state) && of_device(state, recording) == Py_None && !held(lock, s_acquire)) {
            Py_ssize_t nbytes = PyLong_AsSsize_t(AT(storage, Storage_nbytes));
            if (IS(storage, Storage))
                got = taken(t, device, state);
            if (got == NULL && !PyErr_Occurred() && (PyObject *)Py_TYPE(storage) == the_Mirrored)
                got = beside(t, storage);
            if (got == NULL && !PyErr_Occurred() && IS(storage, Storage))
                got = nbytes > PyLong_AsSsize_t(the_copied) ? looking(t, storage, device, state) : AT(storage, Storage_pinned) == Py_False ? mirrored(t,
                    storage, nbytes) : NULL;
            if (held(lock, s_release))
                Py_CLEAR(got);
        }
        Py_DECREF(state);
    }
    return got != NULL || PyErr_Occurred() ? got : PyObject_Vectorcall(the_asked, args, 2, NULL);
}

int ready_windows(void)
{
    return PyType_Ready(&Kept_type);
}
