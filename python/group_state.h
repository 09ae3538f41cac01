// SPDX-License-Identifier: Apache-2.0
//
// GroupState: what a group has called back, until Python asks. Callbacks come from a thread that
// does not know Python: they never take the interpreter's lock, so that no wait of one for the
// other can go round in a circle; where the program supplies the memory itself, one of them does,
// with no other lock held. Views of Python's buffers that they are done with are kept until a call
// from Python frees them. Internal to python/.
#ifndef PREPOST_PYTHON_GROUP_STATE_H_
#define PREPOST_PYTHON_GROUP_STATE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "prepost/prepost.h"
#include "python/buffer_view.h"

namespace prepost::python {

struct Failure {
  Status cause;
  FailedMembers where;
  bool is_of_group = true;  ///< else the session was closed here
};

/// A message that is received, or has begun to be.
struct Arrival {
  uint64_t message = 0;
  Memory memory;
  bool is_complete = false;
};

/// What messages are received into; without both, buffers that wait for them, or new memory.
struct MemorySupply {
  std::shared_ptr<MemoryPool> pool;
  pybind11::object incoming;  ///< None, or called with a message's number and bytes
  /// Of new memory: for messages that nobody has received yet, of which one always fits.
  uint64_t backlog_bytes = 0;
};

/// Destroyed with the interpreter's lock held, after the session.
class GroupState {
 public:
  /// `notify` is called after every change.
  GroupState(std::function<void()> notify, MemorySupply supply)
      : notify_(std::move(notify)),
        supply_(std::move(supply)),
        has_incoming_(!supply_.incoming.is_none()) {}

  /// For Session::CreateGroup(); they keep `state`.
  static GroupCallbacks Callbacks(const std::shared_ptr<GroupState>& state);
  /// Whether this thread is in a call of MemorySupply::incoming, which the session waits for.
  static bool IsAsking();

  /// Nothing is called back any more. With the interpreter's lock.
  void Close();
  /// Frees the views that callbacks are done with, and `incoming` when it is over. With the
  /// interpreter's lock.
  void FreeViews();
  /// Python has lost the group, and nobody takes its messages. With the interpreter's lock.
  void Forget();
  /// Closed or failed: nothing is called back any more.
  bool IsOver();
  /// The next message waits until others are received, which are here.
  bool LacksRoom();
  /// All members have come to a barrier.
  void Pass();
  /// This member's part of call `number` is over, as it may be by a failure.
  void EndCall(uint64_t number, const Status& status);
  /// Calls `function`(out, own, other) on memory of `bytes` bytes each. Throws as Ask() does.
  static void Combine(const pybind11::object& function, void* out, const void* own,
                      const void* other, uint64_t bytes);
  /// Until `done`, or `stop`. `lock` is of `mutex`, with which `done` is called, by whatever thread
  /// changes something: nobody is woken for changes that he does not wait for. Without the
  /// interpreter's lock.
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point stop,
                 const std::function<bool()>& done);

  std::mutex mutex;

  // Guarded by mutex.
  bool is_opened = false;
  bool is_closed = false;
  bool is_receiving = false;  ///< a thread of Python is
  std::optional<Failure> failure;
  uint64_t sent = 0;       ///< messages whose memory may be reused
  uint64_t delivered = 0;  ///< messages that all members have
  uint64_t complete = 0;   ///< messages that this one has
  uint64_t barriers = 0;   ///< that were passed
  /// A message waits until others were received: to be called for is Session::Resume().
  bool is_full = false;
  std::map<uint64_t, std::unique_ptr<BufferView>> sending;  ///< by message
  uint64_t called = 0;                                      ///< calls that are over here
  /// Of a call that is not: what it uses.
  struct Calling {
    std::unique_ptr<BufferView> input, output;
    std::shared_ptr<pybind11::object> function;
  };
  std::map<uint64_t, Calling> calling;  ///< by call
  std::deque<Arrival> arrivals;         ///< in order
  std::unique_ptr<BufferView> posted;   ///< for the next message, if it fits

 private:
  template <typename Change>
  void Note(Change change);
  void* Incoming(uint64_t message, uint64_t bytes);
  bool HasRoom(uint64_t bytes) const;
  std::unique_ptr<BufferView> Ask(uint64_t message, uint64_t bytes);
  void Complete(uint64_t message, void* memory, uint64_t bytes);
  void Fail(Failure cause);
  void DropComplete();

  std::function<void()> notify_;
  std::condition_variable changed_;
  std::vector<const std::function<bool()>*> waiting_;  // guarded by mutex
  MemorySupply supply_;  ///< `incoming` is guarded by the interpreter's lock
  const bool has_incoming_;
  std::vector<std::unique_ptr<BufferView>> freed_;                // guarded by mutex
  std::vector<std::shared_ptr<pybind11::object>> freed_objects_;  // guarded by mutex
  bool is_forgotten_ = false;                                     // guarded by mutex
};

}  // namespace prepost::python

#endif  // PREPOST_PYTHON_GROUP_STATE_H_
