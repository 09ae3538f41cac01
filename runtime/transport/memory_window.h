// SPDX-License-Identifier: Apache-2.0
//
// MemoryWindow: what a peer on this machine may copy from this process's memory at present
// (tcp_endpoint.h): the sends that it has not acknowledged yet, and where their bytes are. The peer
// reads it with every piece that it copies. Where a block is, it therefore learns from the process
// that has it and from the kernel, and never from a connection, to which the program may have
// written. Nothing counts that was copied when the memory was its caller's again, nor what was not
// sent yet: that the connection is open says less, as the news that it was closed may be lost on
// the way.
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

  /// One send. Its sum is wrong while it is written, and a reader takes it for none.
  struct Entry {
    uint64_t send = 0;   ///< SendNumber(); 0: none
    uint64_t place = 0;  ///< where its bytes are, an address
    uint64_t bytes = 0;
    uint64_t sum = 0;  ///< SumOf() the others

    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// Sends that can be under way at once. What is read with each piece should be small beside it.
  static constexpr uint32_t kSendsMax = 32;

  /// As it stands in memory. Integers are the machine's.
  struct Value {
    Sign sign = {};  ///< first, as the reader looks for it alone before it reads anything else
    std::array<Entry, kSendsMax> entries = {};  ///< send i of a message in entry i mod kSendsMax

    /// That of send `index` of `message`; null: the reader may not copy it.
    const Entry* Find(uint32_t message, uint32_t index) const {
      const Entry& entry = entries[index % kSendsMax];
      const bool is_there = entry.send == SendNumber(message, index) && entry.sum == SumOf(entry);
      return is_there ? &entry : nullptr;
    }
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
  /// The reader may copy `memory`, before it is told so: send `index` of `message`. The send before
  /// it in its entry has been taken out.
  void Add(uint32_t message, uint32_t index, std::span<const std::byte> memory) {
    Entry& entry = value_.entries[index % kSendsMax];
    Fence();  // behind the bytes
    entry.place = reinterpret_cast<uint64_t>(memory.data());
    entry.bytes = memory.size();
    entry.send = SendNumber(message, index);
    entry.sum = SumOf(entry);
    Fence();
  }
  /// The reader has it, by what is believed; what it still copies does not count.
  void Remove(uint32_t index) {
    value_.entries[index % kSendsMax].send = 0;
    Fence();  // before whatever is written there
  }
  void RemoveAll() {
    for (Entry& entry : value_.entries) entry.send = 0;
    Fence();
  }

 private:
  static constexpr uint64_t SendNumber(uint32_t message, uint32_t index) {
    return uint64_t{message} << 32 | (index + 1);  // a plan has fewer ops than 2^32
  }
  /// Of parts of two entries it is wrong, unless these parts are the same.
  static constexpr uint64_t SumOf(const Entry& entry) {
    return entry.send * 0x9e3779b97f4a7c15 + entry.place * 0xc2b2ae3d27d4eb4f +
           entry.bytes * 0x165667b19e3779f9;
  }
  /// Not std::atomic_thread_fence(), with which GCC does not compile for the thread sanitizer.
  static void Fence() { __sync_synchronize(); }

  Value value_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_MEMORY_WINDOW_H_
