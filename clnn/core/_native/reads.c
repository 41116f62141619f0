/* Between the host and a device: interop.item, mirror.fetched, Transfers.send. */
#include "native.h"
#include "crew.h"

/* Let go of what was kept for writes that may still run, where nothing does: whether it is gone. */
static int let_go(PyObject *state, PyObject *side, PyObject *kept)
{
    PyObject *lock = of_device(state, lock), *got = NULL;
    if (lock == NULL || of_device(state, last) != AT(side, Inline_done) || held(lock, s_acquire))
        return PyErr_Occurred() ? -1 : 0;
    int quiet = of_device(state, last) == AT(side, Inline_done);         /* another thread may just have added one */
    if (quiet)
        got = PyObject_CallMethodNoArgs(kept, s_clear);
    held(lock, s_release);
    Py_XDECREF(got);
    return !quiet ? 0 : got == NULL ? -1 : 1;
}

/* Whether reads from this device may go the short way: nothing waits or is recorded, no array looks into memory, and nothing is left to be tidied up. */
int short_way(PyObject *state, PyObject *side)
{
    PyObject *empty[] = {s_recording, s_waiting, s_hosted, s__pending, s_err_dirty};
    if (side == NULL || !IS(side, Inline) || PyDict_GET_SIZE(the_shared))
        return 0;
    for (int i = 0; i < 5; i++) {
        PyObject *value = PyDict_GetItemWithError(state, empty[i]);
        int some = value == NULL ? -1 : PyObject_IsTrue(value);
        if (some > 0 && empty[i] == s__pending)
            some = (some = let_go(state, side, value)) > 0 ? 0 : some < 0 ? -1 : 1;
        if (some)
            return some < 0 && PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

/* Whether all that was launched is complete, or is so after a moment. */
int is_ready(PyObject *state, PyObject *side)
{
    if (of_device(state, last) == AT(side, Inline_done))
        return 1;
    PyObject *got = PyObject_CallMethodNoArgs(side, s_idle);
    int ready = got == NULL ? -1 : PyObject_IsTrue(got);
    Py_XDECREF(got);
    return ready;
}

/* Whether this process has the device's memory before it. */
int is_near(PyObject *state)
{
    return of_device(state, near) == Py_True;
}

int count_transfer(PyObject *state)
{
    PyObject *count = of_device(state, transfers), *more = count == NULL ? NULL : PyNumber_Add(count, one);
    int failed = more == NULL || PyDict_SetItem(state, s_transfers, more);
    Py_XDECREF(more);
    return failed ? -1 : 1;
}

/* Look at ``buf`` for the first time: the second look reads more at once (see Transfers.read). 0: it was looked at before. */
static int look_first(PyObject *state, PyObject *buf)
{
    PyObject *peek = of_device(state, peek), *which = PyLong_FromVoidPtr(buf), *now = NULL, *count, *more = NULL;
    int seen = which == NULL || peek == NULL ? -1 : peek == Py_None ? 0 : PyObject_RichCompareBool(PyTuple_GET_ITEM(peek, 0), which, Py_EQ);
    if (!seen && (now = PyTuple_Pack(3, which, Py_None, zero)) != NULL && (count = of_device(state, transfers)) != NULL)
        more = PyNumber_Add(count, one);
    int failed = seen < 0 || (!seen && (more == NULL || PyDict_SetItem(state, s_peek, now) || PyDict_SetItem(state, s_transfers, more)));
    Py_XDECREF(which), Py_XDECREF(now), Py_XDECREF(more);
    return failed ? -1 : !seen;
}

/* The bytes at ``place`` of ``buf``: 1; 0 where the driver has to be asked by Python. */
static int fetch(PyObject *device, PyObject *state, PyObject *side, PyObject *buf, PyObject *place, PyObject *bytes)
{
    PyObject *lock = of_device(state, lock), *driver = PyObject_GetAttr(device, s__to_host), *got = NULL;
    PyObject *args[] = {AT(side, Inline_queue), buf, bytes, place, Py_None, Py_True};
    if (is_near(state) && lock != NULL && !held(lock, s_acquire)) {
        void *memory;
        int known = address_in(device, buf, &memory);
        if (known > 0)
            memcpy(PyByteArray_AS_STRING(bytes), (char *)memory + PyLong_AsSsize_t(place), PyByteArray_GET_SIZE(bytes));
        if (held(lock, s_release) || known) {
            Py_XDECREF(driver);
            return known;
        }
    }
    if (driver != NULL && lock != NULL && !held(lock, s_acquire)) {
        got = PyObject_Vectorcall(driver, args, 6, NULL);
        held(lock, s_release);
    }
    int good = got != NULL;
    Py_XDECREF(driver), Py_XDECREF(got);
    if (!good && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();                                      /* asked once more there, which says what it means */
    return good ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Kinds of number by their dtype's name in NumPy's one-letter code. */
static PyObject *number_from(const char *bytes, char kind, Py_ssize_t size)
{
#define READ(type, make) do { type value; memcpy(&value, bytes, sizeof value); return make(value); } while (0)
    if (kind == 'b')
        return PyBool_FromLong(*bytes);
    if (kind == 'f' && size == 4)
        READ(float, PyFloat_FromDouble);
    if (kind == 'f' && size == 8)
        READ(double, PyFloat_FromDouble);
    if (kind == 'i' && size == 8)
        READ(long long, PyLong_FromLongLong);
    if (kind == 'i' && size == 4)
        READ(int, PyLong_FromLong);
    return NULL;
#undef READ
}

/* What the host knows of numbers of this dtype: its kind, 0 where Python reads them. */
static char kind_of(PyObject *dtype)
{
    return dtype == the_float32 || dtype == the_float64 ? 'f' : dtype == the_int64 || dtype == the_int32 ? 'i' : dtype == the_bool ? 'b' : 0;
}

/* The memory of ``t``, whose pending value is computed; NULL without an error where Python has to look at it. */
PyObject *settled_buffer(PyObject *storage)
{
    if (!IS(storage, Storage))
        return NULL;
    if (AT(storage, Storage_node) != Py_None) {
        PyObject *got = realize(NULL, storage);
        if (got == NULL)
            return NULL;
        Py_DECREF(got);
    }
    return AT(storage, Storage_node) == Py_None ? AT(storage, Storage_buf) : NULL;
}

/* The same of values that only the host has (mirror.told). */
static PyObject *from_host(PyObject *storage, Py_ssize_t size, Py_ssize_t first)
{
    int quiet = PyObject_TypeCheck(storage, Storage_type) ? unheard() : 0, mirrored = quiet > 0 ? is_set(storage, s_mirrored) : 1;
    PyObject *values = mirrored ? NULL : PyObject_GetAttr(storage, s_mirror), *bytes = NULL;
    if (values != NULL && !PyBytes_Check(values) && values != Py_None)
        Py_SETREF(values, PyObject_GetAttr(values, s_values));
    if (values != NULL && PyBytes_Check(values) && first >= 0 && size <= PyBytes_GET_SIZE(values) - first)
        bytes = PyByteArray_FromStringAndSize(PyBytes_AS_STRING(values) + first, size);
    Py_XDECREF(values);
    return bytes;
}

/* ``size`` bytes of the memory of a storage from byte ``first`` on, a new bytearray; NULL without an error where Python has to read them. */
PyObject *read_from(PyObject *storage, Py_ssize_t size, Py_ssize_t first)
{
    PyObject *buf, *device = AT(storage, Storage_device), *state, *side, *bytes = NULL, *place = NULL;
    if (!IS(storage, Storage))
        return from_host(storage, size, first);
    buf = settled_buffer(storage);
    if (buf == NULL || (state = PyObject_GenericGetDict(device, NULL)) == NULL)
        return NULL;
    side = of_device(state, inline);
    int good = short_way(state, side);
    if (good > 0)
        good = is_ready(state, side);
    if (good > 0)
        good = is_near(state) ? count_transfer(state) : look_first(state, buf);
    if (good > 0 && (bytes = PyByteArray_FromStringAndSize(NULL, size)) != NULL && (place = PyLong_FromSsize_t(first)) != NULL)
        good = fetch(device, state, side, buf, place, bytes);
    Py_XDECREF(place);
    Py_DECREF(state);
    if (good <= 0)
        Py_CLEAR(bytes);
    return bytes;
}

enum { MOST = 1 << 16 };            /* bytes: more of them would take a while to be cleared first */

/* fetched(storage, nbytes, first): mirror.fetched */
PyObject *fetched(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t size = n == 3 ? PyLong_AsSsize_t(args[1]) : -1, first = n == 3 ? PyLong_AsSsize_t(args[2]) : -1;
    if (size >= 0 && first >= 0 && !PyObject_TypeCheck(args[0], Storage_type))     /* one that stands for many samples */
        Py_RETURN_NONE;
    if (size < 0 || first < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "fetched() takes a storage, a number of bytes and the first of them");
    PyObject *bytes = size && size <= MOST ? read_from(args[0], size, first) : NULL;
    return bytes != NULL ? bytes : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* sent(device, values): a new buffer with these bytes, or None where the driver has to be asked by Python: Transfers.send */
PyObject *sent(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    PyObject *device = n == 2 ? args[0] : NULL, *state = device == NULL ? NULL : PyObject_GenericGetDict(device, NULL);
    if (state == NULL)
        return device == NULL ? PyErr_Format(PyExc_TypeError, "sent() takes a device and bytes") : NULL;
    PyObject *side = of_device(state, inline), *lock = of_device(state, lock), *alloc = of_device(state, alloc), *driver = NULL, *got = NULL, *buf = NULL;
    PyObject *nbytes = PyLong_FromSsize_t(PyBytes_Check(args[1]) ? PyBytes_GET_SIZE(args[1]) : 0);
    int good = nbytes == NULL ? -1 : !PyBytes_Check(args[1]) || lock == NULL || alloc == NULL ? 0 : short_way(state, side);
    if (good > 0)
        good = is_ready(state, side);
    if (good > 0)
        good = (buf = PyObject_CallOneArg(alloc, nbytes)) == NULL || (driver = PyObject_GetAttr(device, s__to_device)) == NULL || held(lock, s_acquire) ? -1 : 1;
    if (good > 0) {
        PyObject *all[] = {AT(side, Inline_queue), buf, args[1], zero, Py_None, Py_True};
        void *memory;
        int quiet = of_device(state, last) == AT(side, Inline_done) && !PyDict_SetItem(state, s_peek, Py_None);     /* nothing was enqueued meanwhile */
        int known = quiet && is_near(state) ? address_in(device, buf, &memory) : 0;
        if (known > 0) {
            memcpy(memory, PyBytes_AS_STRING(args[1]), PyBytes_GET_SIZE(args[1]));
            got = Py_NewRef(Py_None);
        } else if (quiet && !known)
            got = PyObject_Vectorcall(driver, all, 6, NULL);
        held(lock, s_release);
        if (got == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
            PyErr_Clear();                                  /* asked once more there, which says what it means */
    }
    if (got == NULL)
        Py_CLEAR(buf);
    Py_DECREF(state), Py_XDECREF(nbytes), Py_XDECREF(driver), Py_XDECREF(got);
    return buf != NULL ? buf : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* Whether a buffer has ``size`` bytes from byte ``first`` on. */
static int is_within(PyObject *buf, Py_ssize_t size, Py_ssize_t first)
{
    PyObject *whole = PyObject_GetAttr(buf, s_size);
    Py_ssize_t n = whole == NULL ? -1 : PyLong_AsSsize_t(whole);
    Py_XDECREF(whole);
    if (n < 0)
        PyErr_Clear();                                      /* no buffer: the driver will say so */
    return first <= n - size;
}

enum { PIECE = 1 << 16, MOST_MOVED = 1 << 20 };             /* bytes that a thread moves at a time, and from which on the driver's threads do it behind the program */

typedef struct {
    char *to;
    const char *from;
    size_t size;
} Move;

static void move_pieces(void *given, unsigned helper, size_t first, size_t end)
{
    Move *move = given;
    size_t start = first * PIECE, stop = end * PIECE < move->size ? end * PIECE : move->size;
    memcpy(move->to + start, move->from + start, stop - start);
}

static void move_memory(char *to, const char *from, size_t size)
{
    Move move = {to, from, size};
    if (size <= PIECE || (to < from + size && from < to + size))
        memmove(to, from, size);
    else
        work_together(move_pieces, &move, (size + PIECE - 1) / PIECE, 1e-10 * (double)size);
}

/* Fill ``size`` bytes with a pattern, or copy them; the device's lock is held, and nothing runs. 0: where one of the buffers lies is not known. */
static int move_bytes(PyObject *device, PyObject *source, PyObject *target, Py_ssize_t size, Py_ssize_t from, Py_ssize_t to)
{
    void *there, *here = NULL;
    int known = is_within(target, size, to) && (PyBytes_Check(source) || is_within(source, size, from)) ? address_in(device, target, &there) : 0;
    if (known <= 0 || !PyBytes_Check(source)) {
        if (known > 0)
            known = address_in(device, source, &here);
        if (known > 0)
            move_memory((char *)there + to, (char *)here + from, (size_t)size);
        return known;
    }
    Py_ssize_t each = PyBytes_GET_SIZE(source);
    if (!each || size % each)
        return 0;
    Py_ssize_t done = each;                                 /* what is filled is copied behind itself */
    memcpy((char *)there + to, PyBytes_AS_STRING(source), (size_t)each);
    for (; done < size; done *= 2)
        memcpy((char *)there + to + done, (char *)there + to, (size_t)(done < size - done ? done : size - done));
    return 1;
}

/* moved(device, source, target, nbytes, first in source, first in target): transfers.moved. ``source``: a buffer, or the bytes of a pattern. */
PyObject *moved(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    PyObject *state = n == 6 ? PyObject_GenericGetDict(args[0], NULL) : NULL;
    if (state == NULL)
        return n == 6 ? NULL : PyErr_Format(PyExc_TypeError, "moved() takes a device, two buffers and three numbers");
    PyObject *side = of_device(state, inline), *lock = of_device(state, lock);
    Py_ssize_t size = PyLong_AsSsize_t(args[3]), from = PyLong_AsSsize_t(args[4]), to = PyLong_AsSsize_t(args[5]);
    int done = PyErr_Occurred() ? -1 : size > 0 && size <= MOST_MOVED && from >= 0 && to >= 0 && lock != NULL && is_near(state) ? short_way(state, side) : 0;
    if (done > 0)
        done = is_ready(state, side);
    if (done > 0 && (done = held(lock, s_acquire) ? -1 : 1) > 0) {
        int quiet = of_device(state, last) == AT(side, Inline_done) && !PyDict_SetItem(state, s_peek, Py_None);     /* nothing was enqueued meanwhile */
        done = quiet ? move_bytes(args[0], args[1], args[2], size, from, to) : 0;
        held(lock, s_release);
    }
    Py_DECREF(state);
    return done < 0 || PyErr_Occurred() ? NULL : PyBool_FromLong(done);
}

/* item(t): interop.item */
PyObject *item(PyObject *module, PyObject *t)
{
    int good = simple(t);
    char kind = 0;
    if (good > 0)
        good = PyObject_RichCompareBool(AT(t, Tensor__numel), one, Py_EQ);
    if (good > 0)
        good = (kind = kind_of(AT(t, Tensor_dtype))) != 0;
    if (good > 0) {
        PyObject *size = trait(AT(t, Tensor_dtype), itemsize), *bytes = NULL, *number = NULL;
        Py_ssize_t n = size == NULL ? -1 : PyLong_AsSsize_t(size);
        Py_XDECREF(size);
        if (n > 0 && (bytes = read_from(AT(t, Tensor__storage), n, PyLong_AsSsize_t(AT(t, Tensor__offset)) * n)) != NULL)
            number = number_from(PyByteArray_AS_STRING(bytes), kind, n);
        Py_XDECREF(bytes);
        if (number != NULL)
            return number;
    }
    return good < 0 || PyErr_Occurred() ? NULL : PyObject_CallOneArg(the_item, t);
}
