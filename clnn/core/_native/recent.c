/* Calls of a repeated function that were met last, told by the objects themselves: in fewer steps than by a key (see kinds.c). */
#include "native.h"

enum { KINDS = 4, ATOMS = 12, PARTS = 5, LUCK = 32, REST = 1024 };
enum { TENSOR, LIST, VALUE };

/* One value of a call: a tensor's shape, strides, offset, dtype and device; how many items a list has, which follow; or an object. */
typedef struct {
    int kind, tracks;                                   /* tracks: it is a tensor that required a gradient, which was recorded */
    Py_ssize_t items;
    PyObject *parts[PARTS];
} Atom;

typedef struct {
    Atom atoms[ATOMS];
    int count;
    PyObject *precision, *cores, *recipe;               /* recipe: NULL where there is no such kind */
} Kind;

struct Recent {
    uint64_t tag;                                       /* of the dictionary that the recipes come from, as it was */
    int next, luck, rest;                               /* luck: kinds that may be kept in vain; rest: calls until more are, where most are of others */
    Kind kinds[KINDS];
};

static const Py_ssize_t *slots_of(void)
{
    static Py_ssize_t slots[4];
    slots[0] = Tensor_shape, slots[1] = Tensor__strides, slots[2] = Tensor__offset, slots[3] = Tensor_dtype;
    return slots;
}

static void drop(Kind *kind)
{
    PyObject *recipe = kind->recipe;
    kind->recipe = NULL;
    if (recipe == NULL)
        return;
    for (int i = 0; i < kind->count; i++)
        for (int k = 0; k < PARTS; k++)
            Py_CLEAR(kind->atoms[i].parts[k]);
    Py_CLEAR(kind->precision);
    Py_CLEAR(kind->cores);
    Py_DECREF(recipe);
}

void forget_recent(Recent *recent)
{
    for (int i = 0; recent != NULL && i < KINDS; i++)
        drop(&recent->kinds[i]);
    PyMem_Free(recent);
}

static int is_settled(PyObject *t)                      /* in the memory of a device, and no more than its slots say */
{
    PyObject *storage = AT(t, Tensor__storage);
    return is_bare(t) && IS(storage, Storage) && AT(storage, Storage_node) == Py_None;
}

static int same_part(PyObject *a, PyObject *b)
{
    return a == b || (PyTuple_Check(a) && PyTuple_Check(b) && PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b) && PyObject_RichCompareBool(a, b, Py_EQ) > 0);
}

static int is_list(PyObject *v)
{
    return PyList_CheckExact(v) || (PyTuple_CheckExact(v) && !only_integers(v));
}

/* Whether ``values`` are those of ``kind`` from its atom ``*at`` on; its tensors and their memory are put into ``tensors`` and ``buffers``. */
static int is_like(const Kind *kind, PyObject *values, int *at, int recording, PyObject **tensors, PyObject **buffers, int *n)
{
    const Py_ssize_t *slots = slots_of();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
        PyObject *v = PySequence_Fast_GET_ITEM(values, i);
        if (*at == kind->count)
            return 0;
        const Atom *atom = &kind->atoms[(*at)++];
        if (atom->kind == VALUE) {
            if (atom->parts[0] != v)
                return 0;
        } else if (atom->kind == LIST) {
            if (!is_list(v) || PySequence_Fast_GET_SIZE(v) != atom->items || !is_like(kind, v, at, recording, tensors, buffers, n))
                return 0;
        } else {
            if (!PyObject_TypeCheck(v, Tensor_type) || !is_settled(v) || AT(AT(v, Tensor__storage), Storage_device) != atom->parts[4]
                    || (recording && needs_grad(v)) != atom->tracks)
                return 0;
            for (int k = 0; k < 4; k++)
                if (!same_part(AT(v, slots[k]), atom->parts[k]))
                    return 0;
            for (int k = 0; k < *n; k++)
                if (buffers[k] == AT(AT(v, Tensor__storage), Storage_buf))              /* which operands are the same is told by keys */
                    return 0;
            tensors[*n] = v, buffers[(*n)++] = AT(AT(v, Tensor__storage), Storage_buf);
        }
    }
    return 1;
}

static Kind *kind_like(Recent *recent, PyObject *values, int recording, PyObject **tensors, PyObject **buffers, int *n)
{
    for (int i = 0; i < KINDS; i++) {
        Kind *kind = &recent->kinds[i];
        int at = 0;
        *n = 0;
        if (kind->recipe != NULL && kind->precision == AT(the_config, Config_matmul_precision) && kind->cores == AT(the_config, Config_tensor_cores)
                && is_like(kind, values, &at, recording, tensors, buffers, n) && at == kind->count)
            return kind;
    }
    return NULL;
}

static PyObject *list_of(PyObject **objects, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list != NULL && i < n; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(objects[i]));
    return list;
}

/* The recipe of a call that was met lately, a new reference, and lists of its buffers and, of one that leaves an entry on the tape, tensors, which is NULL of
   others; NULL, without an error, of other calls. */
PyObject *recent_recipe(Recent *recent, PyObject *known, PyObject *values, int recording, PyObject **given, PyObject **operands)
{
    PyObject *buffers[ATOMS], *tensors[ATOMS];
    int n = 0;
    if (recent == NULL || recent->tag != TAG(known) || recent->rest || variable(the_symbols, s_tracing) != Py_None)
        return NULL;
    Kind *kind = kind_like(recent, values, recording, tensors, buffers, &n);
    if (kind != NULL)
        recent->luck = LUCK;
    if (kind == NULL)
        return NULL;
    *given = list_of(buffers, n), *operands = IS(kind->recipe, Recipe) ? NULL : list_of(tensors, n);
    if (*given == NULL || (*operands == NULL && !IS(kind->recipe, Recipe))) {
        Py_CLEAR(*given);
        PyErr_Clear();
        return NULL;
    }
    return Py_NewRef(kind->recipe);
}

/* Tell ``values`` in ``kind``: whether that is possible. */
static int tell_values(Kind *kind, PyObject *values, int recording)
{
    const Py_ssize_t *slots = slots_of();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
        PyObject *v = PySequence_Fast_GET_ITEM(values, i);
        if (kind->count == ATOMS)
            return 0;
        Atom *atom = &kind->atoms[kind->count++];
        memset(atom, 0, sizeof *atom);
        if (PyObject_TypeCheck(v, Tensor_type)) {
            atom->kind = TENSOR, atom->tracks = recording && needs_grad(v);
            if (!is_bare(v) || !IS(AT(v, Tensor__storage), Storage))
                return 0;
            for (int k = 0; k < 4; k++)
                atom->parts[k] = Py_NewRef(AT(v, slots[k]));
            atom->parts[4] = Py_NewRef(AT(AT(v, Tensor__storage), Storage_device));
        } else if (is_list(v)) {
            atom->kind = LIST, atom->items = PySequence_Fast_GET_SIZE(v);
            if (!tell_values(kind, v, recording))
                return 0;
        } else {
            atom->kind = VALUE, atom->parts[0] = Py_NewRef(v);
        }
    }
    return 1;
}

/* Keep what the call with ``values``, whose operands are all different, came to, which is in ``known``: ``recent``, new where there was none. */
Recent *keep_recent(Recent *recent, PyObject *known, PyObject *values, PyObject *recipe, int recording)
{
    if (!TAG(known) || variable(the_symbols, s_tracing) != Py_None || (recent == NULL && (recent = PyMem_Calloc(1, sizeof *recent)) == NULL))
        return recent;
    if (recent->rest && recent->rest--)
        return recent;
    if (recent->luck-- <= 0)
        recent->rest = recent->tag ? REST : 0, recent->luck = LUCK;
    for (int i = 0; i < KINDS && recent->tag != TAG(known); i++)
        drop(&recent->kinds[i]);
    recent->tag = TAG(known);
    Kind *kind = &recent->kinds[recent->next++ % KINDS];
    drop(kind);
    kind->count = 0, kind->recipe = Py_NewRef(recipe);
    kind->precision = Py_NewRef(AT(the_config, Config_matmul_precision)), kind->cores = Py_NewRef(AT(the_config, Config_tensor_cores));
    if (!tell_values(kind, values, recording))
        drop(kind);
    return recent;
}
