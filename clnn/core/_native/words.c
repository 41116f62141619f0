/* Words: the Mersenne Twister of words.py, and what becomes of its words before they are sent to a device. */
#include "words.h"

static void seed_with(Words *w, uint32_t seed)
{
    for (uint32_t i = 0; i < SIZE; i++) {
        w->state[i] = seed;
        seed = 1812433253u * (seed ^ (seed >> 30)) + i + 1;
    }
    w->place = SIZE;
}

static inline uint32_t mixed(uint32_t high, uint32_t low)
{
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (y >> 1) ^ (0x9908b0dfu & (0u - (low & 1u)));
}

void twist(Words *w)
{
    uint32_t *s = w->state;
    for (int i = 0; i < SIZE - SHIFT; i++)
        s[i] = s[i + SHIFT] ^ mixed(s[i], s[i + 1]);
    for (int i = SIZE - SHIFT; i < SIZE - 1; i++)
        s[i] = s[i + SHIFT - SIZE] ^ mixed(s[i], s[i + 1]);
    s[SIZE - 1] = s[SHIFT - 1] ^ mixed(s[SIZE - 1], s[0]);
    w->place = 0;
}

/* Calls `step(from, count, done)` for all words, as many at once as one state has. */
#define IN_RUNS(w, n, from, count, done) \
    for (Py_ssize_t done = 0, count; done < n; done += count) { \
        if (w->place == SIZE) \
            twist(w); \
        count = n - done < SIZE - w->place ? n - done : SIZE - w->place; \
        const uint32_t *from = w->state + w->place; \
        w->place += (int)count;

static void fill_units(Words *w, float *to, Py_ssize_t n)
{
    IN_RUNS(w, n, from, count, done)
        for (Py_ssize_t i = 0; i < count; i++)
            to[done + i] = (float)(int32_t)(tempered(from[i]) & 0xFFFFFFu) * 0x1p-24f;
    }
}

static void box_muller(float *block, float mean, float std)
{
    for (int i = 0; i < 8; i++) {
        float angle = 6.28318530717958647692f * block[i + 8];
        float radius = sqrtf(-2.0f * (float)log(1.0 - block[i]));       /* each function as float32 rounds it, so that these are NumPy's bits, too */
        float first = radius * (float)cos(angle), second = radius * (float)sin(angle);
        block[i] = mean == 0.0f && std == 1.0f ? first : first * std + mean;
        block[i + 8] = mean == 0.0f && std == 1.0f ? second : second * std + mean;
    }
}

static PyObject *room(Py_ssize_t n, Py_ssize_t itemsize)
{
    if (n < 0 || n > PY_SSIZE_T_MAX / itemsize)
        return PyErr_Format(PyExc_ValueError, "%zd numbers", n);
    return PyBytes_FromStringAndSize(NULL, n * itemsize);
}

/* The same for a number of them that is an argument, which goes to ``n``. */
static PyObject *room_for(PyObject *given, Py_ssize_t itemsize, Py_ssize_t *n)
{
    *n = PyLong_AsSsize_t(given);
    return *n == -1 && PyErr_Occurred() ? NULL : room(*n, itemsize);
}

#define DATA(type, bytes) ((type *)PyBytes_AS_STRING(bytes))

static PyObject *words_seed(Words *w, PyObject *given)
{
    unsigned long seed = PyLong_AsUnsignedLongMask(given);
    if (seed == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    seed_with(w, (uint32_t)seed);
    Py_RETURN_NONE;
}

static PyObject *words_restore(Words *w, PyObject *args)
{
    Py_buffer from;
    int place;
    if (!PyArg_ParseTuple(args, "y*i", &from, &place))
        return NULL;
    int good = from.len == sizeof w->state && place >= 0 && place <= SIZE;
    if (good) {
        memcpy(w->state, from.buf, sizeof w->state);
        w->place = place;
    } else
        PyErr_SetString(PyExc_ValueError, "a state is 624 words and a place in them");
    PyBuffer_Release(&from);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *words_state(Words *w, PyObject *nothing_given)
{
    return Py_BuildValue("y#i", (char *)w->state, (Py_ssize_t)sizeof w->state, w->place);
}

static PyObject *words_skip(Words *w, PyObject *given)
{
    Py_ssize_t n = PyLong_AsSsize_t(given);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    for (; n > SIZE - w->place; twist(w))
        n -= SIZE - w->place;
    w->place += (int)n;
    Py_RETURN_NONE;
}

static PyObject *words_words(Words *w, PyObject *given)
{
    Py_ssize_t n;
    PyObject *made = room_for(given, 4, &n);
    if (made == NULL)
        return NULL;
    uint32_t *to = DATA(uint32_t, made);
    IN_RUNS(w, n, from, count, done)
        for (Py_ssize_t i = 0; i < count; i++)
            to[done + i] = tempered(from[i]);
    }
    return made;
}

static PyObject *words_uniforms(Words *w, PyObject *args)
{
    Py_ssize_t n;
    float low, high;
    if (!PyArg_ParseTuple(args, "nff", &n, &low, &high))
        return NULL;
    PyObject *made = room(n, 4);
    if (made == NULL)
        return NULL;
    float *to = DATA(float, made), range = high - low;
    fill_units(w, to, n);
    if (low != 0.0f || high != 1.0f)
        for (Py_ssize_t i = 0; i < n; i++)
            to[i] = (float)((double)to[i] * range + low);           /* as one operation of float32 rounds */
    return made;
}

static PyObject *words_doubles(Words *w, PyObject *given)
{
    Py_ssize_t n;
    PyObject *made = room_for(given, 8, &n);
    if (made == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        DATA(double, made)[i] = next_double(w);
    return made;
}

static PyObject *words_double(Words *w, PyObject *nothing_given)
{
    return PyFloat_FromDouble(next_double(w));
}

static PyObject *words_integers(Words *w, PyObject *args)
{
    unsigned long long low, span;
    Py_ssize_t n;
    int wide;
    if (!PyArg_ParseTuple(args, "KKnp", &low, &span, &n, &wide))
        return NULL;
    PyObject *made = room(n, 8);
    if (made == NULL)
        return NULL;
    uint64_t *to = DATA(uint64_t, made);
    if (wide)
        for (Py_ssize_t i = 0; i < n; i++) {
            uint64_t word = next_wide(w);
            to[i] = low + (span ? word % span : word);
        }
    else {
        uint32_t narrow = (uint32_t)span;
        for (Py_ssize_t i = 0; i < n; i++) {
            uint32_t word = next_word(w);
            to[i] = low + (narrow ? word % narrow : word);
        }
    }
    return made;
}

static PyObject *words_order(Words *w, PyObject *given)
{
    Py_ssize_t n;
    PyObject *made = room_for(given, 8, &n);
    if (made == NULL)
        return NULL;
    int64_t *to = DATA(int64_t, made);
    for (Py_ssize_t i = 0; i < n; i++)
        to[i] = i;
    for (Py_ssize_t i = 0; i < n - 1; i++) {
        Py_ssize_t j = i + next_word(w) % (uint32_t)(n - i);
        int64_t kept = to[i];
        to[i] = to[j];
        to[j] = kept;
    }
    return made;
}

/* The column of a row of weights whose weight is the largest part of an exponential number of its own; the first that is no number, where there is such a part. */
static Py_ssize_t picked(Words *w, const float *weights, Py_ssize_t columns)
{
    Py_ssize_t best = 0;
    float most = 0.0f;
    int done = 0;
    for (Py_ssize_t i = 0; i < columns; i++) {
        float part = weights[i] / (float)-log1p(-next_double(w));
        if (!done && (i == 0 || isnan(part) || part > most))
            best = i, most = part, done = isnan(part);
    }
    return best;
}

/* ``count`` columns, each the number of running sums, as parts of the last of them, below a number from [0, 1). */
static void found(Words *w, const float *weights, Py_ssize_t columns, float *ends, Py_ssize_t count, int64_t *to)
{
    float sum = 0.0f;
    for (Py_ssize_t i = 0; i < columns; i++)
        ends[i] = sum = i ? sum + weights[i] : weights[i];
    for (Py_ssize_t i = 0; i < columns; i++)
        ends[i] = i + 1 < columns ? ends[i] / sum : 1.0f;
    for (Py_ssize_t k = 0; k < count; k++) {
        double drawn = next_double(w);
        for (to[k] = 0; to[k] < columns && ends[to[k]] < drawn; to[k]++);
    }
}

static PyObject *words_picks(Words *w, PyObject *args)
{
    Py_buffer weights;
    Py_ssize_t rows, count;
    if (!PyArg_ParseTuple(args, "y*nn", &weights, &rows, &count))
        return NULL;
    Py_ssize_t columns = rows > 0 ? weights.len / (Py_ssize_t)sizeof(float) / rows : 0;
    float *ends = columns > 0 ? PyMem_Malloc((size_t)columns * sizeof *ends) : NULL;
    PyObject *made = ends == NULL || count < 1 ? PyErr_Format(PyExc_ValueError, "no rows of weights") : room(rows * count, 8);
    for (Py_ssize_t row = 0; made != NULL && row < rows; row++) {
        const float *from = (const float *)weights.buf + row * columns;
        int64_t *to = DATA(int64_t, made) + row * count;
        if (count == 1)
            *to = picked(w, from, columns);
        else
            found(w, from, columns, ends, count, to);
    }
    PyMem_Free(ends);
    PyBuffer_Release(&weights);
    return made;
}

static PyObject *words_normals(Words *w, PyObject *args)
{
    Py_ssize_t n;
    float mean, std, last[16];
    if (!PyArg_ParseTuple(args, "nff", &n, &mean, &std))
        return NULL;
    if (n < 16)
        return PyErr_Format(PyExc_ValueError, "%zd numbers are no block of 16", n);
    PyObject *made = room(n, 4);
    if (made == NULL)
        return NULL;
    float *to = DATA(float, made);
    fill_units(w, to, n);
    for (Py_ssize_t i = 0; i + 16 <= n; i += 16)
        box_muller(to + i, mean, std);
    if (n % 16) {
        fill_units(w, last, 16);
        box_muller(last, mean, std);
        memcpy(to + n - 16, last, sizeof last);
    }
    return made;
}

static PyObject *words_pairs(Words *w, PyObject *args)
{
    Py_ssize_t n, have = 0;
    PyObject *spare;
    if (!PyArg_ParseTuple(args, "nO", &n, &spare))
        return NULL;
    PyObject *made = room(n, 8);
    if (made == NULL)
        return NULL;
    double *to = DATA(double, made);
    if (spare != Py_None && n) {
        to[have++] = PyFloat_AsDouble(spare);
        spare = Py_None;
    }
    Py_INCREF(spare);
    while (have < n) {
        double second;
        to[have++] = next_pair(w, &second);
        if (have < n)
            to[have++] = second;
        else
            Py_SETREF(spare, PyFloat_FromDouble(second));
    }
    return spare == NULL ? NULL : Py_BuildValue("NN", made, spare);
}

static PyObject *new_words(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Words *w = (Words *)type->tp_alloc(type, 0);
    if (w != NULL)
        seed_with(w, 0);
    return (PyObject *)w;
}

static PyMethodDef words_methods[] = {
    {"seed", (PyCFunction)words_seed, METH_O, NULL},
    {"restore", (PyCFunction)words_restore, METH_VARARGS, NULL},
    {"state", (PyCFunction)words_state, METH_NOARGS, NULL},
    {"skip", (PyCFunction)words_skip, METH_O, NULL},
    {"words", (PyCFunction)words_words, METH_O, NULL},
    {"uniforms", (PyCFunction)words_uniforms, METH_VARARGS, NULL},
    {"doubles", (PyCFunction)words_doubles, METH_O, NULL},
    {"double", (PyCFunction)words_double, METH_NOARGS, NULL},
    {"integers", (PyCFunction)words_integers, METH_VARARGS, NULL},
    {"order", (PyCFunction)words_order, METH_O, NULL},
    {"picks", (PyCFunction)words_picks, METH_VARARGS, NULL},
    {"normals", (PyCFunction)words_normals, METH_VARARGS, NULL},
    {"pairs", (PyCFunction)words_pairs, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Words_made = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "clnn.core._native.Words", .tp_basicsize = sizeof(Words), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = new_words, .tp_methods = words_methods,
    .tp_doc = "words.Words",
};
