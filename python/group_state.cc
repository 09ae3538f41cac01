// SPDX-License-Identifier: Apache-2.0
#include "python/group_state.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "ir/base/status.h"
#include "python/interpreter.h"

namespace prepost::python {
namespace {

namespace py = pybind11;

bool& IsAskingHere() {
  thread_local bool is_asking = false;
  return is_asking;
}

/// What a message counts at least, so that the number of small ones is bounded, too.
constexpr uint64_t kBacklogBytesMin = 4096;

/// Memory of one byte at least, so that it has a place.
OwnMemory Allocate(uint64_t bytes) {
  return OwnMemory(static_cast<std::byte*>(std::malloc(std::max<uint64_t>(bytes, 1))));
}

/// "ValueError: no such file".
std::string ExceptionText(const py::error_already_set& error) {
  try {
    return py::str(error.type().attr("__name__")).cast<std::string>() + ": " +
           py::str(error.value()).cast<std::string>();
  } catch (const std::exception&) {
    return "of a type that has no text";
  }
}

}  // namespace

bool GroupState::IsAsking() { return IsAskingHere(); }

template <typename Change>
void GroupState::Note(Change change) {
  bool is_awaited = false;
  {
    const std::lock_guard lock(mutex);
    change();
    is_awaited = std::ranges::any_of(waiting_, [](const auto* done) { return (*done)(); });
  }
  if (is_awaited) changed_.notify_all();
  notify_();
}

void GroupState::Pass() {
  Note([this] { ++barriers; });
}

void GroupState::EndCall(uint64_t number, const Status& status) {
  Note([&] {
    const auto ended = calling.find(number);
    if (ended != calling.end()) {
      for (auto* view : {&ended->second.input, &ended->second.output})
        if (*view != nullptr) freed_.push_back(std::move(*view));
      if (ended->second.function != nullptr)
        freed_objects_.push_back(std::move(ended->second.function));
      calling.erase(ended);
    }
    if (status.ok()) called = number + 1;
  });
}

void GroupState::Combine(const py::object& function, void* out, const void* own, const void* other,
                         uint64_t bytes) {
  const AcquiredInterpreter acquired;
  IsAskingHere() = true;
  std::optional<std::string> thrown;
  try {
    const auto size = static_cast<py::ssize_t>(bytes);
    function(py::memoryview::from_memory(out, size), py::memoryview::from_memory(own, size),
             py::memoryview::from_memory(other, size));
  } catch (py::error_already_set& error) {
    thrown = ExceptionText(error);
    error.discard_as_unraisable(function);
  }
  IsAskingHere() = false;
  if (thrown) throw std::runtime_error(*thrown);
}

void GroupState::WaitUntil(std::unique_lock<std::mutex>& lock,
                           std::chrono::steady_clock::time_point stop,
                           const std::function<bool()>& done) {
  waiting_.push_back(&done);
  changed_.wait_until(lock, stop, done);
  std::erase(waiting_, &done);
}

GroupCallbacks GroupState::Callbacks(const std::shared_ptr<GroupState>& state) {
  GroupCallbacks callbacks;
  callbacks.pool = state->supply_.pool;
  if (callbacks.pool == nullptr || state->has_incoming_) {  // both are refused
    callbacks.incoming = [state](uint64_t message, uint64_t bytes) {
      return state->Incoming(message, bytes);
    };
  }
  callbacks.complete = [state](uint64_t message, void* memory, uint64_t bytes) {
    state->Note([&] { state->Complete(message, memory, bytes); });
  };
  callbacks.delivered = [state](uint64_t message) {
    state->Note([&] { state->delivered = message + 1; });
  };
  callbacks.opened = [state] { state->Note([&] { state->is_opened = true; }); };
  callbacks.closed = [state] { state->Note([&] { state->is_closed = true; }); };
  callbacks.failed = [state](const Status& cause, const FailedMembers& where) {
    state->Note([&] { state->Fail({.cause = cause, .where = where}); });
  };
  return callbacks;
}

void* GroupState::Incoming(uint64_t message, uint64_t bytes) {
  Arrival arrival = {.message = message, .memory = {}};
  arrival.memory.bytes = bytes;
  const bool is_asked = has_incoming_ && bytes > 0;
  if (is_asked) {
    arrival.memory.view = Ask(message, bytes);
    if (arrival.memory.view == nullptr) return nullptr;
  }
  const std::lock_guard lock(mutex);
  if (is_asked) return arrivals.emplace_back(std::move(arrival)).memory.data();
  // Whoever waits with a buffer waits for the oldest message.
  if (posted != nullptr && arrivals.empty() && posted->bytes() >= bytes) {
    arrival.memory.view = std::move(posted);
  } else if (!has_incoming_ && !HasRoom(bytes)) {
    is_full = true;
    return kNotYet;
  } else {
    arrival.memory.own = Allocate(bytes);
    if (arrival.memory.own == nullptr) return nullptr;
  }
  return arrivals.emplace_back(std::move(arrival)).memory.data();
}

/// With the mutex. Whether a message may wait in new memory to be received.
bool GroupState::HasRoom(uint64_t bytes) const {
  uint64_t backlog = 0;
  for (const Arrival& arrival : arrivals) {
    if (arrival.memory.own != nullptr) backlog += std::max(arrival.memory.bytes, kBacklogBytesMin);
  }
  const uint64_t needed = std::max(bytes, kBacklogBytesMin);
  return backlog == 0 || is_forgotten_ ||
         (backlog <= supply_.backlog_bytes && needed <= supply_.backlog_bytes - backlog);
}

/// Null: Python has none for it. Throws std::runtime_error in place of Python's exception, which
/// sys.unraisablehook gets.
std::unique_ptr<BufferView> GroupState::Ask(uint64_t message, uint64_t bytes) {
  const AcquiredInterpreter acquired;
  IsAskingHere() = true;
  std::unique_ptr<BufferView> view;
  std::optional<std::string> thrown;
  try {
    const py::object memory = supply_.incoming(message, bytes);
    if (!memory.is_none()) view = std::make_unique<BufferView>(memory, /*is_written=*/true);
    if (view != nullptr && view->bytes() < bytes) {
      PyErr_SetString(PyExc_ValueError,
                      ("the memory for message " + std::to_string(message) + " has " +
                       std::to_string(view->bytes()) + " bytes, and it " + std::to_string(bytes))
                          .c_str());
      throw py::error_already_set();
    }
  } catch (py::error_already_set& error) {
    view = nullptr;
    thrown = ExceptionText(error);
    error.discard_as_unraisable(supply_.incoming);
  }
  IsAskingHere() = false;
  if (thrown) throw std::runtime_error(*thrown);
  return view;
}

void GroupState::Complete(uint64_t message, void* memory, uint64_t bytes) {
  complete = message + 1;
  const auto arrival = std::ranges::find(arrivals, message, &Arrival::message);
  if (arrival != arrivals.end()) {
    arrival->is_complete = true;
    if (is_forgotten_) DropComplete();
    return;
  }
  const auto view = sending.find(message);
  if (view != sending.end()) {
    ++sent;
    freed_.push_back(std::move(view->second));
    sending.erase(view);
    return;
  }
  if (supply_.pool == nullptr) return;
  Arrival& pooled = arrivals.emplace_back();
  pooled.message = message;
  pooled.is_complete = true;
  pooled.memory.bytes = bytes;
  if (memory == nullptr) {
    pooled.memory.own = Allocate(0);
  } else {
    pooled.memory.pooled =
        PoolBuffer(static_cast<std::byte*>(memory), GiveBack{.pool = supply_.pool});
  }
  if (is_forgotten_) DropComplete();
}

/// With the mutex.
void GroupState::DropComplete() {
  while (!arrivals.empty() && arrivals.front().is_complete) {
    if (arrivals.front().memory.view != nullptr)
      freed_.push_back(std::move(arrivals.front().memory.view));
    arrivals.pop_front();
  }
}

void GroupState::Forget() {
  {
    const std::lock_guard lock(mutex);
    is_forgotten_ = true;
    DropComplete();
  }
  FreeViews();
}

void GroupState::Fail(Failure cause) {
  failure = std::move(cause);
  for (auto& [message, view] : sending) freed_.push_back(std::move(view));
  sending.clear();
  for (auto& [number, call] : calling) {
    for (auto* view : {&call.input, &call.output})
      if (*view != nullptr) freed_.push_back(std::move(*view));
    if (call.function != nullptr) freed_objects_.push_back(std::move(call.function));
  }
  calling.clear();
  while (!arrivals.empty() && !arrivals.back().is_complete) {
    if (arrivals.back().memory.view != nullptr)
      freed_.push_back(std::move(arrivals.back().memory.view));
    arrivals.pop_back();
  }
}

void GroupState::Close() {
  {
    const std::lock_guard lock(mutex);
    if (!is_closed && !failure)
      Fail({.cause = UsageError("the session is closed"),
            .where = {.messages = complete},
            .is_of_group = false});
  }
  changed_.notify_all();
  FreeViews();
}

void GroupState::FreeViews() {
  // Both outlive the lock: releasing runs Python.
  std::vector<std::unique_ptr<BufferView>> freed;
  std::vector<std::shared_ptr<py::object>> objects;
  py::object incoming;
  const std::lock_guard lock(mutex);
  freed.swap(freed_);
  objects.swap(freed_objects_);
  if (is_closed || failure) incoming = std::move(supply_.incoming);
}

bool GroupState::LacksRoom() {
  const std::lock_guard lock(mutex);
  if (arrivals.empty() || is_closed || failure) return false;
  return supply_.pool == nullptr ? is_full : supply_.pool->free_buffers() == 0;
}

bool GroupState::IsOver() {
  const std::lock_guard lock(mutex);
  return is_closed || failure;
}

}  // namespace prepost::python
