// SPDX-License-Identifier: Apache-2.0
//
// BufferView: memory of a Python object with the buffer protocol, which stays where it is, and its
// size the same, until the view is destroyed. Memory: bytes that Python sees as a buffer, wherever
// they are. Internal to python/.
#ifndef PREPOST_PYTHON_BUFFER_VIEW_H_
#define PREPOST_PYTHON_BUFFER_VIEW_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ir/base/status.h"
#include "prepost/prepost.h"

namespace prepost::python {

/// Made and destroyed with the interpreter's lock held; its bytes may be used without.
class BufferView {
 public:
  /// Throws BufferError or TypeError of Python: no buffer, not contiguous, read-only.
  BufferView(pybind11::handle object, bool is_written) {
    if (PyObject_GetBuffer(object.ptr(), &view_, is_written ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0)
      throw pybind11::error_already_set();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(view_.buf); }
  uint64_t bytes() const { return static_cast<uint64_t>(view_.len); }

 private:
  Py_buffer view_ = {};
};

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using OwnMemory = std::unique_ptr<std::byte[], FreeMemory>;

struct GiveBack {
  std::shared_ptr<MemoryPool> pool;

  /// In a process forked since it was made, the pool takes nothing back.
  void operator()(std::byte* memory) const { static_cast<void>(pool->Give(memory)); }
};
using PoolBuffer = std::unique_ptr<std::byte[], GiveBack>;

/// `bytes` bytes that begin in the one of the three that is there.
struct Memory {
  OwnMemory own;
  PoolBuffer pooled;
  std::unique_ptr<BufferView> view;
  uint64_t bytes = 0;

  std::byte* data() const {
    if (own != nullptr) return own.get();
    return pooled != nullptr ? pooled.get() : view->data();
  }
};

}  // namespace prepost::python

#endif  // PREPOST_PYTHON_BUFFER_VIEW_H_
