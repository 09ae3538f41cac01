// SPDX-License-Identifier: Apache-2.0
//
// ControlMessage: what the leader of a group and its members send each other, and its bytes, which
// are the same between processes of one machine and between machines.
#ifndef PREPOST_RUNTIME_GROUP_CONTROL_MESSAGE_H_
#define PREPOST_RUNTIME_GROUP_CONTROL_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/files/message_sum.h"
#include "runtime/group/group_key.h"
#include "runtime/trace/report.h"

namespace prepost {

/// What all members of a group are to reach before any goes on, each counted by itself. All but the
/// first are steps of a message that a mover moves (session/message_mover.h), and the last two of a
/// run, too.
enum class Gate : uint8_t {
  kBarrier,  ///< the caller is in a barrier
  kMemory,   ///< the member has memory for the message
  kArmed,    ///< its part of the plan is prepared
  kMoved     ///< its part is done
};
inline constexpr size_t kGates = 4;

/// Of what kind the cause of a failure is, as far as members go by it.
enum class FailureKind : uint8_t {
  kOther,
  kGone,      ///< a member is not there any more
  kTerms,     ///< members mean different things by one group
  kUnreached  ///< two members cannot connect to each other
};
inline constexpr size_t kFailureKinds = 4;

/// The messages: who sends what when (M a member, L the leader). In any group:
///
///     L  Query     again and again: how far are you? First of all, so that the group's generation
///                  is known. Between neighbours in the GateTree: a sign of life
///     M  Progress  answers it
///     M  Joined    it has all its connections; L: all have, introductions have a deadline
///     M  Arrived   to its parent in the GateTree (gate_tree.h): it and all below it have come to a
///                  gate
///     L  Passed    down the GateTree: all have
///     M  Stalled   it hears nothing of a peer over their connections for data
///     M  Failed    it waits to be ended
///     L  Gone      goes before an Abort
///     L  Abort     the group has failed
///     L  Last      so many messages are all
///     M  Done      it is done with them
///     L  Release   all are: exit
///
/// In a session's group, which moves many messages (session/keeper.h):
///
///     M  Have      it has messages
///     M  Waiting   it waits for others in a call; L: so does another member
///     L  Device    where its NICs are
///     L  Next      one more message, where a mover moves them
///
/// In a run, which moves one (run_member.h). Between machines sums are proved (sum_proof.h):
///
///     M  Report    its program is done
///     L  Sum       all have delivered: sum your copy
///     M  Summed    its sum
///     L  Commit    all have what they must: name your copy
///
/// A new message is a type here, a place in ControlMessage, and a row of kTypes
/// (control_message.cc). If it counts something, IsNews() of session/keeper_messages.cc knows when
/// it says something new; if it has a gate, so does SubjectOf() of control_socket.cc.
namespace control {

struct Query {
  uint64_t generation = 0;  ///< of a session's group (group_terms.h)
};
struct Progress {
  uint64_t attention_ms = 0;  ///< its connections for data have been polled, without a longer pause
  uint64_t steps = 0;         ///< rises whenever there is progress
  NodeReport so_far = {};     ///< its `node` is not sent
  std::string waits_for;
};
struct Joined {};
struct Arrived {
  Gate gate = Gate::kBarrier;
  uint64_t number = 0;  ///< how many times it has come to the gate
};
struct Passed {
  Gate gate = Gate::kBarrier;
  uint64_t number = 0;
  uint64_t start_ns = 0;  ///< when, by the leader's MonotonicNs()
};
struct Stalled {
  NodeId peer;
};
struct Failed {
  StatusCode code = StatusCode::kRejected;  ///< none that is ok
  FailureKind kind = FailureKind::kOther;
  bool lost_peer = false;            ///< only because a peer is gone
  std::optional<NodeId> where = {};  ///< as far as that is known
  uint64_t age_ms = 0;               ///< how long ago the member has created the group
  uint64_t ended_ms = 0;             ///< and how long ago it has ended there
  std::string cause;
};
struct Gone {
  std::vector<NodeId> nodes;  ///< kControlNodesMax at most; more follow in another one
};
struct Abort {
  FailureKind kind = FailureKind::kOther;
  std::optional<NodeId> where = {};
  uint64_t age_ms = 0;  ///< how long ago the leader has created the group
  std::string cause;
};
struct Last {
  uint64_t messages = 0;
};
struct Done {
  uint64_t barriers = 0;  ///< that it has come to
};
struct Release {
  uint64_t barriers = 0;  ///< that have passed
};

struct Have {
  uint64_t messages = 0;
};
struct Waiting {
  uint64_t call = 0;
  NodeId node;  ///< the leader's word: the member that waits
  std::string what;
};
struct Device {
  std::string place;
};
struct Next {
  uint64_t bytes = 0;
};

struct Report {
  NodeReport report = {};  ///< its `node` is not sent
  NonceBytes nonce = {};   ///< for its proof
};
struct Sum {
  NonceBytes nonce = {};  ///< for the leader's proof
};
struct Summed {
  MessageSum sum;
  MacBytes proof = {};
};
struct Commit {
  MessageSum sum;  ///< the member's own, again
  MacBytes proof = {};
};

}  // namespace control

using ControlMessage =
    std::variant<control::Query, control::Progress, control::Joined, control::Arrived,
                 control::Passed, control::Stalled, control::Failed, control::Gone, control::Abort,
                 control::Last, control::Done, control::Release, control::Have, control::Waiting,
                 control::Device, control::Next, control::Report, control::Sum, control::Summed,
                 control::Commit>;

/// The name of its type, e.g. "arrived", for messages.
const char* Name(const ControlMessage& message);

/// Every message has this size: as many as the longest, Progress, needs. The first byte is the
/// place of its type in ControlMessage, its fields follow in their order, and the rest is 0.
/// Little-endian:
///
///     bytes  field
///         1  a flag, 0 or 1; a gate; a status code; a kind of failure
///         4  a node
///         5  a node, if it is known: a flag, and the node or 0
///         8  a number
///        32  a sum, a nonce, a proof
///        88  a report: posts, posts during, wake-ups, completions, retries, cpu_ns,
///            bytes_received, elapsed_ns, requests for events during, re-arms, their bound
///     2 + n  a text of n bytes, kControlTextBytes at most: UTF-8 without control characters
///  2 + 4 n   n nodes, kControlNodesMax at most
inline constexpr size_t kControlMessageBytes = 617;
inline constexpr size_t kControlTextBytes = 510;
inline constexpr size_t kControlNodesMax = 150;

/// What fits into a text of a message, with "..." at the end of what does not. Control characters
/// and bytes that are no UTF-8 become '?' each, so that it is one line.
std::string ControlText(const std::string& value);

/// Needs texts that are ControlText()s, and no more nodes than there may be.
void EncodeControlMessage(const ControlMessage& message,
                          std::span<std::byte, kControlMessageBytes> out);
/// Errors (kRejected): what has a value that no member or leader sends.
Result<ControlMessage> DecodeControlMessage(std::span<const std::byte, kControlMessageBytes> in);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_CONTROL_MESSAGE_H_
