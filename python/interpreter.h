// SPDX-License-Identifier: Apache-2.0
//
// ReleasedInterpreter, AcquiredInterpreter: the interpreter's lock, as pybind11's
// gil_scoped_release and gil_scoped_acquire, but also for threads that outlive the interpreter. A
// thread that wants the lock while the interpreter ends is ended by Python, by pthread_exit(),
// which unwinds its stack, through destructors that must not throw, so that the program aborts.
// Here such a thread goes to sleep instead, until the process is over, as it does by itself from
// Python 3.14 on. Internal to python/.
#ifndef PREPOST_PYTHON_INTERPRETER_H_
#define PREPOST_PYTHON_INTERPRETER_H_

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

namespace prepost::python {

/// `take` takes the interpreter's lock. Does not return once there is no interpreter for this
/// thread. Not to be called where an exception is handled: nothing else can be caught there.
template <typename Take>
void TakeInterpreter(Take take) {
  try {
    return take();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

/// Other threads of Python run in its scope. Needs the lock.
class ReleasedInterpreter {
 public:
  ReleasedInterpreter() : state_(PyEval_SaveThread()) {}
  ~ReleasedInterpreter() {
    TakeInterpreter([this] { PyEval_RestoreThread(state_); });
  }
  ReleasedInterpreter(const ReleasedInterpreter&) = delete;
  ReleasedInterpreter& operator=(const ReleasedInterpreter&) = delete;

 private:
  PyThreadState* const state_;
};

/// A thread that Python does not know may use it in its scope.
class AcquiredInterpreter {
 public:
  AcquiredInterpreter() {
    if (Py_IsInitialized() == 0)
      for (;;) pause();
    TakeInterpreter([this] { state_ = PyGILState_Ensure(); });
  }
  ~AcquiredInterpreter() { PyGILState_Release(state_); }
  AcquiredInterpreter(const AcquiredInterpreter&) = delete;
  AcquiredInterpreter& operator=(const AcquiredInterpreter&) = delete;

 private:
  PyGILState_STATE state_ = {};
};

}  // namespace prepost::python

#endif  // PREPOST_PYTHON_INTERPRETER_H_
