// SPDX-License-Identifier: Apache-2.0
#include "tests/library/faults_member.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "library/hooked_session.h"
#include "runtime/base/mapping.h"
#include "tests/support/random.h"
#include "tests/support/tcp_disturbance.h"
#include "tests/support/temp_folder.h"

namespace prepost::faults_test {
namespace {

constexpr uint64_t kBytesMax = uint64_t{1} << 20;
constexpr uint64_t kShortBytesMax = 3000;
constexpr uint64_t kBurst = 16;  ///< messages of one call
constexpr uint64_t kUnderWay = 4 * kBurst;
std::atomic<int> out_of_this_member = -1;  // for the signal's handler

uint64_t SizeOf(uint64_t seed, uint64_t message, bool is_short) {
  test::Random random(seed * 1000003 + message);
  if (is_short) return random.Below(kShortBytesMax);
  return random.Coin() ? random.Below(100) : random.Below(kBytesMax);
}
std::byte ByteOf(uint64_t seed, uint64_t message, uint64_t i) {
  return static_cast<std::byte>((i + seed * 31 + message * 131) * 0x9e3779b97f4a7c15u >> 56);
}

/// A file on a disk of this process's own that holds so many bytes. Needs root.
class SmallDisk {
 public:
  explicit SmallDisk(uint64_t bytes) {
    const std::string size = fmt::format("size={}", bytes);
    const bool is_there = unshare(CLONE_NEWNS) == 0 &&
                          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                          mount("none", folder_.path().c_str(), "tmpfs", 0, size.c_str()) == 0;
    if (is_there) file_ = open((folder_ / "messages").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  }

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (file_ >= 0) close(file_);
    umount2(folder_.path().c_str(), MNT_DETACH);
  }

  /// The next message's; throws as a program does that finds the disk full.
  std::byte* Append(uint64_t bytes) {
    const int error = file_ < 0 ? EBADF
                                : posix_fallocate(file_, static_cast<off_t>(used_),
                                                  static_cast<off_t>(std::max<uint64_t>(bytes, 1)));
    if (error != 0) throw std::system_error(error, std::generic_category(), "message");
    mappings_.push_back(*Mapping::OfFile(file_, used_ + bytes, Mapping::Access::kReadWrite));
    std::byte* const place = mappings_.back().bytes().data() + used_;
    used_ += bytes;
    return place;
  }

 private:
  const test::TempFolder folder_;
  int file_ = -1;
  uint64_t used_ = 0;
  std::vector<Mapping> mappings_;
};

/// One member, as a process. Writes what happens to `out`, a line each.
class Member {
 public:
  Member(const Scene& scene, uint32_t self, int gate, int out)
      : scene_(scene), self_(self), gate_(gate), out_(out) {}

  void Run() {
    SessionOptions options;
    options.self = self_;
    options.members = scene_.addresses;
    options.secret = "a secret of more than 16 bytes";
    options.failure_max = kFailureMax;
    options.local_copies = scene_.copies(self_);
    if (scene_.has_streams())
      options.paths = {.streams = 3, .long_path = std::chrono::microseconds(0)};
    if (scene_.fault == Fault::kWrongPlan) options.connect_max = milliseconds(1000);
    if (scene_.is_forming) options.connect_max = kConnectMax;
    const bool cuts = scene_.fault == Fault::kCut && self_ == scene_.victim;
    test::TcpDisturbance disturbance(scene_.seed + self_, cuts ? 10 * DelayToFault() : UINT64_MAX,
                                     [this] { SayStruck(); });
    const bool is_disturbed = scene_.is_disturbed || cuts;
    auto session = HookedSession::Open(options, is_disturbed ? &disturbance : nullptr);
    if (!session.ok()) return Say("broken " + session.status().ToString());
    session_ = *std::move(session);
    if (scene_.fault == Fault::kFullDisk && self_ == scene_.victim)
      disk_.emplace(std::max<uint64_t>(4096, 10000 * DelayToFault()));
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < scene_.members; ++i) all.push_back(i);
    const std::vector<uint32_t> survivors = scene_.Survivors();
    const bool survives = std::ranges::count(survivors, self_) > 0;
    WaitForOthers();
    if (scene_.fault == Fault::kWrongPlan && self_ == scene_.victim) SayStruck();
    Create(1, all, scene_.root);
    // A group of those who survive whatever happens, all the time.
    std::vector<uint32_t> others = all;
    std::erase(others, scene_.victim);
    if (self_ != scene_.victim) Create(2, others, others.back());
    if (scene_.fault == Fault::kLeave && !survives) return Leave();
    if (!WaitForFailure()) {
      if (scene_.fault != Fault::kStranger && !scene_.may_go_on()) Say("broken no failure");
    } else if (survives && scene_.fault != Fault::kWrongPlan) {
      Say(MakesNextGroup(survivors) ? "again" : "broken the next group fails");
    }
    // Together, so that nobody's end is anybody's failure.
    for (const uint64_t group : {uint64_t{1}, uint64_t{2}}) {
      if (states_[group] == nullptr || states_[group]->failed) continue;
      static_cast<void>(session_->DestroyGroup(group));
    }
    for (const uint64_t group : {uint64_t{1}, uint64_t{2}}) {
      if (states_[group] == nullptr) continue;
      const bool is_over = WaitFor(
          group, [](const State& state) { return state.closed || state.failed; }, kHangs);
      if (!is_over) Say(fmt::format("broken group {} does not close", group));
    }
    Say("end");
  }

 private:
  struct State {
    uint64_t completed = 0;
    uint64_t delivered = 0;
    bool opened = false, failed = false, closed = false;
    std::vector<std::byte> memory = std::vector<std::byte>(kBytesMax);
    std::vector<std::byte> output = std::vector<std::byte>(kBytesMax);  ///< of calls
    const std::byte* place = memory.data();  ///< of the message that comes
    uint64_t seed = 0;
  };

  /// In whatever it is counted in: messages, moves, kilobytes. Groups that form are struck at once.
  uint64_t DelayToFault() const {
    return scene_.is_forming ? 0 : static_cast<uint64_t>(scene_.delay.count());
  }

  /// At once. Where the group was forming some hear of a fault up to connect_max before others,
  /// whose group would then come too late for one try.
  bool MakesNextGroup(const std::vector<uint32_t>& survivors) {
    for (int left = scene_.is_forming ? 3 : 1; left > 0; --left) {
      Create(1, survivors, survivors.front(), /*limit=*/3);
      bool is_made = false;
      WaitFor(
          1,
          [&](const State& state) {
            is_made = state.completed >= 3;
            return is_made || state.failed;
          },
          kHangs);
      if (is_made) return true;
    }
    return false;
  }

  /// Sessions derive keys when they open, for a second where many do so on few cores.
  void WaitForOthers() {
    Say("ready");
    char nothing;
    while (read(gate_, &nothing, 1) > 0) {
    }
  }

  void Leave() {
    if (!scene_.is_forming) {
      WaitFor(
          1, [](const State& state) { return state.opened; }, kHangs);
    }
    std::this_thread::sleep_for(scene_.delay);
    SayStruck();
    session_.get_deleter()(session_.get());  // its callbacks use it until it is gone
    static_cast<void>(session_.release());
    Say("left");
  }

  /// False: none within the time in which there would be one.
  bool WaitForFailure() {
    const auto is_failed = [](const State& state) { return state.failed; };
    if (scene_.fault != Fault::kStranger && !scene_.may_go_on())
      return WaitFor(1, is_failed, kHangs);
    const bool opens = WaitFor(
        1, [](const State& state) { return state.opened || state.failed; }, kHangs);
    if (!opens) Say("broken the group does not open");
    return WaitFor(1, is_failed, scene_.may_go_on() ? 2 * kFailureMax : milliseconds(700));
  }

  void Say(const std::string& line) {
    const std::lock_guard lock(out_mutex_);
    const std::string text = line + "\n";
    if (write(out_, text.data(), text.size()) < 0) _exit(9);
  }

  /// The moment of the fault, where only the victim knows it.
  void SayStruck() {
    if (!std::exchange(has_struck_, true))
      Say(fmt::format("struck {}", Clock::now().time_since_epoch().count()));
  }

  void Create(uint64_t group, const std::vector<uint32_t>& members, uint32_t root,
              uint64_t limit = UINT64_MAX) {
    auto state = std::make_shared<State>();
    state->seed = scene_.seed + group * 17 + (limit == UINT64_MAX ? 0 : 5);
    {
      const std::lock_guard lock(mutex_);
      states_[group] = state;
    }
    GroupCallbacks callbacks;
    callbacks.incoming = [this, state, group](uint64_t message, uint64_t bytes) -> void* {
      if (bytes != SizeOf(state->seed, message, scene_.is_short()))
        Say(fmt::format("wrong size of {}", message));
      const bool is_first = state->seed == scene_.seed + 17;
      if (disk_.has_value() && is_first) {
        try {
          std::byte* const place = disk_->Append(bytes);
          state->place = place;
          return place;
        } catch (const std::system_error&) {
          SayStruck();
          throw;
        }
      }
      const bool refuses = scene_.fault == Fault::kNoMemory && self_ == scene_.victim &&
                           group == 1 && message >= DelayToFault() / 10;
      if (!refuses || !is_first) return state->memory.data();
      SayStruck();
      return nullptr;
    };
    callbacks.complete = [this, state, group, root, limit](uint64_t message, void*,
                                                           uint64_t bytes) {
      if (message != state->completed) Say(fmt::format("wrong order: {} is reported", message));
      if (self_ != root) Check(*state, message, bytes);
      {
        const std::lock_guard lock(mutex_);
        ++state->completed;
        changed_.notify_all();
      }
      if (self_ == root) SendNext(group, *state, message + 1, limit);
    };
    if (scene_.notifies && self_ == root) {
      callbacks.delivered = [this, state](uint64_t message) {
        if (message != state->delivered++) Say(fmt::format("wrong notice of {}", message));
        if (message >= state->completed) Say(fmt::format("wrong: {} is early", message));
        if (state->failed) Say("wrong: a notice after the failure");
      };
    }
    const bool is_next = limit != UINT64_MAX;
    callbacks.failed = [this, state, group, is_next](const Status& cause, std::optional<uint32_t>) {
      if (state->failed) Say("wrong: a second failure");
      // The memory is ours again: what peers still read of it must not count anywhere.
      std::ranges::fill(state->memory, std::byte{0xee});
      std::ranges::fill(state->output, std::byte{0xee});
      if (!is_next) Say(fmt::format("count {} {} {}", group, state->completed, state->delivered));
      Say(fmt::format("{} {} {} {}", is_next ? "next failed" : "failed", group,
                      Clock::now().time_since_epoch().count(), cause.ToString()));
      const std::lock_guard lock(mutex_);
      state->failed = true;
      changed_.notify_all();
    };
    callbacks.opened = [this, state, group] {
      Say(fmt::format("opened {}", group));
      const std::lock_guard lock(mutex_);
      state->opened = true;
      changed_.notify_all();
    };
    callbacks.closed = [this, state] {
      const std::lock_guard lock(mutex_);
      state->closed = true;
      changed_.notify_all();
    };
    const bool is_wrong = scene_.fault == Fault::kWrongPlan && self_ == scene_.victim && group == 1;
    GroupOptions options;
    options.algorithm = scene_.algorithm();
    options.seal = scene_.is_sealed();
    options.notify_delivered = scene_.notifies;
    if (is_wrong) options.block_bytes = 12345;
    const bool has_calls = scene_.has_calls() && group == 1;
    if (has_calls) options = {.calls = true, .deterministic = is_wrong, .seal = scene_.is_sealed()};
    // Before the group is there: from then on its callbacks may take the memory.
    const auto count = static_cast<uint32_t>(members.size());
    std::vector<MessagePart> first;
    if (has_calls) {
      FillCall(*state, count);
    } else if (self_ == root) {
      first = Fill(*state, 0, scene_.is_burst() && !is_next ? kUnderWay : 1);
    }
    const Status status = session_->CreateGroup(group, members, root, options, callbacks);
    if (!status.ok()) Say("broken " + status.ToString());
    if (has_calls) return MakeCall(state, count, 0, limit);
    if (self_ == root) Send(group, first);  // in one call: callbacks send on
  }

  static uint32_t ValueOf(uint64_t seed, uint64_t call, uint64_t member, uint64_t i) {
    return static_cast<uint32_t>((i + seed * 31 + call * 131 + member * 7) * 0x9e3779b97f4a7c15u >>
                                 40);
  }

  static uint64_t ValuesOf(const State& state, uint64_t call, uint32_t members) {
    return SizeOf(state.seed, call, /*is_short=*/false) / 4 / members * members;
  }

  /// The next call's; `self_` is known by its values alone.
  void FillCall(State& state, uint32_t members) {
    const uint64_t values = ValuesOf(state, state.completed, members);
    for (uint64_t i = 0; i < values; ++i) {
      const uint32_t value = ValueOf(state.seed, state.completed, self_, i);
      std::memcpy(&state.memory[4 * i], &value, 4);
    }
  }

  /// An allreduce or an alltoall in turn, again and again; this one's memory is filled.
  void MakeCall(const std::shared_ptr<State>& state, uint32_t members, uint64_t number,
                uint64_t limit) {
    const bool is_alltoall = number % 2 == 1;
    const uint64_t values = ValuesOf(*state, number, members);
    const Call call = {.kind = is_alltoall ? CollectiveKind::kAlltoall : CollectiveKind::kAllreduce,
                       .input = state->memory.data(),
                       .output = state->output.data(),
                       .count = is_alltoall ? values / members : values,
                       .type = ElementType::kUint32};
    // Errors: it has failed, and `failed` says so.
    static_cast<void>(session_->Call(1, call, [=, this](const Status& status) {
      if (!status.ok()) return;
      if (!is_alltoall && members == scene_.members) CheckSum(*state, number, values);
      {
        const std::lock_guard lock(mutex_);
        ++state->completed;
        changed_.notify_all();
      }
      if (number + 1 >= limit) return;
      FillCall(*state, members);
      MakeCall(state, members, number + 1, limit);
    }));
  }

  /// Of all members.
  void CheckSum(const State& state, uint64_t number, uint64_t values) {
    for (uint64_t i = 0; i < values; ++i) {
      uint32_t found, expected = 0;
      std::memcpy(&found, &state.output[4 * i], 4);
      for (uint32_t member = 0; member < scene_.members; ++member)
        expected += ValueOf(state.seed, number, member, i);
      if (found != expected) return Say(fmt::format("wrong value {} of call {}", i, number));
    }
  }

  /// At the root, when it has its memory of the messages before this one.
  void SendNext(uint64_t group, State& state, uint64_t message, uint64_t limit) {
    const bool is_burst = scene_.is_burst() && limit == UINT64_MAX;
    if (!is_burst && message < limit) Send(group, Fill(state, message, 1));
    if (is_burst && message % kBurst == 0)
      Send(group, Fill(state, message + kUnderWay - kBurst, kBurst));
  }

  /// So many messages. Of those that are under way together each has its own memory.
  std::vector<MessagePart> Fill(State& state, uint64_t message, uint64_t count) {
    std::vector<MessagePart> parts;
    for (uint64_t i = message; i < message + count; ++i) {
      const uint64_t place = count > 1 ? i % kUnderWay * kShortBytesMax : 0;
      parts.push_back({&state.memory[place], SizeOf(state.seed, i, scene_.is_short())});
      for (uint64_t k = 0; k < parts.back().bytes; ++k)
        state.memory[place + k] = ByteOf(state.seed, i, k);
    }
    return parts;
  }

  /// Errors: it has failed, and `failed` says so.
  void Send(uint64_t group, const std::vector<MessagePart>& parts) {
    static_cast<void>(parts.size() > 1 ? session_->SendMany(group, parts)
                                       : session_->Send(group, parts[0].data, parts[0].bytes));
  }

  void Check(const State& state, uint64_t message, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) {
      if (state.place[i] == ByteOf(state.seed, message, i)) continue;
      return Say(fmt::format("wrong byte {} of message {}", i, message));
    }
  }

  template <typename Done>
  bool WaitFor(uint64_t group, Done done, milliseconds max) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<State> state = states_[group];
    return changed_.wait_for(lock, max, [&] { return done(*state); });
  }

  const Scene scene_;
  const uint32_t self_;
  const int gate_, out_;
  std::optional<SmallDisk> disk_;
  std::unique_ptr<Session> session_;
  std::mutex mutex_, out_mutex_;
  std::condition_variable changed_;
  bool has_struck_ = false;
  std::map<uint64_t, std::shared_ptr<State>> states_;
};

/// "struck" and the time, by calls that are allowed in a signal's handler.
void SayStruckFromHandler(int out) {
  char text[32] = "struck ";
  const long long now = Clock::now().time_since_epoch().count();
  char digits[20];
  size_t count = 0, at = 7;
  for (long long rest = now; rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) text[at++] = digits[--count];
  text[at++] = '\n';
  if (write(out, text, at) < 0) _exit(9);
}

}  // namespace

void CloseOneConnection(int) {
  const int error = errno;  // of whatever this interrupts
  static std::atomic<bool> has_struck = false;
  int found[256], count = 0;
  for (int fd = 3; fd < 1024 && count < 256; ++fd) {
    int type = 0, listens = 0;
    socklen_t bytes = sizeof(type);
    sockaddr_storage peer = {};
    socklen_t peer_bytes = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM &&
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens == 0 &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0) {
      found[count++] = fd;
    }
  }
  const int out = out_of_this_member;
  if (count > 0 && out >= 0 && !has_struck.exchange(true)) {
    SayStruckFromHandler(out);
    shutdown(found[static_cast<uint32_t>(getpid()) % static_cast<uint32_t>(count)], SHUT_RDWR);
  }
  errno = error;
}

void RunMember(const Scene& scene, uint32_t self, int gate, int out) {
  out_of_this_member = out;
  Member(scene, self, gate, out).Run();
}

}  // namespace prepost::faults_test
