// prisma_touch: a Python module with one function, as cheap as Python can call it. Every contender
// that is written in Python uses it, so that all pay the same for looking at what they got.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace {

constexpr Py_ssize_t kPage = 4096;
volatile unsigned sink;  // so that no reading is left out

PyObject* touch(PyObject*, PyObject* object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) != 0) return nullptr;
  const auto* bytes = static_cast<const unsigned char*>(view.buf);
  unsigned sum = 0;
  for (Py_ssize_t at = 0; at < view.len; at += kPage) sum += bytes[at];
  sink = sum;
  const Py_ssize_t size = view.len;
  PyBuffer_Release(&view);
  return PyLong_FromSsize_t(size);
}

PyMethodDef methods[] = {
    {"touch", touch, METH_O, "Reads one byte of every page of a buffer; returns its size."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "prisma_touch",
                      "Reads one byte of every page.",
                      -1,
                      methods,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_prisma_touch() { return PyModule_Create(&module); }
