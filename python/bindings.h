// SPDX-License-Identifier: Apache-2.0
//
// The parts of prepost._native. The package around it (python/prepost/) is what users see; what is
// here takes and gives simple things and is documented there. Internal to python/.
#ifndef PREPOST_PYTHON_BINDINGS_H_
#define PREPOST_PYTHON_BINDINGS_H_

#include <pybind11/pybind11.h>

namespace prepost::python {

void AddSessions(pybind11::module_& module);
void AddPlans(pybind11::module_& module);

}  // namespace prepost::python

#endif  // PREPOST_PYTHON_BINDINGS_H_
