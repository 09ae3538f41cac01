// SPDX-License-Identifier: Apache-2.0
//
// Whose memory is read: what a peer reports about itself is not trusted.
//
// * The card comes from the other end of the hello: its MAC is with a key that only the two ends
//   have, and names which end speaks, so that a member's own card that is sent back to it is no
//   card.
// * The process is one that has connected to this end's socket and sent there a MAC that only the
//   other end of this connection can compute, and the kernel says which process that was
//   (SO_PEERCRED). It must be the one that the card names, and of this end's user. So a member
//   cannot name another process that has the secret, nor this one; this one is read only if it
//   holds the other end of this very connection, too.
// * That process has, where the card says, a sign that only the two ends can compute, from both
//   nonces, and that differs by end. So a process that has got that number since is not taken for
//   it, nor is the window of another connection. Each later copy checks for it.
//
// One machine is one boot (/proc/sys/kernel/random/boot_id) and one namespace of processes and of
// the network: in two containers of a host, numbers of processes and names of sockets mean other
// things. The connection must go to an address of this machine, too. Whether reading is permitted
// depends on users and on security modules, so it is tried.
#include "runtime/session/introduction.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/little_endian.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {
namespace {

/// Names that the kernel gives have five digits behind the zero byte of abstract ones.
constexpr size_t kNameBytes = 8;
/// Other processes that connect to such a name are not waited for: TCP is left.
constexpr int kCallersMax = 16;
constexpr size_t kNameOffset = offsetof(sockaddr_un, sun_path) + 1;
/// Of a verdict.
constexpr std::byte kReads{1};
constexpr std::byte kHasMapped{2};
constexpr std::byte kHasStage{4};
constexpr size_t kFilesMax = 2;  ///< with a proof

/// What is the same in all processes that may find each other's names and read each other's memory;
/// "" where it is not known.
std::string ThisPlace() {
  const FileDescriptor boot = FileDescriptor::Open(
      [] { return open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); });
  std::array<char, 64> id;
  const ssize_t bytes = read(boot.get(), id.data(), id.size());
  if (bytes <= 0) return "";
  std::string place(id.data(), static_cast<size_t>(bytes));
  for (const char* const name : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    struct stat found = {};
    if (stat(name, &found) != 0) return "";
    place += " " + std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
  }
  return place;
}

FileDescriptor UnixSocket() {
  return FileDescriptor::Open(
      [] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

/// A socket that the kernel knows by a name of its own; empty: there is none.
FileDescriptor NamedSocket(std::string* name) {
  FileDescriptor named = UnixSocket();
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof(address);
  if (!named.valid() || bind(named.get(), generic, sizeof(sa_family_t)) != 0 ||
      listen(named.get(), kCallersMax) != 0 || getsockname(named.get(), generic, &bytes) != 0 ||
      bytes <= kNameOffset || bytes - kNameOffset > kNameBytes)
    return {};
  *name = std::string(address.sun_path + 1, bytes - kNameOffset);
  return named;
}

/// With `files`, at most kFilesMax.
void SendProof(int socket, MacBytes proof, std::span<const int> files) {
  iovec bytes = {proof.data(), proof.size()};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kFilesMax * sizeof(int))> control = {};
  if (!files.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(header), files.data(), files.size_bytes());
  }
  static_cast<void>(sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

/// The process at the other end of a local socket.
std::optional<ucred> ProcessAt(const FileDescriptor& socket) {
  ucred found = {};
  socklen_t bytes = sizeof(found);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &found, &bytes) != 0) return std::nullopt;
  return found;
}

/// And, unless `files` is null, the files that came with it, at most two: the kernel keeps back
/// more than there is room for.
std::optional<MacBytes> TakeProof(int socket, std::array<FileDescriptor, kFilesMax>* files) {
  MacBytes proof;
  iovec bytes = {proof.data(), proof.size()};
  constexpr size_t kControlBytes = CMSG_LEN(kFilesMax * sizeof(int));
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kFilesMax * sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (files != nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = kControlBytes;  // not padding, where another might fit
  }
  ssize_t got = -1;
  std::array<FileDescriptor, kFilesMax> taken = FileDescriptor::OpenTwo([&] {
    std::array<int, kFilesMax> received = {-1, -1};
    got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const cmsghdr* const header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len >= CMSG_LEN(sizeof(int)) && header->cmsg_len <= kControlBytes)
      std::memcpy(received.data(), CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    return received;
  });
  if (files != nullptr) *files = std::move(taken);
  if (got != static_cast<ssize_t>(proof.size())) return std::nullopt;
  return proof;
}

}  // namespace

Introduction::Introduction(const TcpSocket& socket, bool is_wanted, OwnMemory own)
    : socket_(socket),
      window_(std::make_unique<MemoryWindow>()),
      own_(std::move(own)),
      nonce_(RandomNonce()) {
  std::string name;
  const std::string place = is_wanted ? ThisPlace() : "";
  if (!place.empty()) name_ = NamedSocket(&name);
  // As where there is no /proc.
  local_.is_forbidden = is_wanted && !name_.valid() && IsOfThisMachine(PeerAddressOf(socket_.fd));
  std::array<std::byte, kCardSaidBytes> card = {};
  ByteWriter writer(card);
  if (name_.valid()) {
    const MacBytes where = socket_.key->Mac(std::as_bytes(std::span(place)));
    std::copy_n(where.begin(), where_.size(), where_.begin());
  }
  name.resize(kNameBytes);
  writer.PutBytes(where_);
  writer.Put(name_.valid() ? static_cast<uint64_t>(getpid()) : 0);
  writer.PutBytes(std::as_bytes(std::span(name)));
  writer.Put(name_.valid() ? window_->address() : 0);
  writer.PutBytes(nonce_);
  Append(Message::kCard, card);
}

/// In bytes of either direction.
size_t Introduction::EndOf(Message message) const {
  return kCardBytes + static_cast<size_t>(message) * kFlagBytes;
}

/// What the MAC of a message is over.
std::vector<std::byte> Introduction::Signed(Message message, bool is_own,
                                            std::span<const std::byte> said) const {
  constexpr std::string_view kLabel = "prepost introduction";
  std::vector<std::byte> bytes(kLabel.size() + 2 + 2 * sizeof(NonceBytes) + said.size());
  ByteWriter writer(bytes);
  writer.PutBytes(std::as_bytes(std::span(kLabel)));
  writer.Put(static_cast<uint8_t>(message));
  writer.Put(static_cast<uint8_t>(is_own == socket_.is_connector ? 'C' : 'L'));
  const NonceBytes none = {};  // a card has its own nonce in it, and the other is not known yet
  const bool is_card = message == Message::kCard;
  writer.PutBytes(is_card ? none : is_own ? nonce_ : peer_nonce_);
  writer.PutBytes(is_card ? none : is_own ? peer_nonce_ : nonce_);
  writer.PutBytes(said);
  return bytes;
}

MacBytes Introduction::MacOf(Message message, bool is_own, std::span<const std::byte> said) const {
  return socket_.key->Mac(Signed(message, is_own, said));
}

/// Of the window of one of the two ends.
MemoryWindow::Sign Introduction::SignOf(bool is_own) const {
  MemoryWindow::Sign sign;
  std::copy_n(MacOf(Message::kSign, is_own, {}).begin(), sign.size(), sign.begin());
  return sign;
}

void Introduction::Append(Message message, std::span<const std::byte> said) {
  ByteWriter writer{std::span<std::byte>(out_).subspan(out_bytes_)};
  writer.PutBytes(said);
  writer.PutBytes(MacOf(message, /*is_own=*/true, said));
  out_bytes_ += said.size() + sizeof(MacBytes);
}

Introduction::State Introduction::Step() {
  while (!is_over_) {
    if (!Send()) return State::kGone;
    // What follows the last message is not this one's to read.
    const size_t wanted = EndOf(awaited_) - in_bytes_;
    const ssize_t got = recv(socket_.fd.get(), in_.data() + in_bytes_, wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return State::kTalking;
    if (got <= 0) return State::kGone;
    in_bytes_ += static_cast<size_t>(got);
    if (in_bytes_ == EndOf(awaited_) && !Take()) return State::kForged;
  }
  if (!Send()) return State::kGone;
  if (sent_bytes_ < out_bytes_) return State::kTalking;
  name_.Close();
  if (has_mapped_ && is_mapped_) own_.stream->Join(std::move(caller_), std::move(call_));
  call_.Close();
  caller_.Close();
  return State::kDone;
}

/// The awaited message is there. False: it is not the peer's.
bool Introduction::Take() {
  const Message message = awaited_;
  const size_t said_bytes = message == Message::kCard ? kCardSaidBytes : 1;
  const size_t begin = EndOf(message) - said_bytes - sizeof(MacBytes);
  const std::span<const std::byte> said = std::span(in_).subspan(begin, said_bytes);
  MacBytes mac;
  std::copy_n(in_.begin() + static_cast<ptrdiff_t>(begin + said_bytes), mac.size(), mac.begin());
  if (!socket_.key->Verify(mac, Signed(message, /*is_own=*/false, said))) return false;
  switch (message) {
    case Message::kCard: {
      is_over_ = !TakeCard(said);
      awaited_ = Message::kReady;
      return true;
    }
    case Message::kReady: {
      Judge();
      const std::byte verdict = (local_.can_read ? kReads : std::byte{0}) |
                                (has_mapped_ ? kHasMapped : std::byte{0}) |
                                (peer_stage_ != nullptr ? kHasStage : std::byte{0});
      Append(Message::kVerdict, std::span(&verdict, 1));
      awaited_ = Message::kVerdict;
      return true;
    }
    case Message::kVerdict:
      local_.is_read = (said.front() & kReads) != std::byte{0};
      is_mapped_ = (said.front() & kHasMapped) != std::byte{0};
      is_staged_ = own_.stage != nullptr && (said.front() & kHasStage) != std::byte{0};
      is_over_ = true;
      return true;
    case Message::kProof:
    case Message::kSign:
      break;
  }
  PREPOST_CHECK(false);
  return false;
}

/// False: the two are not in one place, as both find.
bool Introduction::TakeCard(std::span<const std::byte> said) {
  ByteReader reader(said);
  const bool is_same = std::ranges::equal(reader.Take(where_.size()), where_);
  const uint64_t process = reader.Get<uint64_t>();
  if (!name_.valid()) return false;
  if (!is_same) {
    // It would share memory, too, and is on this machine, but in another namespace of processes.
    local_.is_forbidden = process != 0 && IsOfThisMachine(PeerAddressOf(socket_.fd));
    return false;
  }
  for (const std::byte byte : reader.Take(kNameBytes)) {
    if (byte != std::byte{0}) peer_name_.push_back(static_cast<char>(byte));
  }
  local_.process = process <= INT32_MAX ? static_cast<int>(process) : 0;
  local_.window = reader.Get<uint64_t>();
  std::ranges::copy(reader.Take(sizeof(peer_nonce_)), peer_nonce_.begin());
  local_.sign = SignOf(/*is_own=*/false);
  window_->set_sign(SignOf(/*is_own=*/true));
  Call();
  const std::byte ready{1};
  Append(Message::kReady, std::span(&ready, 1));
  return true;
}

/// Before this end is ready, so that the proof is there when the peer hears that it is: the kernel
/// takes both at once.
void Introduction::Call() {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  std::ranges::copy(peer_name_, address.sun_path + 1);
  const auto bytes = static_cast<socklen_t>(kNameOffset + peer_name_.size());
  call_ = UnixSocket();
  const MacBytes proof = MacOf(Message::kProof, /*is_own=*/true, {});
  // Where it does not get through, the peer does not find it, and reads nothing.
  if (connect(call_.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return;
  std::vector<int> files;
  const std::optional<ucred> called = ProcessAt(call_);
  if (!called || called->uid != geteuid()) return SendProof(call_.get(), proof, files);
  if (own_.stream != nullptr) files.push_back(own_.stream->memory_fd());
  if (own_.stage != nullptr) files.push_back(own_.stage->memory_fd());
  SendProof(call_.get(), proof, files);
}

/// The process that has proved to be the other end, by the kernel; none has.
std::optional<ucred> Introduction::Caller() {
  for (int i = 0; i < kCallersMax; ++i) {
    FileDescriptor caller = FileDescriptor::Open(
        [this] { return accept4(name_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
    if (!caller.valid()) return std::nullopt;
    // Files of strangers are not even opened: to close one may be up to its file system.
    const std::optional<ucred> found = ProcessAt(caller);
    if (!found) continue;
    const bool is_own = found->uid == geteuid() && found->pid == local_.process;
    PeerFiles files;
    const std::optional<MacBytes> proof = TakeProof(caller.get(), is_own ? &files : nullptr);
    if (!proof || !socket_.key->Verify(*proof, Signed(Message::kProof, /*is_own=*/false, {})))
      continue;
    peer_files_ = std::move(files);
    caller_ = std::move(caller);
    return found;
  }
  return std::nullopt;
}

/// Which of the two a file is, its size says.
void Introduction::MapPeerFiles() {
  for (FileDescriptor& file : peer_files_) {
    if (!file.valid()) continue;
    if (own_.stream != nullptr && !has_mapped_) has_mapped_ = own_.stream->Take(file);
    if (own_.stage != nullptr && peer_stage_ == nullptr) {
      Result<std::unique_ptr<PeerStage>> stage = PeerStage::Take(file);
      if (stage.ok()) peer_stage_ = *std::move(stage);
    }
    file.Close();
  }
}

/// Whether this end may read the peer's memory.
void Introduction::Judge() {
  if (!IsOfThisMachine(PeerAddressOf(socket_.fd))) return;
  const std::optional<ucred> caller = Caller();
  if (!caller || caller->pid <= 0 || caller->pid != local_.process) return;
  // Who may read more than its own user's processes does not do it for another user.
  local_.is_forbidden = caller->uid != geteuid();
  if (local_.is_forbidden) return;
  MapPeerFiles();
  MemoryWindow::Sign found = {};
  const iovec memory = {.iov_base = &found, .iov_len = sizeof(found)};
  const iovec remote = {.iov_base = reinterpret_cast<void*>(local_.window),
                        .iov_len = sizeof(found)};
  const Io io = ReadSome(local_.process, std::span(&memory, 1), std::span(&remote, 1));
  local_.can_read =
      io.outcome == Io::Outcome::kMoved && io.bytes == sizeof(found) && found == local_.sign;
  local_.is_forbidden = io.outcome == Io::Outcome::kFailed && io.error == EPERM;
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
