/* What a call leaves on the tape: entries.attach, splice._again. */
#include "native.h"

enum { MOST = 32 };                         /* operands of an operator whose entry is made here */

/* ``attach`` for operators with ``count`` parameters: see entries._written_out. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int count, tracked, place[MOST];
    unsigned long long mask[MOST], needed, always;
} Attach;

typedef struct {
    PyObject *edges, *metas, *values, *versions;
    unsigned long long save;
    int some, keeps;
} Entry;

/* tape._accumulator: a new entry, which the leaf knows. NULL without an error where hooks wait for it. */
static PyObject *new_accumulator(PyObject *leaf)
{
    PyObject *node, *count, *seq, *ref, *hooks = history(leaf, _leaf_hooks);
    Py_XDECREF(hooks);
    if (hooks != Py_None || (node = new_object(AccumulateGrad_type)) == NULL)
        return NULL;
    count = PyObject_CallNoArgs(the_number);
    seq = count == NULL ? NULL : PyNumber_Subtract(count, the_last);
    Py_XDECREF(count);
    if (seq != NULL) {
        put(node, AccumulateGrad_seq, seq), put(node, AccumulateGrad_edges, nothing), put(node, AccumulateGrad_outs, one), put(node, AccumulateGrad_variable, leaf);
        Py_DECREF(seq);
        ref = PyWeakref_NewRef(node, NULL);
        if (ref != NULL && !set_history(leaf, _accumulator, ref)) {
            Py_DECREF(ref);
            return node;
        }
        Py_XDECREF(ref);
    }
    Py_DECREF(node);
    return NULL;
}

/* tape.accumulator */
static PyObject *accumulator_of(PyObject *leaf)
{
    PyObject *known = history(leaf, _accumulator), *found = NULL;
    if (known == NULL)
        return NULL;
    if (PyWeakref_Check(known)) {
        found = PyObject_CallNoArgs(known);
        if (found == Py_None)
            Py_CLEAR(found);
    }
    if (found == NULL && !PyErr_Occurred())
        found = new_accumulator(leaf);
    Py_DECREF(known);
    return found != NULL || PyErr_Occurred() ? found : PyObject_CallOneArg(the_accumulator, leaf);
}

/* tensor.edge of a tensor that requires gradients */
static PyObject *edge_of(PyObject *t)
{
    PyObject *base = history(t, _base), *fn, *number, *edge, *got;
    if (base == NULL)
        return NULL;
    Py_DECREF(base);
    if (base != Py_None) {
        if ((got = PyObject_CallOneArg(the_refresh, t)) == NULL)
            return NULL;
        Py_DECREF(got);
    }
    if ((fn = history(t, _grad_fn)) == NULL)
        return NULL;
    if (fn == Py_None) {
        Py_DECREF(fn);
        fn = accumulator_of(t);
        number = Py_NewRef(zero);
    } else {
        number = history(t, _out_nr);
    }
    edge = fn == NULL || number == NULL ? NULL : PyTuple_Pack(2, fn, number);
    Py_XDECREF(fn), Py_XDECREF(number);
    return edge;
}

/* Where the gradient of ``t`` goes, and what it has to be like. */
static int add_edge(PyObject *t, int place, Entry *entry)
{
    PyObject *edge = edge_of(t), *shape = simple(t) == 1 ? Py_NewRef(AT(t, Tensor_shape)) : PyObject_GetAttr(t, s_shape), *meta = NULL;
    if (edge != NULL && shape != NULL)
        meta = PyTuple_Pack(2, shape, AT(t, Tensor_dtype));
    Py_XDECREF(shape);
    if (meta == NULL) {
        Py_XDECREF(edge);
        return -1;
    }
    entry->some = 1;
    return PyList_SetItem(entry->edges, place, edge) || PyList_SetItem(entry->metas, place, meta) ? -1 : 0;
}

/* The version of what ``t`` shares with others, which is to be kept; an error if it was made in inference mode. */
static PyObject *kept_version(PyObject *t)
{
    PyObject *owner = PyObject_GetAttr(t, s__storage), *version = owner == NULL ? NULL : PyObject_GetAttr(owner, s_version), *own = NULL;
    int before = version == NULL ? -1 : PyObject_RichCompareBool(version, zero, Py_LT), counted;
    Py_XDECREF(owner);
    if (before > 0) {
        PyObject *raised = PyObject_CallNoArgs(the_inference_saved);
        if (raised != NULL)
            PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
        Py_XDECREF(raised);
    } else if (!before && (own = history(t, _ver)) != NULL && own != Py_None && (counted = PyObject_IsTrue(own))) {
        Py_SETREF(version, counted < 0 ? NULL : PyObject_GetAttr(own, s_version));
    }
    if (before || own == NULL)
        Py_CLEAR(version);
    Py_XDECREF(own);
    return version;
}

/* Keep ``t``, with its version. */
static int keep(PyObject *t, int place, Entry *entry)
{
    PyObject *version = kept_version(t);
    entry->keeps = 1;
    return version == NULL || PyList_SetItem(entry->versions, place, version) ? -1 : 0;
}

static PyObject *alias_of(PyObject *t)      /* Tensor._alias of a result that is new */
{
    PyObject *new = new_object(Tensor_type);
    if (new == NULL)
        return NULL;
    put(new, Tensor__storage, AT(t, Tensor__storage)), put(new, Tensor_shape, AT(t, Tensor_shape)), put(new, Tensor__strides, AT(t, Tensor__strides));
    put(new, Tensor__offset, AT(t, Tensor__offset)), put(new, Tensor_dtype, AT(t, Tensor_dtype)), put(new, Tensor__numel, AT(t, Tensor__numel));
    put(new, Tensor__dense, AT(t, Tensor__dense));
    return new;
}

/* entries._save_results of one result that is new: the list [(an alias of it, its memory, the version of that)]. */
static int save_result(PyObject *node, PyObject *out)
{
    PyObject *storage = AT(out, Tensor__storage), *version = PyObject_GetAttr(storage, s_version), *alias = version == NULL ? NULL : alias_of(out);
    PyObject *kept = alias == NULL ? NULL : PyTuple_Pack(3, alias, storage, version), *list = kept == NULL ? NULL : PyList_New(1);
    Py_XDECREF(version), Py_XDECREF(alias);
    if (list == NULL) {
        Py_XDECREF(kept);
        return -1;
    }
    PyList_SET_ITEM(list, 0, kept);
    int failed = PyObject_SetAttr(node, s_result, list);
    Py_DECREF(list);
    return failed;
}

/* The history of ``out``; ``outs``: results to be kept. */
static int deliver(PyObject *node, PyObject *out, PyObject *values, unsigned long long outs)
{
    int watched = is_true(own(state, watched));
    if (watched < 0)
        return -1;
    PyObject *own = IS(out, Tensor) ? history(out, _ver) : Py_NewRef(Py_None);
    if (own == NULL)
        return -1;
    int plainly = IS(out, Tensor) && !watched && (!outs || (outs == 1 && own == Py_None));
    Py_DECREF(own);
    if (!plainly) {
        PyObject *bits = PyLong_FromUnsignedLongLong(outs), *got = bits == NULL ? NULL : PyObject_CallFunctionObjArgs(the_finish, node, out, values, bits, NULL);
        Py_XDECREF(bits), Py_XDECREF(got);
        return got == NULL ? -1 : 0;
    }
    int smooth = outs && save_result(node, out) ? -1 : has_trait(AT(out, Tensor_dtype), differentiable);
    if (smooth <= 0)
        return smooth;
    return set_history(out, _grad_fn, node) || set_history(out, _out_nr, zero) || set_history(out, _rg, Py_True) ? -1 : 0;
}

static int make_entry(Attach *self, PyObject *op, PyObject *out, PyObject *values, Entry *entry)
{
    PyObject *node = new_object(OpNode_type), *number = PyObject_CallNoArgs(the_number), *public = PyObject_GetAttr(op, s_public);
    int failed = node == NULL || number == NULL || public == NULL ? -1 : 0;
    if (!failed) {
        put(node, OpNode_op, op), put(node, OpNode_seq, number), put(node, OpNode_edges, entry->edges), put(node, OpNode_outs, public);
        put(node, OpNode_values, entry->values), put(node, OpNode_versions, entry->versions), put(node, OpNode_metas, entry->metas);
        put(node, OpNode_keeps, entry->keeps ? Py_True : Py_False);
        failed = deliver(node, out, values, entry->save >> self->count);
    }
    Py_XDECREF(node), Py_XDECREF(number), Py_XDECREF(public);
    return failed;
}

static int keep_values(Attach *self, PyObject *values, Entry *entry)
{
    for (int i = 0; i < self->count; i++) {
        PyObject *v = PyTuple_GET_ITEM(values, i);
        int tensor = IS(v, Tensor) || PyObject_TypeCheck(v, Tensor_type), kept = tensor && self->needed >> i & entry->save >> i & 1;
        if ((kept && keep(v, i, entry)) || PyList_SetItem(entry->values, i, Py_NewRef(tensor && !kept ? Py_None : v)))
            return -1;
    }
    return 0;
}

static PyObject *filled(int n, PyObject *value)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list != NULL && i < n; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(value));
    return list;
}

static PyObject *attach_call(PyObject *callable, PyObject *const *args, size_t given, PyObject *names)
{
    Attach *self = (Attach *)callable;
    if (PyVectorcall_NARGS(given) != 3 || names != NULL || !PyTuple_Check(args[2]) || PyTuple_GET_SIZE(args[2]) != self->count)
        return PyErr_Format(PyExc_ValueError, "attach() takes an operator, its result, and %d values in a tuple", self->count);
    PyObject *values = args[2];
    Entry entry = {NULL, NULL, NULL, NULL, self->always, 0, 0};
    int failed = 0;
    for (int k = 0; k < self->tracked && !failed; k++) {
        PyObject *v = PyTuple_GET_ITEM(values, self->place[k]);
        int tracks = IS(v, Tensor) || PyObject_TypeCheck(v, Tensor_type) ? needs_grad(v) : 0;
        if (tracks > 0) {
            if (entry.edges == NULL && ((entry.edges = filled(self->count, Py_None)) == NULL || (entry.metas = filled(self->count, Py_None)) == NULL))
                failed = -1;
            failed = failed || add_edge(v, self->place[k], &entry);
            entry.save |= self->mask[k];
        }
        failed = failed || tracks < 0;
    }
    if (!failed && entry.some)
        failed = (entry.values = filled(self->count, Py_None)) == NULL || (entry.versions = filled(self->count, zero)) == NULL
            || keep_values(self, values, &entry) || make_entry(self, args[0], args[1], values, &entry);
    Py_XDECREF(entry.edges), Py_XDECREF(entry.metas), Py_XDECREF(entry.values), Py_XDECREF(entry.versions);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyTypeObject Attach_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Attach", .tp_basicsize = sizeof(Attach), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Attach, call), .tp_call = PyVectorcall_Call,
};

/* attach(count, masks, needed, always): None where Python's is to be used. */
PyObject *attach(PyObject *module, PyObject *args)
{
    int count;
    PyObject *masks;
    unsigned long long needed, always;
    if (!PyArg_ParseTuple(args, "iO!KK", &count, &PyTuple_Type, &masks, &needed, &always))
        return NULL;
    if (count > MOST || PyTuple_GET_SIZE(masks) > MOST)
        Py_RETURN_NONE;
    Attach *new = PyObject_New(Attach, &Attach_type);
    if (new == NULL)
        return NULL;
    new->call = attach_call, new->count = count, new->tracked = (int)PyTuple_GET_SIZE(masks), new->needed = needed, new->always = always;
    for (int k = 0; k < new->tracked; k++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(masks, k), "iK", &new->place[k], &new->mask[k]) || new->place[k] < 0 || new->place[k] >= count) {
            Py_DECREF(new);
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a mask's place");
        }
    }
    return (PyObject *)new;
}

/* Leave the entry of ``op`` over ``values``, which shows ``label`` if that is not empty; ``result`` may be a tuple of what the operator gives. */
int leave_entry(PyObject *op, PyObject *result, PyObject *values, PyObject *label)
{
    PyObject *attach = PyObject_GetAttr(op, s_attach), *args[] = {op, result, values}, *got = NULL, *node;
    if (attach != NULL)
        got = PyObject_Vectorcall(attach, args, 3, NULL);
    if (got != NULL && PyObject_IsTrue(label)) {
        node = PyObject_GetAttr(PyTuple_CheckExact(result) ? PyTuple_GET_ITEM(result, 0) : result, s__grad_fn);
        if (node == NULL || PyObject_SetAttr(node, s_label, label))
            Py_CLEAR(got);
        Py_XDECREF(node);
    }
    Py_XDECREF(attach), Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* -- functions that are one entry (splice._again) ------------------------------------------------------------------------------------ */

/* The edges of a function's entry, and which operands it keeps. */
static int take_operands(PyObject *node, PyObject *template, PyObject *operands, PyObject *ends)
{
    PyObject *wanted = AT(template, Template_wanted), *reached = AT(template, Template_reached);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(operands);
    n = Py_MIN(n, Py_MIN(PySequence_Fast_GET_SIZE(wanted), PySequence_Fast_GET_SIZE(reached)));
    PyObject *edges = filled((int)n, Py_None), *kept = filled((int)n, Py_None), *versions = filled((int)n, zero);
    int failed = edges == NULL || kept == NULL || versions == NULL;
    for (Py_ssize_t i = 0; i < n && !failed; i++) {
        PyObject *t = PySequence_Fast_GET_ITEM(operands, i), *edge = NULL, *version;
        if (ends != Py_None) {
            edge = Py_NewRef(PySequence_Fast_GET_ITEM(ends, i));
        } else if (t != Py_None && PySequence_Fast_GET_ITEM(reached, i) == Py_True) {
            int tracks = needs_grad(t);
            failed = tracks < 0 || (tracks && (edge = edge_of(t)) == NULL);
        }
        if (edge != NULL)
            PyList_SetItem(edges, i, edge);
        if (!failed && PySequence_Fast_GET_ITEM(wanted, i) == Py_True) {
            failed = (version = kept_version(t)) == NULL || PyList_SetItem(versions, i, version) || PyList_SetItem(kept, i, Py_NewRef(t));
        }
    }
    if (!failed)
        put(node, SplicedNode_edges, edges), put(node, SplicedNode_operands, kept), put(node, SplicedNode_versions, versions);
    Py_XDECREF(edges), Py_XDECREF(kept), Py_XDECREF(versions);
    return failed ? -1 : 0;
}

/* The history of the results ``got``, and which of them the entry keeps. */
static int take_results(PyObject *node, PyObject *template, PyObject *got)
{
    PyObject *roots = AT(template, Template_roots), *keeps = AT(template, Template_kept), *kept = PySequence_List(got), *owners = PyList_New(0);
    Py_ssize_t n = Py_MIN(PySequence_Fast_GET_SIZE(roots), PySequence_Fast_GET_SIZE(keeps));
    int failed = kept == NULL || owners == NULL;
    for (Py_ssize_t i = 0; i < n && !failed; i++) {
        PyObject *out = PyTuple_GET_ITEM(got, i), *number = PyLong_FromSsize_t(i);
        int keep = PySequence_Fast_GET_ITEM(keeps, i) == Py_True;
        PyObject *storage = keep ? AT(out, Tensor__storage) : NULL;
        failed = number == NULL || add(owners, keep ? PyTuple_Pack(2, storage, AT(storage, Storage_version)) : Py_NewRef(Py_None))
            || PyList_SetItem(kept, i, keep ? alias_of(out) : Py_NewRef(Py_None));
        if (!failed && PySequence_Fast_GET_ITEM(roots, i) != Py_None)
            failed = set_history(out, _grad_fn, node) || set_history(out, _out_nr, number) || set_history(out, _rg, Py_True);
        Py_XDECREF(number);
    }
    if (!failed)
        put(node, SplicedNode_kept, kept), put(node, SplicedNode_owners, owners);
    Py_XDECREF(kept), Py_XDECREF(owners);
    return failed ? -1 : 0;
}

/* spliced(template, operands, buffers, tracked, ends, source, numbers): splice._again */
PyObject *spliced(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 7)
        return PyErr_Format(PyExc_TypeError, "spliced() takes 7 arguments");
    PyObject *template = args[0], *operands = args[1], *ends = args[4], *node = NULL, *number = NULL, *outs = NULL, *result = NULL;
    PyObject *roots = AT(template, Template_roots), *recipe = AT(template, Template_recipe);
    PyObject *got = PyObject_IsTrue(args[6]) ? PyObject_CallFunctionObjArgs(the_Recipe_run, recipe, args[2], args[6], NULL) : run_recipe(recipe, args[2]);
    int single = PyObject_IsTrue(AT(template, Template_single)), tracked = PyObject_IsTrue(args[3]);
    if (got == NULL)
        return NULL;
    int listed = (PyList_Check(operands) || PyTuple_Check(operands)) && (ends == Py_None || PyList_Check(ends)) && PyTuple_Check(got);
    if (!listed)
        PyErr_SetString(PyExc_TypeError, "operands and ends are lists");
    if (listed && tracked && (node = new_object(SplicedNode_type)) != NULL && (number = PyObject_CallNoArgs(the_number)) != NULL
            && (outs = PyLong_FromSsize_t(PySequence_Fast_GET_SIZE(roots))) != NULL) {
        put(node, SplicedNode_seq, number), put(node, SplicedNode_outs, outs), put(node, SplicedNode_template, template);
        put(node, SplicedNode_nodes, Py_None), put(node, SplicedNode_source, args[5]), put(node, SplicedNode_numbers, args[6]);
        if (take_operands(node, template, operands, ends) || take_results(node, template, got))
            listed = 0;
    }
    if (listed && !PyErr_Occurred()) {
        result = single ? PyTuple_GetItem(got, 0) : tracked ? PyTuple_GetSlice(got, 0, PySequence_Fast_GET_SIZE(roots)) : got;
        if (single || !tracked)
            Py_XINCREF(result);
    }
    Py_XDECREF(node), Py_XDECREF(number), Py_XDECREF(outs), Py_DECREF(got);
    return result;
}

int ready_tape(void)
{
    return PyType_Ready(&Attach_type);
}
