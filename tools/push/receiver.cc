// SPDX-License-Identifier: Apache-2.0
//
// One thread, this one, listens to the pusher and writes to the disk; the session's thread receives
// into buffers of a pool and queues those that are complete. When no buffer is free because the
// disk is slow, the next message waits, and with it the members that send to this one.
#include "tools/push/receiver.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prepost/prepost.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/interrupt.h"
#include "tools/push/line_channel.h"
#include "tools/push/manifest.h"
#include "tools/push/push_protocol.h"
#include "tools/push/push_sink.h"

namespace prepost::tools {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kFlushMaxMs = 5000;
constexpr int kAliveMs = 1000;

/// What the session's thread hands over.
class Arrivals {
 public:
  struct Message {
    uint64_t number = 0;  ///< of all that are pushed
    std::span<const std::byte> bytes;
  };

  static Result<std::unique_ptr<Arrivals>> Make() {
    Result<EventFd> wake = EventFd::Make();
    if (!wake.ok()) return wake.status();
    Result<std::shared_ptr<MemoryPool>> pool = MemoryPool::Make(kPushMessageBytes, kPushWindow);
    if (!pool.ok()) return pool.status();
    return std::unique_ptr<Arrivals>(new Arrivals(*std::move(wake), *std::move(pool)));
  }

  int fd() const { return wake_.fd(); }
  /// Callbacks of a group whose first message is number `first` of all. One group at a time.
  GroupCallbacks Callbacks(uint64_t first) {
    GroupCallbacks callbacks;
    callbacks.pool = pool_;
    callbacks.complete = [this, first](uint64_t message, void* memory, uint64_t bytes) {
      const std::lock_guard lock(mutex_);
      complete_.push_back(
          {.number = first + message, .bytes = {static_cast<const std::byte*>(memory), bytes}});
      wake_.Signal();
    };
    callbacks.failed = [this](const Status& cause, const FailedMembers& where) {
      const std::lock_guard lock(mutex_);
      failure_ = cause;
      is_unreached_ = where.unreached;
      wake_.Signal();
    };
    return callbacks;
  }

  std::optional<Message> Next() {
    const std::lock_guard lock(mutex_);
    if (complete_.empty()) {
      wake_.Take();
      return std::nullopt;
    }
    const Message message = complete_.front();
    complete_.pop_front();
    return message;
  }
  void GiveBack(const Message& message) {
    PREPOST_CHECK(pool_->Give(const_cast<std::byte*>(message.bytes.data())).ok());
  }
  /// Of the group, once; ok: it has not failed. `*is_unreached`: FailedMembers::unreached.
  Status TakeFailure(bool* is_unreached) {
    const std::lock_guard lock(mutex_);
    *is_unreached = is_unreached_;
    return std::exchange(failure_, Status());
  }
  /// The session is gone: what has not been taken is forgotten, and the next one may begin.
  void Restart() {
    const std::lock_guard lock(mutex_);
    for (const Message& message : complete_) GiveBack(message);
    complete_.clear();
    failure_ = Status();
  }

 private:
  Arrivals(EventFd wake, std::shared_ptr<MemoryPool> pool)
      : wake_(std::move(wake)), pool_(std::move(pool)) {}

  EventFd wake_;
  const std::shared_ptr<MemoryPool> pool_;
  std::mutex mutex_;  ///< all below
  std::deque<Message> complete_;
  Status failure_;
  bool is_unreached_ = false;
};

class Receiver {
 public:
  Receiver(FileDescriptor in, FileDescriptor out, int interrupt_fd)
      : channel_(std::move(in), std::move(out)), interrupt_fd_(interrupt_fd) {}
  ~Receiver() { session_.reset(); }

  Status Run() {
    Result<std::unique_ptr<Arrivals>> arrivals = Arrivals::Make();
    if (!arrivals.ok()) return arrivals.status();
    arrivals_ = *std::move(arrivals);
    const Status status = Serve();
    if (!status.ok() && !has_ended_) {
      channel_.Send({{"error", {{"text", status.ToString()}, {"code", status.code()}}}});
      channel_.FlushAll(kFlushMaxMs);
    }
    return status;
  }

 private:
  Status Serve() {
    for (;;) {
      PREPOST_RETURN_IF_ERROR(TakeAll());
      ReportFailure();
      // Last, as the pusher's words are taken in during all else.
      bool is_idle = true;
      for (;; is_idle = false) {
        const Result<std::optional<json>> line = channel_.Next();
        if (!line.ok()) return line.status();
        if (!*line) break;
        PREPOST_RETURN_IF_ERROR(Obey(**line));
        if (is_done_) return channel_.FlushAll(kFlushMaxMs) ? Status() : Gone();
      }
      if (has_ended_ || !channel_.Flush()) return Gone();
      if (is_idle) PREPOST_RETURN_IF_ERROR(Wait());
    }
  }

  static Status Gone() { return Rejected("the command that pushes is gone"); }

  /// Until there is something to do; also what the pusher has written by then is taken in.
  Status Wait() {
    std::vector<pollfd> polls = {{.fd = interrupt_fd_, .events = POLLIN, .revents = 0},
                                 {.fd = arrivals_->fd(), .events = POLLIN, .revents = 0},
                                 {.fd = channel_.in(), .events = POLLIN, .revents = 0}};
    if (channel_.wants_out())
      polls.push_back({.fd = channel_.out(), .events = POLLOUT, .revents = 0});
    poll(polls.data(), polls.size(), kAliveMs);
    SayAlive();
    if (IsInterrupted(interrupt_fd_)) return Interrupted();
    if (polls[2].revents != 0 && !channel_.Fill()) has_ended_ = true;
    return {};
  }

  /// While something takes long: ends it when the pusher is gone.
  Status CheckPusher() {
    SayAlive();
    pollfd polls[] = {{.fd = channel_.in(), .events = POLLIN, .revents = 0}};
    if (IsInterrupted(interrupt_fd_)) return Interrupted();
    if (poll(polls, 1, 0) > 0 && !channel_.Fill()) has_ended_ = true;
    return has_ended_ ? Gone() : Status();
  }

  /// The pusher does not wait for ever for one who says nothing.
  void SayAlive() {
    if (Clock::now() < next_alive_) return;
    next_alive_ = Clock::now() + milliseconds(kAliveMs);
    json speeds = json::array();
    const Result<std::vector<PeerSpeed>> known =
        session_ == nullptr || !group_ ? std::vector<PeerSpeed>() : session_->Speeds(*group_);
    for (const PeerSpeed& peer : known.ok() ? *known : std::vector<PeerSpeed>())
      speeds.push_back({peer.member, peer.bytes, peer.busy_seconds});
    channel_.Send({{"alive", {{"speeds", std::move(speeds)}}}});
    channel_.Flush();
  }

  Status Obey(const json& line) {
    try {
      if (line.contains("hello")) return Hello(line.at("hello"));
      if (line.contains("files")) return Files(line.at("files"));
      if (line.contains("prepare")) return Prepare(line.at("prepare"));
      if (line.contains("group")) return Group(line.at("group"));
      if (line.contains("leave")) return Leave();
      if (line.contains("end")) return End(line.at("end"));
      if (line.contains("commit")) return Commit();
      return Rejected("unknown word of the pusher");
    } catch (const json::exception& error) {
      return Rejected(fmt::format("wrong word of the pusher: {}", error.what()));
    }
  }

  Status Hello(const json& hello) {
    const int protocol = hello.at("protocol");
    if (protocol != kPushProtocol) {
      // Read where the pusher is.
      return Rejected(fmt::format("the versions of prepost do not fit: protocol {} there, {} here",
                                  kPushProtocol, protocol));
    }
    const Result<std::string> target = TargetHere(hello.at("target"));
    if (!target.ok()) return target.status();
    sink_options_ = {.target = *target,
                     .allow_devices = hello.at("allow_devices"),
                     .sync = hello.at("sync"),
                     .checkpoint = [this] { return CheckPusher(); },
                     .waiting =
                         [this](const std::string& text) {
                           channel_.Send({{"note", text}});
                           channel_.Flush();
                         },
                     .unkept =
                         [this, is_strict = hello.at("strict").get<bool>()](
                             const char* what, const std::string& path, int error) {
                           AddUnkept(what, path, error, &unkept_);
                           return is_strict ? Rejected("cannot keep the " + TextOf(unkept_.back()))
                                            : Status();
                         }};
    options_ = {.self = hello.at("member"),
                .members = std::vector<Address>(hello.at("members").get<uint32_t>()),
                .sites = hello.at("sites").get<std::vector<std::string>>(),
                .secret = hello.at("secret"),
                .failure_max = milliseconds(hello.at("failure_ms").get<int64_t>()),
                .connect_max = milliseconds(hello.at("connect_ms").get<int64_t>()),
                .paths = {.streams = hello.at("streams"),
                          .pace = hello.at("pace"),
                          .congestion = hello.at("congestion")}};
    if (options_.self >= options_.members.size()) return Rejected("the pusher names no member");
    options_.members[options_.self] = {.host = "", .port = hello.at("port")};
    PREPOST_RETURN_IF_ERROR(OpenSession());
    // Where ssh came in: this host by an address that the pusher reaches.
    std::string reached;
    if (const char* const connection = std::getenv("SSH_CONNECTION")) {  // NOLINT: nobody sets it
      const std::string text(connection);  // "client port server port"
      const size_t first = text.find(' ', text.find(' ') + 1) + 1;
      if (first > 1) reached = text.substr(first, text.find(' ', first) - first);
    }
    channel_.Send({{"listening", {{"port", session_->port()}, {"address", reached}}}});
    return {};
  }

  Status OpenSession() {
    Result<std::unique_ptr<Session>> session = Session::Open(options_);
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    return {};
  }

  Status Files(const json& files) {
    Result<Manifest> manifest = ManifestFromJson(files.at("manifest"));
    if (!manifest.ok()) return manifest.status();
    manifest_ = *std::move(manifest);
    const Result<std::vector<size_t>> there = PushSink::FilesThere(manifest_, sink_options_);
    if (!there.ok()) return there.status();
    channel_.Send({{"have", *there}});
    return {};
  }

  /// Makes room for what will come, which may take long.
  Status Prepare(const json& files) {
    Manifest chosen;
    for (const size_t file : files.get<std::vector<size_t>>()) {
      if (file >= manifest_.size()) return Rejected("the pusher sends a file that it did not name");
      chosen.push_back(manifest_[file]);
    }
    Result<std::unique_ptr<PushSink>> sink = PushSink::Open(std::move(chosen), sink_options_);
    if (!sink.ok()) return sink.status();
    sink_ = *std::move(sink);
    channel_.Send({{"prepared", {{"in_place", sink_->is_in_place()}}}});
    return {};
  }

  Status Group(const json& group) {
    if (session_ == nullptr || sink_ == nullptr) return Rejected("a group before it is prepared");
    const auto& addresses = group.at("addresses");
    const std::vector<uint32_t> members = group.at("members");
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i] == options_.self) continue;
      PREPOST_RETURN_IF_ERROR(session_->SetAddress(
          members[i], {.host = addresses.at(i).at(0), .port = addresses.at(i).at(1)}));
    }
    group_ = group.at("number");
    return session_->CreateGroup(*group_, members, /*root=*/0,
                                 {.algorithm = group.at("algorithm"),
                                  .block_bytes = group.at("block_bytes"),
                                  .device = group.at("device"),
                                  .seal = group.at("seal"),
                                  .root_connects = group.at("root_connects")},
                                 arrivals_->Callbacks(group.at("first")));
  }

  /// Out of a group that has failed, or that others cannot form.
  Status Leave() {
    session_.reset();
    group_.reset();
    arrivals_->Restart();
    PREPOST_RETURN_IF_ERROR(OpenSession());
    channel_.Send({{"left", {{"written", written_}, {"port", session_->port()}}}});
    return {};
  }

  Status TakeAll() {
    while (std::optional<Arrivals::Message> message = arrivals_->Next())
      PREPOST_RETURN_IF_ERROR(Take(*message));
    return {};
  }

  Status Take(const Arrivals::Message& message) {
    if (message.number > written_) return Rejected("a message is missing");
    if (message.number == written_) {  // else it is here since an earlier group
      PREPOST_RETURN_IF_ERROR(sink_->Write(message.bytes));
      ++written_;
    }
    arrivals_->GiveBack(message);
    channel_.Send({{"written", written_}});
    // The pusher's next words, or its end, are not to wait for a queue of messages.
    PREPOST_RETURN_IF_ERROR(CheckPusher());
    return channel_.Flush() ? Status() : Gone();
  }

  void ReportFailure() {
    bool is_unreached = false;
    const Status failure = arrivals_->TakeFailure(&is_unreached);
    if (failure.ok()) return;
    channel_.Send({{"broken", {{"text", failure.ToString()}, {"unreached", is_unreached}}}});
  }

  Status End(const json& end) {
    if (sink_ == nullptr || end.at("messages") != written_)
      return Rejected(fmt::format("{} messages are here, {} were sent", written_,
                                  end.at("messages").get<uint64_t>()));
    const Result<std::vector<MessageSum>> sums = sink_->Finish();
    if (!sums.ok()) return sums.status();
    // The pusher compares. What it expects is not said here, so that a sum that fits was computed.
    json texts = json::array();
    for (const MessageSum& sum : *sums) texts.push_back(sum.ToString());
    channel_.Send({{"summed", {{"bytes", sink_->bytes()}, {"sums", std::move(texts)}}}});
    return {};
  }

  Status Commit() {
    if (sink_ != nullptr) PREPOST_RETURN_IF_ERROR(sink_->Commit());
    json unkept = json::array();
    for (const Unkept& one : unkept_) {
      unkept.push_back(
          {{"what", one.what}, {"error", one.error}, {"file", one.file}, {"files", one.files}});
    }
    channel_.Send({{"done", {{"unkept", std::move(unkept)}}}});
    is_done_ = true;
    return {};
  }

  LineChannel channel_;
  const int interrupt_fd_;
  std::unique_ptr<Arrivals> arrivals_;
  PushSinkOptions sink_options_;
  SessionOptions options_;
  Manifest manifest_;
  std::vector<Unkept> unkept_;
  std::unique_ptr<PushSink> sink_;
  std::unique_ptr<Session> session_;
  std::optional<uint64_t> group_;  ///< of the session
  uint64_t written_ = 0;           ///< messages
  Clock::time_point next_alive_;
  bool has_ended_ = false;
  bool is_done_ = false;
};

}  // namespace

Status Receive(FileDescriptor in, FileDescriptor out, int interrupt_fd) {
  return Receiver(std::move(in), std::move(out), interrupt_fd).Run();
}

}  // namespace prepost::tools
