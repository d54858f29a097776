/* The loops over the messages of plain batches: `sealane.message.payloads` and `sealane.message.plain` say what each function
   promises, and do the same in Python where this is not compiled. Only the stable interface of Python is used, so that
   one build serves every version from 3.11 on. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Item `index` of a list or a tuple, borrowed. */
static inline PyObject *item(PyObject *payloads, int is_list, Py_ssize_t index)
{
    return is_list ? PyList_GetItem(payloads, index) : PyTuple_GetItem(payloads, index);
}

/* How many there are, or -1 with an error set if it is neither a list nor a tuple. */
static Py_ssize_t count_of(PyObject *payloads, int *is_list)
{
    *is_list = PyList_Check(payloads);
    if (*is_list)
        return PyList_Size(payloads);
    if (PyTuple_Check(payloads))
        return PyTuple_Size(payloads);
    PyErr_SetString(PyExc_TypeError, "payloads are in a list or a tuple");
    return -1;
}

static inline void put_little_endian(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
    at[2] = (unsigned char)(value >> 16);
    at[3] = (unsigned char)(value >> 24);
}

static PyObject *ends(PyObject *module, PyObject *args)
{
    PyObject *payloads;
    Py_ssize_t bytes_max;
    int is_list;
    if (!PyArg_ParseTuple(args, "On", &payloads, &bytes_max))
        return NULL;
    Py_ssize_t count = count_of(payloads, &is_list);
    if (count < 0)
        return NULL;
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, 4 * (count + 1));
    if (offsets == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)PyBytes_AsString(offsets);
    int64_t end = 0;
    put_little_endian(at, 0);
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *payload = item(payloads, is_list, index);
        Py_ssize_t length = PyBytes_CheckExact(payload) ? PyBytes_Size(payload) : -1;
        end += length;
        if (length < 0 || length > bytes_max || end > INT32_MAX) {
            Py_DECREF(offsets);
            Py_RETURN_NONE;
        }
        put_little_endian(at += 4, (uint32_t)end);
    }
    return Py_BuildValue("(NL)", offsets, (long long)end);
}

/* By way of one number that lies in memory as it is to be written: byte by byte it takes ten times as long. */
static inline unsigned char *put_big_endian_64(unsigned char *at, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(at, &value, 8);
    return at + 8;
}

static inline unsigned char *put_little_endian_64(unsigned char *at, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(at, &value, 8);
    return at + 8;
}

static inline Py_ssize_t padded(Py_ssize_t length)
{
    return (length + 7) & ~(Py_ssize_t)7;
}

/* The payloads one behind the other, which must be `left` bytes together; what comes behind them, or NULL. */
static unsigned char *put_payloads(unsigned char *at, PyObject *payloads, int is_list, Py_ssize_t count, Py_ssize_t left)
{
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *payload = item(payloads, is_list, index);
        char *bytes;
        Py_ssize_t length;
        if (!PyBytes_CheckExact(payload) || PyBytes_AsStringAndSize(payload, &bytes, &length) < 0 || length > left)
            return NULL;
        memcpy(at, bytes, (size_t)length);
        at += length;
        left -= length;
    }
    return left == 0 ? at : NULL;
}

static PyObject *lay_out(PyObject *module, PyObject *args)
{
    Py_buffer columns;
    unsigned long long id_high, id_start, created_us;
    const char *ends;
    Py_ssize_t ends_bytes, payload_bytes;
    PyObject *payloads;
    int is_list;
    if (!PyArg_ParseTuple(args, "w*KKy#OnK", &columns, &id_high, &id_start, &ends, &ends_bytes, &payloads, &payload_bytes,
                          &created_us))
        return NULL;
    unsigned char *behind = NULL;
    Py_ssize_t count = count_of(payloads, &is_list);
    /* Nothing is written before it is sure to fit; each of these is at most a length, so that sums do not overflow. */
    int fits = count >= 0 && count <= columns.len / 24 && ends_bytes == 4 * (count + 1) && payload_bytes >= 0
               && payload_bytes <= columns.len && columns.len == 24 * count + padded(ends_bytes) + padded(payload_bytes);
    if (fits) {
        unsigned char *at = columns.buf;
        for (Py_ssize_t row = 0; row < count; row++)
            at = put_big_endian_64(put_big_endian_64(at, id_high), id_start + (uint64_t)row);
        memcpy(at, ends, (size_t)ends_bytes);
        memset(at + ends_bytes, 0, (size_t)(padded(ends_bytes) - ends_bytes));
        behind = put_payloads(at + padded(ends_bytes), payloads, is_list, count, payload_bytes);
    }
    if (behind != NULL) {
        memset(behind, 0, (size_t)(padded(payload_bytes) - payload_bytes));
        behind += padded(payload_bytes) - payload_bytes;
        for (Py_ssize_t row = 0; row < count; row++)
            behind = put_little_endian_64(behind, created_us);
    }
    PyBuffer_Release(&columns);
    if (behind == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the payloads are not as many bytes as was said");
        return NULL;
    }
    Py_RETURN_NONE;
}

static inline uint32_t get_little_endian(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Whether the offsets go from the first byte of the payloads to the last, never back, in steps within the limit. */
static int offsets_are_sound(const unsigned char *at, Py_ssize_t rows, int64_t payload_bytes, int64_t payload_bytes_max)
{
    int64_t end = 0;
    if (get_little_endian(at) != 0)
        return 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        int64_t next = (int32_t)get_little_endian(at += 4);
        if (next < end || next - end > payload_bytes_max)
            return 0;
        end = next;
    }
    return end == payload_bytes;
}

/* Read without a sign, a time before 1970 is larger than any other. */
static int times_are_sound(const unsigned char *at, Py_ssize_t rows, uint64_t time_max)
{
    for (Py_ssize_t row = 0; row < rows; row++, at += 8) {
        uint64_t time = (uint64_t)get_little_endian(at + 4) << 32 | get_little_endian(at);
        if (time > time_max)
            return 0;
    }
    return 1;
}

static PyObject *is_sound(PyObject *module, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t rows, offsets_at, times_at;
    long long payload_bytes, payload_bytes_max;
    unsigned long long time_max;
    if (!PyArg_ParseTuple(args, "y*nnnLLK", &data, &rows, &offsets_at, &times_at, &payload_bytes, &payload_bytes_max, &time_max))
        return NULL;
    const unsigned char *bytes = data.buf;
    /* Where everything is was computed from what a stranger claims: here nothing is read that is not there. */
    int sound = rows >= 0 && offsets_at >= 0 && times_at >= 0 && rows < data.len / 8 && offsets_at <= data.len
                && times_at <= data.len && data.len - offsets_at >= 4 * (rows + 1) && data.len - times_at >= 8 * rows
                && offsets_are_sound(bytes + offsets_at, rows, payload_bytes, payload_bytes_max)
                && times_are_sound(bytes + times_at, rows, time_max);
    PyBuffer_Release(&data);
    return PyBool_FromLong(sound);
}

static PyMethodDef functions[] = {
    {"ends", ends, METH_VARARGS, "Where each payload ends, and how many bytes they are together."},
    {"lay_out", lay_out, METH_VARARGS, "The columns of a plain batch one behind the other, into memory of the caller's."},
    {"is_sound", is_sound, METH_VARARGS, "Whether offsets and times of a plain batch are as they may be."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_plain", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__plain(void)
{
    return PyModuleDef_Init(&definition);
}
