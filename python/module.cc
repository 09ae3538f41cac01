// SPDX-License-Identifier: Apache-2.0
//
// prepost._native: how errors become exceptions.
#include <exception>

#include "ir/version.h"
#include "python/bindings.h"
#include "python/status_error.h"

namespace prepost::python {
namespace {

namespace py = pybind11;

const char* NameOf(StatusError::Kind kind) {
  switch (kind) {
    case StatusError::Kind::kCall:
      return "call";
    case StatusError::Kind::kGroup:
      return "group";
    case StatusError::Kind::kTimeout:
      return "timeout";
  }
  PREPOST_CHECK(false);
  return "";
}

void Translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    const py::object exception =
        py::module_::import("prepost._errors")
            .attr("exception_of")(NameOf(error.kind()), static_cast<int>(error.code()),
                                  error.what(), error.member());
    PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  }
}

}  // namespace
}  // namespace prepost::python

PYBIND11_MODULE(_native, module) {
  module.attr("version") = prepost::kVersion;
  pybind11::register_local_exception_translator(prepost::python::Translate);
  prepost::python::AddSessions(module);
  prepost::python::AddPlans(module);
}
