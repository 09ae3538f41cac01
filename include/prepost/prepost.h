// SPDX-License-Identifier: Apache-2.0
//
// Prepost's groups, as RDMC has them: each member of a session creates a group with the same number
// and members, the root sends messages of any size, and every other member receives them, in order.
// docs/library.md explains it, examples/library/ has programs.
//
//     prepost::SessionOptions options;
//     options.self = 1;
//     options.members = {{"10.0.0.1"}, {"10.0.0.2"}, {"10.0.0.3"}};
//     options.secret = ...;                                  // the same at all members
//     auto session = prepost::Session::Open(options);        // Result<std::unique_ptr<Session>>
//     prepost::GroupCallbacks callbacks;
//     callbacks.incoming = [&](uint64_t, uint64_t bytes) {
//       buffer.resize(bytes);
//       return buffer.data();
//     };
//     callbacks.complete = [&](uint64_t, void*, uint64_t bytes) { ... };
//     callbacks.failed = [&](const prepost::Status& cause, const prepost::FailedMembers&) { ... };
//     (*session)->CreateGroup(7, {0, 1, 2}, /*root=*/0, {}, callbacks);
//
// The API follows semantic versioning by kApiVersion.
#ifndef PREPOST_PREPOST_H_
#define PREPOST_PREPOST_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prepost/collective.h"
#include "prepost/status.h"

namespace prepost {

/// Of this header: major, minor.
inline constexpr int kApiVersion[2] = {0, 2};

/// Where a member listens. The default is that of `prepost node`. At this member port 0 means any
/// that is free, and no host all addresses of this machine.
struct Address {
  /// A name or an address, IPv6 without brackets; or several addresses with commas between them,
  /// which are tried in turn, as all addresses of a name are.
  std::string host;
  uint16_t port = 7811;
};

/// How a session waits for something to happen.
enum class Waiting : uint8_t {
  kPolling,   ///< polls while a message is under way, and for idle_max after the last
  kHybrid,    ///< polls for as long as that has lately paid, SessionOptions::idle_max at most, then
              ///< sleeps
  kInterrupt  ///< sleeps whenever there is nothing to do
};

/// How blocks go over the network between two members. Over a long path a connection is made of
/// several streams, TCP connections of their own that carry pieces of blocks side by side: so it
/// begins faster, one lost packet slows only a part of it, and the systems' buffers limit it less.
struct PathOptions {
  /// Of a connection over a long path that this member makes: 1 to 16; 0: 8.
  uint16_t streams = 0;
  /// A path is long whose round trip takes so much.
  std::chrono::microseconds long_path{5000};
  /// What this member sends to another, at most, bytes/s; 0: no limit. Below the rate of a policer,
  /// which drops what exceeds it, this is faster than TCP alone finds out.
  double pace = 0;
  /// The kernel's congestion control by name, as "bbr"; empty: the system's.
  std::string congestion;
};

struct SessionOptions {
  uint32_t self = 0;  ///< this member's number: its place in `members`
  /// By number, as many at all members; one alone is fine. Those that are not known yet have no
  /// host: SetAddress() says it later.
  std::vector<Address> members;
  /// The name of each member's site, by number, the same at all members; empty: all are at one
  /// site. Paths between sites are longer than those inside: the plans of groups take each block to
  /// every site once, in whatever order a group names its members.
  std::vector<std::string> sites;
  /// What members prove to each other that they have: 16 to 4096 bytes, best random ones. Whoever
  /// has it is trusted. Messages are encrypted in groups with GroupOptions::seal alone.
  std::string secret;
  /// Address to listen at. Empty: the member's own or, if that is a name, all of this machine.
  std::string bind;
  /// How the thread of the session waits or, without own_thread, the caller's in Poll().
  Waiting waiting = Waiting::kHybrid;
  std::chrono::milliseconds idle_max{50};
  /// Within this time every survivor of a failure hears of it; at least 100 ms. Exceptions, which
  /// docs/library.md ("Failures") explains: members that are not there yet (connect_max); below 600
  /// ms a cut connection, as the kernel sends anything again only after 200 ms; a cut
  /// connection whose receiver takes nothing (2.5 s more) or on which nothing is sent (a minute); a
  /// connection that stalls while a group over a device exchanges addresses (connect_max).
  std::chrono::milliseconds failure_max{2000};
  /// How long a group waits for members that are not there yet.
  std::chrono::milliseconds connect_max{30000};
  /// Between members on one machine, of one user and in one namespace of processes and of the
  /// network, blocks go through memory that both have mapped or, where one process may read the
  /// other's (process_vm_readv), from memory to memory, instead of through the network stack. Who
  /// it is, the kernel says.
  bool local_copies = true;
  PathOptions paths = {};
  /// A thread of the session moves messages and calls back. Otherwise the caller does both, in
  /// Session::Poll(), whenever Session::fd() is readable.
  bool own_thread = true;
};

/// To be the same at all members of the group.
struct GroupOptions {
  /// A schedule of `prepost compile --algorithm`, or "auto".
  std::string algorithm = "auto";
  uint64_t block_bytes = 0;  ///< 0: chosen for each message
  /// Instead of both: a file of `prepost compile -o`, whose nodes are the places in the group's
  /// list of members. A rolled plan carries messages of any size, and one made for this member
  /// alone (`--node`) is enough; a flat plan carries messages of its own size only. The path may
  /// differ between members.
  std::string plan;
  /// GroupCallbacks::delivered is called. Costs each message a notice from every member.
  bool notify_delivered = false;
  /// What `incoming` returns is a mapping of a file (MAP_SHARED), and a message is complete, and
  /// counts for `delivered`, when it is on the file's disk: msync(MS_SYNC). Other groups are not
  /// held up.
  bool sync = false;
  /// Over which NICs messages go; empty: none, over TCP. A card of mlx5, such as "mlx5_0"; any
  /// device of libibverbs, "verbs:NAME[,port=N][,gid=INDEX][,pkey=KEY]"; a provider of libfabric,
  /// "fabric:tcp"; or "emulated", NICs in software, for members that are sessions of one process.
  /// Members of a group have devices of one kind, whatever cards and those of libibverbs are
  /// called, or none.
  std::string device;
  /// The group is for Session::Call() and what is made of it, instead of Send(): at most
  /// 1024 members, which connect to those that a call uses, when it does; `root` says only who
  /// leads it. Without a device, a plan, an algorithm, block_bytes, notify_delivered or sync;
  /// `incoming` is not called.
  bool calls = false;
  /// Of a group for calls: sums of floats are added in one order whatever their size. It costs an
  /// allreduce n/(n-1) of its time: 1.14 for 8 members.
  bool deterministic = false;
  /// Who moves messages over the device: "offload": the NIC, preposted, so that no CPU does
  /// anything from a message's start to its end; "cpu"; "auto": the NIC if the plan fits it,
  /// otherwise the CPU. May differ between members. Without a device the CPU does.
  std::string executor = "auto";
  /// All that members say to each other in the group is encrypted and authenticated, by AES-256-GCM
  /// or ChaCha20-Poly1305 with keys from the secret and of each connection: messages, calls,
  /// barriers, causes of failures. What is changed, left out or repeated on the way ends the group.
  /// Nothing is copied from memory to memory then (SessionOptions::local_copies). Without a device.
  bool seal = false;
  /// The root opens all connections, and there are none between the others: for members that reach
  /// neither the root, as where it is behind NAT or a firewall, nor each other. With algorithm
  /// "sequential", without a device.
  bool root_connects = false;
};

/// Buffers of one size, for messages of one group or several. All functions may be called by any
/// thread; a group keeps the pool alive.
class MemoryPool {
 public:
  /// `buffers` buffers that begin at pages. Errors: kUsage: none; kEnvironment: no memory.
  static Result<std::shared_ptr<MemoryPool>> Make(uint64_t buffer_bytes, uint32_t buffers);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Takes back what `complete` was called with; null, which a message of 0 bytes has, is nothing.
  /// Errors (kUsage): it is no buffer of this pool, or is free.
  Status Give(void* memory);
  uint64_t buffer_bytes() const;
  uint32_t buffers() const;
  uint32_t free_buffers() const;

 private:
  friend class Engine;
  class Impl;
  explicit MemoryPool(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// What GroupCallbacks::incoming may return in place of memory.
inline void* const kNotYet = reinterpret_cast<void*>(~uintptr_t{0});

/// Where a group has failed, and what this member has of it.
struct FailedMembers {
  /// Those to leave out of the next group: the first is where it failed, and the others are all
  /// that are known to be gone as well, as is a machine with several members. Empty: it is not
  /// known where.
  std::vector<uint32_t> members;
  /// What this member has: messages 0 to `messages` - 1, those that `complete` was called for.
  /// Others may have more or fewer; a new group of the survivors can tell them.
  uint64_t messages = 0;
  /// Not all connections could be made in time: two members do not reach each other, or one has not
  /// come. Where the root reaches all, it can send to each itself: the algorithm `sequential` with
  /// GroupOptions::root_connects.
  bool unreached = false;

  /// The first, for callbacks that take no more.
  operator std::optional<uint32_t>() const {  // NOLINT: implicit, for their parameters
    return members.empty() ? std::nullopt : std::optional(members.front());
  }
};

/// out[i] = own[i] op other[i], for `count` elements; `out` is `own` or `other`, or overlaps
/// neither. Called by the session's thread or in Poll(). An exception ends the group.
using Operation =
    std::function<void(void* out, const void* own, const void* other, uint64_t count)>;

/// A collective of the members of a group for calls. Kind, root, op, type and count must be the
/// same at all members. Counts are of elements of `type`. A part is what one member has for, or
/// gets from, another, or all: members are counted by their places in the group's list.
///
///     kind              input                  output
///     kMulticast        count at the root      count elsewhere; the root's may be null
///     kReduce           count                  count at the root
///     kAllreduce        count                  count
///     kReduceScatter    a part for each        a part, of count
///     kAllgather        a part, of count       a part of each
///     kGather           a part, of count       a part of each, at the root
///     kScatter          a part for each, at the root            a part, of count
///     kAlltoall         a part for each        a part of each
///     kBarrier          none                   none
///
/// In place: output may be input in kAllreduce, and in kReduce at the root; input may be this
/// member's part of the output in kAllgather, and in kGather at the root; output may be this
/// member's part of the input in kReduceScatter, and in kScatter at the root. Otherwise the two
/// must not overlap.
struct Call {
  CollectiveKind kind = CollectiveKind::kBarrier;
  uint32_t root = 0;  ///< a member: of kMulticast, kReduce, kGather and kScatter
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t count = 0;
  ElementType type = ElementType::kUint8;
  CombineOp op = CombineOp::kSum;  ///< of kReduce, kAllreduce and kReduceScatter
  /// Of op kUser and kUserOrdered. With kUserOrdered operands are in the order of the group's list.
  Operation operation;
  /// Of kAlltoall, instead of count, parts of any sizes: as many elements as the other member
  /// expects of this one, and where they begin. Empty places: one part after the other.
  std::vector<uint64_t> send_counts, send_places, receive_counts, receive_places;
};

/// All of them may be empty, except `incoming` or `pool` at members that receive. They are called
/// one at a time, by the session's thread or in Poll(), and may call the session, but not destroy
/// it. Messages of a group are numbered from 0. Only `incoming` may throw; an exception that
/// another one throws ends the program, or leaves Poll() with the session in a state in which it
/// can only be destroyed.
struct GroupCallbacks {
  /// A message of `bytes` bytes begins; the memory for it, which is the library's until `complete`
  /// or `failed`. Null, unless there are 0 bytes, ends the group: this member cannot take it. So
  /// does an exception, such as std::bad_alloc; `failed` names it everywhere. kNotYet: the message
  /// waits, and so do its senders; nothing fails. `incoming` is called for it again after
  /// Session::Resume(), or earlier.
  std::function<void*(uint64_t message, uint64_t bytes)> incoming;
  /// Instead of `incoming`: each message takes a buffer, which is to be given back after
  /// `complete`. While none is free the message waits, and so do its senders; a message that is
  /// larger than a buffer ends the group. After `failed` the buffer of a message under way is back
  /// in the pool.
  std::shared_ptr<MemoryPool> pool;
  /// Elsewhere than at the root: the message is there, in `memory`. At the root: its memory may be
  /// reused; of a short message at once, as it was copied.
  std::function<void(uint64_t message, void* memory, uint64_t bytes)> complete;
  /// At the root: all members have the message. See GroupOptions::notify_delivered.
  std::function<void(uint64_t message)> delivered;
  /// This member's connections of the group are there.
  std::function<void()> opened;
  /// After DestroyGroup() at all members: all messages are there, at all members.
  std::function<void()> closed;
  /// Something failed anywhere in the group; `cause` names it, and `where` the members to leave
  /// out; a function may take that as std::optional<uint32_t>, too. Called once, and then nothing
  /// of the group is called any more: all memory is the caller's again, the number is free, and a
  /// new group of the survivors can be created at once.
  std::function<void(const Status& cause, const FailedMembers& where)> failed;
};

/// One of several messages that are sent together.
struct MessagePart {
  const void* data = nullptr;
  uint64_t bytes = 0;
};

/// From how many peers, the members that it receives from or sends to, a member has blocks which
/// way.
struct PeerPaths {
  uint32_t memory = 0;   ///< through memory
  uint32_t network = 0;  ///< over TCP
  /// Of those over TCP: peers on this machine with which the system does not let this process share
  /// memory, though SessionOptions::local_copies asks for it: other users', those in another
  /// namespace of processes, as containers are, and, where it does not let them hand over memory or
  /// the group has `sync`, all where Yama's /proc/sys/kernel/yama/ptrace_scope is 1 or more.
  uint32_t forbidden = 0;
  /// Short messages, which are not moved by plans: with how many neighbours in their tree they go
  /// through memory that both map, and over TCP. Both 0: there are no short messages.
  uint32_t short_memory = 0;
  uint32_t short_network = 0;
};

/// What this member has sent to another one over TCP: `bytes` by `busy_seconds` are what the path
/// between the two carries while it is used.
struct PeerSpeed {
  uint32_t member = 0;
  uint64_t bytes = 0;  ///< that the other has acknowledged
  /// In which something was sent and not acknowledged yet, and the other had room for more.
  double busy_seconds = 0;
};

/// One member of a session. All functions may be called by any thread, also in callbacks, except
/// that Poll() is one thread's and the destructor none of the callbacks'.
class Session {
 public:
  /// Listens. Errors: kUsage: options; kEnvironment: the port is taken, no memory for the key. It
  /// and CreateGroup() raise this process's limit of open files, by as many as they may need, up to
  /// the hard limit.
  static Result<std::unique_ptr<Session>> Open(const SessionOptions& options);
  /// Leaves all groups; where they were not destroyed, the other members hear of a failure. In a
  /// process that was forked since it was opened a session is nothing any more: its files are
  /// closed there, calls are errors (kUsage), fd() is -1, and this does nothing.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The port that it listens at.
  uint16_t port() const;
  /// Where another member listens, for the groups that are created from now on. Errors (kUsage): no
  /// such member, this member itself, no host or no port.
  Status SetAddress(uint32_t member, const Address& address);

  /// To be called by all `members` (numbers of the session's members, this one among them), each in
  /// its own time, with the same arguments but for the callbacks. `number` is free here. Any number
  /// of groups may overlap, also with the same members. Returns at once: messages may be sent
  /// before the group is open. Errors: kUsage: a number in use, members twice or unknown, options;
  /// kEnvironment: the device cannot be used.
  Status CreateGroup(uint64_t number, const std::vector<uint32_t>& members, uint32_t root,
                     const GroupOptions& options, GroupCallbacks callbacks);
  /// At the root: queues a message; the one after the last, which the result numbers. A short one
  /// leaves here, in the caller's thread, if that of the session is asleep. `data` must
  /// stay as it is until `complete` (or `failed`); a mapped file that becomes shorter before that
  /// may be a SIGBUS where members of this machine get the message, unless the group has `sync`.
  /// Errors (kUsage): no such group, not its root, it
  /// is being destroyed, GroupOptions::plan is for another size; kRejected: the group has failed,
  /// and `failed`, which has not returned yet, names the same cause.
  Result<uint64_t> Send(uint64_t group, const void* data, uint64_t bytes);
  /// Several messages at once, one right after the other: nobody's come between. The first one's
  /// number. Errors: as Send(), and then none is sent.
  Result<uint64_t> SendMany(uint64_t group, std::span<const MessagePart> parts);
  /// Of a group for calls: to be called by all members in the same order; many may be under way.
  /// `done` is called once, when this member's part is over and the memory is the caller's again:
  /// with a cause if the group has failed, also through members that have called something else,
  /// and then before GroupCallbacks::failed; not any more once the session is destroyed. What was
  /// sent may still be on the way: a member that leaves then, without DestroyGroup() and `closed`,
  /// may take it back. Same bytes in every run and at all members: docs/library.md ("Collectives").
  /// Errors (kUsage): no such group, memory, an operation that the type does not have; kRejected:
  /// it has failed.
  Status Call(uint64_t group, const prepost::Call& call, std::function<void(const Status&)> done);
  // The same with a future, for callers that wait; not in callbacks, and with own_thread.
  std::future<Status> Broadcast(uint64_t group, uint32_t root, void* data, uint64_t bytes);
  std::future<Status> Reduce(uint64_t group, uint32_t root, const void* input, void* output,
                             uint64_t count, ElementType type, CombineOp op);
  std::future<Status> Allreduce(uint64_t group, const void* input, void* output, uint64_t count,
                                ElementType type, CombineOp op);
  std::future<Status> ReduceScatter(uint64_t group, const void* input, void* output, uint64_t count,
                                    ElementType type, CombineOp op);
  std::future<Status> Allgather(uint64_t group, const void* input, void* output, uint64_t bytes);
  std::future<Status> Gather(uint64_t group, uint32_t root, const void* input, void* output,
                             uint64_t bytes);
  std::future<Status> Scatter(uint64_t group, uint32_t root, const void* input, void* output,
                              uint64_t bytes);
  std::future<Status> Alltoall(uint64_t group, const void* input, void* output, uint64_t bytes);
  std::future<Status> Barrier(uint64_t group);
  /// Any of these.
  std::future<Status> Await(uint64_t group, const prepost::Call& call);

  /// `passed` is called once all members have called their Barrier() as often as this one has. It
  /// says nothing about messages; in a group for calls it is one of them. One that not all members
  /// have called when the group is closed, or fails, does not pass: `passed` is destroyed, before
  /// `closed` or `failed` is called. Errors: as Send(), but anywhere.
  Status Barrier(uint64_t group, std::function<void()> passed);
  /// Once all members have called it and every message is at every member, `closed` is called at
  /// all of them. Errors: as Barrier().
  Status DestroyGroup(uint64_t group);
  /// Ends the group at once, at all members, also while it is being destroyed: `failed` is called
  /// everywhere, here as well, with a cause that names this member and says `why`; empty: nothing
  /// more. Of those that do not have it yet nobody hears that it is over before they create it.
  /// Errors: as Barrier().
  Status AbortGroup(uint64_t group, const std::string& why);

  /// Has `incoming` be called again for the messages for which it returned kNotYet, in all groups.
  void Resume();

  /// How blocks come to this member; known when `opened` is called, before that and over a device
  /// all 0. Of a group for calls: from the peers of calls so far, none to begin with. Errors: as
  /// Barrier().
  Result<PeerPaths> Paths(uint64_t group) const;
  /// Of the members that blocks are sent to over TCP, since the group is open; as it was up to a
  /// quarter of SessionOptions::failure_max ago. Empty over a device. Who is slow is seen when
  /// those of all members are put together: docs/library.md. Errors: as Barrier().
  Result<std::vector<PeerSpeed>> Speeds(uint64_t group) const;
  /// What whoever runs the program may want to know of the group's paths, a sentence each: how
  /// often blocks cross between sites, members that are farther away than their sites say (at the
  /// root), buffers of this system that are too small for a long path. Known when `opened` is
  /// called, empty before. Over a device, where the library chooses between preposting and CPUs,
  /// also which it is and why, from the first message on. Errors: as Barrier().
  Result<std::vector<std::string>> Notes(uint64_t group) const;

  /// Without own_thread: readable when Poll() has something to do. Programs that do not ask for it
  /// spare other members the system calls that make it so.
  int fd() const;
  /// Without own_thread: does what there is to do, callbacks included; waits for something as
  /// SessionOptions::waiting says, up to `timeout` (negative: for ever). Not in callbacks. Errors:
  /// kEnvironment.
  Status Poll(std::chrono::milliseconds timeout);

 private:
  class Impl;
  friend struct HookedSession;
  explicit Session(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace prepost

#endif  // PREPOST_PREPOST_H_
