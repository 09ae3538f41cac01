// SPDX-License-Identifier: Apache-2.0
//
// One machine is one boot (/proc/sys/kernel/random/boot_id) and one namespace of processes: in two
// containers of a host, numbers of processes differ. Whether reading is permitted depends on users
// and on security modules, so it is tried.
#include "runtime/session/introduction.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "runtime/group/group_key.h"
#include "runtime/little_endian.h"
#include "runtime/transport/tcp_wire.h"

namespace prepost {
namespace {

using Machine = std::array<std::byte, 16>;

/// Zeros where it is not known.
Machine ThisMachine() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(in, text);
  Machine machine = {};
  size_t digits = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits == 2 * machine.size()) continue;
    machine[digits / 2] |= static_cast<std::byte>(digits % 2 == 0 ? digit << 4 : digit);
    ++digits;
  }
  return machine;
}

uint64_t ProcessNamespace() {
  struct stat found = {};
  return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

}  // namespace

Introduction::Introduction(const TcpSocket& socket, bool is_wanted)
    : socket_(socket), sign_([] {
        LifeSign::Value value;
        std::copy_n(RandomNonce().begin(), value.size(), value.begin());
        return std::make_unique<const LifeSign>(value);
      }()) {
  if (is_wanted) {
    ByteWriter writer(own_);
    writer.PutBytes(ThisMachine());
    writer.Put(ProcessNamespace());
    writer.Put(static_cast<uint64_t>(getpid()));
    writer.Put(reinterpret_cast<uint64_t>(sign_->value().data()));
    writer.PutBytes(sign_->value());
  }
  std::ranges::copy(own_, out_.begin());
}

Introduction::State Introduction::Step() {
  while (in_bytes_ < in_.size()) {
    if (!Send()) return State::kGone;
    // One byte at a time would do: what follows the verdict is not this one's to read.
    const size_t wanted = in_bytes_ < kCardBytes ? kCardBytes : in_.size();
    const ssize_t got =
        recv(socket_.fd.get(), in_.data() + in_bytes_, wanted - in_bytes_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return State::kTalking;
    if (got <= 0) return State::kGone;
    in_bytes_ += static_cast<size_t>(got);
    if (in_bytes_ == kCardBytes) Judge();
  }
  if (!Send()) return State::kGone;
  if (sent_bytes_ < out_bytes_) return State::kTalking;
  local_.is_read = in_.back() == std::byte{1};
  return State::kDone;
}

/// The peer's card is there.
void Introduction::Judge() {
  const auto same = [this](size_t offset, size_t bytes) {
    return std::equal(own_.begin() + static_cast<ptrdiff_t>(offset),
                      own_.begin() + static_cast<ptrdiff_t>(offset + bytes),
                      in_.begin() + static_cast<ptrdiff_t>(offset));
  };
  constexpr size_t kWhereBytes = 24;
  const bool is_card = std::ranges::any_of(own_, [](std::byte b) { return b != std::byte{0}; });
  ByteReader reader(std::span<const std::byte>(in_).subspan(kWhereBytes));
  const uint64_t process = reader.Get<uint64_t>();
  const uint64_t address = reader.Get<uint64_t>();
  std::ranges::copy(reader.Take(local_.sign.size()), local_.sign.begin());
  if (is_card && same(0, kWhereBytes) && process <= INT32_MAX && process > 0) {
    LifeSign::Value found = {};
    const Io io = ReadSome(static_cast<int>(process), address,
                           {.iov_base = found.data(), .iov_len = found.size()});
    local_.process = static_cast<int>(process);
    local_.sign_place = address;
    local_.can_read =
        io.outcome == Io::Outcome::kMoved && io.bytes == found.size() && found == local_.sign;
    local_.is_forbidden = io.outcome == Io::Outcome::kFailed && io.error == EPERM;
  }
  out_[kCardBytes] = std::byte{local_.can_read};
  out_bytes_ = out_.size();
}

bool Introduction::Send() {
  while (sent_bytes_ < out_bytes_) {
    const ssize_t sent = send(socket_.fd.get(), out_.data() + sent_bytes_, out_bytes_ - sent_bytes_,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent <= 0) return false;
    sent_bytes_ += static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace prepost
