/* Direct: a kernel that a driver has loaded into this process, called as the driver does (runtime/direct.py). */
#ifdef __linux__
#define _GNU_SOURCE             /* of dl_iterate_phdr */
#include <link.h>
#endif
#include "native.h"
#include "crew.h"
#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* What runs all work-items of one group: PoCL's functions, and those of Intel's runtime. */
typedef void Group(void *args, void *context, size_t x, size_t y, size_t z);
typedef void PackedGroup(const void *args, const size_t *group, void *runtime);

/* What a group knows of the launch: PoCL's pocl_context, with room for what later versions add. */
typedef struct {
    size_t groups[3], offset[3], local[3];
    void *printed;
    unsigned *printed_at, printed_size, dimensions;
    char later[128];
} Context;

/* The same for Intel's runtime. It follows the arguments, which are packed, and tells each size for groups at the edge as well; then all once more, as the
   runtime may merge groups into others. */
typedef struct {
    size_t dimensions, offset[3], global[3], local[2][3], groups[3];
    void *runtime[2];
    size_t inner_global[3], inner_local[2][3], inner_groups[3], later[16];
} Launch;

enum { MOST_ARGS = 256, MOST_LOCALS = 64, LINE = 128 };     /* arguments begin at multiples of as many bytes, as the longest vector does */

typedef struct {
    PyObject_HEAD
    PyObject *device;
    Group *group;
    Context context;
    unsigned printed_at;
    Py_ssize_t n, locals;                   /* arguments, and arrays in local memory, which follow them */
    size_t stride;                          /* bytes that each of these may have */
    size_t total;                           /* groups */
    double seconds;                         /* that each takes: 0 before the first run */
    void **args, *memory;
    size_t *sizes;                          /* room for each */
    int packed, laid, uneven;               /* whether arguments are packed (Intel's), it is known where each of them stands, and one has had two lengths */
    size_t *lengths, *offsets;              /* there */
    char *block;
    Launch *launch;
} Direct;

/* -- where buffers are ------------------------------------------------------------------------------------------------------------- */

enum { PLACES = 1 << 12, TRIES = 8 };
static volatile struct { uintptr_t handle; void *memory; } places[PLACES];      /* memory: NULL where nothing is known */

static size_t first_place(uintptr_t handle)
{
    return (size_t)((uint64_t)(handle >> 4) * 0x9E3779B97F4A7C15ull >> 52);
}

/* The driver's callback, from any thread, when it gives a buffer up and before the handle can be another's. Nobody looks that handle up meanwhile; where its
   place is given to another one at this moment, that is asked for once more. */
void forget(void *handle, void *nothing_given)
{
    size_t first = first_place((uintptr_t)handle);
    for (size_t i = 0; i <= TRIES; i++)
        if (places[(first + i) % PLACES].handle == (uintptr_t)handle)
            places[(first + i) % PLACES].memory = NULL;
}

/* Where what is known of a handle stands, or will: in the place of one of which nothing is known, or else of another one. */
static void *volatile *place_of(uintptr_t handle)
{
    size_t first = first_place(handle), chosen = PLACES;
    for (size_t i = 0; i <= TRIES; i++) {
        size_t at = (first + i) % PLACES;
        if (places[at].handle == handle)
            return &places[at].memory;
        if (chosen == PLACES && (places[at].memory == NULL || i == TRIES))
            chosen = at;
    }
    places[chosen].memory = NULL;
    places[chosen].handle = handle;
    return &places[chosen].memory;
}

/* The memory of a buffer: 1; 0 where it cannot be known, -1 with an error. */
int address_in(PyObject *device, PyObject *buf, void **memory)
{
    if (buf == Py_None) {
        *memory = NULL;
        return 1;
    }
    if ((*memory = noted_address(buf)) != NULL)
        return 1;
    PyObject *handle = PyObject_GetAttr(buf, s_int_ptr);
    uintptr_t value = handle == NULL ? 0 : (uintptr_t)PyLong_AsSize_t(handle);
    Py_XDECREF(handle);
    if (handle == NULL && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();                              /* no buffer: the driver will say so */
    if (!value)
        return PyErr_Occurred() ? -1 : 0;
    *memory = *place_of(value);
    if (*memory != NULL) {
        note_address(buf, *memory);
        return 1;
    }
    PyObject *args[] = {device, buf}, *found = PyObject_Vectorcall(the_address_of, args, 2, NULL);
    if (found == NULL)
        return -1;
    *memory = PyLong_AsVoidPtr(found);
    Py_DECREF(found);
    if (*memory == NULL)
        return PyErr_Occurred() ? -1 : 0;
    *place_of(value) = *memory;                     /* looked up anew: something may have been freed meanwhile */
    return 1;
}

/* address(device, buf): direct.address_of, which is asked once for each. */
PyObject *address(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    void *memory;
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "address() takes a device and a buffer");
    int known = address_in(args[0], args[1], &memory);
    return known < 0 ? NULL : PyLong_FromVoidPtr(known ? memory : NULL);
}

/* Local memory of each thread, which only one launch uses at a time: the interpreter's lock is held. */
static struct { char *memory; size_t size; } scratch[MOST_MEMBERS];

static int reserve(size_t size)
{
    for (int i = 0; i < MOST_MEMBERS; i++) {           /* helpers may come later; what is not used takes no memory */
        char *more = size > scratch[i].size ? PyMem_RawRealloc(scratch[i].memory, size) : scratch[i].memory;
        if (size > scratch[i].size && more == NULL)
            return -1;
        scratch[i].size = size > scratch[i].size ? size : scratch[i].size;
        scratch[i].memory = more;
    }
    return 0;
}

/* -- calls ------------------------------------------------------------------------------------------------------------------------- */

static int set_value(Direct *d, Py_ssize_t at, const void *value, Py_ssize_t size)
{
    if (at < 0 || at >= d->n || (size_t)size > d->sizes[at]) {
        PyErr_SetString(PyExc_ValueError, "an argument's place or size");
        return -1;
    }
    memcpy(d->args[at], value, size);
    if (d->packed) {
        d->uneven |= d->lengths[at] && d->lengths[at] != (size_t)size;
        d->lengths[at] = (size_t)size;
        if (d->laid && !d->uneven)
            memcpy(d->block + d->offsets[at], value, size);
    }
    return 0;
}

/* Tell the sizes of the launch behind packed arguments. */
static void tell_sizes(Direct *d)
{
    Launch *launch = d->launch;
    launch->dimensions = d->context.dimensions;
    for (int i = 0; i < 3; i++) {
        launch->inner_groups[i] = launch->groups[i] = d->context.groups[i];
        launch->inner_global[i] = launch->global[i] = d->context.groups[i] * d->context.local[i];
        for (int k = 0; k < 2; k++)
            launch->inner_local[k][i] = launch->local[k][i] = d->context.local[i];
    }
}

/* Pack the arguments: each stands at a multiple of its size. Whether all are known, and of such sizes. */
static int lay(Direct *d)
{
    size_t end = 0;
    for (Py_ssize_t i = 0; i < d->n; i++) {
        size_t length = d->lengths[i];
        if (length == 0 || length > LINE || length & (length - 1))
            return 0;
        d->offsets[i] = (end + length - 1) & ~(length - 1);
        end = d->offsets[i] + length;
        memcpy(d->block + d->offsets[i], d->args[i], length);
    }
    d->launch = (Launch *)(d->block + ((end + sizeof(size_t) - 1) & ~(sizeof(size_t) - 1)));
    tell_sizes(d);
    return d->laid = 1;
}

/* Numbers are rounded as the driver has them rounded, whatever this thread has set: that. */
static unsigned round_as_driver(void)
{
#ifdef __SSE__
    unsigned before = _mm_getcsr();
    if ((before & 0xffc0) != 0x1f80)
        _mm_setcsr(0x1f80);
    return before;
#else
    return 0;
#endif
}

static void round_as_before(unsigned before)
{
#ifdef __SSE__
    if ((before & 0xffc0) != 0x1f80)
        _mm_setcsr(before);
#endif
}

/* As below, with packed arguments. What stands behind a group's place is memory for local arrays: NULL for the stack. */
static void run_packed(void *direct, unsigned member, size_t first, size_t last)
{
    Direct *d = direct;
    PackedGroup *group = (PackedGroup *)d->group;
    void *nothing_given[16] = {NULL};
    size_t across = d->context.groups[0], rows = d->context.groups[1], at[8] = {first % across, first / across % rows, first / across / rows};
    unsigned before = round_as_driver();
    for (size_t i = first; i < last; i++) {
        group(d->block, at, nothing_given);
        if (++at[0] == across) {
            at[0] = 0;
            if (++at[1] == rows)
                at[1] = 0, at[2]++;
        }
    }
    round_as_before(before);
}

/* Some of the groups, which are counted as if they stood in a line. */
static void run_some(void *direct, unsigned member, size_t first, size_t last)
{
    Direct *d = direct;
    void *args[MOST_ARGS + MOST_LOCALS], *own[MOST_LOCALS], **given = d->args;
    if (d->locals) {
        char *memory = (char *)(((uintptr_t)scratch[member].memory + LINE - 1) & ~(uintptr_t)(LINE - 1));
        memcpy(args, d->args, (size_t)d->n * sizeof *args);
        for (Py_ssize_t i = 0; i < d->locals; i++) {
            own[i] = memory + (size_t)i * d->stride;
            args[d->n + i] = &own[i];
        }
        given = args;
    }
    unsigned before = round_as_driver();
    size_t across = d->context.groups[0], rows = d->context.groups[1], x = first % across, y = first / across % rows, z = first / across / rows;
    for (size_t i = first; i < last; i++) {
        d->group(given, &d->context, x, y, z);
        if (++x == across) {
            x = 0;
            if (++y == rows)
                y = 0, z++;
        }
    }
    round_as_before(before);
}

/* Run all groups; 0 where the arguments cannot be packed. */
static int run_groups(Direct *d)
{
    if (d->packed && (d->uneven || (!d->laid && !lay(d))))
        return 0;
    if (d->total == 0)
        return 1;
    double took = work_together(d->packed ? run_packed : run_some, d, d->total, d->seconds * (double)d->total) / (double)d->total;
    if (took > 0.0)                         /* what was held up once counts as twice what is usual at most */
        d->seconds = d->seconds > 0.0 ? 0.75 * d->seconds + 0.25 * (took < 2.0 * d->seconds ? took : 2.0 * d->seconds) : took;
    return 1;
}

/* Give it a number as launch.PACKED has it. */
static int set_number(Direct *d, PyObject *position, PyObject *number)
{
    Py_ssize_t at = PyLong_AsSsize_t(position);
    if (PyFloat_CheckExact(number)) {
        float value = (float)PyFloat_AS_DOUBLE(number);
        return set_value(d, at, &value, sizeof value);
    }
    if (PyLong_CheckExact(number)) {
        long long value = PyLong_AsLongLong(number);
        return value == -1 && PyErr_Occurred() ? -1 : set_value(d, at, &value, sizeof value);
    }
    if (PyBytes_CheckExact(number))
        return set_value(d, at, PyBytes_AS_STRING(number), PyBytes_GET_SIZE(number));
    PyErr_SetObject(PyExc_KeyError, (PyObject *)Py_TYPE(number));
    return -1;
}

/* Give it a buffer: 1; 0 where that has no address here, -1 with an error. */
static int set_buffer(Direct *d, PyObject *position, PyObject *buf)
{
    void *memory;
    int known = address_in(d->device, buf, &memory);
    return known > 0 && set_value(d, PyLong_AsSsize_t(position), &memory, sizeof memory) ? -1 : known;
}

/* Run with ``picked``, a tuple (position, buffer, ...), and ``numbers`` (NULL for none), whose positions are ``places``: 1; 0 where the driver has to, -1 with
   an error. */
int run_direct(PyObject *direct, PyObject *picked, PyObject *places, PyObject *numbers)
{
    Direct *d = (Direct *)direct;
    Py_ssize_t count = numbers == NULL ? 0 : PySequence_Fast_GET_SIZE(numbers);
    int known = count <= PyList_GET_SIZE(places);
    for (Py_ssize_t i = 0; known > 0 && i + 1 < PyTuple_GET_SIZE(picked); i += 2)
        known = set_buffer(d, PyTuple_GET_ITEM(picked, i), PyTuple_GET_ITEM(picked, i + 1));
    if (known <= 0)
        return known;
    for (Py_ssize_t i = 0; i < count; i++)
        if (set_number(d, PyList_GET_ITEM(places, i), PySequence_Fast_GET_ITEM(numbers, i)))
            return -1;
    return run_groups(d);
}

/* The groups of a launch whose groups have the sizes that ``d`` has: 1; 0 where it has others, or so many that the driver may have another function. */
static int set_sizes(Direct *d, PyObject *where)
{
    PyObject *global = PyTuple_GET_ITEM(where, 0), *local = PyTuple_GET_ITEM(where, 1);
    Py_ssize_t n = (Py_ssize_t)d->context.dimensions;
    if (!PyTuple_Check(global) || !PyTuple_Check(local) || PyTuple_GET_SIZE(global) != n || PyTuple_GET_SIZE(local) != n)
        return 0;
    size_t groups[3] = {1, 1, 1};
    for (Py_ssize_t i = 0; i < n; i++) {
        size_t items = PyLong_AsSize_t(PyTuple_GET_ITEM(global, i)), size = PyLong_AsSize_t(PyTuple_GET_ITEM(local, i));
        if (PyErr_Occurred() || !size || size != d->context.local[i] || items > 65535 - size)
            return PyErr_Occurred() ? -1 : 0;
        groups[i] = (items + size - 1) / size;
    }
    memcpy(d->context.groups, groups, sizeof groups);
    d->total = groups[0] * groups[1] * groups[2];
    if (d->laid)
        tell_sizes(d);
    return 1;
}

/* Run what has others' sizes and arguments: ``where`` and ``args`` as a Prepared has them, ``seconds`` that a group took, the rest as run_direct takes it and
   with what that gives. */
int run_anew(PyObject *direct, PyObject *where, PyObject *args, PyObject *picked, PyObject *places, PyObject *numbers, double *seconds)
{
    Direct *d = (Direct *)direct;
    int known = PyList_Check(args) && PyList_GET_SIZE(args) == d->n ? set_sizes(d, where) : 0;
    for (Py_ssize_t i = 0; known > 0 && i < d->n; i++) {
        PyObject *arg = PyList_GET_ITEM(args, i), *place = Py_IS_TYPE(arg, &PyBaseObject_Type) ? NULL : PyLong_FromSsize_t(i);
        if (place == NULL && !PyErr_Occurred())
            continue;                                       /* one that varies: launch.BUFFER, launch.NUMBER */
        int plain = PyFloat_CheckExact(arg) || PyLong_CheckExact(arg) || PyBytes_CheckExact(arg);
        known = place == NULL ? -1 : !plain ? set_buffer(d, place, arg) : set_number(d, place, arg) ? -1 : 1;
        Py_XDECREF(place);
    }
    if (known <= 0)
        return known;
    d->seconds = *seconds;
    known = run_direct(direct, picked, places, numbers);
    *seconds = d->seconds;
    return known;
}

/* Room for the arguments: those that never change have their size, the others that of a long vector. Packed ones have it once more behind. */
static int make_room(Direct *d, PyObject *args, Py_ssize_t n)
{
    size_t total = LINE;
    if ((d->args = PyMem_Calloc((size_t)n + 1, sizeof *d->args + 3 * sizeof *d->sizes)) == NULL)
        return -1;
    d->sizes = (size_t *)(d->args + n + 1), d->lengths = d->sizes + n + 1, d->offsets = d->lengths + n + 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *value = PyTuple_GET_ITEM(args, i);
        d->sizes[i] = value != Py_None && PyBytes_Check(value) && PyBytes_GET_SIZE(value) > LINE ? (size_t)PyBytes_GET_SIZE(value) : LINE;
        total += (d->sizes[i] + LINE - 1) & ~(size_t)(LINE - 1);
    }
    if ((d->memory = PyMem_Calloc(d->packed ? 2 * total + sizeof(Launch) : total, 1)) == NULL)
        return -1;
    char *next = (char *)(((uintptr_t)d->memory + LINE - 1) & ~(uintptr_t)(LINE - 1));
    for (Py_ssize_t i = 0; i < n; i++) {
        d->args[i] = next;
        next += (d->sizes[i] + LINE - 1) & ~(size_t)(LINE - 1);
    }
    d->block = next;
    d->n = n;
    return 0;
}

static void set_groups(Direct *d, PyObject *groups)
{
    for (Py_ssize_t i = 0; i < 3; i++)
        d->context.groups[i] = i < PyTuple_GET_SIZE(groups) ? PyLong_AsSize_t(PyTuple_GET_ITEM(groups, i)) : 1;
    d->total = d->context.groups[0] * d->context.groups[1] * d->context.groups[2];
    if (d->laid)
        tell_sizes(d);
}

/* Direct(device, address, groups, local, args, packed, locals, size): ``args`` has bytes, or None where something is given at each run, ``packed`` as Intel's
   runtime has them; up to ``locals`` arrays in local memory have ``size`` bytes together. */
static PyObject *new_direct(PyTypeObject *type, PyObject *given, PyObject *kwargs)
{
    unsigned long long address;
    PyObject *device, *groups, *local, *args;
    Py_ssize_t locals, size;
    int packed;
    if (!PyArg_ParseTuple(given, "OKO!O!O!pnn", &device, &address, &PyTuple_Type, &groups, &PyTuple_Type, &local, &PyTuple_Type, &args, &packed, &locals, &size))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(args), dimensions = PyTuple_GET_SIZE(groups);
    if (!address || locals < 0 || size < 0 || n > MOST_ARGS || locals > MOST_LOCALS || dimensions < 1 || dimensions > 3 || PyTuple_GET_SIZE(local) != dimensions)
        return PyErr_Format(PyExc_ValueError, "no launch that can be called");
    Direct *d = (Direct *)type->tp_alloc(type, 0);
    if (d != NULL)
        d->packed = packed;
    if (d == NULL || make_room(d, args, n) || reserve((size_t)locals * (size_t)(size + 2 * LINE) + LINE)) {
        Py_XDECREF(d);
        return d == NULL ? NULL : PyErr_NoMemory();
    }
    d->device = Py_NewRef(device);
    d->group = (Group *)(uintptr_t)address;
    d->locals = locals;
    d->stride = ((size_t)size + 2 * LINE - 1) & ~(size_t)(LINE - 1);
    d->context.dimensions = (unsigned)dimensions;
    d->context.printed_at = &d->printed_at;
    set_groups(d, groups);
    for (Py_ssize_t i = 0; i < 3; i++)
        d->context.local[i] = i < dimensions ? PyLong_AsSize_t(PyTuple_GET_ITEM(local, i)) : 1;
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *value = PyTuple_GET_ITEM(args, i);
        if (packed && PyBytes_Check(value) && (PyBytes_GET_SIZE(value) > LINE || PyBytes_GET_SIZE(value) & (PyBytes_GET_SIZE(value) - 1)))
            PyErr_SetString(PyExc_ValueError, "arguments of such sizes are not packed");
        else if (value != Py_None && (!PyBytes_Check(value) || set_value(d, i, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))))
            PyErr_SetString(PyExc_TypeError, "an argument is bytes or None");
    }
    if (PyErr_Occurred())
        Py_CLEAR(d);
    return (PyObject *)d;
}

#ifdef __linux__
typedef struct { const char *part; PyObject *list; } Search;

static int note_library(struct dl_phdr_info *info, size_t size, void *given)
{
    Search *search = given;
    return strstr(info->dlpi_name, search->part) != NULL && add(search->list, PyUnicode_DecodeFSDefault(info->dlpi_name)) ? -1 : 0;
}
#endif

/* libraries(part): paths of the loaded libraries that have ``part`` in them. */
PyObject *libraries(PyObject *module, PyObject *part)
{
    PyObject *list = PyList_New(0);
#ifdef __linux__
    Search search = {PyUnicode_AsUTF8(part), list};
    if (list != NULL && (search.part == NULL || dl_iterate_phdr(note_library, &search)))
        Py_CLEAR(list);
#endif
    return list;
}

/* hire(n, placed): as many threads beside the calling one share the groups of a launch from now on, or fewer; how many there are. */
PyObject *hire_helpers(PyObject *module, PyObject *args)
{
    int wanted, placed;
    return PyArg_ParseTuple(args, "ip", &wanted, &placed) ? PyLong_FromLong(hire(wanted, placed)) : NULL;
}

static void free_direct(PyObject *direct)
{
    PyMem_Free(((Direct *)direct)->memory);
    PyMem_Free(((Direct *)direct)->args);
    Py_XDECREF(((Direct *)direct)->device);
    Py_TYPE(direct)->tp_free(direct);
}

/* The methods of pyopencl's kernels that recorded lists use. */
static PyObject *direct_set_arg(PyObject *direct, PyObject *args)
{
    PyObject *position, *buf;
    int known = PyArg_ParseTuple(args, "OO", &position, &buf) ? set_buffer((Direct *)direct, position, buf) : -1;
    if (!known)
        PyErr_SetString(PyExc_RuntimeError, "a buffer without an address");
    return known > 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *direct_set_bytes(PyObject *direct, PyObject *args)
{
    PyObject *position, *bytes;
    if (!PyArg_ParseTuple(args, "OS", &position, &bytes) || set_number((Direct *)direct, position, bytes))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *direct_run(PyObject *direct, PyObject *queue)
{
    if (!run_groups((Direct *)direct))
        return PyErr_Format(PyExc_RuntimeError, "arguments that were not given");
    Py_RETURN_NONE;
}

/* run_with(picked, places, numbers): whether it ran with these (see run_direct). */
static PyObject *direct_run_with(PyObject *direct, PyObject *args)
{
    PyObject *picked, *places, *numbers;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyTuple_Type, &picked, &PyList_Type, &places, &numbers) || (numbers = PySequence_Fast(numbers, "numbers")) == NULL)
        return NULL;
    int done = run_direct(direct, picked, places, numbers);
    Py_DECREF(numbers);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

/* launch(groups, args): whether it ran with so many groups and these arguments, as launch.launch takes them. */
static PyObject *direct_launch(PyObject *direct, PyObject *given)
{
    Direct *d = (Direct *)direct;
    PyObject *groups, *args;
    if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &groups, &PyTuple_Type, &args))
        return NULL;
    if (PyTuple_GET_SIZE(args) != d->n || PyTuple_GET_SIZE(groups) != (Py_ssize_t)d->context.dimensions)
        return PyErr_Format(PyExc_ValueError, "other arguments or dimensions than it has");
    for (Py_ssize_t i = 0; i < d->n; i++) {
        PyObject *arg = PyTuple_GET_ITEM(args, i), *place = PyLong_FromSsize_t(i);
        int plain = PyFloat_CheckExact(arg) || PyLong_CheckExact(arg) || PyBytes_CheckExact(arg);
        int known = place == NULL ? -1 : !plain ? set_buffer(d, place, arg) : set_number(d, place, arg) ? -1 : 1;
        Py_XDECREF(place);
        if (known <= 0)
            return known < 0 ? NULL : Py_NewRef(Py_False);
    }
    set_groups(d, groups);
    if (PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(run_groups(d));
}

static PyMethodDef direct_methods[] = {
    {"set_arg", direct_set_arg, METH_VARARGS, NULL},
    {"_set_arg_buf", direct_set_bytes, METH_VARARGS, NULL},
    {"run", direct_run, METH_O, NULL},
    {"run_with", direct_run_with, METH_VARARGS, NULL},
    {"launch", direct_launch, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef direct_members[] = {
    {"groups", T_PYSSIZET, offsetof(Direct, total), READONLY, "how many there are"},
    {"seconds", T_DOUBLE, offsetof(Direct, seconds), READONLY, "that each takes"},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject Direct_made = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Direct", .tp_basicsize = sizeof(Direct), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = new_direct, .tp_dealloc = free_direct,
    .tp_methods = direct_methods, .tp_members = direct_members,
    .tp_doc = "A kernel that is called without its driver.",
};
