// SPDX-License-Identifier: Apache-2.0
//
// Who sleeps says so first and looks for arrivals then; who writes does it the other way round. All
// four accesses are sequentially consistent, so that at least one of the two sees the other's.
#include "runtime/transport/shm/shm_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace prepost {
namespace {

/// Between `memory` and the ring from `place` on, modulo its size.
template <typename Copy>
void ForEachPart(std::span<std::byte> ring, uint64_t place, std::span<const iovec> memory,
                 size_t bytes, Copy copy) {
  for (const iovec& part : memory) {
    size_t done = 0;
    const size_t wanted = std::min(bytes, part.iov_len);
    while (done < wanted) {
      const size_t offset = static_cast<size_t>(place % ring.size());
      const size_t some = std::min(wanted - done, ring.size() - offset);
      copy(ring.data() + offset, static_cast<std::byte*>(part.iov_base) + done, some);
      done += some;
      place += some;
    }
    bytes -= wanted;
  }
}

}  // namespace

Result<std::unique_ptr<ShmStream>> ShmStream::Make(size_t ring_bytes) {
  PREPOST_CHECK(std::has_single_bit(ring_bytes) && ring_bytes >= kHeadBytes &&
                ring_bytes <= kRingBytesMax);
  Result<HandedMemory> own =
      MakeHandedMemory("prepost:stream", kHeadBytes + ring_bytes, /*is_backed=*/true);
  if (!own.ok()) return own.status();
  std::unique_ptr<ShmStream> stream(new ShmStream);
  stream->own_ = *std::move(own);
  new (stream->own_.memory.bytes().data()) Head{};
  return stream;
}

bool ShmStream::Take(const FileDescriptor& memory) {
  Result<Mapping> other = MapHandedMemory(memory, [](uint64_t bytes) {
    return bytes >= 2 * kHeadBytes && bytes <= kHeadBytes + kRingBytesMax &&
           std::has_single_bit(bytes - kHeadBytes);
  });
  if (!other.ok()) return false;
  other_ = *std::move(other);
  return true;
}

void ShmStream::Join(FileDescriptor bell, FileDescriptor other_bell) {
  bell_ = std::move(bell);
  other_bell_ = std::move(other_bell);
  own_.file.Close();
}

bool ShmStream::HearBell() {
  std::byte rings[64];
  const ssize_t got = recv(bell_.get(), rings, sizeof(rings), MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/// Where the other end asks for it and has not been woken since. It wakes once, and a socket
/// without room has woken it.
void ShmStream::Ring(uint32_t times, uint32_t* rung) const {
  if (times % 2 == 0 || *rung == times) return;
  const std::byte ring{1};
  const ssize_t sent = send(other_bell_.get(), &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == 1 || errno == EAGAIN) *rung = times;
}

bool ShmStream::has_room() const {
  return written_ - other().read.load() < RingOf(own_.memory).size();
}

bool ShmStream::has_arrivals() const { return other().written.load() != read_; }

Io ShmStream::Write(std::span<const iovec> memory) {
  const std::span<std::byte> ring = RingOf(own_.memory);
  const size_t wanted = BytesOf(memory);
  for (bool has_asked = false;; has_asked = true) {
    const uint64_t read = other().read.load();
    if (read < read_there_ || read > written_) return {.outcome = Io::Outcome::kForged};
    read_there_ = read;
    const size_t room = ring.size() - static_cast<size_t>(written_ - read);
    if (room == 0) {
      std::atomic<uint32_t>& wants = own().wants_room;
      if (has_asked) return {.outcome = Io::Outcome::kWouldBlock};
      if (wants.load() % 2 == 0) wants.fetch_add(1);
      continue;  // it may have read meanwhile
    }
    if (own().wants_room.load(std::memory_order_relaxed) % 2 == 1) own().wants_room.fetch_add(1);
    const size_t bytes = std::min(room, wanted);
    if (read == written_) own().origin.store(origin_ = written_, std::memory_order_relaxed);
    ForEachPart(ring, written_ - origin_, memory, bytes,
                [](std::byte* in_ring, std::byte* in_memory, size_t some) {
                  std::memcpy(in_ring, in_memory, some);
                });
    written_ += bytes;
    own().written.store(written_);
    Ring(other().sleeps.load(), &rung_asleep_);
    return {.bytes = bytes};
  }
}

Io ShmStream::Read(std::span<const iovec> memory) {
  const std::span<std::byte> ring = RingOf(other_);
  const uint64_t there = other().written.load() - read_;
  if (there == 0) return {.outcome = Io::Outcome::kWouldBlock};
  if (there > ring.size()) return {.outcome = Io::Outcome::kForged};
  const size_t bytes = std::min(static_cast<size_t>(there), BytesOf(memory));
  const uint64_t origin = other().origin.load(std::memory_order_relaxed);
  ForEachPart(ring, read_ - origin, memory, bytes,
              [](const std::byte* in_ring, std::byte* in_memory, size_t some) {
                std::memcpy(in_memory, in_ring, some);
              });
  read_ += bytes;
  own().read.store(read_);
  // Not for a little room: it would be woken again and again.
  if (there - bytes <= ring.size() / 2) Ring(other().wants_room.load(), &rung_room_);
  return {.bytes = bytes};
}

void ShmStream::Arm() {
  own().sleeps.fetch_add(own().sleeps.load(std::memory_order_relaxed) % 2 == 0 ? 1 : 2);
}

void ShmStream::Disarm() {
  if (own().sleeps.load(std::memory_order_relaxed) % 2 == 1) own().sleeps.fetch_add(1);
}

}  // namespace prepost
