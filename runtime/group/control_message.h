// SPDX-License-Identifier: Apache-2.0
//
// ControlMessage: what the leader of a group and its members send each other, and its bytes, which
// are the same between processes of one machine and between machines.
#ifndef PREPOST_RUNTIME_GROUP_CONTROL_MESSAGE_H_
#define PREPOST_RUNTIME_GROUP_CONTROL_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ir/status.h"
#include "runtime/files/message_sum.h"
#include "runtime/group/group_key.h"
#include "runtime/report.h"

namespace prepost {

/// The steps of a run, in order, each taken by all members before the next begins; and what may
/// come at any time.
///
///     member -> leader                          leader -> member
///     kReady      receives posted, file ready   kStart    all are ready: go
///     kReport     program done: `report`
///     kDelivered                                kSum      all have delivered: sum your copy
///     kSummed     `sum`                         kCommit   all have what they must, you your `sum`:
///                                                         name your copy
///                                               kRelease  all is well: exit
///     kProgress   answer to kQuery              kQuery    how far are you?
///     kFailed     `text`; waits to be ended     kAbort    the run has failed: `text`
///
/// kReady, kStart and kDelivered go along a tree (gate_tree.h), the others are between member and leader.
/// Between machines sums are proved (sum_proof.h): kReport has the member's nonce in the place of
/// `proof`, kSum the leader's. kDone, below, says that the copy has its name, and in kProgress
/// `start_ns` is what rises whenever there is progress (run_member.h).
///
/// In a session's group, which moves many messages (session/keeper.h), kQuery, kProgress, kFailed
/// and kAbort mean the same; in kFailed and kAbort `progress` is 1 more than the node where it
/// failed, 0 if that is not known; in kQuery, which comes first of all, it is the group's
/// generation; and it is the number of messages or barriers in:
///
///     kJoined     it has all its connections     kJoined    all have: introductions have a deadline
///     kHave       it has so many messages        kPassed    all have arrived at so many barriers
///     kArrived    it has come to so many         kLast      so many messages are all
///                 barriers
///     kDone       it is done with all messages,  kRelease   all are done; `start_ns` barriers have
///                 and has come to `start_ns`                passed
///                 barriers
///                                                kGone      `text`: the nodes that are gone beside
///                                                           that of the kAbort which follows
///     kWaiting    in call `progress`, which is   kWaiting   so does the node `start_ns`
///                 `text` there
///     kStalled    `progress` - 1: a peer of which it hears nothing over their connections for data
///
/// and in kProgress for how many ms it has polled those connections without a longer pause.
///
/// Where a mover moves the messages (session/message_mover.h), a step of each is taken by all
/// members before the next, and `progress` is the number of messages that are so far; in kNext the
/// bytes of the message after those that were named before:
///
///                                                kDevice    `text`: where the NICs are
///                                                kNext      one more message
///     kPrepared   it has the memory              kArm       all have
///     kReady      it is armed                    kStart     all are
///     kDelivered  its part is done               kWhole     all are: every copy is complete
struct ControlMessage {
  enum class Kind : uint8_t {
    kReady,
    kStart,
    kDelivered,
    kSum,
    kSummed,
    kCommit,
    kRelease,
    kQuery,
    kProgress,
    kFailed,
    kAbort,
    kHave,
    kArrived,
    kDone,
    kPassed,
    kLast,
    kDevice,
    kNext,
    kPrepared,
    kArm,
    kWhole,
    kJoined,
    kStalled,
    kGone,
    kWaiting,
    kReport
  };
  Kind kind = Kind::kReady;
  /// kFailed: only because a peer is gone. kAbort in a session's group: because the node is gone.
  bool lost_peer = false;
  StatusCode code = StatusCode::kOk;  ///< kFailed
  uint32_t interval_ms = 0;           ///< kQuery: the next one follows at the latest then
  uint64_t start_ns = 0;              ///< kStart: when, by MonotonicNs(); 0: now
  uint64_t progress = 0;              ///< kProgress: rises whenever there is some
  NodeReport report = {};             ///< kReport; kProgress: so far. Its `node` is not sent
  MessageSum sum = {};                ///< kSummed, kCommit
  MacBytes proof = {};                ///< kSummed, kCommit: of `sum`; kReport, kSum: a nonce for it
  /// kFailed, kAbort: the cause; kProgress: what the node waits for; kDevice; kGone; kWaiting
  std::string text;

  /// Takes what fits; all but printable ASCII becomes '?', so that a message is one line.
  void SetText(const std::string& value);
};

/// The name of a kind, e.g. "delivered", for messages.
const char* Name(ControlMessage::Kind kind);

/// Every message has this size. Little-endian:
///
///     offset  bytes  field
///          0      1  kind
///          1      1  lost_peer, 0 or 1
///          2      1  code
///          3      1  0
///          4      4  interval_ms, at most 60,000
///          8      8  start_ns
///         16      8  progress
///         24     88  report: posts, posts during, wake-ups, completions, retries, cpu_ns,
///                    bytes_received, elapsed_ns, requests for events during, re-arms, their bound
///        112     32  sum
///        144     32  proof
///        176      2  bytes of text
///        178    510  text, printable ASCII; the rest 0
inline constexpr size_t kControlMessageBytes = 688;
inline constexpr size_t kControlTextBytes = 510;
inline constexpr uint32_t kControlIntervalMsMax = 60'000;

void EncodeControlMessage(const ControlMessage& message,
                          std::span<std::byte, kControlMessageBytes> out);
/// Errors (kRejected): which field has a value that no member or leader sends.
Result<ControlMessage> DecodeControlMessage(std::span<const std::byte, kControlMessageBytes> in);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_CONTROL_MESSAGE_H_
