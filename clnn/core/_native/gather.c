/* Few elements by index, read and written by the host where it has the device's memory before it: indexing.gathered and scattered. A launch would take longer,
   and lengths that depend
   on data make each call one of a new size. */
#include "native.h"
#include "gather.h"
#include <math.h>

/* 1; 0 where it has more dimensions, or sizes that are traced. */
int layout_of(PyObject *t, Layout *l)
{
    PyObject *shape = AT(t, Tensor_shape), *strides = AT(t, Tensor__strides);
    l->rank = (int)PyTuple_GET_SIZE(shape);
    if (l->rank > MOST_DIMS || !PyTuple_Check(strides) || !PyLong_CheckExact(AT(t, Tensor__offset)))
        return 0;
    l->offset = PyLong_AsSsize_t(AT(t, Tensor__offset));
    l->numel = 1;
    for (int i = 0; i < l->rank; i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i), *step = PyTuple_GET_ITEM(strides, i);
        if (!PyLong_CheckExact(size) || !PyLong_CheckExact(step))
            return 0;
        l->sizes[i] = PyLong_AsSsize_t(size), l->steps[i] = PyLong_AsSsize_t(step);
        l->numel *= l->sizes[i];
    }
    return PyErr_Occurred() ? -1 : 1;
}

/* Whether its elements, from dimension ``first`` on, lie one after another. */
int is_dense(const Layout *l, int first)
{
    Py_ssize_t step = 1;
    for (int i = l->rank - 1; i >= first; i--) {
        if (l->sizes[i] != 1 && l->steps[i] != step)
            return 0;
        step *= l->sizes[i];
    }
    return 1;
}

/* Whether a result in rows is what PyTorch makes of it, too. */
static int is_in_rows(const Layout *l)
{
    for (int i = 0; i + 1 < l->rank; i++)
        if (l->steps[i] < l->steps[i + 1] || !l->steps[i + 1])
            return 0;
    return 1;
}

/* Whether the memory of ``t`` is a buffer, or is one now: values that a program gave are sent when somebody asks for it. */
static int is_sent(PyObject *t)
{
    PyObject *st = AT(t, Tensor__storage), *buf;
    int mirrored;
    if (IS(st, Storage))
        return 1;
    if (!PyObject_TypeCheck(st, Storage_type) || (mirrored = is_set(st, s_mirrored)))
        return PyErr_Occurred() ? -1 : 0;
    if ((buf = PyObject_GetAttr(st, s_buf)) == NULL)
        return -1;
    Py_DECREF(buf);
    return IS(st, Storage);
}

/* The index tensors of a call: how many, and where the first is. -1: an error, 0: none, or what is not known here. */
static int find_indices(PyObject *indices, PyObject *device, int *first)
{
    int n = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices); i++) {
        PyObject *t = PyList_GET_ITEM(indices, i);
        if (t == Py_None)
            continue;
        if (!IS(t, Tensor) || PyLong_AsSsize_t(AT(t, Tensor__numel)) > MOST || is_sent(t) <= 0 || AT(AT(t, Tensor__storage), Storage_device) != device)
            return PyErr_Occurred() ? -1 : 0;
        *first = n++ ? *first : (int)i;
    }
    return n;
}

/* The numbers of an index tensor, which lie one after another: NULL without an error where they do not. */
static const int64_t *numbers_of(PyObject *t, Layout *l, PyObject *dtype)
{
    if (AT(t, Tensor_dtype) != dtype || layout_of(t, l) <= 0 || !is_dense(l, 0) || l->numel > MOST || !l->numel)
        return NULL;
    PyObject *buf = settled_buffer(AT(t, Tensor__storage));
    void *memory = NULL;
    if (buf == NULL || address_in(AT(AT(t, Tensor__storage), Storage_device), buf, &memory) <= 0)
        return NULL;
    return (const int64_t *)memory;
}

/* ``base`` by one tensor of numbers at dimension ``dim``: 1, or 0. */
static int plan_numbers(Plan *p, PyObject *t, int dim)
{
    Layout l;
    const int64_t *numbers = numbers_of(t, &l, the_int64);
    if (numbers == NULL || l.rank + p->base.rank - 1 > MOST_DIMS)
        return 0;
    Py_ssize_t size = p->base.sizes[dim];
    for (Py_ssize_t i = 0; i < l.numel; i++) {
        int64_t at = numbers[l.offset + i];
        if (at < -size || at >= size)
            return 0;                                       /* whoever raises says more */
        p->places[i] = (at < 0 ? at + size : at) * p->base.steps[dim];
    }
    p->dim = dim, p->count = l.numel;
    for (int i = 0; i < dim; i++)
        p->sizes[p->rank++] = p->base.sizes[i];
    for (int i = 0; i < l.rank; i++)
        p->sizes[p->rank++] = l.sizes[i];
    for (int i = dim + 1; i < p->base.rank; i++)
        p->sizes[p->rank++] = p->base.sizes[i];
    return 1;
}

/* By a tensor of numbers for each dimension, all of one shape. */
static int plan_points(Plan *p, PyObject *indices)
{
    Layout l = {.rank = 0}, other;
    for (int d = 0; d < p->base.rank; d++) {
        const int64_t *numbers = numbers_of(PyList_GET_ITEM(indices, d), d ? &other : &l, the_int64);
        if (numbers == NULL || (d && (other.rank != l.rank || memcmp(other.sizes, l.sizes, (size_t)l.rank * sizeof *l.sizes))))
            return 0;
        Py_ssize_t size = p->base.sizes[d], first = d ? other.offset : l.offset;
        for (Py_ssize_t i = 0; i < l.numel; i++) {
            int64_t at = numbers[first + i];
            if (at < -size || at >= size)
                return 0;
            p->places[i] = (d ? p->places[i] : 0) + (at < 0 ? at + size : at) * p->base.steps[d];
        }
    }
    p->dim = -1, p->count = l.numel, p->rank = l.rank;
    memcpy(p->sizes, l.sizes, sizeof l.sizes);
    return 1;
}

/* By a mask over the first dimensions, which lie one after another as the rest does. */
static int plan_mask(Plan *p, PyObject *t)
{
    Layout l;
    const char *mask = (const char *)numbers_of(t, &l, the_bool);
    if (mask == NULL || l.rank > p->base.rank || !l.rank || memcmp(l.sizes, p->base.sizes, (size_t)l.rank * sizeof *l.sizes))
        return 0;
    Py_ssize_t count = 0, step = p->base.steps[l.rank - 1];
    for (int i = l.rank - 2; i >= 0; i--)
        if (p->base.steps[i] != p->base.steps[i + 1] * p->base.sizes[i + 1])
            return 0;
    for (Py_ssize_t i = 0; i < l.numel; i++) {                  /* without a branch, which nobody could predict */
        p->places[count] = i * step;
        count += mask[l.offset + i] != 0;
    }
    p->dim = l.rank - 1, p->count = count;
    p->mask = l.rank == p->base.rank && step == 1 ? mask + l.offset : NULL, p->marks = l.numel;
    p->sizes[p->rank++] = count;
    for (int i = l.rank; i < p->base.rank; i++)
        p->sizes[p->rank++] = p->base.sizes[i];
    for (int i = 0; i < p->dim; i++)                       /* the mask counts through them */
        p->base.sizes[i] = 1;
    return 1;
}

/* Copy ``n`` bytes, mostly those of one element. */
static inline void move(char *to, const char *from, Py_ssize_t n)
{
    switch (n) {
    case 1: *to = *from; break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, (size_t)n);
    }
}

/* Put one element of ``size`` bytes at ``n`` places one after another. */
static void fill(char *to, const char *from, Py_ssize_t n, Py_ssize_t size)
{
#define FILL(type) do { type value; memcpy(&value, from, sizeof value); for (Py_ssize_t i = 0; i < n; i++) memcpy(to + i * (Py_ssize_t)sizeof value, &value, \
    sizeof value); } while (0)
    if (size == 4)
        FILL(uint32_t);
    else if (size == 8)
        FILL(uint64_t);
    else
        for (Py_ssize_t i = 0; i < n; i++)
            move(to + i * size, from, size);
#undef FILL
}

/* Copy what follows from dimension ``d`` on. */
static char *copy_from(const Plan *p, int d, const char *at, char *to, Py_ssize_t size)
{
    Py_ssize_t n = d == p->dim ? p->count : d < p->base.rank ? p->base.sizes[d] : 1, bytes = p->block * size, step = d < p->base.rank ? p->base.steps[d] : 0;
    if (d >= p->tail) {
        move(to, at, bytes);
        return to + bytes;
    }
    if (d + 1 == p->tail) {
        for (Py_ssize_t i = 0; i < n; i++, to += bytes)
            move(to, at + (d == p->dim ? p->places[i] : i * step) * size, bytes);
        return to;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        to = copy_from(p, d + 1, at + (d == p->dim ? p->places[i] : i * step) * size, to, size);
    return to;
}

static void copy_all(const Plan *p, char *to, Py_ssize_t size)
{
    const char *at = p->base.memory + p->base.offset * size;
    if (p->dim >= 0)
        copy_from(p, 0, at, to, size);
    else
        for (Py_ssize_t i = 0; i < p->count; i++)
            move(to + i * size, at + p->places[i] * size, size);
}

/* A tensor of memory of its own. */
PyObject *result_of(PyObject *device, PyObject *buf, PyObject *dtype, PyObject *nbytes, const Plan *p, Py_ssize_t numel)
{
    Py_ssize_t steps[MOST_DIMS], step = 1;
    for (int i = p->rank - 1; i >= 0; i--) {
        steps[i] = step;
        step *= p->sizes[i];
    }
    PyObject *storage = new_object(Storage_type), *tensor = storage == NULL ? NULL : new_object(Tensor_type), *count = PyLong_FromSsize_t(numel);
    PyObject *sizes = tuple_of(p->sizes, p->rank), *shape = sizes == NULL ? NULL : PyObject_CallOneArg(the_Size, sizes), *strides = tuple_of(steps, p->rank);
    if (tensor != NULL && count != NULL && shape != NULL && strides != NULL) {
        put(storage, Storage_device, device), put(storage, Storage_nbytes, nbytes), put(storage, Storage_buf, buf);
        put(storage, Storage_node, Py_None), put(storage, Storage_pinned, Py_False), put(storage, Storage_version, zero);
        put(tensor, Tensor__storage, storage), put(tensor, Tensor_shape, shape), put(tensor, Tensor__strides, strides), put(tensor, Tensor__offset, zero);
        put(tensor, Tensor_dtype, dtype), put(tensor, Tensor__numel, count), put(tensor, Tensor__dense, Py_True);
    } else
        Py_CLEAR(tensor);
    Py_XDECREF(storage), Py_XDECREF(count), Py_XDECREF(sizes), Py_XDECREF(shape), Py_XDECREF(strides);
    return tensor;
}

/* Put values, one after another, or the same one each time (``step`` 0 or 1), where the plan has its elements. */
static const char *put_from(const Plan *p, int d, char *at, const char *from, Py_ssize_t size, int step)
{
    if (d >= p->tail) {
        if (step)
            move(at, from, p->block * size);
        else
            fill(at, from, p->block, size);
        return from + step * p->block * size;
    }
    Py_ssize_t n = d == p->dim ? p->count : p->base.sizes[d], bytes = step * size;
    if (d + 1 == p->tail && p->block == 1) {
        for (Py_ssize_t i = 0; i < n; i++, from += bytes)
            move(at + (d == p->dim ? p->places[i] : i * p->base.steps[d]) * size, from, size);
        return from;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        from = put_from(p, d + 1, at + (d == p->dim ? p->places[i] : i * p->base.steps[d]) * size, from, size, step);
    return from;
}

/* Put one element of 4 bytes where a mask is set, in vectors. */
static void fill_where(char *to, const char *from, const char *mask, Py_ssize_t n)
{
    uint32_t value, *at = (uint32_t *)to;
    memcpy(&value, from, sizeof value);
    for (Py_ssize_t i = 0; i < n; i++) {
        uint32_t kept = (uint32_t)(mask[i] != 0) - 1;
        at[i] = (at[i] & kept) | (value & ~kept);
    }
}

static void put_all(const Plan *p, const char *from, Py_ssize_t size, int step)
{
    char *at = p->base.memory + p->base.offset * size;
    if (p->mask != NULL && !step && size == 4)
        fill_where(at, from, p->mask, p->marks);
    else if (p->dim >= 0)
        put_from(p, 0, at, from, size, step);
    else
        for (Py_ssize_t i = 0; i < p->count; i++)
            move(at + p->places[i] * size, from + i * step * size, size);
}

/* What the indices mean: 1; 0 where that is not known here. */
static int plan(Plan *p, PyObject *x, PyObject *indices, int n, int first)
{
    p->rank = 0, p->mask = NULL;
    if (layout_of(x, &p->base) <= 0 || !is_in_rows(&p->base) || PyList_GET_SIZE(indices) != p->base.rank)
        return 0;
    PyObject *index = PyList_GET_ITEM(indices, first);
    if (AT(index, Tensor_dtype) == the_bool ? n != 1 || first || !plan_mask(p, index) : n == 1 ? !plan_numbers(p, index, first) : n != p->base.rank
        || !plan_points(p, indices))
        return 0;
    for (p->tail = p->base.rank, p->block = 1; p->tail - 1 > p->dim && p->base.steps[p->tail - 1] == p->block; p->tail--)
        p->block *= p->base.sizes[p->tail - 1];
    return 1;
}

static Py_ssize_t planned(const Plan *p)                    /* how many elements */
{
    Py_ssize_t numel = 1;
    for (int i = 0; i < p->rank; i++)
        numel *= p->sizes[i];
    return numel;
}

/* The lock is held, and nothing runs: read what ``indices`` mean. None where that is not known here. */
static PyObject *read_all(PyObject *x, PyObject *indices, PyObject *device, PyObject *state, int n, int first)
{
    Plan p;
    PyObject *size = trait(AT(x, Tensor_dtype), itemsize), *source = settled_buffer(AT(x, Tensor__storage)), *nbytes = NULL, *buf = NULL, *result = NULL;
    Py_ssize_t itemsize = size == NULL ? -1 : PyLong_AsSsize_t(size), numel = 0;
    void *memory = NULL, *target = NULL;
    int good = itemsize > 0 && source != NULL && plan(&p, x, indices, n, first);
    if (good)
        numel = planned(&p);
    PyObject *alloc = of_device(state, alloc);
    if (good > 0 && numel && numel <= MOST && alloc != NULL && address_in(device, source, &memory) > 0 && (nbytes = PyLong_FromSsize_t(numel * itemsize)) != NULL
            && (buf = PyObject_CallOneArg(alloc, nbytes)) != NULL && address_in(device, buf, &target) > 0 && !PyDict_SetItem(state, s_peek, Py_None)) {
        p.base.memory = memory;
        copy_all(&p, target, itemsize);
        result = result_of(device, buf, AT(x, Tensor_dtype), nbytes, &p, numel);
    }
    Py_XDECREF(size), Py_XDECREF(nbytes), Py_XDECREF(buf);
    if (result != NULL && count_transfer(state) < 0)
        Py_CLEAR(result);
    return result != NULL ? result : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* Whether ``t`` has few elements; also that what is pending of it is computed, if so. -1: an error. */
static int is_few(PyObject *t, int compute)
{
    if (PyLong_AsSsize_t(AT(t, Tensor__numel)) > MOST)
        return PyErr_Occurred() ? -1 : 0;
    return !compute || settled_buffer(AT(t, Tensor__storage)) != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Whether what is read is little, as far as sizes tell, and computed now. */
static int realized(PyObject *x, PyObject *indices)
{
    int good = AT(AT(x, Tensor__storage), Storage_node) == Py_None ? 1 : is_few(x, 0);
    for (int compute = 0; compute < 2; compute++)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices) && good > 0; i++)
            if (PyList_GET_ITEM(indices, i) != Py_None)
                good = is_few(PyList_GET_ITEM(indices, i), compute);
    if (good > 0 && AT(AT(x, Tensor__storage), Storage_node) != Py_None)
        good = is_few(x, 1);
    return good;
}

/* A number in memory as elements of ``dtype`` have it: 1; 0 where it is not of their kind. */
static int number_as(PyObject *value, PyObject *dtype, char *bytes)
{
#define AS(type, number) do { type element = (type)(number); memcpy(bytes, &element, sizeof element); return !PyErr_Occurred(); } while (0)
    int real = PyFloat_CheckExact(value), whole = PyLong_CheckExact(value);
    if (dtype == the_bool && PyBool_Check(value))
        AS(char, value == Py_True);
    if ((dtype == the_float32 || dtype == the_float64) && (real || whole)) {
        double v = PyFloat_AsDouble(value);
        if (!(fabs(v) < (real ? 1e38 : 9e15)))              /* what is rounded twice, or to infinity */
            return 0;
        if (dtype == the_float32)
            AS(float, v);
        AS(double, v);
    }
    if (dtype == the_int64 && whole)
        AS(int64_t, PyLong_AsLongLong(value));
    return 0;
#undef AS
}

/* Whether nothing was enqueued but what is complete. */
static int is_quiet(PyObject *state)
{
    PyObject *side = of_device(state, inline);
    return of_device(state, waiting) == Py_False && of_device(state, last) == AT(side, Inline_done);
}

/* -- regions ----------------------------------------------------------------------------------------------------------------------- */

/* Sizes and steps of a region, or of what is read over it: 1; 0 where it has more dimensions. */
static int region_of(PyObject *shape, PyObject *strides, PyObject *offset, Layout *l)
{
    l->rank = (int)PyTuple_GET_SIZE(shape);
    if (l->rank > MOST_DIMS || PyTuple_GET_SIZE(strides) != l->rank)
        return 0;
    l->offset = PyLong_AsSsize_t(offset), l->numel = 1;
    for (int i = 0; i < l->rank; i++) {
        l->sizes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)), l->steps[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i));
        l->numel *= l->sizes[i];
    }
    return PyErr_Occurred() ? -1 : 1;
}

static void copy_region(const Layout *to, const Layout *from, int d, char *at, const char *source, Py_ssize_t size)
{
    if (d == to->rank) {
        memcpy(at, source, (size_t)size);
        return;
    }
    for (Py_ssize_t i = 0; i < to->sizes[d]; i++)
        copy_region(to, from, d + 1, at + i * to->steps[d] * size, source + i * from->steps[d] * size, size);
}

/* What store() of stores.c launches, done by the host where it has the memory of a device before it that does nothing: 1; 0 where it has not.
   ``read``, ``first`` and ``from``: a buffer, and where what is written lies in it; NULL for ``value``, a number. */
int store_here(PyObject *device, PyObject *dtype, PyObject *shape, PyObject *strides, PyObject *offset, PyObject *written, PyObject *read, PyObject *first,
    PyObject *from,
               PyObject *value)
{
    Layout to, source = {.rank = 0};
    char number[8];
    void *target = NULL, *memory = number;
    PyObject *state, *side, *lock, *size;
    int good = calls_are_usual();
    if (good <= 0 || (good = region_of(shape, strides, offset, &to)) <= 0 || to.numel > FEW)
        return good < 0 ? -1 : 0;
    if (read != NULL ? (good = region_of(shape, from, first, &source)) <= 0 : (good = number_as(value, dtype, number)) <= 0)
        return PyErr_Occurred() ? -1 : 0;
    if ((size = trait(dtype, itemsize)) == NULL || (state = PyObject_GenericGetDict(device, NULL)) == NULL) {
        Py_XDECREF(size);
        return -1;
    }
    Py_ssize_t itemsize = PyLong_AsSsize_t(size);
    side = of_device(state, inline), lock = of_device(state, lock);
    good = side != NULL && IS(side, Inline) && is_near(state) && lock != NULL ? short_way(state, side) : 0;
    if (good > 0)
        good = is_ready(state, side);
    if (good > 0 && (good = held(lock, s_acquire) ? -1 : 1) > 0) {
        good = is_quiet(state) ? address_in(device, written, &target) : 0;
        if (good > 0 && read != NULL)
            good = address_in(device, read, &memory);
        if (good > 0) {
            memset(source.steps + source.rank, 0, (size_t)(MOST_DIMS - source.rank) * sizeof *source.steps);
            copy_region(&to, &source, 0, (char *)target + to.offset * itemsize, (char *)memory + source.offset * itemsize, itemsize);
            good = PyDict_SetItem(state, s_peek, Py_None) ? -1 : 1;
        }
        held(lock, s_release);
    }
    Py_DECREF(size), Py_DECREF(state);
    return good;
}

/* -- indices ----------------------------------------------------------------------------------------------------------------------- */

/* The lock is held, and nothing runs: write ``value``, a number or a tensor. 1; 0 where what is meant is not known here. */
static int write_all(PyObject *x, PyObject *indices, PyObject *value, PyObject *device, PyObject *state, int n, int first)
{
    Plan p;
    Layout l;
    char number[8];
    PyObject *st = AT(x, Tensor__storage), *size = trait(AT(x, Tensor_dtype), itemsize), *buf;
    Py_ssize_t itemsize = size == NULL ? -1 : PyLong_AsSsize_t(size);
    void *memory = NULL, *source = number;
    Py_XDECREF(size);
    if (itemsize <= 0 || !plan(&p, x, indices, n, first) || !p.base.steps[p.base.rank - 1])
        return 0;
    Py_ssize_t numel = planned(&p);
    int step = 0;
    if (!IS(value, Tensor)) {
        if (number_as(value, AT(x, Tensor_dtype), number) <= 0)
            return 0;
    } else {
        if (layout_of(value, &l) <= 0 || !is_dense(&l, 0) || (l.numel != 1 && (l.rank != p.rank || memcmp(l.sizes, p.sizes, (size_t)l.rank * sizeof *l.sizes)))
                || (buf = settled_buffer(AT(value, Tensor__storage))) == NULL || address_in(device, buf, &source) <= 0)
            return 0;
        step = l.numel != 1;
        source = (char *)source + l.offset * itemsize;
    }
    if (numel > MOST || come_apart(st, 0) || !is_quiet(state) || address_in(device, AT(st, Storage_buf), &memory) <= 0)
        return 0;                                           /* it may be the copy that runs */
    p.base.memory = memory;
    put_all(&p, source, itemsize, step);
    return PyDict_SetItem(state, s_peek, Py_None) || bump(x) ? -1 : 1;
}

/* Read what ``indices`` mean (NULL: find what is not zero), or write ``value`` (NULL: read) there: the tensor, or True; None where nothing is done. */
static PyObject *done_here(PyObject *x, PyObject *indices, PyObject *value)
{
    PyObject *births = variable(the_node, s_births), *dispatched = variable(the_foreign, s_dispatched), *result = NULL;
    int first = 0, count = 0, good;
    if (births == NULL || dispatched == NULL)
        return NULL;
    if (!IS(x, Tensor) || !PyObject_TypeCheck(AT(x, Tensor__storage), Storage_type) || births != Py_None || dispatched != Py_None || (indices != NULL
        && !PyList_Check(indices)) || (good = calls_are_usual()) <= 0)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *device = AT(AT(x, Tensor__storage), Storage_device), *state, *lock, *side;
    if ((indices != NULL && is_tracked(x)) || (state = PyObject_GenericGetDict(device, NULL)) == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    side = of_device(state, inline), lock = of_device(state, lock);
    good = side != NULL && IS(side, Inline) && is_near(state) && lock != NULL
        && (indices == NULL || (count = find_indices(indices, device, &first)) > 0) && is_sent(x) > 0 ? indices == NULL ? is_few(x, 1) : realized(x, indices) : 0;
    good = PyErr_Occurred() ? -1 : good;
    if (good > 0 && value != NULL)
        good = is_open(x);
    if (good > 0 && value != NULL && IS(value, Tensor))
        good = is_tracked(value) || is_sent(value) <= 0 || AT(value, Tensor_dtype) != AT(x, Tensor_dtype) || AT(AT(value, Tensor__storage), Storage_device) != device
            || AT(value, Tensor__storage) == AT(x, Tensor__storage) ? 0 : is_few(value, 1);
    if (good > 0)
        good = short_way(state, side);
    if (good > 0)
        good = is_ready(state, side);
    if (good > 0 && !held(lock, s_acquire)) {
        if (is_quiet(state))                                /* nothing was enqueued meanwhile */
            result = indices == NULL ? find_all(x, device, state) : value == NULL ? read_all(x, indices, device, state, count, first)
                : (good = write_all(x, indices, value, device, state, count, first)) > 0 ? Py_NewRef(Py_True) : NULL;
        held(lock, s_release);
    }
    Py_DECREF(state);
    return result != NULL ? result : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* located(x): searching.located */
PyObject *located(PyObject *module, PyObject *x)
{
    return done_here(x, NULL, NULL);
}

/* gathered(x, indices): indexing.gathered */
PyObject *gathered(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    return n == 2 ? done_here(args[0], args[1], NULL) : PyErr_Format(PyExc_TypeError, "gathered() takes a tensor and a list of index tensors");
}

/* scattered(x, indices, value): indexing.scattered */
PyObject *scattered(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    return n == 3 ? done_here(args[0], args[1], args[2]) : PyErr_Format(PyExc_TypeError, "scattered() takes a tensor, a list of index tensors and a value");
}
