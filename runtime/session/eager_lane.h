// SPDX-License-Identifier: Apache-2.0
//
// EagerLane: what carries a group's short messages. They go down the EagerTree, each behind a
// header, as one stream of bytes that is the same on every connection: a member passes on what it
// reads as it comes, and takes the messages out of it when their turn is. So no message waits for
// another, many go in one system call, and nothing is agreed on for one. What is in between is
// bounded by each member's log (eager_log.h): a member that has no room reads no more, and in the
// end the root waits.
//
//     down    number 4 | bytes 4 | the message          of each, one after the other
//     up      messages 8 | bytes 8                      how far a member and all below it are
//
// Integers are little-endian. `messages` is how many of the group's messages all of them have, in
// groups that want to know. `bytes` is what has been read of the stream down; its highest bit says
// that the member has no room. That is said when it has changed, in every EagerLane::Tick().
#ifndef PREPOST_RUNTIME_SESSION_EAGER_LANE_H_
#define PREPOST_RUNTIME_SESSION_EAGER_LANE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/session/eager_log.h"
#include "runtime/transport/tcp/tcp_hook.h"
#include "runtime/transport/tcp/tcp_mesh.h"
#include "runtime/transport/tcp/tcp_path.h"
#include "runtime/transport/tcp/tcp_stream.h"
#include "runtime/transport/tcp/tcp_watch.h"

namespace prepost {

/// Longer messages are moved by plans.
inline constexpr uint64_t kEagerBytesMax = uint64_t{64} << 10;

struct EagerLaneOptions {
  NodeId self;
  std::optional<NodeId> parent;  ///< none: this is the root
  bool counts_messages = false;  ///< of all members or of none
  TcpHook* hook = nullptr;
  int epoll = -1;      ///< its connections are watched there,
  uint64_t token = 0;  ///< with this, plus the number of the connection, below kEagerLinksMax
};
inline constexpr uint64_t kEagerLinksMax = 256;

/// Used by one thread. Moves bytes in Service() alone.
class EagerLane {
 public:
  /// `sockets`: with the parent and all children. Errors: kEnvironment.
  static Result<std::unique_ptr<EagerLane>> Make(const EagerLaneOptions& options,
                                                 std::vector<TcpSocket> sockets);

  /// Something has happened on connection `link`: events of epoll.
  void Hear(size_t link, uint32_t events);
  /// Of connections through memory, which nobody hears of unless they are armed: whether something
  /// has come or room is there again.
  bool HasArrivals() const;
  bool has_memory() const { return has_memory_; }
  /// From now on events say so. Then HasArrivals() is to be asked.
  void Arm();
  void Disarm();
  /// Moves what can be moved. Errors (kRejected): a connection is lost (lost_peer()), or what came
  /// is not what a member sends.
  Status Service();
  /// Writes what can be written, and reads nothing.
  Status Push();
  /// Bytes that a child is still to be sent, of the one that has least.
  uint64_t unsent() const;
  /// Whether Service() has something to do already.
  bool has_work() const;
  std::optional<NodeId> lost_peer() const { return lost_peer_; }

  /// At the root: whether there is room for messages, and puts one it into the stream, of which it
  /// is a copy. Messages count from 0, modulo 2^32, and of those that go this way each is later.
  bool HasRoom(uint64_t bytes, size_t messages = 1) const {
    return bytes + messages * kHeaderBytes <= log_.room();
  }
  void Append(uint32_t number, std::span<const std::byte> message);

  /// Elsewhere: the next message of the stream.
  struct Front {
    uint32_t number = 0;
    uint64_t bytes = 0;
    bool is_whole = false;  ///< all of it is there
  };
  std::optional<Front> front() const;
  /// When it is whole: copies it to `memory`, of its size, and goes on to the one after it.
  void Take(std::span<std::byte> memory);

  /// This member has so many messages.
  void set_have(uint64_t messages) { have_ = messages; }
  /// All below this one have so many; without children, any number.
  uint64_t have_below() const;

  /// What has gone to the children over TCP since it was last said to count: the bytes of all that
  /// are acknowledged, and how long the one was busy that was for longest, as they share this
  /// machine's port. The kernel counts in steps of some milliseconds.
  TcpUse Use() const;
  void CountUse();
  /// To the child that is nearest, over TCP; 0: not known.
  std::chrono::microseconds round_trip() const;

  /// As Endpoint::CheckPeers().
  Status CheckPeers(std::chrono::milliseconds silence);
  /// A child that has not said for `silence` that it has read anything, or has no room, though
  /// there is something to be read; says the same to the parent. To be called several times in that
  /// time, while is_engaged().
  std::optional<NodeId> Tick(std::chrono::milliseconds silence);
  /// Whether something is on the way that a child has not said to have read, or that this member
  /// has not said so of.
  bool is_engaged() const;
  /// Whether the program has closed none of its connections.
  bool AreOpen() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kHeaderBytes = 8;
  static constexpr size_t kLogBytes = 8 * kEagerBytesMax;
  static constexpr size_t kStateBytes = 16;
  using StateBytes = std::array<std::byte, kStateBytes>;

  struct Link {
    TcpStream socket;
    NodeId peer;
    TcpWatch watch;
    bool readable = true;    ///< until a read finds nothing
    bool writable = true;    ///< until a write finds no room
    bool is_ending = false;  ///< there is an end of the stream to be read
    StateBytes state = {};   ///< a child's that is being read, the parent's that is being written
    size_t state_bytes = 0;
    // Of a child.
    TcpUse use_before;                              ///< as of CountUse()
    uint64_t sent = 0;                              ///< of the stream
    uint64_t have = 0;                              ///< messages, it and all below it
    uint64_t read_there = 0;                        ///< of the stream
    std::optional<Clock::time_point> unread_since;  ///< there is more, and it does not change
  };

  explicit EagerLane(const EagerLaneOptions& options) : options_(options), log_(kLogBytes) {}
  bool IsParent(const Link& link) const { return options_.parent && link.peer == *options_.parent; }
  bool Watch(const Link& link, size_t index) const;
  Io Move(Link& link, bool is_send, std::span<iovec> memory);
  Status IoError(const Link& link, const Io& io, const char* verb);
  bool IsAll(const Link& link, size_t bytes, size_t asked) const;
  Status Flush(Link& link);
  Status ReadStream(Link& link);
  Status ParseStream();
  Status WriteStream(Link& link);
  Status ReadStates(Link& link);
  Status TakeState(Link& link);
  Status WriteState(Link& link);
  bool HasToSayState() const;
  bool HasToWrite(const Link& link) const;
  void Trim();
  /// Up to where the stream may be passed on: all whose headers are known.
  uint64_t passable() const { return std::min(parsed_, log_.end()); }

  const EagerLaneOptions options_;
  EagerLog log_;
  std::vector<Link> links_;       ///< the parent's first; children in the order of the sockets
  bool has_memory_ = false;       ///< some links go through memory
  uint64_t parsed_ = 0;           ///< the next header
  uint64_t taken_ = 0;            ///< the next message
  std::optional<uint32_t> last_;  ///< of the headers so far
  uint64_t have_ = 0;
  uint64_t said_have_ = 0;  ///< to the parent, as is
  uint64_t said_read_ = 0;
  bool says_read_ = false;  ///< it is time to
  std::optional<NodeId> lost_peer_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_EAGER_LANE_H_
