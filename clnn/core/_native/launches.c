/* Launches that are made again: Prepared.run and Recipe.run. */
#include "native.h"
#include <time.h>

/* -- launches ---------------------------------------------------------------------------------------------------------------------- */

static double seconds_now(void)
{
    struct timespec now;
#ifdef _WIN32
    timespec_get(&now, TIME_UTC);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Raise what it means that a launch came to the present exception. */
static void failed(PyObject *way, PyObject *device, PyObject *queue, PyObject *picked, PyObject *numbers)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    PyObject *told[] = {way, device, queue, picked, numbers == NULL ? nothing : numbers, value}, *got = PyObject_VectorcallMethod(s_failed, told, 6, NULL);
    if (got != NULL)
        PyErr_SetString(PyExc_SystemError, "a failed launch raised nothing");
    Py_XDECREF(got), Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
}

/* Give the kernel the arguments of ``way`` that never change. */
static int set_constants(PyObject *way, PyObject *kernel)
{
    PyObject *constants = AT(way, Prepared_constants), *got = PyObject_CallOneArg(AT(kernel, Kernel_set_numbers), AT(way, Prepared_fixed));
    Py_XDECREF(got);
    for (Py_ssize_t i = 0; got != NULL && i < PyList_GET_SIZE(constants); i++) {
        PyObject *constant = PyList_GET_ITEM(constants, i), *args[] = {PyTuple_GET_ITEM(constant, 0), PyTuple_GET_ITEM(constant, 1)};
        got = PyObject_Vectorcall(AT(kernel, Kernel_set_arg), args, 2, NULL);
        Py_XDECREF(got);
    }
    Py_ssize_t n = PyList_GET_SIZE(AT(way, Prepared_numbers));
    PyObject *last = got == NULL ? NULL : PyList_New(n);
    if (last == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++)
        PyList_SET_ITEM(last, i, Py_NewRef(Py_None));
    change(kernel, Kernel_owner, Py_NewRef(way));
    change(way, Prepared_last, last);
    return 0;
}

/* A number as the bytes that a kernel takes. */
static PyObject *bytes_of(PyObject *number)
{
    if (PyFloat_CheckExact(number)) {
        double wide = PyFloat_AS_DOUBLE(number);
        float value = (float)wide;                          /* infinite beyond the range, as it is there */
        return PyBytes_FromStringAndSize((char *)&value, sizeof value);
    }
    if (PyLong_CheckExact(number)) {
        long long value = PyLong_AsLongLong(number);
        return value == -1 && PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize((char *)&value, sizeof value);
    }
    if (PyBytes_CheckExact(number))
        return Py_NewRef(number);
    PyErr_SetObject(PyExc_KeyError, (PyObject *)Py_TYPE(number));
    return NULL;
}

/* Give the kernel the numbers that differ from the last run's. */
static int set_numbers(PyObject *way, PyObject *kernel, PyObject *numbers)
{
    PyObject *last = AT(way, Prepared_last), *places = AT(way, Prepared_numbers);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(numbers);
    if (n > PyList_GET_SIZE(last) || n > PyList_GET_SIZE(places)) {
        PyErr_SetString(PyExc_IndexError, "more numbers than a launch takes");
        return -1;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *number = PySequence_Fast_GET_ITEM(numbers, k);
        if (number == PyList_GET_ITEM(last, k))
            continue;
        int differs = PyObject_RichCompareBool(number, PyList_GET_ITEM(last, k), Py_NE);
        if (!differs)
            differs = PyObject_Not(number);                 /* 0.0 equals -0.0 */
        PyObject *bytes = differs > 0 ? bytes_of(number) : NULL;
        if (differs < 0 || (differs && bytes == NULL))
            return -1;
        if (!differs)
            continue;
        PyObject *args[] = {PyList_GET_ITEM(places, k), bytes}, *got = PyObject_Vectorcall(AT(kernel, Kernel_set_bytes), args, 2, NULL);
        Py_DECREF(bytes);
        if (got == NULL || PyList_SetItem(last, k, Py_NewRef(number))) {
            Py_XDECREF(got);
            return -1;
        }
        Py_DECREF(got);
    }
    return 0;
}

/* Wait for a launch through PoCL's queue for the calling thread, where it is not complete: what follows is not in that queue. */
static int is_complete(PyObject *event)
{
    PyObject *status = PyObject_GetAttr(event, s_command_execution_status), *got = NULL;
    int done = status == NULL ? -1 : PyObject_RichCompareBool(status, zero, Py_EQ);
    if (!done) {
        got = PyObject_CallMethodNoArgs(event, s_wait);
    }
    Py_XDECREF(status), Py_XDECREF(got);
    return done > 0 || got != NULL;
}

typedef int32_t Enqueue(void *queue, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *global, const size_t *local, uint32_t events,
                        const void *list, void *event);

static int sizes_from(PyObject *tuple, size_t *to)
{
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    for (Py_ssize_t i = 0; i < n && n <= 3; i++)
        to[i] = PyLong_AsSize_t(PyTuple_GET_ITEM(tuple, i));
    return n <= 3 && !PyErr_Occurred();
}

/* Ask the driver itself to launch a kernel of that handle, for no event: whether it did. Whatever else it comes to, pyopencl tells when it is asked again. */
static int without_event(PyObject *side, PyObject *handle, PyObject *global, PyObject *local)
{
    size_t global_size[3], local_size[3];
    Enqueue *call = (Enqueue *)PyLong_AsVoidPtr(the_enqueue_at);
    void *queue = PyLong_AsVoidPtr(AT(side, Inline_handle)), *cl = handle == NULL ? NULL : PyLong_AsVoidPtr(handle);
    if (call == NULL || queue == NULL || cl == NULL || !sizes_from(global, global_size) || (local != Py_None && !sizes_from(local, local_size))) {
        PyErr_Clear();
        return 0;
    }
    return call(queue, cl, (uint32_t)PyTuple_GET_SIZE(global), NULL, global_size, local == Py_None ? NULL : local_size, 0, NULL, NULL) == 0;
}

/* One entry of a recorded list. */
static int replay_one(PyObject *side, PyObject *function, PyObject *args)
{
    int driven = AT(side, Inline_twin) != Py_None, done;
    if (function == the_enqueue && !driven) {
        PyObject *handle = PyObject_GetAttr(PyTuple_GET_ITEM(args, 0), s_int_ptr);
        done = without_event(side, handle, PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 2));
        Py_XDECREF(handle);
        if (done)
            return 1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *all[8] = {AT(side, Inline_queue)};
    if (n > 7) {
        PyErr_SetString(PyExc_ValueError, "an entry of a list");
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        all[i + 1] = PyTuple_GET_ITEM(args, i);
    PyObject *event = PyObject_Vectorcall(function, all, n + 1, NULL);
    done = event != NULL && (event == Py_None || !driven || is_complete(event));
    Py_XDECREF(event);
    return done;
}

/* at_once(side, entries): capture.at_once */
PyObject *at_once(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !IS(args[0], Inline) || !PyList_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "at_once() takes a way of short launches and a list");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); i++) {
        PyObject *entry = PyList_GET_ITEM(args[1], i), *given = PyTuple_GET_ITEM(entry, 1), *all = PySequence_Tuple(given);
        int done = all != NULL && replay_one(args[0], PyTuple_GET_ITEM(entry, 0), all);
        Py_XDECREF(all);
        if (!done)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* What was read last may be another now. */
static int forget_peek(PyObject *state)
{
    return of_device(state, peek) == Py_None ? 0 : PyDict_SetItem(state, s_peek, Py_None);
}

/* Prepared.enqueue: the event, a new reference; something else where the calling thread's queue (``side``'s, or NULL) has run it. ``numbers``: NULL for none;
   ``state``: the device's attributes. */
static PyObject *enqueue(PyObject *way, PyObject *device, PyObject *state, PyObject *queue, PyObject *side, PyObject *picked, PyObject *numbers)
{
    PyObject *kernel = AT(way, Prepared_kernel), *got, *driver = variable(the_launch, s__enqueue);
    if (driver == NULL || forget_peek(state) || (AT(way, Prepared_checked) == Py_True && PyDict_SetItem(state, s_err_dirty, Py_True)))
        return NULL;
    if ((AT(kernel, Kernel_owner) == way || !set_constants(way, kernel)) && (numbers == NULL || !set_numbers(way, kernel, numbers))
            && (got = PyObject_CallOneArg(AT(kernel, Kernel_set_buffers), picked)) != NULL) {
        Py_DECREF(got);
        PyObject *sizes = AT(way, Prepared_sizes), *global = PyTuple_GET_ITEM(sizes, 0), *local = PyTuple_GET_ITEM(sizes, 1);
        if (side != NULL && driver == the_enqueue && AT(side, Inline_twin) == Py_None && without_event(side, AT(kernel, Kernel_handle), global, local))
            return Py_NewRef(Py_None);
        PyObject *args[] = {queue, AT(kernel, Kernel_cl), global, local};
        if ((got = PyObject_Vectorcall(driver, args, 4, NULL)) != NULL && (side == NULL || AT(side, Inline_twin) == Py_None || is_complete(got)))
            return got;
        Py_XDECREF(got);
    }
    failed(way, device, queue, picked, numbers);
    return NULL;
}

/* Where a launch ran: Python has to look at it, the calling thread, the driver's threads; or nowhere yet, as what was enqueued before runs still. */
enum { NOT_KNOWN = 0, HERE = 1, THERE = 2, BUSY = 3 };

/* One launch less until the next that is timed, or in the driver's threads: 1; 0 where there is none left. */
static int counted_down(PyObject *cost, Py_ssize_t slot)
{
    long left = PyLong_AsLong(AT(cost, slot));
    PyObject *less = left > 0 ? PyLong_FromLong(left - 1) : NULL;
    if (less != NULL)
        change(cost, slot, less);
    return less != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Whether nothing that was enqueued before is still running: Inline.free. */
static int is_free(PyObject *state, PyObject *side, PyObject *kernel)
{
    if (of_device(state, last) == AT(side, Inline_done))
        return 1;
    PyObject *got = PyObject_CallMethodOneArg(side, s_free, kernel);
    int free = got == NULL ? -1 : PyObject_IsTrue(got);
    Py_XDECREF(got);
    return free;
}

/* Launch in the calling thread; what comes back is no event everywhere. NULL without an error: only the driver's threads can. */
static PyObject *enqueue_here(PyObject *way, PyObject *device, PyObject *state, PyObject *side, PyObject *picked, PyObject *numbers, int only_direct)
{
    PyObject *direct = AT(way, Prepared_direct);
    if (Py_IS_TYPE(direct, &Direct_made)) {
        if (forget_peek(state))
            return NULL;
        int done = run_direct(direct, picked, AT(way, Prepared_numbers), numbers);
        if (done)
            return done < 0 ? NULL : Py_NewRef(Py_None);
    }
    if (only_direct) {
        change(way, Prepared_direct, Py_NewRef(Py_False));
        return NULL;
    }
    return enqueue(way, device, state, AT(side, Inline_queue), side, picked, numbers);
}

/* The same, and learn from how long that takes. */
static PyObject *timed(PyObject *way, PyObject *device, PyObject *state, PyObject *side, PyObject *cost, PyObject *picked, PyObject *numbers, int only_direct)
{
    double start = seconds_now();
    PyObject *event = enqueue_here(way, device, state, side, picked, numbers, only_direct);
    PyObject *spent = event == NULL ? NULL : PyFloat_FromDouble(seconds_now() - start);
    PyObject *got = spent == NULL || event == NULL ? NULL : PyObject_CallMethodObjArgs(side, s_took, cost, spent, NULL);
    if (got == NULL)
        Py_CLEAR(event);
    Py_XDECREF(spent), Py_XDECREF(got);
    return event;
}

/* What kernels reported: the first number of an array, or -1 where that is not to be seen. */
static int reported(PyObject *word)
{
    static PyObject *seen;
    static const volatile int *first;
    if (word != seen) {
        Py_buffer view;
        if (PyObject_GetBuffer(word, &view, PyBUF_SIMPLE)) {
            PyErr_Clear();
            return -1;
        }
        Py_XSETREF(seen, Py_NewRef(word));                  /* kept, so that no other array comes to lie there */
        first = view.len >= (Py_ssize_t)sizeof(int) ? view.buf : NULL;
        PyBuffer_Release(&view);
    }
    return first == NULL ? -1 : *first;
}

/* Raise at once what a launch reported: Device.look. */
static int look(PyObject *device, PyObject *state)
{
    PyObject *word = of_device(state, word), *got = NULL;
    if (word == NULL || word == Py_None)
        return 0;
    if (reported(word) == 0)
        return of_device(state, err_dirty) == Py_False ? 0 : PyDict_SetItem(state, s_err_dirty, Py_False);
    got = PyObject_CallMethodNoArgs(device, s_look);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* Launch in the calling thread, where that is known to be short; the device's lock is held. ``side``: None without such a way. */
static int launched_here(PyObject *prepared, PyObject *device, PyObject *state, PyObject *side, PyObject *picked, PyObject *numbers)
{
    int direct = Py_IS_TYPE(AT(prepared, Prepared_direct), &Direct_made);
    PyObject *way = direct ? prepared : AT(prepared, Prepared_twin), *cost = AT(prepared, Prepared_cost), *event;
    if (side == Py_None || cost == Py_None || way == Py_None || AT(way, Prepared_sizes) == Py_None || PyObject_IsTrue(AT(cost, Cost_skip)))
        return NOT_KNOWN;
    int free = is_free(state, side, AT(prepared, Prepared_kernel)), calm = free > 0 ? counted_down(cost, Cost_calm) : 0;
    if (free <= 0 || calm < 0)
        return free || calm < 0 ? -1 : BUSY;
    event = calm ? enqueue_here(way, device, state, side, picked, numbers, direct) : timed(way, device, state, side, cost, picked, numbers, direct);
    if (event == NULL && !PyErr_Occurred())
        return BUSY;
    Py_XDECREF(event);
    if (event != NULL && AT(way, Prepared_checked) == Py_True && look(device, state))
        return -1;
    return event == NULL ? -1 : HERE;
}

/* Whether buffers among ``picked``, (position, buffer, ...), have few enough bytes for a try in the calling thread: Inline.small. */
static int are_small(PyObject *side, PyObject *picked)
{
    Py_ssize_t most = PyLong_AsSsize_t(AT(side, Inline_most)), total = 0;
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(picked) && total <= most; i += 2) {
        PyObject *buf = PyTuple_GET_ITEM(picked, i), *size = buf == Py_None ? NULL : PyObject_GetAttr(buf, s_size);
        total += size == NULL ? 0 : PyLong_AsSsize_t(size);
        Py_XDECREF(size);
        if (PyErr_Occurred())
            return -1;
    }
    return total <= most;
}

/* The first launch of sizes that were never met, as others of its kernel go: most such sizes do not come back, and to open their own way takes longer than they do. */
static int launched_anew(PyObject *prepared, PyObject *device, PyObject *state, PyObject *side, PyObject *picked, PyObject *numbers)
{
    PyObject *like = AT(prepared, Prepared_like), *way = IS(like, Prepared) ? AT(like, Prepared_shared) : Py_None;
    if (side == Py_None || !Py_IS_TYPE(way, &Direct_made))
        return NOT_KNOWN;
    int done = are_small(side, picked);
    if (done > 0)
        done = is_free(state, side, AT(prepared, Prepared_kernel));
    if (done > 0) {
        double before = PyFloat_AsDouble(AT(like, Prepared_seconds)), seconds = before;
        int checked = AT(like, Prepared_checked) == Py_True;
        done = PyErr_Occurred() || forget_peek(state) ? -1
            : run_anew(way, AT(prepared, Prepared_where), AT(prepared, Prepared_args), picked, AT(prepared, Prepared_numbers), numbers, &seconds);
        PyObject *now = done <= 0 || seconds == before ? NULL : PyFloat_FromDouble(seconds);
        if (now != NULL)
            change(like, Prepared_seconds, now);
        if (done > 0 && checked && look(device, state))
            done = -1;
    }
    change(prepared, Prepared_like, Py_NewRef(Py_None));
    return done < 0 ? -1 : done ? HERE : NOT_KNOWN;
}

/* Launch in the driver's threads, where no try in the calling one is due, or it is ``busy``; the device's lock is held. */
static int launched_there(PyObject *prepared, PyObject *device, PyObject *state, PyObject *side, PyObject *picked, PyObject *numbers, int busy)
{
    PyObject *cost = AT(prepared, Prepared_cost), *queue = of_device(state, queue), *event;
    if (AT(prepared, Prepared_sizes) == Py_None || queue == NULL || (side != Py_None && AT(prepared, Prepared_checked) == Py_True))
        return NOT_KNOWN;
    if (side != Py_None && !busy) {
        int left = cost == Py_None ? 1 : counted_down(cost, Cost_skip);
        if (left <= 0)
            return left;
        change(side, Inline_short, Py_NewRef(Py_False));
    }
    if ((event = enqueue(prepared, device, state, queue, NULL, picked, numbers)) == NULL)
        return -1;
    int failed = PyDict_SetItem(state, s_last, event);
    Py_DECREF(event);
    return failed ? -1 : THERE;
}

/* Whether launches on a device may go this way: no one listens, nothing waits, no array looks into memory. ``side``: its way of short launches or
   None, borrowed. */
static int usual(PyObject *state, PyObject **side)
{
    int quiet = unheard();
    PyObject *waiting = of_device(state, waiting);
    *side = of_device(state, inline);
    if (quiet < 0)
        return -1;
    return quiet && !PyObject_IsTrue(AT(the_config, Config_debug)) && !PyDict_GET_SIZE(the_shared) && *side != NULL && (*side == Py_None || IS(*side, Inline))
        && waiting != NULL
        && !PyObject_IsTrue(waiting);
}

/* Prepared.run; ``locked``: the device's lock is held. */
static PyObject *run_here(PyObject *prepared, PyObject *const *args, Py_ssize_t n, int locked)
{
    PyObject *numbers = n > 2 && PyObject_Size(args[2]) > 0 ? args[2] : NULL, *side, *lock, *all[] = {prepared, args[0], args[1], n > 2 ? args[2] : NULL};
    PyObject *state = PyObject_GenericGetDict(args[0], NULL);
    if (state == NULL) {                    /* the device of a test */
        PyErr_Clear();
        return PyObject_Vectorcall(the_Prepared_run, all, n + 1, NULL);
    }
    int done = usual(state, &side);
    if (done == 1 && (numbers == NULL || PyList_Check(numbers) || PyTuple_Check(numbers)) && (lock = of_device(state, lock)) != NULL) {
        if (locked || !(done = held(lock, s_acquire))) {
            done = launched_here(prepared, args[0], state, side, args[1], numbers);
            if (done == NOT_KNOWN)
                done = launched_anew(prepared, args[0], state, side, args[1], numbers);
            if (done == NOT_KNOWN || done == BUSY)
                done = launched_there(prepared, args[0], state, side, args[1], numbers, done == BUSY);
            if (!locked)
                held(lock, s_release);
        }
        PyObject *tended = done == THERE ? of_device(state, tended) : NULL;
        if (tended != NULL && PyObject_IsTrue(tended)) {
            PyObject *got = PyObject_CallMethodNoArgs(args[0], s_tend);
            Py_XDECREF(got);
            done = got == NULL ? -1 : done;
        }
    } else if (done == 1) {
        done = 0;
    }
    Py_DECREF(state);
    if (done == 0)
        return PyObject_Vectorcall(the_Prepared_run, all, n + 1, NULL);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

/* The same with ``picked`` as Prepared.run takes it. */
PyObject *run_locked(PyObject *prepared, PyObject *device, PyObject *picked, PyObject *numbers, int locked)
{
    PyObject *args[] = {device, picked, numbers};
    return run_here(prepared, args, 3, locked);
}

/* Prepared.run(device, buffers, numbers) */
PyObject *run_prepared(PyObject *prepared, PyObject *const *args, Py_ssize_t n)
{
    return n == 2 || n == 3 ? run_here(prepared, args, n, 0) : PyErr_Format(PyExc_TypeError, "run() takes a device, buffers and numbers");
}

PyMethodDef run_prepared_method = {"run", (PyCFunction)(void (*)(void))run_prepared, METH_FASTCALL,
    "Launch with buffers, as a tuple of places and buffers, and numbers."};

/* One launch of a list; the device's lock is held. The one before may wait for the build of its kernel, and all that follow wait with it. */
static int launch_one(PyObject *prepared, PyObject *device, PyObject *state, PyObject *side, PyObject *picked)
{
    int done = IS(prepared, Prepared) && of_device(state, waiting) == Py_False ? launched_here(prepared, device, state, side, picked, NULL) : 0;
    if (done == NOT_KNOWN && IS(prepared, Prepared) && of_device(state, waiting) == Py_False)
        done = launched_anew(prepared, device, state, side, picked, NULL);
    if (done < 0 || done == HERE)
        return done < 0 ? -1 : 0;
    PyObject *args[] = {prepared, device, picked}, *got = IS(prepared, Prepared) ? run_prepared(prepared, args + 1, 2) : PyObject_VectorcallMethod(s_run, args, 3, NULL);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* The launches of a recipe, none of which takes numbers, with operands and memory from ``buffers``. */
static int launch_all(PyObject *recipe, PyObject *device, PyObject *state, PyObject *side, PyObject *buffers)
{
    PyObject *lock = of_device(state, lock), *launches = AT(recipe, Recipe_launches), *places = AT(recipe, Recipe_places);
    int stopped = !PyList_Check(places) || lock == NULL || held(lock, s_acquire) ? -1 : 0;
    if (stopped)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(launches) && !stopped; i++) {
        PyObject *entry = PyList_GET_ITEM(launches, i), *picked = picked_from(PyTuple_GET_ITEM(entry, 1), buffers, places);
        stopped = picked == NULL ? -1 : launch_one(PyTuple_GET_ITEM(entry, 0), device, state, side, picked);
        Py_XDECREF(picked);
    }
    held(lock, s_release);
    return stopped;
}

/* -- recipes ----------------------------------------------------------------------------------------------------------------------- */

/* repeat._tensor: ``told`` is (place in ``buffers``, nbytes, shape, strides, offset, dtype, elements, dense). */
static PyObject *made(PyObject *device, PyObject *buffers, PyObject *told)
{
    PyObject *storage = new_object(Storage_type), *tensor = storage == NULL ? NULL : new_object(Tensor_type);
    Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(told, 0));
    if (tensor == NULL || at < 0 || at >= PyList_GET_SIZE(buffers)) {
        Py_XDECREF(storage);
        Py_XDECREF(tensor);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_IndexError, "a result's place");
        return NULL;
    }
    put(storage, Storage_device, device);
    put(storage, Storage_nbytes, PyTuple_GET_ITEM(told, 1));
    put(storage, Storage_buf, PyList_GET_ITEM(buffers, at));
    put(storage, Storage_node, Py_None);
    put(storage, Storage_pinned, Py_False);
    put(storage, Storage_version, zero);
    AT(tensor, Tensor__storage) = storage;
    put(tensor, Tensor_shape, PyTuple_GET_ITEM(told, 2));
    put(tensor, Tensor__strides, PyTuple_GET_ITEM(told, 3));
    put(tensor, Tensor__offset, PyTuple_GET_ITEM(told, 4));
    put(tensor, Tensor_dtype, PyTuple_GET_ITEM(told, 5));
    put(tensor, Tensor__numel, PyTuple_GET_ITEM(told, 6));
    put(tensor, Tensor__dense, PyTuple_GET_ITEM(told, 7));
    return tensor;
}

static PyObject *results_of(PyObject *recipe, PyObject *device, PyObject *buffers)
{
    PyObject *results = AT(recipe, Recipe_results);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(results);
    if (PyObject_IsTrue(AT(recipe, Recipe_single))) {
        if (n)
            return made(device, buffers, PySequence_Fast_GET_ITEM(results, 0));
        Py_RETURN_NONE;
    }
    PyObject *out = PyTuple_New(n);
    for (Py_ssize_t i = 0; out != NULL && i < n; i++) {
        PyObject *told = PySequence_Fast_GET_ITEM(results, i), *result;
        if (told == Py_None || PyLong_CheckExact(told)) {
            result = told == Py_None ? told : PyTuple_GET_ITEM(out, PyLong_AsSsize_t(told));        /* an earlier one, once more */
            Py_INCREF(result);
        } else if ((result = made(device, buffers, told)) == NULL) {
            Py_CLEAR(out);
            break;
        }
        PyTuple_SET_ITEM(out, i, result);
    }
    PyObject *named = AT(recipe, Recipe_named), *given = out == NULL || named == Py_None ? NULL : PyTuple_Pack(1, out);
    if (given != NULL)
        Py_SETREF(out, PyTuple_Type.tp_new((PyTypeObject *)named, given, NULL));        /* of its class, whose fields are these */
    Py_XDECREF(given);
    return out;
}

/* Recipe.run without numbers; ``buffers`` is a list. */
PyObject *run_recipe(PyObject *recipe, PyObject *buffers)
{
    PyObject *device = AT(recipe, Recipe_device), *births = variable(the_node, s_births), *sizes = AT(recipe, Recipe_sizes), *side, *got = NULL;
    PyObject *state = births == NULL ? NULL : PyObject_GenericGetDict(device, NULL);
    if (state == NULL)
        return NULL;
    int small = PyObject_IsTrue(AT(recipe, Recipe_small)), way = usual(state, &side);
    PyObject *function = small ? of_device(state, alloc_all) : of_device(state, alloc);
    if (births != Py_None || way != 1 || function == NULL) {
        Py_DECREF(state);
        return way < 0 ? NULL : PyObject_CallFunctionObjArgs(the_Recipe_run, recipe, buffers, NULL);
    }
    int failed = small ? allocate_onto(buffers, function, sizes) : 0;
    for (Py_ssize_t i = 0; !small && !failed && i < PySequence_Fast_GET_SIZE(sizes); i++)
        failed = add(buffers, PyObject_CallOneArg(function, PySequence_Fast_GET_ITEM(sizes, i)));
    if (!failed && !launch_all(recipe, device, state, side, buffers))
        got = results_of(recipe, device, buffers);
    Py_DECREF(state);
    return got;
}

/* Recipe.run(buffers, numbers) */
static PyObject *run(PyObject *recipe, PyObject *const *args, Py_ssize_t n)
{
    PyObject *all[] = {recipe, n > 0 ? args[0] : NULL, n > 1 ? args[1] : NULL};
    if (n < 1 || n > 2)
        return PyErr_Format(PyExc_TypeError, "run() takes buffers and numbers");
    if (!PyList_CheckExact(args[0]) || (n > 1 && PyObject_IsTrue(args[1])))
        return PyObject_Vectorcall(the_Recipe_run, all, n + 1, NULL);
    return run_recipe(recipe, args[0]);
}

PyMethodDef run_recipe_method = {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, "Do what was observed with other buffers."};
