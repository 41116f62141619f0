/* samplers.py: numbers of distributions that are drawn by rejection. */
#include "words.h"

/* faults(weights): twister.faults of an array of float32 */
PyObject *faults(PyObject *module, PyObject *array)
{
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_STRIDED_RO | PyBUF_FORMAT))
        return NULL;
    const float *from = view.buf;
    Py_ssize_t columns = view.ndim ? view.shape[view.ndim - 1] : 1, n = view.len / (Py_ssize_t)sizeof(float);
    int good = view.format != NULL && !strcmp(view.format, "f") && columns > 0 && PyBuffer_IsContiguous(&view, 'C'), wrong = 0;
    for (Py_ssize_t i = 0; good && i < n; i += columns) {
        int some = 0;
        for (Py_ssize_t k = 0; k < columns; k++)
            wrong |= !(from[i + k] >= 0.0f && from[i + k] < INFINITY), some |= from[i + k] > 0.0f;
        wrong |= some ? 0 : 2;
    }
    PyBuffer_Release(&view);
    return good ? PyLong_FromLong(wrong) : PyObject_CallOneArg(the_faults, array);
}

/* What numbers are drawn from: words, a normal number that is left, and how many words were taken. */
typedef struct {
    Words *words;
    int has_spare;
    double spare;
    Py_ssize_t taken;
} Draw;

static double uniform(Draw *d)
{
    d->taken += 2;
    return next_double(d->words);
}

static double normal(Draw *d)
{
    d->has_spare = !d->has_spare;
    if (!d->has_spare)
        return d->spare;
    d->taken += 4;
    return next_pair(d->words, &d->spare);
}

/* Of a shape s: scale * d * v, where scale = u^(1/s) and d = s + 2/3 below 1, else d = s - 1/3. */
static double gamma_of(Draw *draw, double scale, double d)
{
    double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = normal(draw), y = 1.0 + c * x;
        if (y <= 0.0)
            continue;
        double v = y * y * y, u = 1.0 - uniform(draw), square = x * x;
        if (u < 1.0 - (double)0.0331f * square * square || log(u) < 0.5 * square + d * (1.0 - v + log(v)))
            return scale * d * v;
    }
}

#define GAMMA(name, real) \
    static double name(Draw *draw, const double *shapes) \
    { \
        real shape = (real)shapes[0]; \
        double scale = 1.0; \
        if (isnan(shape) || shape == 0) \
            return shape; \
        if (shape < 1) { \
            scale = pow(1.0 - uniform(draw), (real)1 / shape); \
            shape += (real)1; \
        } \
        return gamma_of(draw, scale, shape - (real)(1.0f / 3.0f)); \
    }
GAMMA(gamma_number, double)
GAMMA(gamma_float, float)

static double poisson_number(Draw *draw, const double *rates)
{
    double rate = rates[0];
    if (rate == 0.0)
        return 0.0;
    if (rate < 10.0) {
        double least = exp(-rate), count = 0.0;
        for (double product = uniform(draw); product > least; product *= uniform(draw))
            count += 1.0;
        return count;
    }
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, alpha = 1.1239 + 1.1328 / (b - 3.4), sure = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        double u = uniform(draw) - 0.5, v = uniform(draw), us = 0.5 - fabs(u), k = floor((2.0 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= sure)
            return k;
        if (k < 0.0 || (us < 0.013 && v > us))
            continue;
        if (log(v) + log(alpha) - log(a / (us * us) + b) <= -rate + k * log(rate) - lgamma(k + 1.0))
            return k;
    }
}

static double tail(double k)
{
    static const double few[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                 0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
    if (k <= 9.0)
        return few[(int)k];
    double s = (k + 1.0) * (k + 1.0);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / s) / s) / (k + 1.0);
}

static double binomial_by_rejection(Draw *draw, double n, double p)
{
    double spread = sqrt(n * p * (1.0 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, sure = 0.92 - 4.2 / b;
    double r = p / (1.0 - p), alpha = (2.83 + 5.1 / b) * spread, m = floor((n + 1.0) * p);
    for (;;) {
        double u = uniform(draw) - 0.5, v = uniform(draw), us = 0.5 - fabs(u), k = floor((2.0 * a / us + b) * u + c);
        if (us >= 0.07 && v <= sure)
            return k;
        if (k < 0.0 || k > n)
            continue;
        double bound = (m + 0.5) * log((m + 1.0) / (r * (n - m + 1.0))) + (n + 1.0) * log((n - m + 1.0) / (n - k + 1.0))
            + (k + 0.5) * log(r * (n - k + 1.0) / (k + 1.0)) + tail(m) + tail(n - m) - tail(k) - tail(n - k);
        if (log(v * alpha / (a / (us * us) + b)) <= bound)
            return k;
    }
}

static double successes(Draw *draw, double count, double share)
{
    if (count * share >= 10.0)
        return binomial_by_rejection(draw, count, share);
    for (double passed = 0.0, found = 0.0;; found += 1.0) {
        passed += ceil(log(uniform(draw)) / log1p(-share));
        if (passed > count)
            return found;
    }
}

static double binomial_number(Draw *draw, const double *given)
{
    double count = given[0], share = given[1];
    if (count <= 0.0 || share <= 0.0)
        return 0.0;
    if (isnan(share))
        return share;
    if (share >= 1.0)
        return count;
    return share > 0.5 ? count - successes(draw, count, 1.0 - share) : successes(draw, count, share);
}

static const struct {
    const char *name;
    int parameters;
    double (*number)(Draw *, const double *);
} kinds[] = {{"gamma", 1, gamma_number}, {"gamma_float", 1, gamma_float}, {"poisson", 1, poisson_number}, {"binomial", 2, binomial_number}};

/* rejected(kind, words, spare, *parameters) */
PyObject *rejected(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *words, *spare, *made = NULL;
    Py_buffer given[2] = {{0}};
    if (!PyArg_ParseTuple(args, "sO!Oy*|y*", &name, &Words_made, &words, &spare, &given[0], &given[1]))
        return NULL;
    Draw draw = {(Words *)words, spare != Py_None, spare != Py_None ? PyFloat_AsDouble(spare) : 0.0, 0};
    int parameters = given[1].obj == NULL ? 1 : 2, i = 0;
    while (i < 4 && strcmp(kinds[i].name, name))
        i++;
    if (i == 4 || kinds[i].parameters != parameters || (parameters == 2 && given[0].len != given[1].len))
        PyErr_Format(PyExc_ValueError, "no numbers of the kind %s with these parameters", name);
    else if (!PyErr_Occurred() && (made = PyBytes_FromStringAndSize(NULL, given[0].len)) != NULL) {
        double *to = (double *)PyBytes_AS_STRING(made);
        for (Py_ssize_t at = 0; at < given[0].len / (Py_ssize_t)sizeof(double); at++) {
            double each[2] = {((double *)given[0].buf)[at], parameters == 2 ? ((double *)given[1].buf)[at] : 0.0};
            to[at] = kinds[i].number(&draw, each);
        }
    }
    for (i = 0; i < parameters; i++)
        PyBuffer_Release(&given[i]);
    if (made == NULL)
        return NULL;
    return draw.has_spare ? Py_BuildValue("Nnd", made, draw.taken, draw.spare) : Py_BuildValue("NnO", made, draw.taken, Py_None);
}
