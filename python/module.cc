// SPDX-License-Identifier: Apache-2.0
//
// prepost._native: how errors become exceptions.
#include <exception>

#include "ir/version.h"
#include "python/bindings.h"
#include "python/status_error.h"

namespace prepost::python {
namespace {

/// The classes of prepost/_errors.py; never freed.
struct ErrorClasses {
  PyObject* usage = nullptr;
  PyObject* rejected = nullptr;
  PyObject* environment = nullptr;
  PyObject* transfer = nullptr;
  PyObject* timeout = nullptr;
};
ErrorClasses error_classes;

void FindErrorClasses() {
  const pybind11::module_ errors = pybind11::module_::import("prepost._errors");
  const auto find = [&errors](const char* name) {
    return pybind11::object(errors.attr(name)).release().ptr();
  };
  error_classes = {find("UsageError"), find("RejectedError"), find("EnvironmentError"),
                   find("TransferError"), find("Timeout")};
}

PyObject* ClassOf(const StatusError& error) {
  if (error.kind() == StatusError::Kind::kTimeout) return error_classes.timeout;
  if (error.kind() == StatusError::Kind::kGroup) return error_classes.transfer;
  switch (error.code()) {
    case StatusCode::kOk:
      break;
    case StatusCode::kUsage:
      return error_classes.usage;
    case StatusCode::kRejected:
      return error_classes.rejected;
    case StatusCode::kEnvironment:
      return error_classes.environment;
    case StatusCode::kInterrupted:
      return PyExc_KeyboardInterrupt;
  }
  PREPOST_CHECK(false);
  return nullptr;
}

/// Runs nothing that is written in Python: while the interpreter ends it would end this thread in
/// there, by unwinding its stack, which nothing can catch within a handler (interpreter.h).
void Translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    PyObject* const exception = PyObject_CallFunction(ClassOf(error), "s", error.what());
    if (exception == nullptr) return;
    if (error.kind() == StatusError::Kind::kGroup) {
      PyObject* const members = PyTuple_New(static_cast<Py_ssize_t>(error.where().members.size()));
      Py_ssize_t place = 0;
      for (const uint32_t member : error.where().members)
        PyTuple_SET_ITEM(members, place++, PyLong_FromUnsignedLong(member));
      PyObject_SetAttrString(exception, "members", members);
      if (place > 0) PyObject_SetAttrString(exception, "member", PyTuple_GET_ITEM(members, 0));
      Py_DECREF(members);
      PyObject* const messages = PyLong_FromUnsignedLongLong(error.where().messages);
      PyObject_SetAttrString(exception, "messages", messages);
      Py_DECREF(messages);
      PyObject_SetAttrString(exception, "unreached", error.where().unreached ? Py_True : Py_False);
    }
    PyErr_SetObject(ClassOf(error), exception);
    Py_DECREF(exception);
  }
}

}  // namespace
}  // namespace prepost::python

PYBIND11_MODULE(_native, module) {
  module.attr("version") = prepost::kVersion;
  prepost::python::FindErrorClasses();
  pybind11::register_local_exception_translator(prepost::python::Translate);
  prepost::python::AddSessions(module);
  prepost::python::AddPlans(module);
}
