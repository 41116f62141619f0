/* The module: what other modules tell, and the table of functions. */
#include "native.h"

#define X(c) PyTypeObject *c##_type;
CLASSES(X)
#undef X
#define X(c, n) Py_ssize_t c##_##n;
SLOTS(X)
#undef X
#define X(n) PyObject *s_##n;
NAMES(X)
#undef X
#define X(n) PyObject *the_##n;
THINGS(X)
#undef X
PyObject *zero, *one, *nothing;

/* What ``dict`` has under a name, or else the class does, borrowed. */
PyObject *look_up_in(PyObject *dict, PyObject *name, PyTypeObject *type)
{
    PyObject *found = PyDict_GetItemWithError(dict, name);
    if (found == NULL && type != NULL && !PyErr_Occurred())
        found = _PyType_Lookup(type, name);
    if (found == NULL && !PyErr_Occurred())
        PyErr_SetObject(PyExc_NameError, name);
    return found;
}

/* The attributes that a threading.local has in this thread, borrowed: the thread keeps them as long as it lives. */
PyObject *own_attributes(PyObject *local)
{
    static struct { PyObject *local, *dict; uint64_t thread; } known[4];
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    int i = 0;
    while (i < 3 && known[i].local != NULL && known[i].local != local)
        i++;
    if (known[i].local != local || known[i].thread != thread) {
        PyObject *dict = PyObject_GetAttr(local, s___dict__);
        if (dict == NULL)
            return NULL;
        Py_DECREF(dict);
        known[i].local = local, known[i].dict = dict, known[i].thread = thread;
    }
    return known[i].dict;
}

static int find_slot(PyTypeObject *type, const char *name, Py_ssize_t *place)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    if (found == NULL)
        return -1;
    int good = Py_IS_TYPE(found, &PyMemberDescr_Type);
    if (good)
        *place = ((PyMemberDescrObject *)found)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", type->tp_name, name);
    Py_DECREF(found);
    return good ? 0 : -1;
}

static PyObject *know(PyObject *self, PyObject *type)
{
    const char *name = ((PyTypeObject *)type)->tp_name, *dot = strrchr(name, '.');
    name = dot == NULL ? name : dot + 1;
#define X(c) if (!strcmp(name, #c)) { Py_INCREF(type); Py_XSETREF(c##_type, (PyTypeObject *)type); }
    CLASSES(X)
#undef X
#define X(c, n) if (!strcmp(name, #c) && find_slot((PyTypeObject *)type, #n, &c##_##n)) return NULL;
    SLOTS(X)
#undef X
    Py_RETURN_NONE;
}

/* maker(type): new_size as what makes its instances. */
static PyObject *maker(PyObject *self, PyObject *type)
{
    if (type != the_Size)
        return PyErr_Format(PyExc_TypeError, "no class with a maker in C");
    ((PyTypeObject *)type)->tp_new = new_size;
    Py_RETURN_NONE;
}

/* read_only(slot): another descriptor of the same place, which refuses to be assigned. The interpreter reads both in the same way. */
static PyObject *read_only(PyObject *self, PyObject *slot)
{
    if (!Py_IS_TYPE(slot, &PyMemberDescr_Type))
        return PyErr_Format(PyExc_TypeError, "no slot");
    PyMemberDef *own = PyMem_Malloc(sizeof *own);               /* lives as long as the class, which is to the end */
    if (own == NULL)
        return PyErr_NoMemory();
    *own = *((PyMemberDescrObject *)slot)->d_member;
    own->flags |= READONLY;
    return PyDescr_NewMember(PyDescr_TYPE(slot), own);
}

/* -- attributes that most never have set ------------------------------------------------------------------------------------------------ */

/* A slot that is ``unset`` until something is put there: see native.rare. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *owner;
    Py_ssize_t place;
    PyObject *unset;
} Rare;

static PyObject *rare_get(PyObject *self, PyObject *object, PyObject *type)
{
    Rare *rare = (Rare *)self;
    PyObject *value = object == NULL || object == Py_None || !PyObject_TypeCheck(object, rare->owner) ? NULL : AT(object, rare->place);
    return Py_NewRef(value == NULL ? rare->unset : value);
}

static int rare_set(PyObject *self, PyObject *object, PyObject *value)
{
    Rare *rare = (Rare *)self;
    if (!PyObject_TypeCheck(object, rare->owner)) {
        PyErr_Format(PyExc_TypeError, "%s has no such attribute", Py_TYPE(object)->tp_name);
        return -1;
    }
    change(object, rare->place, Py_XNewRef(value));
    return 0;
}

static PyTypeObject Rare_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Rare", .tp_basicsize = sizeof(Rare), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_descr_get = rare_get, .tp_descr_set = rare_set,
};

static Py_hash_t place_of_object(PyObject *object)
{
    return (Py_hash_t)(uintptr_t)object;
}

/* hashing(type): __hash__ of objects whose hash is their id, as the interpreter calls it without looking for a method. */
static PyObject *hashing(PyObject *self, PyObject *type)
{
    PyObject *plain = PyType_Check(type) ? PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__hash__") : NULL;
    PyObject *made = plain == NULL ? NULL : PyDescr_NewWrapper((PyTypeObject *)type, ((PyWrapperDescrObject *)plain)->d_base, (void *)place_of_object);
    Py_XDECREF(plain);
    return made != NULL || PyErr_Occurred() ? made : PyErr_Format(PyExc_TypeError, "no class");
}

/* rare(slot, unset): lives as long as the class, which is to the end. */
static PyObject *rare(PyObject *self, PyObject *args)
{
    PyObject *slot, *unset;
    if (!PyArg_ParseTuple(args, "O!O", &PyMemberDescr_Type, &slot, &unset))
        return NULL;
    Rare *new = PyObject_New(Rare, &Rare_type);
    if (new == NULL)
        return NULL;
    new->owner = (PyTypeObject *)Py_NewRef(PyDescr_TYPE(slot)), new->place = ((PyMemberDescrObject *)slot)->d_member->offset, new->unset = Py_NewRef(unset);
    return (PyObject *)new;
}

/* -- what other modules give ------------------------------------------------------------------------------------------------------------ */

static PyObject *give(PyObject *self, PyObject *args, PyObject *things)
{
    PyObject *found;
#define X(n) found = PyDict_GetItemString(things, #n); if (found != NULL) { Py_INCREF(found); Py_XSETREF(the_##n, found); }
    THINGS(X)
#undef X
    Py_RETURN_NONE;
}

/* missing(): the names of what was not given yet. */
static PyObject *missing(PyObject *self, PyObject *nothing_given)
{
    PyObject *list = PyList_New(0);
#define X(n) if (list != NULL && the_##n == NULL && add(list, PyUnicode_FromString(#n))) Py_CLEAR(list);
    THINGS(X)
#undef X
    return list;
}

/* -- the module -------------------------------------------------------------------------------------------------------------------- */

/* method(type, name): a method of a class, in C. */
static PyObject *method(PyObject *self, PyObject *args)
{
    PyTypeObject *type;
    if (!PyArg_ParseTuple(args, "O!", &PyType_Type, &type))
        return NULL;
    PyMethodDef *found = type == Recipe_type ? &run_recipe_method : type == Prepared_type ? &run_prepared_method
        : type == Memory_type ? &alloc_method : type == Storage_type ? &buffer_method : type == Tensor_type ? &alias_method : (PyObject *)type == the_Size
            ? &size_method : NULL;
    return found == NULL ? PyErr_Format(PyExc_TypeError, "no class with a method in C") : PyDescr_NewMethod(type, found);
}

static PyMethodDef methods[] = {
    {"maker", maker, METH_O, "Give a class the C form of __new__."},
    {"read_only", read_only, METH_O, "Another descriptor of a slot, which refuses to be assigned."},
    {"hashing", hashing, METH_O, "hashing(type): __hash__ of objects whose hash is their id"},
    {"rare", rare, METH_VARARGS, "rare(slot, unset): a descriptor of a slot that is ``unset`` until something is put there"},
    {"know", know, METH_O, "Find the slots of a class."},
    {"give", (PyCFunction)(void (*)(void))give, METH_VARARGS | METH_KEYWORDS, "Take functions, objects and dictionaries of modules by name."},
    {"front", (PyCFunction)(void (*)(void))front, METH_FASTCALL, "front(function, quick): native.front"},
    {"met", (PyCFunction)(void (*)(void))met, METH_FASTCALL, "worded.met"},
    {"tries", tries, METH_O, "tries(function): what that tries first, or None"},
    {"settled", settled, METH_O, "settled(function): it has the code that it is to keep"},
    {"quick", (PyCFunction)(void (*)(void))quick, METH_VARARGS | METH_KEYWORDS, "quick(again=, named=, ...): what a function may try first"},
    {"picker", picker, METH_O, "picker(places): native.picker"},
    {"unshelve", unshelve, METH_NOARGS, "unshelve(): give small buffers that nobody uses back to their pools"},
    {"missing", missing, METH_NOARGS, "Names of what was not given yet."},
    {"again", again, METH_VARARGS, "again(known, python, ready, tries, entries, folds): repeat.repeated's again"},
    {"method", method, METH_VARARGS, "The method of Recipe, Prepared, Memory, Storage, Tensor or Size that is here."},
    {"compute", (PyCFunction)(void (*)(void))compute, METH_FASTCALL, "fuse._compute"},
    {"realize", realize, METH_O, "fuse.realize"},
    {"attach", attach, METH_VARARGS, "attach(count, masks, needed, always): entries.attach of operators with such parameters"},
    {"spliced", (PyCFunction)(void (*)(void))spliced, METH_FASTCALL, "splice._again"},
    {"view_of", (PyCFunction)(void (*)(void))view_of, METH_FASTCALL, "tensor.view_of"},
    {"recalled", (PyCFunction)(void (*)(void))recalled, METH_FASTCALL, "seen.recalled"},
    {"describe_graph", (PyCFunction)(void (*)(void))describe_graph, METH_FASTCALL, "passes._Graph.describe"},
    {"collect", collect, METH_O, "passes._collect"},
    {"of_one_kind", of_one_kind, METH_O, "joining.of_one_kind"},
    {"tracks", (PyCFunction)(void (*)(void))tracks, METH_FASTCALL, "declare._tracks"},
    {"row_kind", row_kind, METH_O, "multi._kind"},
    {"gather", (PyCFunction)(void (*)(void))gather, METH_FASTCALL, "multi._gather"},
    {"rows_kind", rows_kind, METH_O, "multi._kind_of_all"},
    {"usual_rows", (PyCFunction)(void (*)(void))usual_rows, METH_FASTCALL, "_rule._usual_rows"},
    {"counted_on", (PyCFunction)(void (*)(void))counted_on, METH_FASTCALL, "_counters._counted_on"},
    {"given_in_turn", (PyCFunction)(void (*)(void))given_in_turn, METH_FASTCALL, "graph.multi._given"},
    {"only_tensors", (PyCFunction)(void (*)(void))only_tensors, METH_FASTCALL, "indexing._only_tensors"},
    {"beside_numbers", (PyCFunction)(void (*)(void))beside_numbers, METH_FASTCALL, "indexing._beside_numbers"},
    {"read_numbers", index_numbers, METH_O, "indexing._read_numbers"},
    {"gathered", (PyCFunction)(void (*)(void))gathered, METH_FASTCALL, "indexing.gathered"},
    {"scattered", (PyCFunction)(void (*)(void))scattered, METH_FASTCALL, "indexing.scattered"},
    {"located", located, METH_O, "indexing.located"},
    {"thin", (PyCFunction)(void (*)(void))thin, METH_FASTCALL, "thin._again"},
    {"put", (PyCFunction)(void (*)(void))put_region, METH_FASTCALL, "inplace.put"},
    {"put_at", (PyCFunction)(void (*)(void))put_at, METH_FASTCALL, "indexing._put"},
    {"applied", (PyCFunction)(void (*)(void))applied, METH_FASTCALL, "inplace.applied"},
    {"fetched", (PyCFunction)(void (*)(void))fetched, METH_FASTCALL, "mirror.fetched"},
    {"sent", (PyCFunction)(void (*)(void))sent, METH_FASTCALL, "transfers.sent"},
    {"split_key", (PyCFunction)(void (*)(void))split_key, METH_FASTCALL, "families.split"},
    {"moved", (PyCFunction)(void (*)(void))moved, METH_FASTCALL, "transfers.moved"},
    {"item", item, METH_O, "interop.item"},
    {"place", (PyCFunction)(void (*)(void))place, METH_FASTCALL, "indexing._place"},
    {"swift", swift, METH_VARARGS, "swift(op, known, operands): elementwise.swift_unary and swift_binary"},
    {"overwritten", (PyCFunction)(void (*)(void))overwritten, METH_FASTCALL, "elementwise.overwritten"},
    {"overwritten_thinly", (PyCFunction)(void (*)(void))overwritten_thinly, METH_FASTCALL, "thin.overwritten"},
    {"asking", asking, METH_VARARGS, "asking(inner, python, kinds): override._entry"},
    {"copied", (PyCFunction)(void (*)(void))copied, METH_FASTCALL, "elementwise.copied"},
    {"replaced", (PyCFunction)(void (*)(void))replaced, METH_FASTCALL, "inplace._replaced"},
    {"refilled", (PyCFunction)(void (*)(void))refilled, METH_FASTCALL, "elementwise.refilled"},
    {"refuse_overlap", (PyCFunction)(void (*)(void))refuse_overlap, METH_FASTCALL, "inplace.refuse_overlap"},
    {"known_call", (PyCFunction)(void (*)(void))known_call, METH_FASTCALL, "splice._known_call"},
    {"basic", (PyCFunction)(void (*)(void))basic, METH_FASTCALL, "indexing._basic"},
    {"apart", apart, METH_O, "splice._apart"},
    {"kind", (PyCFunction)(void (*)(void))kind, METH_FASTCALL, "splice._kind"},
    {"brief", (PyCFunction)(void (*)(void))brief, METH_FASTCALL, "dispatch.record_briefly"},
    {"alike", (PyCFunction)(void (*)(void))alike, METH_FASTCALL, "dispatch.record_alike"},
    {"pair", (PyCFunction)(void (*)(void))pair, METH_FASTCALL, "dispatch.record_pair"},
    {"laid", (PyCFunction)(void (*)(void))laid, METH_FASTCALL, "dispatch.record_laid"},
    {"make", (PyCFunction)(void (*)(void))make, METH_FASTCALL, "tensor.make"},
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL, "node.record"},
    {"told", told, METH_O, "structure.told"},
    {"address", (PyCFunction)(void (*)(void))address, METH_FASTCALL, "direct.address_of"},
    {"hire", hire_helpers, METH_VARARGS, "hire(n, placed): have as many threads beside the calling one for what is called directly; how many there are"},
    {"libraries", libraries, METH_O, "libraries(part): paths of the loaded libraries that have ``part`` in them"},
    {"at_once", (PyCFunction)(void (*)(void))at_once, METH_FASTCALL, "capture.at_once"},
    {"asked", (PyCFunction)(void (*)(void))asked, METH_FASTCALL, "interop.asked"},
    {"references", (PyCFunction)(void (*)(void))counted_references, METH_FASTCALL, "references(x, ...): how often x is referred to here"},
    {"told_alone", told_alone, METH_O, "told_alone(n): what that is of the tensor of f(x).numpy(), whose memory its array may have; 0: of others, too"},
    {"faults", faults, METH_O, "twister.faults"},
    {"rejected", rejected, METH_VARARGS, "samplers.rejected"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "What every operator goes through, in C (see native.c).", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void)
{
#define X(n) if ((s_##n = PyUnicode_InternFromString(#n)) == NULL) return NULL;
    NAMES(X)
#undef X
    if ((zero = PyLong_FromLong(0)) == NULL || (one = PyLong_FromLong(1)) == NULL || (nothing = PyTuple_New(0)) == NULL || ready_kinds() || ready_tape()
        || ready_calls() || ready_windows() || ready_front() || ready_buffers() || PyType_Ready(&Rare_type))
        return NULL;
    PyObject *made_module = PyModule_Create(&module);
    if (made_module != NULL && (PyModule_AddObject(made_module, "SOURCES", PyLong_FromUnsignedLong(SOURCES)) || PyModule_AddType(made_module, &Words_made)
            || PyModule_AddObject(made_module, "FORGET", PyLong_FromVoidPtr((void *)forget)) || PyModule_AddType(made_module, &Direct_made)
                || PyModule_AddType(made_module, &Lock_made) || PyModule_AddType(made_module, &Remembered_made)))
        Py_CLEAR(made_module);
    return made_module;
}
