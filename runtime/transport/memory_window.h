// SPDX-License-Identifier: Apache-2.0
//
// MemoryWindow: what a peer on this machine may copy from this process's memory at present
// (tcp_endpoint.h). The peer reads it with every piece that it copies. Where a message is, it
// therefore learns from the process that has it and from the kernel, and never from a connection,
// to which the program may have written. Nothing counts that was copied when the memory was its
// caller's again, nor what was not sent yet: that the connection is open says less, as the news
// that it was closed may be lost on the way.
#ifndef PREPOST_RUNTIME_TRANSPORT_MEMORY_WINDOW_H_
#define PREPOST_RUNTIME_TRANSPORT_MEMORY_WINDOW_H_

#include <string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace prepost {

/// Written by one thread. To be destroyed before the memory that peers copy from is its caller's
/// again.
class MemoryWindow {
 public:
  /// Known to the two ends of the connection alone: a window that has it is the one that the reader
  /// was told of, still there.
  using Sign = std::array<std::byte, 16>;

  /// As it stands in memory. Integers are the machine's.
  struct Value {
    Sign sign = {};
    uint64_t message = 0;  ///< the number of the message
    uint64_t place = 0;    ///< where it is, an address
    uint64_t bytes = 0;    ///< of the message
    uint64_t sends = 0;  ///< how many of its blocks the reader may copy, in the order of the sends
  };

  MemoryWindow() = default;
  ~MemoryWindow() {
    explicit_bzero(&value_, sizeof(value_));  // not left out, though it is freed next
    Fence();                                  // before whatever the caller writes
  }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  /// Where a reader finds it.
  uint64_t address() const { return reinterpret_cast<uint64_t>(&value_); }
  void set_sign(const Sign& sign) {
    value_.sign = sign;
    Fence();
  }
  /// Message `number` is `memory`, of which nothing may be copied yet.
  void Open(uint64_t number, std::span<const std::byte> memory) {
    value_.sends = 0;
    Fence();
    value_.message = number;
    value_.place = reinterpret_cast<uint64_t>(memory.data());
    value_.bytes = memory.size();
    Fence();
  }
  /// The reader may copy the blocks of the first `sends` sends, before it is told so.
  void set_sends(uint64_t sends) {
    Fence();  // behind the blocks
    value_.sends = sends;
    Fence();
  }

 private:
  /// Not std::atomic_thread_fence(), with which GCC does not compile for the thread sanitizer.
  static void Fence() { __sync_synchronize(); }

  Value value_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_MEMORY_WINDOW_H_
