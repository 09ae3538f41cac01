// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/control_socket.h"

#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

size_t SubjectOf(const ControlMessage& message) {
  Gate gate = {};
  if (const auto* arrived = std::get_if<control::Arrived>(&message)) gate = arrived->gate;
  if (const auto* passed = std::get_if<control::Passed>(&message)) gate = passed->gate;
  return message.index() * kGates + static_cast<size_t>(gate);
}

}  // namespace

static_assert(ControlSocket::kCheckBytes == kSealTagBytes);

Result<std::pair<ControlSocket, ControlSocket>> ControlSocket::MakePair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return SystemError(StatusCode::kEnvironment, "cannot make a control connection", errno);
  }
  return std::pair(ControlSocket(FileDescriptor(fds[0])), ControlSocket(FileDescriptor(fds[1])));
}

std::array<std::byte, ControlSocket::kCheckBytes> ControlSocket::CheckOf(const Bytes& bytes,
                                                                         uint64_t number) {
  std::array<std::byte, kControlMessageBytes + sizeof(number)> checked;
  std::copy_n(bytes.begin(), kControlMessageBytes, checked.begin());
  ByteWriter(std::span(checked).subspan(kControlMessageBytes)).Put(number);
  std::array<std::byte, kCheckBytes> check;
  crypto_generichash(reinterpret_cast<unsigned char*>(check.data()), check.size(),
                     reinterpret_cast<const unsigned char*>(checked.data()), checked.size(),
                     nullptr, 0);
  return check;
}

/// The next message that is sent.
void ControlSocket::Seal(Bytes& bytes) {
  const uint64_t number = sent_++;
  if (seal_ == nullptr) {
    std::ranges::copy(CheckOf(bytes, number), bytes.begin() + kControlMessageBytes);
    return;
  }
  std::array<std::byte, kControlMessageBytes> plain;
  std::copy_n(bytes.begin(), plain.size(), plain.begin());
  closed_ |= !seal_->out().Seal(plain, {}, bytes);
}

/// The message in partial_, which is there in full. False: it is none, or not the next.
bool ControlSocket::Open() {
  const uint64_t number = received_++;
  if (seal_ == nullptr) {
    return std::ranges::equal(CheckOf(partial_, number),
                              std::span(partial_).subspan(kControlMessageBytes));
  }
  std::array<std::byte, kControlMessageBytes> plain;
  is_authentic_ = seal_->in().Open(partial_, {}, plain);
  std::ranges::copy(plain, partial_.begin());
  return is_authentic_;
}

void ControlSocket::Send(const ControlMessage& message) {
  if (closed_) return;
  Bytes bytes;
  EncodeControlMessage(message, std::span(bytes).first<kControlMessageBytes>());
  Seal(bytes);
  ssize_t sent = 0;
  do {
    sent = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  // What the other end said before it went may still be read, so that it is gone closes nothing.
  const bool is_gone = sent < 0 && errno != EAGAIN;
  if (!is_gone && sent != static_cast<ssize_t>(bytes.size())) closed_ = true;
}

void ControlSocket::Queue(const ControlMessage& message) {
  if (closed_) return;
  Flush();
  Unsent& unsent = unsent_.emplace_back();
  unsent.subject = SubjectOf(message);
  EncodeControlMessage(message, std::span(unsent.bytes).first<kControlMessageBytes>());
  Flush();
  if (unsent_.size() > kUnsentMax) closed_ = true;
}

void ControlSocket::QueueLatest(const ControlMessage& message) {
  // Of the first one a part may have been sent.
  const auto rest = unsent_.begin() + (is_sealed_ ? 1 : 0);
  const auto is_said_again = [subject = SubjectOf(message)](const Unsent& it) {
    return it.subject == subject;
  };
  unsent_.erase(std::remove_if(rest, unsent_.end(), is_said_again), unsent_.end());
  Queue(message);
}

void ControlSocket::Flush() {
  while (!closed_ && !unsent_.empty()) {
    Bytes& bytes = unsent_.front().bytes;
    if (!std::exchange(is_sealed_, true)) Seal(bytes);
    const ssize_t sent = send(fd(), bytes.data() + sent_bytes_, bytes.size() - sent_bytes_,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {  // gone, but what it said before may still be read
      unsent_.clear();
      sent_bytes_ = 0;
      is_sealed_ = false;
      return;
    }
    sent_bytes_ += static_cast<size_t>(sent);
    if (sent_bytes_ < bytes.size()) continue;
    unsent_.pop_front();
    sent_bytes_ = 0;
    is_sealed_ = false;
  }
}

std::optional<ControlMessage> ControlSocket::Receive() {
  while (!closed()) {
    const ssize_t got = recv(fd(), partial_.data() + partial_bytes_,
                             partial_.size() - partial_bytes_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::nullopt;
    if (got <= 0) break;
    partial_bytes_ += static_cast<size_t>(got);
    if (partial_bytes_ < partial_.size()) continue;
    partial_bytes_ = 0;
    if (!Open()) {
      if (is_authentic_) nonsense_ = "bytes that are no message, or not the next one";
      return std::nullopt;  // this end may still say so
    }
    Result<ControlMessage> message =
        DecodeControlMessage(std::span(partial_).first<kControlMessageBytes>());
    if (message.ok()) return std::move(*message);
    nonsense_ = message.status().message();
    return std::nullopt;
  }
  if (is_authentic_ && nonsense_.empty()) closed_ = true;
  return std::nullopt;
}

}  // namespace prepost
