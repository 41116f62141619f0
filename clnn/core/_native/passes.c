/* Graphs that a backward pass walks, told by their kind: passes._Graph. */
#include "native.h"

/* What ``node`` leads to, borrowed; NULL where it is no entry of the tape. All these have the slot at one place. */
static PyObject *edges_of(PyObject *node)
{
    PyObject *edges = PyObject_TypeCheck(node, (PyTypeObject *)the_entry) ? AT(node, OpNode_edges) : NULL;
    return edges != NULL && (PyList_Check(edges) || PyTuple_Check(edges)) ? edges : NULL;
}

static int unlike(void)
{
    PyErr_SetNone(the_Unlike);
    return -1;
}

static int is_plain(PyObject *t)
{
    return IS(t, Tensor) ? 1 : PyObject_TypeCheck(t, Tensor_type) ? simple(t) : 0;
}

/* The place of a buffer among those that the pass reads, borrowed. */
static PyObject *place_of(PyObject *graph, PyObject *buf)
{
    PyObject *places = AT(graph, _Graph_places), *id = PyLong_FromVoidPtr(buf), *at = id == NULL ? NULL : PyDict_GetItemWithError(places, id);
    if (id != NULL && at == NULL && !PyErr_Occurred() && (at = PyLong_FromSsize_t(PyList_GET_SIZE(AT(graph, _Graph_buffers)))) != NULL) {
        int failed = PyDict_SetItem(places, id, at) || PyList_Append(AT(graph, _Graph_buffers), buf);
        Py_DECREF(at);                                      /* the dictionary has it */
        if (failed)
            at = NULL;
    }
    Py_XDECREF(id);
    return at;
}

/* Compute what is pending in an operand's memory, unless that is much. */
static int settle(PyObject *graph, PyObject *v, PyObject *storage)
{
    PyObject *node = AT(storage, Storage_node), *left, *got;
    if (IS(node, Node) && AT(node, Node_buf) == Py_None) {
        if ((left = PyNumber_Subtract(AT(graph, _Graph_pending), AT(v, Tensor__numel))) == NULL)
            return -1;
        change(graph, _Graph_pending, left);
        int much = PyObject_RichCompareBool(left, zero, Py_LT);
        if (much)
            return much < 0 ? -1 : unlike();
    }
    got = realize(NULL, storage);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* _Graph.tensor */
static int add_tensor(PyObject *graph, PyObject *v)
{
    PyObject *storage = AT(v, Tensor__storage), *key = AT(graph, _Graph_key), *at;
    if (!IS(storage, Storage)) {                            /* one whose values the host has */
        PyObject *got = PyObject_CallMethodOneArg(graph, s_tensor, v);
        Py_XDECREF(got);
        return got == NULL ? -1 : 0;
    }
    if (AT(storage, Storage_device) != AT(graph, _Graph_device))
        return unlike();
    if (AT(storage, Storage_node) != Py_None && settle(graph, v, storage))
        return -1;
    if ((at = place_of(graph, AT(storage, Storage_buf))) == NULL)
        return -1;
    return PyList_Append(key, AT(v, Tensor_shape)) || PyList_Append(key, AT(v, Tensor__strides)) || PyList_Append(key, AT(v, Tensor__offset))
        || PyList_Append(key, AT(v, Tensor_dtype)) || PyList_Append(AT(graph, _Graph_links), at) ? -1 : 0;
}

/* The version that a tensor's memory has now. */
static PyObject *version_now(PyObject *v)
{
    PyObject *own = history(v, _ver), *version = own == NULL ? NULL : version_of(own, AT(v, Tensor__storage));
    Py_XDECREF(own);
    return version;
}

/* Whether something that was kept has still the version that it had. */
static int is_unchanged(PyObject *now, PyObject *then)
{
    int same = now == NULL ? -1 : now == then ? 1 : PyObject_RichCompareBool(now, then, Py_EQ);
    Py_XDECREF(now);
    return same;
}

/* A value that an entry keeps. */
static int add_value(PyObject *graph, PyObject *v, PyObject *version)
{
    PyObject *key = AT(graph, _Graph_key), *got;
    int good = is_plain(v);
    if (good > 0) {
        int same = is_unchanged(version_now(v), version);
        return same < 0 ? -1 : same ? add_tensor(graph, v) : unlike();
    }
    if (good == 0)
        good = PySet_Contains(the_atoms, (PyObject *)Py_TYPE(v));
    if (good)
        return good < 0 || PyList_Append(key, v) || PyList_Append(key, (PyObject *)Py_TYPE(v)) ? -1 : 0;
    got = PyObject_CallMethodObjArgs(graph, s__attribute, v, (PyObject *)Py_TYPE(v), NULL);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* A result that an entry keeps, or None. */
static int add_result(PyObject *graph, PyObject *kept)
{
    if (kept == Py_None)
        return PyList_Append(AT(graph, _Graph_key), kept);
    if (!PyTuple_CheckExact(kept) || PyTuple_GET_SIZE(kept) != 3 || is_plain(PyTuple_GET_ITEM(kept, 0)) <= 0)
        return PyErr_Occurred() ? -1 : unlike();
    PyObject *owner = PyTuple_GET_ITEM(kept, 1);
    int same = owner == Py_None ? 1 : is_unchanged(PyObject_GetAttr(owner, s_version), PyTuple_GET_ITEM(kept, 2));
    return same < 0 ? -1 : same ? add_tensor(graph, PyTuple_GET_ITEM(kept, 0)) : unlike();
}

/* The values of an operator's entry, a new reference: its place in the stream of random numbers is put aside. */
static PyObject *values_of(PyObject *graph, PyObject *node)
{
    PyObject *op = AT(node, OpNode_op), *position = PyObject_GetAttr(op, s_position), *got;
    int draws = position == NULL ? -1 : PyDict_Contains(position, s_seed);
    Py_XDECREF(position);
    got = draws < 0 ? NULL : draws ? PyObject_CallMethodObjArgs(graph, s__without_places, op, AT(node, OpNode_values), NULL) : Py_NewRef(AT(node, OpNode_values));
    if (got != NULL && !PyList_Check(got) && !PyTuple_Check(got)) {
        Py_DECREF(got);
        return unlike(), NULL;
    }
    return got;
}

/* _Graph._operator */
static int add_operator(PyObject *graph, PyObject *node)
{
    PyObject *key = AT(graph, _Graph_key), *metas = AT(node, OpNode_metas), *versions = AT(node, OpNode_versions), *result, *values;
    int used = is_set(node, s_freed);
    if (!used)
        used = is_set(node, s_retains);
    if (used)
        return used < 0 ? -1 : unlike();
    if ((values = values_of(graph, node)) == NULL)
        return -1;
    int failed = PyList_Append(key, AT(node, OpNode_op)) || !PyList_Check(versions) || !(PyList_Check(metas) || PyTuple_Check(metas)) ? -1 : 0;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(metas); i++)
        failed = PyList_Append(key, PySequence_Fast_GET_ITEM(metas, i));
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(values) && i < PyList_GET_SIZE(versions); i++)
        failed = add_value(graph, PySequence_Fast_GET_ITEM(values, i), PyList_GET_ITEM(versions, i));
    Py_DECREF(values);
    if (failed || (result = PyObject_GetAttr(node, s_result)) == NULL)
        return PyErr_Occurred() ? -1 : unlike();
    for (Py_ssize_t i = 0; !failed && PyList_Check(result) && i < PyList_GET_SIZE(result); i++)
        failed = add_result(graph, PyList_GET_ITEM(result, i));
    if (!failed && result != Py_None && !PyList_Check(result))
        failed = unlike();
    Py_DECREF(result);
    return failed;
}

/* Whether hooks wait for the gradient of a leaf. */
static int is_awaited(PyObject *node, PyObject *leaf)
{
    PyObject *retains = PyObject_GetAttr(node, s_retains), *hooks;
    int some = retains == NULL ? -1 : PyObject_IsTrue(retains);
    Py_XDECREF(retains);
    if (some)
        return some;
    hooks = history(leaf, _post_accumulate_hooks);
    some = is_true(hooks);
    Py_XDECREF(hooks);
    return some;
}

/* Whether a gradient that is there is one that results may be added to. */
static int may_gain(PyObject *have)
{
    PyObject *base, *own;
    int good = IS(have, Tensor) && AT(have, Tensor__dense) == Py_True && IS(AT(have, Tensor__storage), Storage), other;
    if (good && (other = needs_grad(have)))
        return other < 0 ? -1 : 0;
    if (!good || (base = history(have, _base)) == NULL || (own = history(have, _ver)) == NULL)
        return PyErr_Occurred() ? -1 : 0;
    good = base == Py_None && own == Py_None;
    Py_DECREF(base), Py_DECREF(own);
    PyObject *st = AT(have, Tensor__storage);
    if (!good || AT(st, Storage_pinned) != Py_False || (good = PyObject_RichCompareBool(AT(st, Storage_version), zero, Py_GE)) <= 0)
        return good < 0 ? -1 : 0;
    PyObject *size = trait(AT(have, Tensor_dtype), itemsize), *whole = size == NULL ? NULL : PyNumber_Multiply(AT(have, Tensor__numel), size);
    good = whole == NULL ? -1 : PyObject_RichCompareBool(whole, AT(st, Storage_nbytes), Py_EQ);
    Py_XDECREF(size), Py_XDECREF(whole);
    return good;
}

/* Whether the entry of a whole function is as it was left: SplicedNode._unchanged. */
static int is_as_left(PyObject *node)
{
    PyObject *operands = AT(node, SplicedNode_operands), *versions = AT(node, SplicedNode_versions), *owners = AT(node, SplicedNode_owners);
    int same = PyList_Check(operands) && PyList_Check(versions) && PyList_Check(owners) && PyList_GET_SIZE(operands) == PyList_GET_SIZE(versions);
    for (Py_ssize_t i = 0; same > 0 && i < PyList_GET_SIZE(operands); i++)
        if (PyList_GET_ITEM(operands, i) != Py_None)
            same = is_unchanged(version_now(PyList_GET_ITEM(operands, i)), PyList_GET_ITEM(versions, i));
    for (Py_ssize_t i = 0; same > 0 && i < PyList_GET_SIZE(owners); i++) {
        PyObject *owner = PyList_GET_ITEM(owners, i);
        if (owner != Py_None)
            same = is_unchanged(PyObject_GetAttr(PyTuple_GET_ITEM(owner, 0), s_version), PyTuple_GET_ITEM(owner, 1));
    }
    return same;
}

/* _Graph._other of the entry of a whole function: 1; 0 where it is not as it was left, or was used up. */
static int add_spliced(PyObject *graph, PyObject *node)
{
    PyObject *key = AT(graph, _Graph_key), *links = AT(graph, _Graph_links), *lists[] = {AT(node, SplicedNode_operands), AT(node, SplicedNode_kept)}, *number;
    PyObject *template = AT(node, SplicedNode_template), *kin = IS(template, Template) ? AT(template, Template_kin) : Py_None;
    if (AT(node, SplicedNode_nodes) != Py_None || !PyList_Check(lists[0]) || !PyList_Check(lists[1]))
        return 0;
    int good = is_set(node, s_retains) ? 0 : is_as_left(node);
    Py_ssize_t count = 0;
    for (int k = 0; k < 2 && good > 0; k++)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lists[k]); i++)
            count += PyList_GET_ITEM(lists[k], i) != Py_None;
    if (good <= 0)
        return good;
    if ((number = PyDict_GetItemWithError(AT(graph, _Graph_number), AT(node, SplicedNode_source))) == NULL && PyErr_Occurred())
        return -1;
    if (PyList_Append(key, kin == Py_None ? template : kin) || add(links, PyLong_FromSsize_t(count)) || add(links, PyLong_FromSsize_t(PySequence_Size(edges_of(node))))
            || PyList_Append(links, number == NULL ? Py_None : number))
        return -1;
    for (int k = 0; k < 2; k++)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lists[k]); i++) {
            PyObject *t = PyList_GET_ITEM(lists[k], i);
            int plain = t == Py_None ? 0 : is_plain(t);
            if (t != Py_None && (plain < 0 || (plain ? add_tensor(graph, t) : unlike())))
                return -1;
        }
    return 1;
}

/* _Graph._other */
static int add_other(PyObject *graph, PyObject *node)
{
    PyObject *traits = PyObject_CallMethodNoArgs(node, s_traits), *edges = edges_of(node), *key = AT(graph, _Graph_key), *links = AT(graph, _Graph_links);
    PyObject *source = NULL, *number, *operands;
    int retains = traits == NULL ? -1 : is_set(node, s_retains), failed = -1;
    if (retains >= 0 && (retains || edges == NULL || !PyTuple_Check(traits) || PyTuple_GET_SIZE(traits) != 2))          /* None: it does more than to compute */
        unlike();
    else if (retains >= 0) {
        if ((source = PyObject_GetAttr(node, s_source)) == NULL) {
            PyErr_Clear();
            source = Py_NewRef(Py_None);
        }
        number = PyDict_GetItemWithError(AT(graph, _Graph_number), source);
        operands = PySequence_Fast(PyTuple_GET_ITEM(traits, 1), "operands");
        failed = operands == NULL || PyErr_Occurred() || PyList_Append(key, PyTuple_GET_ITEM(traits, 0)) || add(links,
            PyLong_FromSsize_t(PySequence_Fast_GET_SIZE(operands)))
            || add(links, PyLong_FromSsize_t(PySequence_Size(edges))) || PyList_Append(links, number == NULL ? Py_None : number) ? -1 : 0;
        for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(operands); i++) {
            PyObject *t = PySequence_Fast_GET_ITEM(operands, i);
            int good = is_plain(t);
            failed = good < 0 ? -1 : good ? add_tensor(graph, t) : unlike();
        }
        Py_XDECREF(operands);
    }
    Py_XDECREF(traits), Py_XDECREF(source);
    return failed;
}

/* _Graph._leaf of a leaf without hooks */
static int add_leaf(PyObject *graph, PyObject *node, int accumulate)
{
    PyObject *leaf = AT(node, AccumulateGrad_variable), *key = AT(graph, _Graph_key), *have;
    int good = is_plain(leaf), failed;
    if (good > 0)
        good = needs_grad(leaf);
    if (good <= 0)
        return good < 0 ? -1 : unlike();
    if (PyList_Append(key, AT(leaf, Tensor_shape)) || PyList_Append(key, AT(leaf, Tensor__strides)) || PyList_Append(key, AT(leaf, Tensor__dense))
            || PyList_Append(key, AT(leaf, Tensor_dtype)) || (!IS(leaf, Tensor) && PyList_Append(AT(graph, _Graph_links), AT(leaf, Tensor_shape))))
        return -1;
    if (!accumulate)
        return 0;
    if (PyList_Append(AT(graph, _Graph_leaves), leaf) || (have = history(leaf, _grad)) == NULL)
        return -1;
    if (have == Py_None)
        failed = PyList_Append(key, have);
    else
        failed = (good = may_gain(have)) < 0 ? -1 : good ? add_tensor(graph, have) : unlike();
    Py_DECREF(have);
    return failed;
}

static int add_edges(PyObject *graph, PyObject *node)
{
    PyObject *edges = edges_of(node), *links = AT(graph, _Graph_links), *number = AT(graph, _Graph_number), *at;
    if (edges == NULL)
        return unlike();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(edges); i++) {
        PyObject *e = PySequence_Fast_GET_ITEM(edges, i);
        if (e == Py_None) {
            if (PyList_Append(links, e))
                return -1;
            continue;
        }
        if ((at = PyDict_GetItemWithError(number, PyTuple_GET_ITEM(e, 0))) == NULL)
            return PyErr_Occurred() ? -1 : unlike();
        if (PyList_Append(links, at) || PyList_Append(links, PyTuple_GET_ITEM(e, 1)))
            return -1;
    }
    return 0;
}

static int add_node(PyObject *graph, PyObject *node, PyObject *accumulate)
{
    PyObject *names[] = {s_pre_hooks, s_hooks, s_trace}, *got, *leaf;
    for (int i = 0; i < 3; i++) {
        int some = is_set(node, names[i]);
        if (some)
            return some < 0 ? -1 : unlike();
    }
    if (IS(node, OpNode))
        return add_operator(graph, node);
    leaf = IS(node, AccumulateGrad) ? AT(node, AccumulateGrad_variable) : NULL;
    int awaited = leaf == NULL || !PyObject_TypeCheck(leaf, Tensor_type) ? 1 : is_awaited(node, leaf);
    if (awaited < 0)
        return -1;
    if (!awaited)
        return add_leaf(graph, node, PyObject_IsTrue(accumulate));
    if (leaf == NULL && IS(node, SplicedNode) && PyObject_IsTrue(AT(node, SplicedNode_numbers))) {
        got = PyObject_CallMethodOneArg(graph, s__other, node);
        Py_XDECREF(got);
        return got == NULL ? -1 : 0;
    }
    if (leaf == NULL) {
        int done = IS(node, SplicedNode) && edges_of(node) != NULL ? add_spliced(graph, node) : 0;
        return done ? (done < 0 ? -1 : 0) : add_other(graph, node);
    }
    got = PyObject_CallMethodObjArgs(graph, s__leaf, node, accumulate, NULL);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* describe(graph, accumulate): passes._Graph.describe */
PyObject *describe_graph(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !IS(args[0], _Graph))
        return PyErr_Format(PyExc_TypeError, "describe() takes a graph and whether gradients are added up");
    PyObject *nodes = AT(args[0], _Graph_nodes);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); i++)
        if (add_node(args[0], PyList_GET_ITEM(nodes, i), args[1]) || add_edges(args[0], PyList_GET_ITEM(nodes, i)))
            return NULL;
    Py_RETURN_NONE;
}

/* Put the entries that ``node`` leads to on the stack. */
static int follow(PyObject *node, PyObject *seen, PyObject *stack)
{
    PyObject *edges = edges_of(node);
    if (edges == NULL)
        return unlike();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(edges); i++) {
        PyObject *e = PySequence_Fast_GET_ITEM(edges, i);
        if (e == Py_None)
            continue;
        int known = PySet_Contains(seen, PyTuple_GET_ITEM(e, 0));
        if (known < 0 || (!known && (PySet_Add(seen, PyTuple_GET_ITEM(e, 0)) || PyList_Append(stack, PyTuple_GET_ITEM(e, 0)))))
            return -1;
    }
    return 0;
}

/* collect(roots): passes._collect */
PyObject *collect(PyObject *module, PyObject *roots)
{
    PyObject *seen = PySet_New(NULL), *stack = NULL;
    Py_ssize_t most = PyLong_AsSsize_t(the_most_entries);
    int failed = seen == NULL || !PyList_Check(roots) ? -1 : 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(roots); i++)
        failed = PySet_Add(seen, PyTuple_GET_ITEM(PyList_GET_ITEM(roots, i), 0));
    if (!failed && (stack = PySequence_List(seen)) == NULL)
        failed = -1;
    while (!failed && PyList_GET_SIZE(stack)) {
        Py_ssize_t last = PyList_GET_SIZE(stack) - 1;
        PyObject *node = Py_NewRef(PyList_GET_ITEM(stack, last));
        failed = PyList_SetSlice(stack, last, last + 1, NULL) || follow(node, seen, stack);
        Py_DECREF(node);
        if (!failed && PySet_GET_SIZE(seen) > most)
            failed = unlike();
    }
    Py_XDECREF(stack);
    if (failed) {
        Py_CLEAR(seen);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "collect() takes a list of entries and numbers");
    }
    return seen;
}
