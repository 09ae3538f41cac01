// SPDX-License-Identifier: Apache-2.0
//
// What an engine knows of a group, and what it is told to do; for its own files alone.
#ifndef PREPOST_RUNTIME_SESSION_ENGINE_GROUP_H_
#define PREPOST_RUNTIME_SESSION_ENGINE_GROUP_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/executor/executor.h"
#include "runtime/session/eager_lane.h"
#include "runtime/session/engine.h"
#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {

/// In epoll, in place of a group's serial: what wakes the engine, and its timer.
inline constexpr GroupSerial kWakeSerial = 0;
inline constexpr GroupSerial kTimerSerial = 1;
/// In epoll: this bit, the serial times kEagerLinksMax, and the number of the connection.
inline constexpr uint64_t kEagerToken = uint64_t{1} << 63;
/// Smaller messages say nothing of the rate, nor do those that are much smaller than others.
inline constexpr uint64_t kRatedBytesMin = uint64_t{32} << 10;
/// Messages that wait for a disk; the next one waits in the network.
inline constexpr size_t kSyncsMax = 2;

struct Engine::Command {
  enum class Kind : uint8_t { kCreate, kSend, kCall, kBarrier, kDestroy, kAbort };
  Kind kind = Kind::kCreate;
  std::shared_ptr<Group> group;
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::function<void()> passed = {};
  std::string why = {};
  std::shared_ptr<GroupCall> call = {};
};

struct Engine::Group {
  enum class State : uint8_t { kConnecting, kIdle, kOpening, kRunning, kBroken, kGone };

  EngineGroupOptions options;
  GroupSerial serial = 0;
  std::unique_ptr<GroupPlans> plans;
  GroupCallbacks callbacks;
  PlanHash terms = {};
  std::chrono::steady_clock::time_point created = std::chrono::steady_clock::now();

  // Under the engine's mutex.
  uint64_t sent = 0;  ///< messages that the root has queued
  bool is_destroyed = false;
  Status failure;  ///< why it has failed; ok again when `failed` has been called
  PeerPaths paths;
  std::vector<PeerSpeed> speeds;
  std::vector<std::string> notes;

  // The turning thread's own.
  State state = State::kConnecting;
  bool is_busy = false;           ///< there is more to do, without anything from outside
  bool is_closing = false;        ///< this member has called Destroy()
  bool is_done = false;           ///< and the keeper knows that it has all messages
  std::optional<uint64_t> last;   ///< how many messages there are in all
  std::deque<MessagePart> queue;  ///< at the root
  std::deque<std::function<void()>> barriers;  ///< not passed yet
  uint64_t arrived = 0;
  uint64_t message = 0;  ///< the one at hand, or the next
  void* memory = nullptr;
  uint64_t bytes = 0;
  std::chrono::steady_clock::time_point began;  ///< the message at hand
  double rate = 0;           ///< at the root, of messages so far, bytes/s; 0: not known
  uint64_t rated_bytes = 0;  ///< the largest of these
  double short_rate = 0;     ///< the same, of short ones
  uint64_t short_bytes = 0;  ///< of those that say something of it, since it was looked at
  uint64_t short_count = 0;  ///< and their number, since EagerLane::CountUse()
  std::unique_ptr<TcpEndpoint> endpoint;
  std::pmr::unsynchronized_pool_resource pool;
  std::optional<CpuExecutor> executor;
  std::unique_ptr<EagerLane> eager;  ///< null: no message is short
  Status eager_failure;              ///< found by SendAtOnce()
  std::deque<Message> sent_at_once;  ///< whose `complete` is to be called
  std::chrono::steady_clock::time_point sent_short_at;
  uint32_t follow_each_other = 0;                     ///< short messages, right one after the other
  bool has_arrivals = true;                           ///< of the endpoint, which Poll() hears of
  bool is_awake = false;                              ///< in Engine::awake_
  uint32_t quiet_turns = 0;                           ///< since something has come
  std::chrono::steady_clock::time_point quiet_since;  ///< a while later
  uint64_t have = 0;                                  ///< messages that are complete here
  std::unique_ptr<MessageMover> mover;  ///< null: the executor plays over the endpoint
  std::optional<std::string> place;     ///< for the mover, until it has its connections
  bool has_place = false;               ///< the root has said it
  bool is_connected = false;            ///< the mover has them
  GroupReach reach = GroupReach::kNetwork;
  bool copies_all = true;          ///< its blocks are staged or read by all its peers
  bool is_direct = false;          ///< as GroupPlans::IsDirect(), of the message at hand
  uint64_t delivered = 0;          ///< at the root: messages that all members are known to have
  uint64_t have_all = 0;           ///< the same, by what members report up the EagerTree
  std::set<uint64_t> sent_to_all;  ///< messages after those that its own sends say all have
  std::deque<uint64_t> announced;  ///< not at the root: bytes of messages that are to come
  std::deque<Message> with_mover;  ///< the mover has them
  bool waits_for_buffer = false;   ///< of its pool, or until `incoming` has memory
  std::deque<Message> syncing;     ///< received, and not on the disk yet
  std::unique_ptr<FileSync> sync;
  std::set<NodeId> peers;  ///< that there are connections with
  // Of a group for calls; the one at hand is the first, and `message` its number.
  std::deque<std::shared_ptr<GroupCall>> calls;
  std::deque<std::pair<uint64_t, CallShape>> called;  ///< the last that are over, by number
  std::unique_ptr<std::byte[]> scratch;
  uint64_t scratch_bytes = 0;
  std::optional<BlockPlaces> places;  ///< of an uneven one at hand
  bool is_claimed = false;            ///< the one at hand
  std::chrono::steady_clock::time_point claimed_at;

  Roles roles() const {
    return {options.collective, static_cast<uint32_t>(options.members.size()), /*blocks=*/1};
  }
  /// Whether this process copies what goes through memory itself. Not memory that may be a file's,
  /// which is a SIGBUS where the file has shrunk, or its disk is full: the kernel copies that.
  bool MayCopy() const { return mover == nullptr && !options.sync; }
  /// Whether short messages go down the EagerTree.
  bool HasEager() const { return MayCopy() && options.members.size() > 1 && plans->HasEager(); }
  /// Whether blocks go through memory that all peers on this machine have mapped. Not those of
  /// calls, where all members are busy and each block has one receiver.
  bool StagesBlocks() const { return MayCopy() && !options.is_for_calls; }
  bool is_source() const { return roles().IsSource(options.self); }
  bool is_target() const { return roles().IsTarget(options.self); }
  /// What comes through memory.
  bool HasArrivals() const {
    return (endpoint != nullptr && endpoint->HasArrivals()) ||
           (eager != nullptr && eager->HasArrivals());
  }
  void Arm() const {
    if (eager != nullptr) eager->Arm();
    if (endpoint != nullptr) endpoint->Arm();
  }
  void Disarm() const {
    if (eager != nullptr) eager->Disarm();
    if (endpoint != nullptr) endpoint->Disarm();
  }
  /// Whether there is a message at hand; a call whose connections are being opened is one.
  bool is_running() const { return state == State::kRunning || state == State::kOpening; }
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_ENGINE_GROUP_H_
