/* Views: tensor.view_of, seen.recalled, indexing._basic. */
#include "native.h"

/* -- views of a tensor -------------------------------------------------------------------------------------------------------------- */

/* views.watch */
static int watch(PyObject *base, PyObject *view)
{
    PyObject *known = history(base, _views), *got;
    if (known == NULL)
        return -1;
    Py_ssize_t n = PyList_CheckExact(known) ? PyList_GET_SIZE(known) : 0;
    int few = n && PyLong_AsSsize_t(PyList_GET_ITEM(known, 0)) > n, failed = few ? add(known, PyWeakref_NewRef(view, NULL))
        : 0;             /* else they are looked through */
    Py_DECREF(known);
    if (few || PyErr_Occurred())
        return few ? failed : -1;
    got = PyObject_CallFunctionObjArgs(the_watch, base, view, NULL);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* What a view knows of its base while gradients may be recorded. */
static int set_base(PyObject *t, PyObject *base, PyObject *own, PyObject *recording)
{
    PyObject *version = version_of(own, AT(t, Tensor__storage)), *first = version == NULL ? NULL : history(base, _base);
    int failed = first == NULL || set_history(t, _view_version, version) || set_history(t, _base, first == Py_None ? base : first);
    if (!failed && first != Py_None) {
        PyObject *origin = history(base, _origin);
        failed = origin == NULL || (origin != Py_None && set_history(t, _origin, origin));
        Py_XDECREF(origin);
    }
    int smooth = failed ? -1 : has_trait(AT(t, Tensor_dtype), differentiable), on = smooth < 0 ? -1 : PyObject_IsTrue(recording);
    if (smooth > 0 && !on) {
        int inside = is_true(own(state, inference));
        PyObject *tracked = inside < 0 ? NULL : history(first == Py_None ? base : first, _rg);
        failed = tracked == NULL || set_history(t, _origin, inside ? s_inference : s_no_grad) || set_history(t, _rg, tracked);
        Py_XDECREF(tracked);
    } else if (smooth > 0 && on > 0) {
        int tracked = needs_grad(base);
        failed = tracked < 0 || (!tracked && watch(first == Py_None ? base : first, t));
    }
    Py_XDECREF(version), Py_XDECREF(first);
    return failed || smooth < 0 || on < 0 ? -1 : 0;
}

/* A view of a plain tensor. ``dtype``: NULL for the base's. */
static PyObject *seen(PyObject *base, PyObject *shape, PyObject *strides, PyObject *offset, PyObject *numel, PyObject *dense, PyObject *dtype)
{
    PyObject *t = new_object(Tensor_type), *own = t == NULL ? NULL : history(base, _ver), *recording = own == NULL ? NULL : own(state, grad);
    int failed = recording == NULL;
    if (!failed) {
        put(t, Tensor__storage, AT(base, Tensor__storage)), put(t, Tensor_shape, shape), put(t, Tensor__strides, strides), put(t, Tensor__offset, offset);
        put(t, Tensor_dtype, dtype == NULL ? AT(base, Tensor_dtype) : dtype), put(t, Tensor__numel, numel), put(t, Tensor__dense, dense);
        failed = (own != Py_None && set_history(t, _ver, own)) || (recording != Py_None && set_base(t, base, own, recording));
    }
    Py_XDECREF(own);
    if (failed)
        Py_CLEAR(t);
    return t;
}

/* view_of(base, shape, strides, offset, numel, dense, dtype=None): tensor.view_of */
PyObject *view_of(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n < 6 || n > 7)
        return PyErr_Format(PyExc_TypeError, "view_of() takes a tensor, shape, strides, offset, number of elements, density and dtype");
    int good = simple(args[0]);
    if (good <= 0)
        return good < 0 ? NULL : PyObject_Vectorcall(the_view_of, args, n, NULL);
    return seen(args[0], args[1], args[2], args[3], args[4], args[5], n < 7 || args[6] == Py_None ? NULL : args[6]);
}

/* Whether views follow from what they are of: nothing stands between a program and its tensors, no mode is told of operators, and no sizes are traced. */
static int unwatched(void)
{
    PyObject *early = variable(the_foreign, s_early), *tracing = variable(the_symbols, s_tracing), *on = variable(the_repeat, s_on);
    return early == NULL || tracing == NULL || on == NULL ? -1 : early == Py_None && tracing == Py_None ? PyObject_IsTrue(on) : 0;
}

/* Leave the entry of ``op`` over (t, *values), which shows ``label``. */
static int leave_view(PyObject *op, PyObject *view, PyObject *t, PyObject *values, PyObject *label)
{
    Py_ssize_t n = PyTuple_GET_SIZE(values);
    PyObject *given = PyTuple_New(n + 1);
    if (given == NULL)
        return -1;
    PyTuple_SET_ITEM(given, 0, Py_NewRef(t));
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(given, i + 1, Py_NewRef(PyTuple_GET_ITEM(values, i)));
    int failed = leave_entry(op, view, given, label);
    Py_DECREF(given);
    return failed;
}

/* -- seen.recalled ------------------------------------------------------------------------------------------------------------------ */

static int is_list(PyObject *v)
{
    return PyTuple_CheckExact(v) || Py_TYPE(v) == (PyTypeObject *)the_Size;
}

static int is_number_or_numbers(PyObject *v)
{
    if (!is_list(v))
        return PyLong_CheckExact(v);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(v); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(v, i)))
            return 0;
    return 1;
}

/* The view of ``x`` that ``found`` tells. */
static PyObject *recall(PyObject *x, PyObject *found, int tracked)
{
    PyObject *further = PyTuple_GET_ITEM(found, 2), *before = AT(x, Tensor__offset);
    PyObject *offset = further == zero ? Py_NewRef(before) : PyNumber_Add(before, further), *view = NULL;
    if (offset != NULL)
        view = seen(x, PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1), offset, PyTuple_GET_ITEM(found, 3), offset == zero ? PyTuple_GET_ITEM(found, 4)
            : Py_False, NULL);
    if (view != NULL && tracked && leave_view(PyTuple_GET_ITEM(found, 5), view, x, PyTuple_GET_ITEM(found, 6), PyTuple_GET_ITEM(found, 7)))
        Py_CLEAR(view);
    Py_XDECREF(offset);
    return view;
}

/* recalled(known, args): a view, or a key to remember it under, or None */
PyObject *recalled(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyDict_CheckExact(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "recalled() takes a dictionary and the values of a call");
    PyObject *given = args[1], *x = PyTuple_GET_SIZE(given) ? PyTuple_GET_ITEM(given, 0) : Py_None;
    Py_ssize_t count = PyTuple_GET_SIZE(given) - 1;
    int good = unwatched();
    if (good > 0)
        good = simple(x);
    for (Py_ssize_t i = 1; good > 0 && i <= count; i++)
        good = is_number_or_numbers(PyTuple_GET_ITEM(given, i));
    int tracked = good > 0 ? is_tracked(x) : 0;
    if (good <= 0 || tracked < 0)
        return good < 0 || tracked < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *key = PyTuple_New(3 + count), *found, *got = NULL;
    if (key == NULL)
        return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(AT(x, Tensor_shape)));
    PyTuple_SET_ITEM(key, 1, Py_NewRef(AT(x, Tensor__strides)));
    PyTuple_SET_ITEM(key, 2, Py_NewRef(tracked ? Py_True : Py_False));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(key, 3 + i, Py_NewRef(PyTuple_GET_ITEM(given, 1 + i)));
    if ((found = PyDict_GetItemWithError(args[0], key)) == NULL) {
        if (!PyErr_Occurred())
            return key;
    } else {
        Py_INCREF(found);                       /* other threads may clear the dictionary */
        got = PyTuple_GET_SIZE(found) ? recall(x, found, tracked) : Py_NewRef(Py_None);
        Py_DECREF(found);
    }
    Py_DECREF(key);
    return got;
}

/* -- indexing._basic ---------------------------------------------------------------------------------------------------------------- */

enum { MOST_DIMS = 64, OF_TENSORS = 2 };

/* A region: what ``index`` takes of a tensor. */
typedef struct {
    Py_ssize_t sizes[MOST_DIMS], steps[MOST_DIMS], old_sizes[MOST_DIMS], old_steps[MOST_DIMS], offset;
    int rank, dims, at, entries;                        /* dimensions of the view and of the tensor, those of it that were met, entries of the index */
    PyObject *spec, *label;                             /* as for indexing.region, and indexing._take; NULL where no entry is left on the tape */
} Region;

static int read_numbers(PyObject *tuple, Py_ssize_t *numbers)
{
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    for (Py_ssize_t i = 0; i < n; i++)
        if ((numbers[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i))) == -1 && PyErr_Occurred())
            return -1;
    return 0;
}

static int note_entry(Region *r, PyObject *entry, PyObject *label)                      /* takes the reference */
{
    if (label != NULL)
        r->label = label;
    return add(r->spec, entry);
}

/* Take some of the next dimension. */
static int take_some(Region *r, Py_ssize_t start, Py_ssize_t step, Py_ssize_t length)
{
    Py_ssize_t size = r->old_sizes[r->at];
    r->offset += start * r->old_steps[r->at];
    r->sizes[r->rank] = length, r->steps[r->rank++] = r->old_steps[r->at++] * step;
    return r->spec == NULL ? 0 : note_entry(r, Py_BuildValue("(nnn)", start, step, length), start || step != 1 || length != size ? s_SliceBackward0 : NULL);
}

/* Take what one entry of an index means: 1; 0: Python has to look at it. */
static int take_entry(Region *r, PyObject *item)
{
    if (item == Py_None) {
        if (r->rank >= MOST_DIMS)
            return 0;
        r->sizes[r->rank] = 1, r->steps[r->rank++] = r->at < r->dims ? r->old_steps[r->at] * r->old_sizes[r->at] : 1;
        return r->spec != NULL && note_entry(r, Py_NewRef(Py_None), s_UnsqueezeBackward0) ? -1 : 1;
    }
    if (item == Py_Ellipsis) {
        for (Py_ssize_t rest = r->dims - r->entries; rest > 0; rest--)
            if (r->rank >= MOST_DIMS || take_some(r, 0, 1, r->old_sizes[r->at]))
                return -1;
        return 1;
    }
    if (r->at == r->dims || r->rank >= MOST_DIMS)
        return 0;
    Py_ssize_t size = r->old_sizes[r->at], start, stop, step;
    if (PyLong_CheckExact(item)) {
        start = PyLong_AsSsize_t(item);
        if (start == -1 && PyErr_Occurred())
            PyErr_Clear(), start = PY_SSIZE_T_MAX;
        if (start < -size || start >= size)
            return 0;
        start += start < 0 ? size : 0;
        r->offset += start * r->old_steps[r->at++];
        return r->spec != NULL && note_entry(r, PyLong_FromSsize_t(start), s_SelectBackward0) ? -1 : 1;
    }
    PySliceObject *slice = (PySliceObject *)item;
#define NUMBER(v) (v == Py_None || PyLong_CheckExact(v))
    if (!PySlice_Check(item) || !NUMBER(slice->start) || !NUMBER(slice->stop) || !NUMBER(slice->step))
        return 0;
#undef NUMBER
    if (PySlice_Unpack(item, &start, &stop, &step))
        return PyErr_Clear(), 0;
    if (step < 1)
        return 0;
    Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
    return take_some(r, start, step, length) ? -1 : 1;
}

/* Take what an index means, as take_entry does; OF_TENSORS where there are tensors in it. */
static int take_region(Region *r, PyObject *index)
{
    int single = !PyTuple_CheckExact(index), good = 1, wide = 0;
    Py_ssize_t n = single ? 1 : PyTuple_GET_SIZE(index);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = single ? index : PyTuple_GET_ITEM(index, i);
        if (PyObject_TypeCheck(item, Tensor_type))
            return OF_TENSORS;
        wide += item == Py_Ellipsis, r->entries += item != Py_None && item != Py_Ellipsis;
    }
    if (wide > 1 || (wide && single) || r->entries > r->dims)
        return 0;
    for (Py_ssize_t i = 0; i < n && good > 0; i++)
        good = take_entry(r, single ? index : PyTuple_GET_ITEM(index, i));
    for (; good > 0 && r->at < r->dims; r->at++) {
        if (r->rank >= MOST_DIMS)
            return 0;
        r->sizes[r->rank] = r->old_sizes[r->at], r->steps[r->rank++] = r->old_steps[r->at];
    }
    if (good > 0 && r->spec != NULL && single && PySlice_Check(index))
        r->label = s_SliceBackward0;                    /* a slice alone is one even where it takes everything */
    return good;
}

PyObject *tuple_of(const Py_ssize_t *numbers, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple != NULL && i < n; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i]);
        if (number == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

/* The view of ``x`` that a region is. */
static PyObject *view_region(PyObject *x, Region *r)
{
    Py_ssize_t count = 1, step = 1;
    int dense = !r->offset;
    for (int i = r->rank - 1; i >= 0; i--)
        count *= r->sizes[i];
    for (int i = r->rank - 1; i >= 0 && dense && count; i--) {
        dense = r->sizes[i] == 1 || r->steps[i] == step;
        step *= r->sizes[i];
    }
    PyObject *sizes = tuple_of(r->sizes, r->rank), *shape = sizes == NULL ? NULL : PyObject_CallOneArg(the_Size, sizes), *strides = tuple_of(r->steps, r->rank);
    PyObject *offset = PyLong_FromSsize_t(r->offset), *numel = PyLong_FromSsize_t(count), *view = NULL, *values;
    if (shape != NULL && strides != NULL && offset != NULL && numel != NULL)
        view = seen(x, shape, strides, offset, numel, dense ? Py_True : Py_False, NULL);
    if (view != NULL && r->spec != NULL) {
        PyObject *spec = PyList_AsTuple(r->spec);
        values = spec == NULL ? NULL : PyTuple_Pack(2, spec, AT(x, Tensor_shape));
        if (values == NULL || leave_view(the_basic_op, view, x, values, r->label))
            Py_CLEAR(view);
        Py_XDECREF(spec), Py_XDECREF(values);
    }
    Py_XDECREF(sizes), Py_XDECREF(shape), Py_XDECREF(strides), Py_XDECREF(offset), Py_XDECREF(numel);
    return view;
}

/* Read what a region is taken of. */
static int start_region(Region *r, PyObject *x, int tracked)
{
    r->rank = r->at = r->entries = 0, r->dims = (int)PyTuple_GET_SIZE(AT(x, Tensor_shape)), r->label = s_AliasBackward0;
    r->offset = PyLong_AsSsize_t(AT(x, Tensor__offset)), r->spec = tracked ? PyList_New(0) : NULL;
    return (tracked && r->spec == NULL) || (r->offset == -1 && PyErr_Occurred()) || read_numbers(AT(x, Tensor_shape), r->old_sizes)
        || read_numbers(AT(x, Tensor__strides), r->old_steps) ? -1 : 0;
}

/* Whether regions of ``x`` are worked out here. */
static int has_regions(PyObject *x)
{
    int good = unwatched();
    if (good > 0)
        good = simple(x);
    if (good > 0)
        good = PyTuple_GET_SIZE(AT(x, Tensor_shape)) <= MOST_DIMS && PyTuple_GET_SIZE(AT(x, Tensor__strides)) == PyTuple_GET_SIZE(AT(x, Tensor_shape));
    return good;
}

/* basic(x, index): indexing._basic */
PyObject *basic(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "basic() takes a tensor and an index");
    PyObject *x = args[0], *view = NULL;
    int good = has_regions(x), tracked = good > 0 ? is_tracked(x) : 0;
    if (good < 0 || tracked < 0)
        return NULL;
    if (good) {
        Region r;
        if (start_region(&r, x, tracked))
            good = -1;
        if (good > 0 && (good = take_region(&r, args[1])) == 1)
            good = (view = view_region(x, &r)) == NULL ? -1 : 1;
        else if (good == OF_TENSORS)
            view = Py_NewRef(Py_None);
        Py_XDECREF(r.spec);
    }
    return good ? view : PyObject_Vectorcall(the_basic, args, 2, NULL);
}

/* place(x, index): indexing._place */
PyObject *place(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "place() takes a tensor and an index");
    int good = has_regions(args[0]);
    Region r;
    if (good > 0 && start_region(&r, args[0], 0))
        good = -1;
    if (good > 0)
        good = take_region(&r, args[1]);
    if (good != 1)
        return good < 0 ? NULL : good ? Py_NewRef(Py_None) : PyObject_Vectorcall(the_place, args, 2, NULL);
    Py_ssize_t count = 1;
    for (int i = 0; i < r.rank; i++)
        count *= r.sizes[i];
    PyObject *sizes = tuple_of(r.sizes, r.rank), *shape = sizes == NULL ? NULL : PyObject_CallOneArg(the_Size, sizes), *strides = tuple_of(r.steps, r.rank), *got = NULL;
    if (shape != NULL && strides != NULL)
        got = Py_BuildValue("(OOnn)", shape, strides, r.offset, count);
    Py_XDECREF(sizes), Py_XDECREF(shape), Py_XDECREF(strides);
    return got;
}

/* Tensor._alias */
static PyObject *alias(PyObject *base, PyObject *nothing_given)
{
    int good = simple(base);
    if (good <= 0)
        return good < 0 ? NULL : PyObject_CallOneArg(the_Tensor__alias, base);
    PyObject *t = new_object(Tensor_type), *own = t == NULL ? NULL : history(base, _ver);
    if (own != NULL) {
        put(t, Tensor__storage, AT(base, Tensor__storage)), put(t, Tensor_shape, AT(base, Tensor_shape)), put(t, Tensor__strides, AT(base, Tensor__strides));
        put(t, Tensor__offset, AT(base, Tensor__offset)), put(t, Tensor_dtype, AT(base, Tensor_dtype)), put(t, Tensor__numel, AT(base, Tensor__numel));
        put(t, Tensor__dense, AT(base, Tensor__dense));
    }
    if (own == NULL || (own != Py_None && set_history(t, _ver, own)))
        Py_CLEAR(t);
    Py_XDECREF(own);
    return t;
}

PyMethodDef alias_method = {"_alias", alias, METH_NOARGS, "A plain handle on the same memory and version counter, without history."};

/* Size.__new__ */
PyObject *new_size(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *got = PyTuple_Type.tp_new(type, args, kwargs), *plain, *again = NULL;
    for (Py_ssize_t i = 0; got != NULL && i < PyTuple_GET_SIZE(got); i++) {
        if (PyLong_CheckExact(PyTuple_GET_ITEM(got, i)))
            continue;
        plain = PyObject_CallOneArg(the_whole_items, got);
        Py_DECREF(got);
        if (plain != NULL && (again = PyTuple_Pack(1, plain)) == NULL)
            Py_CLEAR(plain);
        Py_XDECREF(plain);
        got = again == NULL ? NULL : PyTuple_Type.tp_new(type, again, NULL);
        Py_XDECREF(again);
        break;
    }
    return got;
}

/* Size.__getitem__ */
static PyObject *size_item(PyObject *size, PyObject *item)
{
    PyObject *got = PyTuple_Type.tp_as_mapping->mp_subscript(size, item), *part;
    if (got == NULL || !PySlice_Check(item))
        return got;
    part = PyObject_CallOneArg(the_Size, got);
    Py_DECREF(got);
    return part;
}

PyMethodDef size_method = {"__getitem__", size_item, METH_O | METH_COEXIST, NULL};
