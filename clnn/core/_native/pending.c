/* What is pending is computed: fuse.realize, fuse._compute, Storage.buffer. */
#include "native.h"

/* The values that are still wanted of what is pending below ``root``: a list of (node, storage), that one first; their places are added to ``key``. */
static PyObject *wanted_of(PyObject *root, PyObject *storage, PyObject *key, PyObject *nodes)
{
    PyObject *outs = PyList_New(0), *node, *at;
    Py_ssize_t place = 0;
    if (outs == NULL || add(outs, PyTuple_Pack(2, root, storage)))
        goto failed;
    while (PyDict_Next(nodes, &place, &node, &at)) {
        PyObject *owner = node == root ? Py_NewRef(Py_None) : PyObject_CallNoArgs(AT(node, Node_out));
        int wanted = owner != NULL && owner != Py_None && PyObject_TypeCheck(owner, Storage_type) && AT(owner, Storage_node) == node;
        int bad = owner == NULL || (wanted && (add(outs, PyTuple_Pack(2, node, owner)) || add(key, PyNumber_Float(at))));
        Py_XDECREF(owner);
        if (bad)
            goto failed;
    }
    return outs;
failed:
    Py_XDECREF(outs);
    return NULL;
}

/* fuse._of_structure: the _Known, borrowed from a dictionary or new; None where one kernel would not do. */
static PyObject *known_of(PyObject *key, PyObject *root, PyObject *outs)
{
    PyObject *all = PyList_AsTuple(key), *known = variable(the_fuse, s__known), *found = NULL, *targets;
    if (all != NULL && known != NULL && PyDict_CheckExact(known) && (found = PyDict_GetItemWithError(known, all)) != NULL) {      /* in a trace it is another */
        Py_INCREF(found);
    } else if (all != NULL && !PyErr_Occurred() && (targets = PyList_New(0)) != NULL) {
        int bad = 0;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outs) && !bad; i++) {
            PyObject *node = PyTuple_GET_ITEM(PyList_GET_ITEM(outs, i), 0);
            bad = add(targets, PyTuple_Pack(5, node, AT(node, Node_dtype), Py_None, zero, Py_None));
        }
        found = bad ? NULL : PyObject_CallFunctionObjArgs(the_of_structure, all, root, targets, NULL);
        Py_DECREF(targets);
    }
    Py_XDECREF(all);
    return found;
}

/* The buffers of a launch with their places, (place, buffer, place, buffer, ...): of what is read, of which ``picks`` are taken unless it is None, and of what is
   written: a list, or one buffer. */
static PyObject *with_places(PyObject *places, PyObject *reads, PyObject *picks, PyObject *written)
{
    int list = PyList_CheckExact(written);
    Py_ssize_t read = PyList_GET_SIZE(picks == Py_None ? reads : picks), n = read + (list ? PyList_GET_SIZE(written) : 1);
    if (PyList_GET_SIZE(places) != 2 * n)
        return PyErr_Format(PyExc_SystemError, "a launch of another structure");
    PyObject *picked = PyTuple_New(2 * n);
    for (Py_ssize_t i = 0; picked != NULL && i < n; i++) {
        Py_ssize_t at = picks == Py_None || i >= read ? i : PyLong_AsSsize_t(PyList_GET_ITEM(picks, i));
        PyTuple_SET_ITEM(picked, 2 * i, Py_NewRef(PyList_GET_ITEM(places, 2 * i)));
        PyTuple_SET_ITEM(picked, 2 * i + 1, Py_NewRef(i < read ? PyTuple_GET_ITEM(PyList_GET_ITEM(reads, at), 0) : list ? PyList_GET_ITEM(written, i - read) : written));
    }
    return picked;
}

/* The numbers of a launch whose operands begin somewhere: ``offset`` is that of the one that is written. */
static PyObject *with_offsets(PyObject *reads, PyObject *picks, PyObject *numbers, PyObject *offset)
{
    PyObject *all = PyList_New(0);
    Py_ssize_t n = PyList_GET_SIZE(picks == Py_None ? reads : picks);
    int failed = all == NULL;
    for (Py_ssize_t i = 0; !failed && i < n; i++) {
        PyObject *begin = PyTuple_GET_ITEM(PyList_GET_ITEM(reads, picks == Py_None ? i : PyLong_AsSsize_t(PyList_GET_ITEM(picks, i))), 2);
        failed = PyObject_IsTrue(begin) && PyList_Append(all, begin);
    }
    if (!failed)
        failed = PyList_SetSlice(all, PyList_GET_SIZE(all), PyList_GET_SIZE(all), numbers) || (PyObject_IsTrue(offset) && PyList_Append(all, offset));
    if (failed)
        Py_CLEAR(all);
    return all;
}

/* _Known.run of what was launched before, writing a list of buffers from their beginnings on, or one from ``offset`` on: 1; 0 where it was not, -1 on errors.
   ``locked``: the device's lock is held. */
int launch_known(PyObject *known, PyObject *device, PyObject *reads, PyObject *numbers, PyObject *written, PyObject *offset, int locked)
{
    PyObject *launch = AT(known, _Known_launch), *picks = AT(known, _Known_picks), *prepared = AT(launch, _Launch_prepared), *got = NULL;
    if (prepared == Py_None || !PyObject_TypeCheck(prepared, Prepared_type) || (picks != Py_None && !PyList_CheckExact(picks)))
        return 0;
    PyObject *picked = with_places(AT(launch, _Launch_places), reads, picks, written);
    PyObject *told_numbers = picked == NULL ? NULL : AT(launch, _Launch_moved) == Py_False ? Py_NewRef(numbers) : with_offsets(reads, picks, numbers, offset);
    if (told_numbers != NULL)
        got = run_locked(prepared, device, picked, told_numbers, locked);
    Py_XDECREF(picked), Py_XDECREF(told_numbers), Py_XDECREF(got);
    return got == NULL ? -1 : 1;
}

/* _Known.run of outputs that are written from their beginning on; the device's lock is held. */
static int launch_all_of(PyObject *known, PyObject *device, PyObject *reads, PyObject *numbers, PyObject *buffers)
{
    int done = launch_known(known, device, reads, numbers, buffers, zero, 1);
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *args[] = {known, device, reads, numbers, buffers}, *got = PyObject_VectorcallMethod(s_run, args, 5, NULL);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* fuse.finish */
void finish_node(PyObject *node, PyObject *owner, PyObject *buf)
{
    change(node, Node_buf, Py_NewRef(buf));
    change(owner, Storage_buf, Py_NewRef(buf));
    change(node, Node_args, Py_NewRef(nothing));
    change(owner, Storage_node, Py_NewRef(Py_None));
}

/* Buffers for the values ``outs``. */
static PyObject *buffers_for(PyObject *outs, PyObject *device, PyObject *reads, PyObject *nodes)
{
    PyObject *first = AT(PyTuple_GET_ITEM(PyList_GET_ITEM(outs, 0), 1), Storage_nbytes), *alloc;
    int large = PyObject_RichCompareBool(first, the_small, Py_GE);             /* a trace sees that */
    int end = large > 0 ? may_end(reads) : large;
    if (end)
        return end < 0 ? NULL : variable(the_symbols, s_tracing) == Py_None ? written_over(device, reads, nodes, outs)
            : PyObject_CallFunctionObjArgs(the_allocate, device, reads, nodes, outs, NULL);
    PyObject *list = PyList_New(0);
    if (list == NULL || (alloc = PyObject_GetAttr(device, s_alloc)) == NULL) {
        Py_XDECREF(list);
        return NULL;
    }
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(outs); i++)
        if (add(list, PyObject_CallOneArg(alloc, AT(PyTuple_GET_ITEM(PyList_GET_ITEM(outs, i), 1), Storage_nbytes))))
            Py_CLEAR(list);
    Py_DECREF(alloc);
    return list;
}

/* -- single operators ------------------------------------------------------------------------------------------------------------------ */

enum { MOST_OPERANDS = 4, KINDS = 256 };

/* A structure of one node over buffers that are read from their beginnings on, and numbers: told by the objects themselves, in fewer steps than by a key.
   ``kept`` is the dictionary that ``known`` came from; the row of an operand is NULL for numbers, ``same`` its first equal. */
typedef struct {
    PyObject *kept, *known, *device, *expr, *compute, *dtype, *shape, *rows[MOST_OPERANDS], *walks[MOST_OPERANDS];
    Py_ssize_t n, same[MOST_OPERANDS];
} Single;

static Single singles[KINDS];

static int alike_tuples(PyObject *a, PyObject *b)
{
    return a == b || (PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b) && PyObject_RichCompareBool(a, b, Py_EQ) > 0);
}

/* What tells ``root`` (borrowed): 1; 0 where it is another kind of structure. */
static int single_of(PyObject *root, PyObject *kept, Single *one)
{
    PyObject *refs = AT(root, Node_args);
    one->n = PyTuple_GET_SIZE(refs);
    if (one->n > MOST_OPERANDS || kept == NULL || !PyDict_CheckExact(kept) || !PyTuple_Check(AT(root, Node_shape)))
        return 0;
    one->kept = kept, one->device = AT(root, Node_device), one->expr = AT(root, Node_expr), one->compute = AT(root, Node_compute);
    one->dtype = AT(root, Node_dtype), one->shape = AT(root, Node_shape);
    for (Py_ssize_t i = 0; i < one->n; i++) {
        PyObject *ref = PyTuple_GET_ITEM(refs, i);
        one->rows[i] = one->walks[i] = NULL, one->same[i] = i;
        if (!PyTuple_CheckExact(ref))
            continue;
        if (PyTuple_GET_SIZE(ref) != 4 || PyTuple_GET_ITEM(ref, 2) != zero || PyObject_TypeCheck(PyTuple_GET_ITEM(ref, 0), Node_type))
            return 0;
        one->rows[i] = PyTuple_GET_ITEM(ref, 1), one->walks[i] = PyTuple_GET_ITEM(ref, 3);
        for (Py_ssize_t j = i - 1; j >= 0; j--)
            if (one->rows[j] != NULL && PyTuple_GET_ITEM(PyTuple_GET_ITEM(refs, j), 0) == PyTuple_GET_ITEM(ref, 0))
                one->same[i] = j;
    }
    return 1;
}

static Single *place_of_kind(const Single *one)
{
    uintptr_t h = (uintptr_t)one->expr / 16 * 31 + (uintptr_t)one->dtype / 16 * 7 + (one->n && one->rows[0] != NULL ? (uintptr_t)one->rows[0] / 16 * 13 : 0);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(one->shape); i++)
        h = h * 1000003 + (uintptr_t)PyLong_AsSsize_t(PyTuple_GET_ITEM(one->shape, i));
    return &singles[(h ^ h / KINDS) % KINDS];
}

static int is_kind(const Single *found, const Single *one)
{
    if (found->known == NULL || found->kept != one->kept || found->device != one->device || found->expr != one->expr || found->compute != one->compute
            || found->dtype != one->dtype || found->n != one->n || !alike_tuples(found->shape, one->shape))
        return 0;
    for (Py_ssize_t i = 0; i < one->n; i++)
        if (found->rows[i] != one->rows[i] || found->same[i] != one->same[i] || (one->rows[i] != NULL && !alike_tuples(found->walks[i], one->walks[i])))
            return 0;
    return 1;
}

static void drop_single(Single *found)
{
    Single old = *found;
    memset(found, 0, sizeof *found);
    Py_XDECREF(old.kept), Py_XDECREF(old.known), Py_XDECREF(old.device), Py_XDECREF(old.expr), Py_XDECREF(old.compute), Py_XDECREF(old.dtype), Py_XDECREF(old.shape);
    for (int i = 0; i < MOST_OPERANDS; i++) {
        Py_XDECREF(old.rows[i]);
        Py_XDECREF(old.walks[i]);
    }
}

static void keep_single(Single *place, const Single *one, PyObject *known)
{
    drop_single(place);
    *place = *one;
    place->known = Py_NewRef(known);
    Py_INCREF(place->kept), Py_INCREF(place->device), Py_INCREF(place->expr), Py_INCREF(place->compute), Py_INCREF(place->dtype), Py_INCREF(place->shape);
    for (Py_ssize_t i = 0; i < MOST_OPERANDS; i++) {
        if (i >= place->n)
            place->rows[i] = place->walks[i] = NULL;
        Py_XINCREF(place->rows[i]);
        Py_XINCREF(place->walks[i]);
    }
}

/* Launch what ``root`` is, whose kind is known, into memory of its own: 1; 0 where that of an operand may serve (``large``), -1 with an error. */
static int compute_single(PyObject *storage, PyObject *root, PyObject *known, int large)
{
    PyObject *device = AT(root, Node_device), *refs = AT(root, Node_args), *reads = PyList_New(0), *numbers = PyList_New(0), *alloc, *buf = NULL, *buffers = NULL;
    int failed = reads == NULL || numbers == NULL, ends = 0;
    Py_INCREF(known);
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(refs); i++) {
        PyObject *ref = PyTuple_GET_ITEM(refs, i);
        failed = PyTuple_CheckExact(ref) ? PyList_Append(reads, ref) : add(numbers, number_of(ref, AT(root, Node_expr), AT(root, Node_compute), i));
    }
    if (!failed && !(ends = large && may_end(reads)) && (alloc = PyObject_GetAttr(device, s_alloc)) != NULL) {
        buf = PyObject_CallOneArg(alloc, AT(storage, Storage_nbytes));
        Py_DECREF(alloc);
    }
    if (buf != NULL && (buffers = PyList_New(1)) != NULL) {
        PyList_SET_ITEM(buffers, 0, Py_NewRef(buf));
        if (!launch_all_of(known, device, reads, numbers, buffers))
            finish_node(root, storage, buf);
    }
    Py_XDECREF(reads), Py_XDECREF(numbers), Py_XDECREF(buf), Py_XDECREF(buffers), Py_DECREF(known);
    return PyErr_Occurred() ? -1 : !ends;
}

/* compute(storage, root): fuse._compute */
PyObject *compute(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !IS(args[1], Node) || !PyObject_TypeCheck(args[0], Storage_type))
        return PyErr_Format(PyExc_TypeError, "compute() takes a storage and its node");
    int some = PyObject_IsTrue(AT(args[0], Storage_nbytes));
    if (some <= 0)
        return some < 0 ? NULL : PyObject_Vectorcall(the_compute, args, 2, NULL);
    Single one = {0};
    PyObject *kept = variable(the_fuse, s__known);
    int large = PyObject_RichCompareBool(AT(args[0], Storage_nbytes), the_small, Py_GE), simple = single_of(args[1], kept, &one);
    Single *place = simple ? place_of_kind(&one) : NULL;
    int done = simple && is_kind(place, &one) ? compute_single(args[0], args[1], place->known, large) : 0;
    if (done)
        return done < 0 ? NULL : Py_NewRef(Py_True);
    PyObject *root = args[1], *device = AT(root, Node_device), *parts = told(NULL, root), *outs = NULL, *known = NULL, *buffers = NULL, *result = NULL;
    if (parts == NULL)
        return NULL;
    PyObject *key = PyTuple_GET_ITEM(parts, 0), *reads = PyTuple_GET_ITEM(parts, 1), *numbers = PyTuple_GET_ITEM(parts, 2), *nodes = PyTuple_GET_ITEM(parts, 3);
    if ((outs = wanted_of(root, args[0], key, nodes)) != NULL && (known = known_of(key, root, outs)) != NULL) {
        if (known == Py_None)
            result = Py_NewRef(Py_False);
        else if ((buffers = buffers_for(outs, device, reads, nodes)) != NULL && !launch_all_of(known, device, reads, numbers, buffers)) {
            if (simple && kept == variable(the_fuse, s__known) && PyObject_TypeCheck(known, _Known_type))
                keep_single(place, &one, known);
            for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outs); i++)
                finish_node(PyTuple_GET_ITEM(PyList_GET_ITEM(outs, i), 0), PyTuple_GET_ITEM(PyList_GET_ITEM(outs, i), 1), PyList_GET_ITEM(buffers, i));
            result = Py_NewRef(Py_True);
        }
    }
    Py_DECREF(parts), Py_XDECREF(outs), Py_XDECREF(known), Py_XDECREF(buffers);
    return result;
}

/* Compute the value of ``storage``, which is pending: fuse.realize. */
static int computed(PyObject *storage)
{
    PyObject *device = AT(storage, Storage_device), *lock = PyObject_GetAttr(device, s_lock), *node, *got = NULL;
    if (lock == NULL || held(lock, s_acquire)) {
        Py_XDECREF(lock);
        if (lock == NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();                                          /* a device without memory has no lock, either */
        got = PyObject_CallOneArg(the_realize, storage);
        Py_XDECREF(got);
        return got == NULL ? -1 : 0;
    }
    node = Py_NewRef(AT(storage, Storage_node));                /* another thread may have been faster */
    int quiet = unheard();                                      /* else who listens is told by Python */
    int done = node == Py_None;
    if (quiet > 0 && IS(node, Node) && AT(node, Node_buf) == Py_None) {
        PyObject *args[] = {storage, node};
        if (AT(node, Node_reduce) != Py_None)
            done = reduced(storage, node) > 0;
        else
            done = (got = compute(NULL, args, 2)) == Py_True;
    }
    Py_DECREF(node), Py_XDECREF(got);
    if (!done && !PyErr_Occurred()) {
        got = PyObject_CallOneArg(the_realize, storage);
        Py_XDECREF(got);
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int failed = held(lock, s_release);
    Py_DECREF(lock);
    if (type != NULL)
        PyErr_Restore(type, value, trace);
    return type != NULL || failed ? -1 : 0;
}

/* realize(storage): fuse.realize */
PyObject *realize(PyObject *module, PyObject *storage)
{
    if (!IS(storage, Storage))
        return PyObject_CallOneArg(the_realize, storage);
    return computed(storage) ? NULL : Py_NewRef(Py_None);
}

/* Storage.buffer */
static PyObject *buffer_of(PyObject *storage, PyObject *nothing_given)
{
    if (!IS(storage, Storage))
        return PyObject_CallOneArg(the_Storage_buffer, storage);
    if (AT(storage, Storage_node) != Py_None && computed(storage))
        return NULL;
    return Py_NewRef(AT(storage, Storage_buf));
}

PyMethodDef buffer_method = {"buffer", buffer_of, METH_NOARGS, "The device buffer, computing the pending node first."};
