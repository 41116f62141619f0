/* The lock under which a device is used: threading.RLock, which the functions here take in fewer steps. */
#include "native.h"
#include <pythread.h>

typedef struct {
    PyObject_HEAD
    PyThread_type_lock lock;
    unsigned long owner;                    /* the thread that has it, while ``count`` is not 0: how often it took it */
    Py_ssize_t count;
} Lock;

/* Take it: 1; 0 where that lasts longer than ``microseconds``, which are unlimited below 0; -1 with an error that a signal raised. */
static int take(Lock *self, PY_TIMEOUT_T microseconds)
{
    unsigned long me = PyThread_get_thread_ident();
    if (self->count && self->owner == me)
        return ++self->count, 1;
    PyLockStatus got = PyThread_acquire_lock_timed(self->lock, 0, 0);
    while (got != PY_LOCK_ACQUIRED && microseconds) {
        Py_BEGIN_ALLOW_THREADS
        got = PyThread_acquire_lock_timed(self->lock, microseconds, 1);
        Py_END_ALLOW_THREADS
        if (got == PY_LOCK_INTR && PyErr_CheckSignals())
            return -1;
        if (got == PY_LOCK_FAILURE)
            break;
    }
    if (got != PY_LOCK_ACQUIRED)
        return 0;
    self->owner = me, self->count = 1;
    return 1;
}

static int leave(Lock *self)
{
    if (!self->count || self->owner != PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return -1;
    }
    if (--self->count == 0)
        PyThread_release_lock(self->lock);
    return 0;
}

int held(PyObject *lock, PyObject *how)                     /* take or release a lock, whatever is raised */
{
    if (Py_IS_TYPE(lock, &Lock_made))
        return how == s_acquire ? (take((Lock *)lock, -1) < 0 ? -1 : 0) : leave((Lock *)lock);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *got = PyObject_CallMethodNoArgs(lock, how);
    if (got != NULL || type != NULL) {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

static PyObject *new_lock(PyTypeObject *type, PyObject *args, PyObject *named)
{
    Lock *self = (Lock *)type->tp_alloc(type, 0);
    if (self != NULL && (self->lock = PyThread_allocate_lock()) == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void free_lock(PyObject *self)
{
    if (((Lock *)self)->lock != NULL)
        PyThread_free_lock(((Lock *)self)->lock);
    Py_TYPE(self)->tp_free(self);
}

/* acquire(blocking=True, timeout=-1) */
static PyObject *lock_acquire(PyObject *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"blocking", "timeout", NULL};
    int blocking = 1;
    double timeout = -1;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|pd", names, &blocking, &timeout))
        return NULL;
    int done = take((Lock *)self, !blocking ? 0 : timeout < 0 ? -1 : (PY_TIMEOUT_T)(timeout * 1e6));
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *lock_release(PyObject *self, PyObject *nothing_given)
{
    return leave((Lock *)self) ? NULL : Py_NewRef(Py_None);
}

static PyObject *lock_enter(PyObject *self, PyObject *nothing_given)
{
    return take((Lock *)self, -1) < 0 ? NULL : Py_NewRef(Py_True);
}

static PyObject *lock_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    return lock_release(self, NULL);
}

static PyMethodDef lock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))lock_acquire, METH_VARARGS | METH_KEYWORDS, NULL},
    {"release", lock_release, METH_NOARGS, NULL},
    {"__enter__", lock_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))lock_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Lock_made = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Lock", .tp_basicsize = sizeof(Lock), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = new_lock, .tp_dealloc = free_lock,
    .tp_methods = lock_methods, .tp_doc = "threading.RLock",
};
