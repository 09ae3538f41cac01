// SPDX-License-Identifier: Apache-2.0
//
// ShmStream: a stream of bytes each way between two processes of one machine, in memory that both
// map. Each end makes the memory that it writes, and hands it to the other
// (session/introduction.h), which may only read it: bytes in a ring, how many there were so far,
// and how many it has read of the other's. Whoever writes wakes the other end only if that has said
// that it sleeps, by a byte over a socket.
//
// A stream that was empty begins its ring again, so that short messages one after the other stay in
// the same few lines of the caches.
//
// Nothing in the other end's memory is believed: what it says to have written or read is checked
// against the ring, and bytes are copied before anybody looks at them.
#ifndef PREPOST_RUNTIME_TRANSPORT_SHM_SHM_STREAM_H_
#define PREPOST_RUNTIME_TRANSPORT_SHM_SHM_STREAM_H_

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"
#include "runtime/transport/shm/handed_memory.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {

/// Used by one thread at each end.
class ShmStream {
 public:
  /// This end's memory. `ring_bytes`: a power of two, from a page to kRingBytesMax. Errors
  /// (kEnvironment): none, or the system does not make such files.
  static Result<std::unique_ptr<ShmStream>> Make(size_t ring_bytes);
  static constexpr size_t kRingBytesMax = size_t{1} << 20;

  /// To be handed to the other end; -1 after Join().
  int memory_fd() const { return own_.file.get(); }
  /// What the other end has handed over: its memory. False: it is not such memory.
  bool Take(const FileDescriptor& memory);
  /// When both ends have taken it: connected sockets, at which this end is woken, and by which it
  /// wakes the other.
  void Join(FileDescriptor bell, FileDescriptor other_bell);
  /// Readable when the other end has woken this one, or is gone.
  int bell_fd() const { return bell_.get(); }
  /// False: it is gone.
  bool HearBell();

  /// As SendSome() and ReceiveSome(). kForged: the other end has written what it cannot have.
  Io Write(std::span<const iovec> memory);
  Io Read(std::span<const iovec> memory);
  bool has_arrivals() const;
  bool has_room() const;

  /// This end is about to sleep, unless has_arrivals(): from now on whatever comes wakes it, also
  /// if it was woken before and that was heard.
  void Arm();
  /// It is awake.
  void Disarm();

 private:
  /// At the beginning of each end's memory, a page of it; the ring follows. Odd numbers: it is to
  /// be woken, and each time has its own.
  struct Head {
    alignas(64) std::atomic<uint64_t> written;
    std::atomic<uint64_t> origin;  ///< what is at the ring's beginning, before `written` says more
    alignas(64) std::atomic<uint64_t> read;
    alignas(64) std::atomic<uint32_t> sleeps;
    alignas(64) std::atomic<uint32_t> wants_room;
  };
  static constexpr size_t kHeadBytes = 4096;
  static_assert(sizeof(Head) <= kHeadBytes && std::atomic<uint64_t>::is_always_lock_free);

  ShmStream() = default;
  Head& own() const { return *reinterpret_cast<Head*>(own_.memory.bytes().data()); }
  const Head& other() const { return *reinterpret_cast<const Head*>(other_.bytes().data()); }
  static std::span<std::byte> RingOf(const Mapping& memory) {
    return memory.bytes().subspan(kHeadBytes);
  }
  void Ring(uint32_t times, uint32_t* rung) const;

  HandedMemory own_;  ///< its file until Join()
  Mapping other_;
  FileDescriptor bell_;
  FileDescriptor other_bell_;
  uint64_t written_ = 0;      ///< as own().written
  uint64_t origin_ = 0;       ///< as own().origin
  uint64_t read_ = 0;         ///< as own().read
  uint64_t read_there_ = 0;   ///< the last that was believed
  uint32_t rung_asleep_ = 0;  ///< for which of the other end's times
  uint32_t rung_room_ = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SHM_SHM_STREAM_H_
