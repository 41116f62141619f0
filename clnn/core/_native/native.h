/* What the C functions share: classes and their slots, functions and objects of Python's modules, and small helpers.

   Objects stay Python's: their slots are found by name when a class is told (`know`), and read where they lie. Variables of modules that may change, attributes of a
   thread's state and of devices are asked for each time: what was found last holds as long as the version of their dictionary (`variable`, `own`,
   `of_device`). Whatever is not the usual case goes to the Python function, before anything was done. */
#ifndef CLNN_NATIVE_H
#define CLNN_NATIVE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#ifdef Py_GIL_DISABLED
#error "these functions rely on the interpreter's lock"
#endif

#define CLASSES(X) X(Config) X(Expr) X(Tensor) X(Storage) X(Node) X(Recipe) X(Prepared) X(Kernel) X(Cost) X(Inline) X(Memory) X(OpNode) X(SplicedNode) \
    X(Template) X(AccumulateGrad) X(_Known) X(_Launch) X(Recorded) X(dtype) X(_Graph) X(Thinned) X(Counted) X(Call) X(Plan) X(Mirror) X(Parameter) X(Unsent)
#define SLOTS(X) \
    X(Thinned, op) X(Thinned, expr) X(Thinned, compute) X(Thinned, result) X(Thinned, places) X(Thinned, shape) X(Thinned, numel) X(Thinned, alike) \
    X(Thinned, tracked) X(Thinned, label) \
    X(Expr, failing) X(Expr, longs) X(Expr, uses_index) \
    X(Tensor, _storage) X(Tensor, shape) X(Tensor, _strides) X(Tensor, _offset) X(Tensor, dtype) X(Tensor, _numel) X(Tensor, _dense) \
    X(Tensor, _rg) X(Tensor, _grad) X(Tensor, _grad_fn) X(Tensor, _out_nr) X(Tensor, _base) X(Tensor, _ver) X(Tensor, _view_version) X(Tensor, _origin) \
    X(Tensor, _views) X(Tensor, _accumulator) X(Tensor, _post_accumulate_hooks) X(Tensor, _leaf_hooks) \
    X(Storage, device) X(Storage, nbytes) X(Storage, buf) X(Storage, node) X(Storage, version) X(Storage, pinned) X(Storage, mirror) \
    X(Node, expr) X(Node, args) X(Node, compute) X(Node, dtype) X(Node, shape) X(Node, numel) X(Node, device) X(Node, out) X(Node, buf) X(Node, count) \
    X(Node, leaves) X(Node, linear) X(Node, reduce) \
    X(Recipe, device) X(Recipe, sizes) X(Recipe, small) X(Recipe, launches) X(Recipe, places) X(Recipe, results) X(Recipe, single) X(Recipe, named) \
    X(Prepared, kernel) X(Prepared, sizes) X(Prepared, fixed) X(Prepared, constants) X(Prepared, checked) X(Prepared, last) X(Prepared, cost) \
    X(Prepared, twin) X(Prepared, numbers) X(Prepared, direct) X(Prepared, where) X(Prepared, args) X(Prepared, like) X(Prepared, shared) X(Prepared, seconds) \
    X(Kernel, cl) X(Kernel, owner) X(Kernel, set_arg) X(Kernel, set_numbers) X(Kernel, set_buffers) X(Kernel, set_bytes) X(Kernel, handle) \
    X(Cost, calm) X(Cost, skip) X(Inline, done) X(Inline, queue) X(Inline, handle) X(Inline, twin) X(Inline, short) X(Inline, most) X(Config, debug) \
    X(Config, eager) X(Config, matmul_precision) X(Config, tensor_cores) \
    X(Memory, peak) X(Memory, requests) X(Memory, _pool) X(Memory, _allocate) \
    X(OpNode, seq) X(OpNode, edges) X(OpNode, outs) X(OpNode, op) X(OpNode, values) X(OpNode, versions) X(OpNode, metas) X(OpNode, keeps) \
    X(SplicedNode, seq) X(SplicedNode, edges) X(SplicedNode, outs) X(SplicedNode, template) X(SplicedNode, operands) X(SplicedNode, versions) \
    X(SplicedNode, kept) X(SplicedNode, owners) X(SplicedNode, nodes) X(SplicedNode, source) X(SplicedNode, numbers) \
    X(Template, recipe) X(Template, single) X(Template, wanted) X(Template, reached) X(Template, roots) X(Template, kept) X(Template, draws) X(Template, kin) \
    X(dtype, index) \
    X(_Graph, nodes) X(_Graph, number) X(_Graph, key) X(_Graph, buffers) X(_Graph, places) X(_Graph, device) X(_Graph, leaves) X(_Graph, pending) X(_Graph, links) \
    X(AccumulateGrad, seq) X(AccumulateGrad, edges) X(AccumulateGrad, outs) X(AccumulateGrad, variable) \
    X(_Known, launch) X(_Known, picks) X(_Launch, prepared) X(_Launch, places) X(_Launch, moved) \
    X(Recorded, recipe) X(Recorded, op) X(Recorded, places) X(Recorded, values) X(Recorded, label) \
    X(Mirror, _host) X(Mirror, span) X(Mirror, known) X(Mirror, place) X(Mirror, nbytes) X(dtype, np) X(dtype, itemsize) X(dtype, acc) X(dtype, is_complex) \
    X(dtype, differentiable) X(Config, share_memory) \
    X(Call, kind) X(Call, number) X(Plan, prepared) X(Plan, rest) X(Prepared, buffers)
#define NAMES(X) \
    X(recorders) X(recording) X(_enqueue) X(on) X(births) X(inline) X(waiting) X(alloc) X(alloc_all) X(lock) \
    X(acquire) X(release) X(peek) X(err_dirty) X(last) X(tended) X(run) X(failed) X(buffer) X(is_complex) X(itemsize) X(_rg) X(append) \
    X(active_bytes) X(acc) X(leaf) X(buf) X(long) X(node) X(_base) X(_grad_fn) X(_out_nr) X(_ver) X(_storage) X(version) X(public) X(watched) \
    X(differentiable) X(grad) X(_view_version) X(_origin) X(inference) X(no_grad) X(shape) X(contiguous_strides) X(_accumulator) \
    X(_leaf_hooks) X(_known) X(_pairs) X(_layouts) X(expr) X(_retry) X(attach) X(label) X(autocast) X(result) X(tend) X(queue) X(word) X(look) \
    X(_views) X(_default_float) X(number) X(pushing) X(off) X(modes) X(hosted) X(_pending) X(idle) X(transfers) X(_to_host) X(tensor) \
    X(_attribute) X(_without_places) X(position) X(seed) X(freed) \
    X(retains) X(_post_accumulate_hooks) X(_grad) X(kind) X(_stores) X(dispatched) X(pre_hooks) X(hooks) X(trace) X(_other) X(_leaf) X(early) X(tracing) \
    X(SliceBackward0) X(SelectBackward0) X(UnsqueezeBackward0) X(AliasBackward0) X(duplicate) X(_to_device) X(traits) X(source) X(free) X(took) X(int_ptr) \
    X(near) X(command_execution_status) X(wait) X(mirrored) X(clear) \
    X(_fusions) X(_plans) X(LONG) X(popleft) X(mirror) X(values) X(synchronize) X(__class__) X(windows) X(size) X(__dict__) X(_default)

/* launch, node, repeat, dispatch, fuse, shared: dictionaries of modules, and of what arrays look into; the rest are functions and objects of those modules. */
#define THINGS(X) \
    X(launch) X(node) X(repeat) X(shared) X(config) X(plain) X(realize) X(describe_alike) X(Recipe_run) X(Prepared_run) X(Memory_alloc) X(LEFT) X(Missed) \
    X(recent) X(dispatch) X(packed) X(real) X(most_nodes) X(most_leaves) X(worth_counting) X(record_briefly) X(record_alike) \
    X(kind) X(most_elements) X(state) X(refresh) X(accumulator) X(number) X(finish) X(inference_saved) X(watch) X(view_of) X(last) \
    X(fuse) X(of_structure) X(allocate) X(small) X(compute) X(record_pair) X(record_laid) X(record) X(fewest) X(foreign) X(symbols) X(Size) X(whole_items) X(recalled) \
    X(basic) X(basic_op) X(place) X(dtypes) X(integer) X(wake) X(refuse_overlap) X(override) X(item) \
    X(float32) X(float64) X(int64) X(int32) X(bool) X(Unlike) X(one_number) X(atoms) X(most_entries) X(entry) X(row_kind) \
    X(gather) X(held) X(only_tensors) X(all) X(thin) X(free) X(thin_attributes) X(thin_missed) X(thin_tries) \
    X(record_elementwise) X(store) X(put) X(replaced) X(Storage_buffer) X(put_at) X(Tensor__alias) X(address_of) X(enqueue) X(enqueue_at) \
    X(wrapped) X(read_numbers) X(reduce) X(unread) X(most_unread) X(read_some) \
    X(ndarray) X(frombuffer) X(uint8) X(bfloat16) X(copied) X(Mirrored) X(asked) X(Shared) X(physical) X(context) X(strided) X(Device) X(device) X(full) X(faults)


#define X(c) extern PyTypeObject *c##_type;
CLASSES(X)
#undef X
#define X(c, n) extern Py_ssize_t c##_##n;
SLOTS(X)
#undef X
#define X(n) extern PyObject *s_##n;
NAMES(X)
#undef X
#define X(n) extern PyObject *the_##n;
THINGS(X)
#undef X
extern PyObject *zero, *one, *nothing;      /* 0, 1 and () */

#define AT(object, slot) (*(PyObject **)((char *)(object) + (slot)))
#define IS(object, name) (Py_TYPE(object) == name##_type)

enum { FAILED = -1, OTHER = 0, TOLD = 1, PYTHON = 2 };      /* what describing comes to: an error, no such call, done, a case for the Python function */

/* -- what may change from call to call --------------------------------------------------------------------------------------------- */

#define VARIABLES(X) X(launch, recorders) X(launch, recording) X(launch, _enqueue) X(node, births) X(repeat, on) X(foreign, early) X(foreign, dispatched) \
    X(symbols, tracing) X(dtypes, _default_float) X(fuse, _known) X(dispatch, contiguous_strides) X(dispatch, _pairs) X(dispatch, _layouts) X(store, _stores) \
    X(reduce, LONG) X(physical, _default)
#define OWN(X) X(state, grad) X(state, inference) X(state, watched) X(state, pushing) X(state, autocast) X(override, off) X(override, modes) X(wrapped, modes)

/* What was found under a name, while the dictionary is as it was then: its tag is another after each change. */
typedef struct {
    uint64_t tag;
    PyObject *value;
} Seen;

#if PY_VERSION_HEX < 0x030D0000
#define TAG(dict) (((PyDictObject *)(dict))->ma_version_tag)
#else
#define TAG(dict) 0                         /* dictionaries have none any more: it is looked up each time */
#endif

/* module.c */
PyObject *look_up_in(PyObject *dict, PyObject *name, PyTypeObject *type);
PyObject *own_attributes(PyObject *local);

static inline PyObject *look_again(PyObject *dict, PyObject *name, PyTypeObject *type, Seen *seen)
{
    uint64_t tag = dict == NULL ? 0 : TAG(dict);
    if (tag && tag == seen->tag)
        return seen->value;
    PyObject *found = dict == NULL ? NULL : look_up_in(dict, name, type);
    if (found != NULL)
        seen->tag = tag, seen->value = found;
    return found;
}

/* A module's variable, borrowed. */
#define variable(module, name) module##_##name()
#define X(module, name) static inline PyObject *the_##module##_s_##name(void) { static Seen seen; return look_again(the_##module, s_##name, NULL, &seen); }
VARIABLES(X)
#undef X

/* An attribute of this thread's state, borrowed; the class has what it is in threads where it was not set. */
#define own(local, name) own_##local##_##name()
#define X(local, name) static inline PyObject *own_##local##_##name(void) \
    { static Seen seen; return look_again(own_attributes(the_##local), s_##name, Py_TYPE(the_##local), &seen); }
OWN(X)
#undef X

static inline int is_true(PyObject *value)                                          /* of a borrowed value; -1: an error, or none is given */
{
    return value == Py_False || value == Py_None ? 0 : value == Py_True ? 1 : value == NULL ? -1 : PyObject_IsTrue(value);
}

/* of_device(state, name): what a device has among its attributes ``state``, borrowed; NULL without an error where it has no such. */
#define DEVICE(X) X(alloc) X(alloc_all) X(inline) X(last) X(lock) X(near) X(peek) X(queue) X(recording) X(tended) X(transfers) X(waiting) X(word) X(err_dirty)
#define of_device(state, name) of_device_##name(state)
#define X(name) \
    static inline PyObject *of_device_##name(PyObject *state) \
    { \
        static Seen seen; \
        uint64_t tag = TAG(state); \
        if (!tag || tag != seen.tag) \
            seen.value = PyDict_GetItem(state, s_##name), seen.tag = tag; \
        return seen.value; \
    }
DEVICE(X)
#undef X

static inline PyObject *new_object(PyTypeObject *type)                          /* object.__new__(type), without room for attributes before there are some */
{
    return type->tp_alloc(type, 0);
}

static inline void put(PyObject *object, Py_ssize_t slot, PyObject *value)      /* of a new object */
{
    Py_INCREF(value);
    AT(object, slot) = value;
}

static inline void change(PyObject *object, Py_ssize_t slot, PyObject *value)   /* takes the reference */
{
    PyObject *before = AT(object, slot);
    AT(object, slot) = value;
    Py_XDECREF(before);
}

static inline int unheard(void)                    /* whether nobody listens to launches; -1: an error */
{
    PyObject *recorders = variable(the_launch, s_recorders), *recording = variable(the_launch, s_recording);
    return recorders == NULL || recording == NULL ? -1 : recorders == Py_None && recording == Py_None;
}

static inline int is_set(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    int set = is_true(value);
    Py_XDECREF(value);
    return set;
}

/* -- what most tensors never have set (see native.rare) ---------------------------------------------------------------------------- */

#define UNSET(X) X(_rg, Py_False) X(_grad, Py_None) X(_grad_fn, Py_None) X(_out_nr, zero) X(_base, Py_None) X(_ver, Py_None) X(_view_version, zero) X(_origin, Py_None) \
    X(_views, Py_None) X(_accumulator, Py_None) X(_post_accumulate_hooks, Py_None) X(_leaf_hooks, Py_None)

static inline int is_bare(PyObject *t)                      /* whether the slots of ``t`` say it all: other classes may have properties in their place */
{
    return IS(t, Tensor) || IS(t, Parameter);
}

/* history(t, name): a new reference; set_history(t, name, value): of a borrowed one. */
#define history(t, name) history##name(t)
#define set_history(t, name, value) set_history##name(t, value)
#define X(name, unset) \
    static inline PyObject *history##name(PyObject *t) \
    { \
        PyObject *value = is_bare(t) ? AT(t, Tensor_##name) : NULL; \
        return value != NULL ? Py_NewRef(value) : is_bare(t) ? Py_NewRef(unset) : PyObject_GetAttr(t, s_##name); \
    } \
    static inline int set_history##name(PyObject *t, PyObject *value) \
    { \
        if (!is_bare(t)) \
            return PyObject_SetAttr(t, s_##name, value); \
        change(t, Tensor_##name, Py_NewRef(value)); \
        return 0; \
    }
UNSET(X)
#undef X

static inline int needs_grad(PyObject *t)                                      /* whether ``t`` requires a gradient */
{
    return is_bare(t) ? AT(t, Tensor__rg) == Py_True || (AT(t, Tensor__rg) != NULL && is_true(AT(t, Tensor__rg))) : is_set(t, s__rg);
}

/* trait(dtype, name): of an element type, a new reference. */
#define trait(dtype, name) trait_at(dtype, dtype_##name, s_##name)
static inline PyObject *trait_at(PyObject *dtype, Py_ssize_t slot, PyObject *name)
{
    return Py_IS_TYPE(dtype, dtype_type) ? Py_NewRef(AT(dtype, slot)) : PyObject_GetAttr(dtype, name);
}

#define has_trait(dtype, name) (Py_IS_TYPE(dtype, dtype_type) ? is_true(AT(dtype, dtype_##name)) : is_set(dtype, s_##name))

static inline int add(PyObject *list, PyObject *value)                                 /* takes the reference */
{
    if (value == NULL)
        return -1;
    int failed = PyList_Append(list, value);
    Py_DECREF(value);
    return failed;
}

static inline int simple(PyObject *tensor)                                      /* whether its slots are all there is to it */
{
    return IS(tensor, Tensor) ? 1 : PySet_Contains(the_plain, (PyObject *)Py_TYPE(tensor));
}

static inline PyObject *version_of(PyObject *own, PyObject *storage)              /* that of a tensor whose ``_ver`` is ``own``, a new reference */
{
    int counted = own == Py_None ? 0 : PyObject_IsTrue(own);
    return counted < 0 ? NULL : PyObject_GetAttr(counted ? own : storage, s_version);
}

static inline int is_tracked(PyObject *t)                                       /* whether what is made of ``t`` leaves an entry on the tape */
{
    int grad = is_true(own(state, grad));
    return grad <= 0 ? grad : needs_grad(t);
}

/* factories.c */
extern PyTypeObject Remembered_made;
/* buffers.c */
PyObject *new_buffer(PyObject *memory, PyObject *allocate, PyObject *nbytes);
void *noted_address(PyObject *buffer);
void note_address(PyObject *buffer, void *address);
void clear_shelves(void);
PyObject *picked_from(PyObject *pick, PyObject *first, PyObject *second);
PyObject *picker(PyObject *module, PyObject *places);
int ready_buffers(void);
PyObject *unshelve(PyObject *module, PyObject *nothing_given);
/* memory.c */
extern PyMethodDef alloc_method;
int allocate_onto(PyObject *list, PyObject *alloc_all, PyObject *sizes);
/* lock.c */
extern PyTypeObject Lock_made;
int held(PyObject *lock, PyObject *how);
/* launches.c */
PyObject *run_recipe(PyObject *recipe, PyObject *buffers);
PyObject *at_once(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *run_prepared(PyObject *prepared, PyObject *const *args, Py_ssize_t n);
PyObject *run_locked(PyObject *prepared, PyObject *device, PyObject *picked, PyObject *numbers, int locked);
extern PyMethodDef run_recipe_method, run_prepared_method;
/* kinds.c */
int ready_kinds(void);
int only_integers(PyObject *values);
void hand_on(PyObject *again, PyObject *values, PyObject *missed);
void drop_handed(void);
int some_track(PyObject *values);
PyObject *again(PyObject *module, PyObject *args);
PyObject *apart(PyObject *module, PyObject *values);
PyObject *kind(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* front.c */
int ready_front(void);
PyObject *front(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *tries(PyObject *module, PyObject *function);
PyObject *settled(PyObject *module, PyObject *function);
PyObject *quick(PyObject *module, PyObject *args, PyObject *given);
PyObject *met(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* recent.c */
typedef struct Recent Recent;
PyObject *recent_recipe(Recent *recent, PyObject *known, PyObject *values, int recording, PyObject **given, PyObject **operands);
Recent *keep_recent(Recent *recent, PyObject *known, PyObject *values, PyObject *recipe, int recording);
void forget_recent(Recent *recent);
/* recording.c */
PyObject *brief(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *alike(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *make(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *record(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *pair(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *laid(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *told(PyObject *module, PyObject *root);
PyObject *refilled(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *new_pending(PyObject *const *what);
PyObject *packed_number(PyObject *value, PyObject *kind);
PyObject *number_of(PyObject *ref, PyObject *expr, PyObject *compute, Py_ssize_t place);
/* pending.c */
PyObject *compute(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *realize(PyObject *module, PyObject *storage);
void finish_node(PyObject *node, PyObject *owner, PyObject *buf);
int launch_known(PyObject *known, PyObject *device, PyObject *reads, PyObject *numbers, PyObject *written, PyObject *offset, int locked);
extern PyMethodDef buffer_method;
/* reuse.c */
int may_end(PyObject *reads);
PyObject *written_over(PyObject *device, PyObject *reads, PyObject *nodes, PyObject *outs);
int counted_once(PyObject *refs, long most, long *count, long *leaves);
/* reductions.c */
PyObject *folded(PyObject *folds, PyObject *values, int recording);
int reduced(PyObject *storage, PyObject *root);
/* tape.c */
int ready_tape(void);
int leave_entry(PyObject *op, PyObject *result, PyObject *values, PyObject *label);
PyObject *attach(PyObject *module, PyObject *args);
PyObject *spliced(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* views.c */
PyObject *view_of(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *recalled(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *basic(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *place(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *tuple_of(const Py_ssize_t *numbers, int n);
extern PyMethodDef alias_method, size_method;
PyObject *new_size(PyTypeObject *type, PyObject *args, PyObject *kwargs);
/* gather.c */
PyObject *gathered(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *scattered(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *located(PyObject *module, PyObject *x);
int store_here(PyObject *device, PyObject *dtype, PyObject *shape, PyObject *strides, PyObject *offset, PyObject *written, PyObject *read, PyObject *first,
    PyObject *from,
               PyObject *value);
/* indices.c */
PyObject *only_tensors(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *beside_numbers(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *index_numbers(PyObject *module, PyObject *index);
PyObject *read_from(PyObject *storage, Py_ssize_t nbytes, Py_ssize_t first);
/* stores.c */
int bump(PyObject *t);
int is_storable(PyObject *value, PyObject *dtype);
int is_open(PyObject *t);
int come_apart(PyObject *st, Py_ssize_t known);
PyObject *put_region(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *put_at(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *applied(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* multi.c */
PyObject *of_one_kind(PyObject *module, PyObject *tensors);
PyObject *tracks(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *row_kind(PyObject *module, PyObject *row);
PyObject *rows_kind(PyObject *module, PyObject *rows);
PyObject *usual_rows(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *counted_on(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *given_in_turn(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *gather(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* passes.c */
PyObject *describe_graph(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *collect(PyObject *module, PyObject *roots);
/* reads.c */
int short_way(PyObject *state, PyObject *side);
int is_ready(PyObject *state, PyObject *side);
int is_near(PyObject *state);
int count_transfer(PyObject *state);
PyObject *settled_buffer(PyObject *storage);
PyObject *item(PyObject *module, PyObject *t);
PyObject *fetched(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *sent(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *split_key(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *moved(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* windows.c */
int ready_windows(void);
PyObject *counted_references(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *told_alone(PyObject *module, PyObject *count);
PyObject *asked(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* direct.c */
extern PyTypeObject Direct_made;
int run_direct(PyObject *direct, PyObject *picked, PyObject *places, PyObject *numbers);
int run_anew(PyObject *direct, PyObject *where, PyObject *args, PyObject *picked, PyObject *places, PyObject *numbers, double *seconds);
PyObject *address(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *hire_helpers(PyObject *module, PyObject *args);
PyObject *libraries(PyObject *module, PyObject *part);
int address_in(PyObject *device, PyObject *buf, void **memory);
void forget(void *handle, void *nothing_given);
/* words.c */
extern PyTypeObject Words_made;
/* samplers.c */
PyObject *rejected(PyObject *self, PyObject *args);
PyObject *faults(PyObject *module, PyObject *array);
/* calls.c */
int ready_calls(void);
int wake(PyObject *target);
int calls_are_usual(void);
PyObject *swift(PyObject *module, PyObject *args);
PyObject *overwritten_thinly(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *overwritten(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *copied(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *asking(PyObject *module, PyObject *args);
PyObject *replaced(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *refuse_overlap(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *thin(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *known_call(PyObject *module, PyObject *const *args, Py_ssize_t n);

#endif
