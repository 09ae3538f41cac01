// SPDX-License-Identifier: Apache-2.0
//
// Sessions and groups. Waits let other threads of Python run, and see its signals every kSlice.
#include <poll.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/collective.h"
#include "ir/combine.h"
#include "ir/words.h"
#include "prepost/prepost.h"
#include "python/bindings.h"
#include "python/group_state.h"
#include "python/interpreter.h"
#include "python/status_error.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/group/group_key.h"

namespace prepost::python {
namespace {

namespace py = pybind11;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSlice{50};

/// Until when a call may wait.
class Deadline {
 public:
  /// Seconds from now; none: for ever.
  explicit Deadline(std::optional<double> seconds) {
    constexpr double kSecondsMax = 1e9;
    if (seconds)
      end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(std::min(*seconds, kSecondsMax)));
  }
  bool is_over() const { return end_ && Clock::now() >= *end_; }
  /// The end of the next slice.
  Clock::time_point NextStop() const {
    const Clock::time_point stop = Clock::now() + kSlice;
    return end_ ? std::min(*end_, stop) : stop;
  }
  /// Rounded up, so that a wait does not end before its time.
  milliseconds NextSlice() const {
    return std::max(std::chrono::ceil<milliseconds>(NextStop() - Clock::now()), milliseconds(0));
  }

 private:
  std::optional<Clock::time_point> end_;
};

void ThrowIfSignalled() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

/// Throws in a call of `incoming`, for which the session waits.
void ThrowIfAsking() {
  if (GroupState::IsAsking())
    throw StatusError(UsageError("incoming may neither wait for its session nor close it"));
}

/// While the interpreter ends, its main thread closes the sessions, one after another; other
/// threads, which do not keep it waiting, end then, as by sys.exit(), instead of reporting that, or
/// what it did to a group of another session.
std::atomic<unsigned long> ending_thread = 0;

void ExitIfEnding() {
  const unsigned long ending = ending_thread.load();
  if (ending == 0 || ending == PyThread_get_thread_ident()) return;
  PyErr_SetNone(PyExc_SystemExit);
  throw py::error_already_set();
}

[[noreturn]] void ThrowClosed() {
  ExitIfEnding();
  throw StatusError(UsageError("the session is closed"));
}

/// What a session and its groups share. Guarded by the interpreter's lock; calls of the session
/// that take long are made without it, in Use().
struct SessionCore {
  ~SessionCore() { Close(); }

  /// In a process forked since the session was opened: its locks may be held for ever.
  bool is_inherited() const { return depth != ForkDepth(); }
  void CheckProcess() const {
    if (!is_inherited()) return;
    throw StatusError(
        UsageError("the session was opened before this process was forked, and is its parent's"));
  }
  Session& Opened() const {
    CheckProcess();
    if (session == nullptr) ThrowClosed();
    return *session;
  }
  /// Of a call that Use() made.
  void ThrowIfError(const Status& status) const {
    if (!status.ok()) Opened();
    python::ThrowIfError(status);
  }
  void Close() {
    if (session == nullptr) return;
    if (is_inherited()) {  // what a child has of it stays as it is
      session.reset();
      static_cast<void>(new std::vector(std::move(states)));
      return;
    }
    std::unique_ptr<Session> last = std::move(session);
    {
      const ReleasedInterpreter released;
      const std::lock_guard lock(in_use);
      usable = nullptr;
      last.reset();
    }
    // Freeing what they have runs Python, which may come here again.
    for (const std::shared_ptr<GroupState>& state : std::exchange(states, {})) state->Close();
  }
  /// Forgets groups that are over and that Python has forgotten.
  void Prune() {
    for (const std::shared_ptr<GroupState>& state : std::vector(states)) state->FreeViews();
    std::vector<std::shared_ptr<GroupState>> over;  // freed last, for the same reason
    std::erase_if(states, [&](const auto& state) {
      const bool is_over = state.use_count() == 1 && state->IsOver();
      if (is_over) over.push_back(state);
      return is_over;
    });
  }

  /// `call` of the session, which stays open meanwhile. Without the interpreter's lock.
  template <typename Call>
  Status Use(Call call) {
    const std::shared_lock lock(in_use);
    return usable == nullptr ? UsageError("the session is closed") : call(*usable);
  }
  /// Session::Poll(), without the interpreter's lock.
  Status Poll(milliseconds timeout) {
    const std::lock_guard lock(poll_mutex);
    return Use([timeout](Session& opened) { return opened.Poll(timeout); });
  }

  /// Something has been called back. By any thread; one write until Python takes it.
  void Signal() {
    if (!is_signalled.exchange(true)) events.Signal();
  }
  /// Whether something has been called back since the last time.
  bool TakeSignal() {
    const bool is_taken = events.Take() > 0;
    // After the read: what is not written meanwhile has happened, and Python will see it.
    is_signalled.store(false);
    return is_taken;
  }

  const uint32_t depth = ForkDepth();
  std::unique_ptr<Session> session;
  bool has_thread = true;
  std::mutex poll_mutex;      ///< Session::Poll() is one thread's
  std::shared_mutex in_use;   ///< shared by calls without the interpreter's lock
  Session* usable = nullptr;  ///< guarded by in_use alone; null: closed
  EventFd events;             ///< readable after callbacks
  std::atomic<bool> is_signalled = false;
  std::vector<std::shared_ptr<GroupState>> states;
};

class NativeGroup {
 public:
  NativeGroup(std::shared_ptr<SessionCore> core, std::shared_ptr<GroupState> state, uint64_t number)
      : core_(std::move(core)), state_(std::move(state)), number_(number) {}
  ~NativeGroup() {
    if (core_->is_inherited()) return;
    state_->Forget();
    ResumeIfFull();
  }
  NativeGroup(const NativeGroup&) = delete;
  NativeGroup& operator=(const NativeGroup&) = delete;

  /// Queues the message; the object's memory stays as it is until it may be reused.
  uint64_t Send(const py::object& buffer) {
    // First: what makes the view may be Python that closes the session.
    auto view = std::make_unique<BufferView>(buffer, /*is_written=*/false);
    Session& session = Begin();
    const std::byte* const data = view->data();
    const uint64_t bytes = view->bytes();
    // Before Send(): the message may be complete when that returns.
    uint64_t message = 0;
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->failure) Throw(*state_->failure);
      message = queued_;
      state_->sending[message] = std::move(view);
    }
    const Result<uint64_t> sent = session.Send(number_, data, bytes);
    if (!sent.ok()) {
      {
        const std::lock_guard lock(state_->mutex);
        const auto unsent = state_->sending.find(message);
        if (unsent != state_->sending.end()) view = std::move(unsent->second);
        state_->sending.erase(message);
        if (state_->failure) Throw(*state_->failure);
      }
      throw StatusError(sent.status());
    }
    PREPOST_CHECK(*sent == message);
    const std::lock_guard lock(state_->mutex);
    ++queued_;
    return message;
  }

  /// The oldest message that was not received yet, in `into` if that is not None.
  Memory Receive(const py::object& into, std::optional<double> timeout) {
    const Deadline deadline(timeout);
    core_->CheckProcess();
    state_->FreeViews();
    std::unique_ptr<BufferView> view;
    if (!into.is_none()) view = std::make_unique<BufferView>(into, /*is_written=*/true);
    const std::byte* const given = view == nullptr ? nullptr : view->data();
    const uint64_t given_bytes = view == nullptr ? 0 : view->bytes();
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->is_receiving)
        throw StatusError(UsageError("another thread receives a message of this group"));
      state_->is_receiving = true;
      if (state_->arrivals.empty()) state_->posted = std::move(view);
    }
    // Whatever happens: the buffer is the caller's again, unless a message has begun in it.
    const auto end = [&] {
      const std::lock_guard lock(state_->mutex);
      state_->is_receiving = false;
      if (state_->posted != nullptr) view = std::move(state_->posted);
    };
    try {
      Wait(deadline, "no message has come",
           [this] { return (!state_->arrivals.empty() && state_->arrivals.front().is_complete); });
    } catch (...) {
      end();
      throw;
    }
    end();
    return Take(given, given_bytes, std::move(view), !into.is_none());
  }

  void WaitSent(std::optional<double> timeout) {
    Begin();
    // Not what other threads queue meanwhile, which might never end.
    Wait(Deadline(timeout), "messages are still being sent",
         [this, count = Queued()] { return state_->sent >= count; });
  }
  void WaitDelivered(std::optional<double> timeout) {
    Begin();
    if (!notifies) {
      throw StatusError(
          UsageError("the group has no notices of delivery: create it with notify_delivered"));
    }
    Wait(Deadline(timeout), "not all members have all messages",
         [this, count = Queued()] { return state_->delivered >= count; });
  }
  void WaitOpened(std::optional<double> timeout) {
    Begin();
    Wait(Deadline(timeout), "the group is not open", [this] { return state_->is_opened; });
  }
  void WaitClosed(std::optional<double> timeout) {
    Wait(Deadline(timeout), "not all members have left the group",
         [this] { return state_->is_closed; });
  }
  uint64_t EnterBarrier() {
    Session& session = Begin();
    const Status entered = session.Barrier(number_, [state = state_] { state->Pass(); });
    if (!entered.ok()) ThrowFor(entered);
    return ++barriers_entered_;
  }
  void WaitBarrier(uint64_t count, std::optional<double> timeout) {
    Wait(Deadline(timeout), "not all members are at the barrier",
         [this, count] { return state_->barriers >= count; });
  }
  /// Makes a call; its memory is used until it is over. Its number.
  uint64_t Call(const std::string& kind, uint32_t root, const py::object& input,
                const py::object& output, uint64_t count, const std::string& type,
                const std::string& op, const py::object& function,
                std::vector<uint64_t> send_counts, std::vector<uint64_t> receive_counts) {
    if (GroupState::IsAsking())
      throw StatusError(UsageError("neither an operation nor incoming may make a call"));
    GroupState::Calling calling;
    if (!input.is_none()) calling.input = std::make_unique<BufferView>(input, /*is_written=*/false);
    if (!output.is_none())
      calling.output = std::make_unique<BufferView>(output, /*is_written=*/true);
    prepost::Call call = {.kind = EnumeratorOf<CollectiveKind>(kind).value(),
                          .root = root,
                          .input = calling.input == nullptr ? nullptr : calling.input->data(),
                          .output = calling.output == nullptr ? nullptr : calling.output->data(),
                          .count = count,
                          .type = EnumeratorOf<ElementType>(type).value(),
                          .op = op.empty() ? CombineOp::kSum : EnumeratorOf<CombineOp>(op).value(),
                          .operation = {},
                          .send_counts = std::move(send_counts),
                          .send_places = {},
                          .receive_counts = std::move(receive_counts),
                          .receive_places = {}};
    if (!function.is_none()) {
      calling.function = std::make_shared<py::object>(function);
      call.operation = [raw = calling.function.get(), bytes = SizeOf(call.type)](
                           void* out, const void* own, const void* other, uint64_t elements) {
        GroupState::Combine(*raw, out, own, other, elements * bytes);
      };
    }
    Session& session = Begin();
    uint64_t number = 0;
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->failure) Throw(*state_->failure);
      number = called_;
      state_->calling[number] = std::move(calling);
    }
    const Status made = session.Call(number_, call, [state = state_, number](const Status& status) {
      state->EndCall(number, status);
    });
    if (!made.ok()) {
      {
        const std::lock_guard lock(state_->mutex);
        const auto unmade = state_->calling.find(number);
        if (unmade != state_->calling.end()) calling = std::move(unmade->second);
        state_->calling.erase(number);
      }
      ThrowFor(made);
    }
    ++called_;
    return number;
  }
  void WaitCall(uint64_t number, std::optional<double> timeout) {
    Wait(Deadline(timeout), "not all members have made the call",
         [this, number] { return state_->called > number; });
  }
  std::vector<std::string> Notes() { return ValueOf(Begin().Notes(number_)); }
  PeerPaths Paths() {
    const Result<PeerPaths> paths = Begin().Paths(number_);
    if (!paths.ok()) ThrowFor(paths.status());
    return *paths;
  }
  void Destroy() {
    const Status destroyed = Begin().DestroyGroup(number_);
    if (!destroyed.ok()) ThrowFor(destroyed);
  }

  void Abort(const std::string& why) {
    const Status aborted = Begin().AbortGroup(number_, why);
    if (!aborted.ok()) ThrowFor(aborted);
    if (GroupState::IsAsking()) return;
    Wait(Deadline(std::nullopt), "", [this] { return state_->failure || state_->is_closed; });
  }

  template <typename T>
  T Read(T GroupState::*field) {
    core_->CheckProcess();
    const std::lock_guard lock(state_->mutex);
    return (*state_).*field;
  }
  uint64_t Available() {
    core_->CheckProcess();
    const std::lock_guard lock(state_->mutex);
    return static_cast<uint64_t>(
        std::ranges::count_if(state_->arrivals, [](const Arrival& it) { return it.is_complete; }));
  }
  bool LacksRoom() {
    core_->CheckProcess();
    return state_->LacksRoom();
  }
  /// Throws what has failed, if anything has.
  void Check() {
    core_->CheckProcess();
    const std::lock_guard lock(state_->mutex);
    if (state_->failure) Throw(*state_->failure);
  }
  uint64_t number() const { return number_; }
  bool is_inherited() const { return core_->is_inherited(); }

  bool notifies = false;

 private:
  Session& Begin() {
    core_->CheckProcess();
    state_->FreeViews();
    Check();
    return core_->Opened();
  }
  uint64_t Queued() {
    const std::lock_guard lock(state_->mutex);
    return queued_;
  }
  /// There is room again for a message that waits. The interpreter's lock keeps the session.
  void ResumeIfFull() {
    {
      const std::lock_guard lock(state_->mutex);
      if (!std::exchange(state_->is_full, false)) return;
    }
    if (core_->session != nullptr) core_->session->Resume();
  }
  [[noreturn]] static void Throw(const Failure& failure) {
    ExitIfEnding();
    if (!failure.is_of_group) ThrowClosed();
    throw StatusError(failure.cause, StatusError::Kind::kGroup, failure.where);
  }
  /// The group may have failed just before, and then that is the cause.
  [[noreturn]] void ThrowFor(const Status& status) {
    Check();
    throw StatusError(status);
  }

  /// Until `done`, which is called with the state's lock. Throws when that cannot come any more,
  /// when a signal's handler throws, and at the deadline.
  template <typename Done>
  void Wait(const Deadline& deadline, const char* late, Done done) {
    core_->CheckProcess();
    ThrowIfAsking();
    for (;;) {
      bool is_done = false;
      bool is_over = false;
      Status polled;
      {
        const ReleasedInterpreter released;
        const auto check = [&] {
          is_done = done();
          is_over = state_->failure.has_value() || state_->is_closed;
          return is_done || is_over;
        };
        std::unique_lock lock(state_->mutex);
        if (core_->has_thread) {
          state_->WaitUntil(lock, deadline.NextStop(), check);
        } else if (!check()) {
          lock.unlock();
          polled = core_->Poll(deadline.NextSlice());
          lock.lock();
          check();
        }
      }
      state_->FreeViews();  // what was sent may be resized, or closed, at once
      if (is_done) return;
      if (is_over) {
        Check();
        throw StatusError(UsageError("the group is closed"));
      }
      core_->ThrowIfError(polled);
      ThrowIfSignalled();
      if (deadline.is_over()) {
        throw StatusError(Rejected(late), StatusError::Kind::kTimeout);
      }
    }
  }

  /// The oldest arrival, which is complete: where it is, or copied into `view`, which begins at
  /// `given`.
  Memory Take(const std::byte* given, uint64_t given_bytes, std::unique_ptr<BufferView> view,
              bool is_into) {
    Memory memory;
    {
      const std::lock_guard lock(state_->mutex);
      Memory& oldest = state_->arrivals.front().memory;
      if (is_into && oldest.bytes > given_bytes) {
        throw StatusError(UsageError("the message has " + std::to_string(oldest.bytes) +
                                     " bytes, the buffer " + std::to_string(given_bytes) +
                                     "; the next call gets it again"));
      }
      memory = std::move(oldest);
      state_->arrivals.pop_front();
    }
    ResumeIfFull();
    if (!is_into || memory.data() == given) return memory;
    {
      const ReleasedInterpreter released;
      if (memory.bytes > 0) std::memcpy(view->data(), memory.data(), memory.bytes);
    }
    return {.own = nullptr, .pooled = {}, .view = std::move(view), .bytes = memory.bytes};
  }

  std::shared_ptr<SessionCore> core_;
  std::shared_ptr<GroupState> state_;
  uint64_t number_;
  uint64_t queued_ = 0;  ///< messages; guarded by the mutex of state_
  uint64_t barriers_entered_ = 0;
  uint64_t called_ = 0;  ///< calls made; guarded by the interpreter's lock
};

/// Of a session. Python sees none of it, whatever shows its variables or what a call was made with.
struct Secret {
  std::string bytes;
  ~Secret() { Wipe(bytes); }
};

class NativeSession {
 public:
  NativeSession(uint32_t self, const std::vector<std::pair<std::string, uint16_t>>& members,
                const Secret& secret, const std::string& bind, const std::string& waiting,
                int64_t idle_max_ms, int64_t failure_max_ms, int64_t connect_max_ms,
                bool local_copies, bool own_thread, std::vector<std::string> sites,
                uint16_t streams, double pace, std::string congestion) {
    SessionOptions options = {
        .self = self,
        .members = {},
        .sites = std::move(sites),
        .secret = secret.bytes,
        .bind = bind,
        .waiting = WaitingOf(waiting),
        .idle_max = milliseconds(idle_max_ms),
        .failure_max = milliseconds(failure_max_ms),
        .connect_max = milliseconds(connect_max_ms),
        .local_copies = local_copies,
        .paths = {.streams = streams, .pace = pace, .congestion = std::move(congestion)},
        .own_thread = own_thread};
    for (const auto& [host, port] : members) options.members.push_back({host, port});
    core_->has_thread = own_thread;
    CloseFilesInForks();  // this one, too, which is there before the session
    core_->events = ValueOf(EventFd::Make());
    {
      const ReleasedInterpreter released;  // names may have to be looked up
      Result<std::unique_ptr<Session>> session = Session::Open(options);
      Wipe(options.secret);
      core_->session = ValueOf(std::move(session));
    }
    core_->usable = core_->session.get();
  }

  void Close() {
    if (!core_->is_inherited()) ThrowIfAsking();
    core_->Close();
  }
  /// Close(), and other threads of Python end when they find out.
  void End() {
    ending_thread.store(PyThread_get_thread_ident());
    core_->Close();
  }
  uint16_t port() const { return core_->Opened().port(); }
  int fd() const {
    const Session& session = core_->Opened();
    return core_->has_thread ? core_->events.fd() : session.fd();
  }
  void SetAddress(uint32_t member, const std::string& host, uint16_t port) {
    ThrowIfError(core_->Opened().SetAddress(member, {host, port}));
  }

  std::unique_ptr<NativeGroup> CreateGroup(uint64_t number, const std::vector<uint32_t>& members,
                                           uint32_t root, const GroupOptions& options,
                                           MemorySupply supply) {
    core_->CheckProcess();
    core_->Prune();
    auto state =
        std::make_shared<GroupState>([core = core_.get()] { core->Signal(); }, std::move(supply));
    core_->states.push_back(state);  // before, so that Close() finds it whenever it comes
    Status created;
    {
      const ReleasedInterpreter released;  // plans and devices take their time
      created = core_->Use([&](Session& session) {
        return session.CreateGroup(number, members, root, options, GroupState::Callbacks(state));
      });
    }
    if (!created.ok()) std::erase(core_->states, state);
    core_->ThrowIfError(created);
    auto group = std::make_unique<NativeGroup>(core_, std::move(state), number);
    group->notifies = options.notify_delivered;
    return group;
  }

  /// Whether something has been called back since the last time; waits for it until then.
  bool Poll(std::optional<double> timeout) {
    ThrowIfAsking();
    const Deadline deadline(timeout);
    for (;;) {
      core_->Opened();
      Status polled;
      {
        const ReleasedInterpreter released;
        if (core_->has_thread) {
          pollfd file = {.fd = core_->events.fd(), .events = POLLIN, .revents = 0};
          ::poll(&file, 1, static_cast<int>(deadline.NextSlice().count()));
          if ((file.revents & POLLNVAL) != 0) polled = FileClosedError();
        } else {
          polled = core_->Poll(deadline.NextSlice());
        }
      }
      core_->ThrowIfError(polled);
      if (core_->TakeSignal()) return true;
      ThrowIfSignalled();
      if (deadline.is_over()) return false;
    }
  }

 private:
  static Waiting WaitingOf(const std::string& name) {
    if (name == "polling") return Waiting::kPolling;
    if (name == "hybrid") return Waiting::kHybrid;
    PREPOST_CHECK(name == "interrupt");
    return Waiting::kInterrupt;
  }

  std::shared_ptr<SessionCore> core_ = std::make_shared<SessionCore>();
};

}  // namespace

void AddSessions(py::module_& module) {
  py::class_<Memory>(module, "Memory", py::buffer_protocol()).def_buffer([](const Memory& memory) {
    return py::buffer_info(memory.data(), 1, py::format_descriptor<uint8_t>::format(), 1,
                           {static_cast<py::ssize_t>(memory.bytes)}, {py::ssize_t{1}});
  });
  py::class_<MemoryPool, std::shared_ptr<MemoryPool>>(module, "MemoryPool")
      .def(py::init([](uint64_t buffer_bytes, uint32_t buffers) {
        return ValueOf(MemoryPool::Make(buffer_bytes, buffers));
      }))
      .def_property_readonly("buffer_bytes", &MemoryPool::buffer_bytes)
      .def_property_readonly("buffers", &MemoryPool::buffers)
      .def_property_readonly("free_buffers", &MemoryPool::free_buffers);
  py::class_<NativeGroup>(module, "Group")
      .def("send", &NativeGroup::Send)
      .def("receive", &NativeGroup::Receive)
      .def("wait_sent", &NativeGroup::WaitSent)
      .def("wait_delivered", &NativeGroup::WaitDelivered)
      .def("wait_opened", &NativeGroup::WaitOpened)
      .def("wait_closed", &NativeGroup::WaitClosed)
      .def("enter_barrier", &NativeGroup::EnterBarrier)
      .def("wait_barrier", &NativeGroup::WaitBarrier)
      .def("call", &NativeGroup::Call)
      .def("wait_call", &NativeGroup::WaitCall)
      .def_property_readonly("calls", [](NativeGroup& it) { return it.Read(&GroupState::called); })
      .def("notes", &NativeGroup::Notes)
      .def("paths",
           [](NativeGroup& it) {
             const PeerPaths paths = it.Paths();
             return std::tuple(paths.memory, paths.network, paths.forbidden, paths.short_memory,
                               paths.short_network);
           })
      .def("destroy", &NativeGroup::Destroy)
      .def("abort", &NativeGroup::Abort, py::arg("why"))
      .def("check", &NativeGroup::Check)
      .def_property_readonly("number", &NativeGroup::number)
      .def_property_readonly("inherited", &NativeGroup::is_inherited)
      .def_property_readonly("available", &NativeGroup::Available)
      .def_property_readonly("lacks_room", &NativeGroup::LacksRoom)
      .def_property_readonly("messages",
                             [](NativeGroup& it) { return it.Read(&GroupState::complete); })
      .def_property_readonly("sent", [](NativeGroup& it) { return it.Read(&GroupState::sent); })
      .def_property_readonly("delivered",
                             [](NativeGroup& it) { return it.Read(&GroupState::delivered); })
      .def_property_readonly("barriers",
                             [](NativeGroup& it) { return it.Read(&GroupState::barriers); })
      .def_property_readonly("opened",
                             [](NativeGroup& it) { return it.Read(&GroupState::is_opened); })
      .def_property_readonly("closed",
                             [](NativeGroup& it) { return it.Read(&GroupState::is_closed); });
  py::class_<Secret>(module, "Secret").def(py::init([](const py::bytes& secret) {
    return Secret{secret};
  }));
  py::class_<NativeSession>(module, "Session")
      .def(py::init<uint32_t, const std::vector<std::pair<std::string, uint16_t>>&, const Secret&,
                    const std::string&, const std::string&, int64_t, int64_t, int64_t, bool, bool,
                    std::vector<std::string>, uint16_t, double, std::string>())
      .def("close", &NativeSession::Close)
      .def("end", &NativeSession::End)
      .def_property_readonly("port", &NativeSession::port)
      .def("fileno", &NativeSession::fd)
      .def("set_address", &NativeSession::SetAddress)
      .def(
          "create_group",
          [](NativeSession& session, uint64_t number, const std::vector<uint32_t>& members,
             uint32_t root, const std::string& algorithm, uint64_t block_bytes,
             const std::string& plan, bool notify_delivered, bool sync, const std::string& device,
             const std::string& executor, std::shared_ptr<MemoryPool> pool, py::object incoming,
             uint64_t backlog_bytes, bool seal, bool root_connects) {
            return session.CreateGroup(number, members, root,
                                       {.algorithm = algorithm,
                                        .block_bytes = block_bytes,
                                        .plan = plan,
                                        .notify_delivered = notify_delivered,
                                        .sync = sync,
                                        .device = device,
                                        .executor = executor,
                                        .seal = seal,
                                        .root_connects = root_connects},
                                       {.pool = std::move(pool),
                                        .incoming = std::move(incoming),
                                        .backlog_bytes = backlog_bytes});
          },
          py::arg("number"), py::arg("members"), py::arg("root"), py::kw_only(),
          py::arg("algorithm"), py::arg("block_bytes"), py::arg("plan"),
          py::arg("notify_delivered"), py::arg("sync"), py::arg("device"), py::arg("executor"),
          py::arg("pool"), py::arg("incoming"), py::arg("backlog_bytes"), py::arg("seal"),
          py::arg("root_connects"))
      .def("create_calls",
           [](NativeSession& session, uint64_t number, const std::vector<uint32_t>& members,
              bool deterministic, bool seal) {
             return session.CreateGroup(
                 number, members, members.empty() ? 0 : members.front(),
                 {.calls = true, .deterministic = deterministic, .seal = seal},
                 {.pool = {}, .incoming = py::none()});
           })
      .def("poll", &NativeSession::Poll);
}

}  // namespace prepost::python
