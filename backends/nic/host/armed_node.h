// SPDX-License-Identifier: Apache-2.0
//
// ArmedNode: one node's queue program on a device: objects made, connected, queues filled, and
// started. It is all that the host does, and it knows no device in particular.
#ifndef PREPOST_BACKENDS_NIC_HOST_ARMED_NODE_H_
#define PREPOST_BACKENDS_NIC_HOST_ARMED_NODE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/nic/device.h"
#include "backends/nic/host/cqe_reader.h"
#include "backends/nic/host/device_lease.h"
#include "backends/nic/host/queue_feed.h"
#include "backends/nic/program/decode.h"
#include "backends/nic/program/encode.h"
#include "backends/nic/program/pairing.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"
#include "runtime/trace/report.h"

namespace prepost::nic {

/// What can go wrong at a node, what explains more first: the later ones are what follows from the
/// earlier ones at other QPs and nodes.
enum class FailureKind : uint8_t {
  kDeviceEvent,  ///< a device has stopped, or its port's link is down
  kQueueEvent,   ///< a NIC has moved a QP to the error state, or a CQ has lost a CQE
  kErrorCqe,     ///< any other error CQE
  kNoAnswer,     ///< transport retry exceeded: something is wrong at the peer's QP
  kWrongCqe,     ///< a block or an order that was not expected
  kFlushed       ///< the QP was moved to the error state
};
struct Failure {
  FailureKind kind = FailureKind::kFlushed;
  QpId qp;              ///< kNoAnswer: which one has none
  std::string message;  ///< names node and queue
};

/// Where one QP's queues stand, in WQEs of the current message.
struct QueuePosition {
  QpState state = QpState::kReset;
  uint32_t sends_written = 0;
  uint32_t sends_posted = 0;   ///< what doorbells or SEND_EN have announced to the NIC
  uint32_t sends_fetched = 0;  ///< what the NIC is through with or at work on
  uint32_t receives_posted = 0;
  uint32_t receives_taken = 0;
};
/// A node's part of the current message, from QUERY_QP and QUERY_CQ alone.
struct NodePosition {
  std::vector<QueuePosition> qps;  ///< by QpId
  std::vector<uint32_t> cqes;      ///< by CqId
};

struct ArmConfig {
  /// The node's buffer for each message of a sequence, all of the plan's size: read at the root,
  /// written elsewhere.
  std::vector<std::span<const std::byte>> messages;
  bool writable = false;
  uint8_t rnr_retry = 0;
  /// What the counters of send queues and CQs start from: tests have them wrap soon.
  uint16_t first_sq_index = 0;
  uint32_t first_cq_index = 0;
  uint8_t epoch = 0;  ///< tells the first message's blocks from others'; each further one adds 1
  /// False: CQs that the host does not read on the way hold one CQE. CheckAll() cannot be used.
  bool keeps_cqes = true;
};

/// `device` and `program` must outlive it. Steps: Make at every node, ConnectAll, Arm at every
/// node, RequestEvents if the host will sleep, Start, Poll until that is true, CheckAll. Then the
/// same from Arm on for the next message over the same queues; peers need not be as far, provided
/// that all QPs retry for receives (kRnrRetryForEver). A host of several nodes that waits for all
/// their devices at once calls TakeEvents instead of Poll.
///
/// With it its DeviceLease ends: then the message buffers may go. If CQEs are not kept, the entries
/// of a program without re-arms are not read any more after the last Arm and Start.
///
/// Errors: Arm asks for error events of all CQs, so that a host that waits wakes for whatever goes
/// wrong at its NIC. It must not wait for its end then: a QP that breaks is flushed, flushed WQEs
/// complete, and what waits for them goes on with stale bytes. FailGroup (group_failure.h) stops
/// all.
class ArmedNode {
 public:
  /// Makes CQs and QPs, with the program's rings, and registers the message buffers.
  static Result<ArmedNode> Make(Device& device, const NodeProgram& program,
                                const ArmConfig& config);

  const NodeProgram& program() const { return *program_; }
  const Qp& qp(QpId id) const { return qps_[id.index()]; }
  /// The bindings of the message that was armed last.
  const Bindings& bindings() const { return bindings_; }
  const Cq& cq(CqId id) const { return cqs_[id.index()].cq; }
  /// In Arm() and since: sends, WAITs, SEND_ENs and receives.
  uint64_t wqes_written() const { return feed_->wqes_written(); }
  const QueueFeed& feed() const { return *feed_; }
  /// CQEs of this message that the host has read.
  uint64_t cqes_read() const;
  /// The re-arms of queues that are written in parts, for a report.
  std::vector<QueueRearms> queue_rearms() const;

  /// What ConnectAll() connects: all QPs but the loopback ones.
  OpenNode open_node() const;
  /// Links and writes all receives and sends of the next message, or of longer queues the first
  /// ring. Rings nothing. The first time, asks for the error events of all CQs.
  Status Arm();
  /// Asks for the events that the host must not miss: of the final CQ, and of those whose CQEs make
  /// room in a ring.
  Status RequestEvents();
  /// Rings one doorbell per send queue that has work and is not managed. Where all queues fit their
  /// rings the host has nothing to do from here to the final CQE.
  void Start();

  /// Has `observer` called at each return from waiting that the device counts for this node, before
  /// anything that it brings: in Poll() and TakeEvents(). Before the first of these.
  void ObserveWakeups(std::function<void()> observer) { on_wakeup_ = std::move(observer); }
  /// Takes what there is, writes what has become free, and is true when the final CQE has come.
  /// Otherwise waits as WaitForEvent() does and polls once more; with timeout 0 it only polls.
  /// Errors (kRejected): something is wrong, see failure(); those of WaitForEvent().
  Result<bool> Poll(std::chrono::milliseconds timeout, int wake_fd);
  /// After a return from waiting for the device's events: acknowledges them and polls. True at the
  /// end; otherwise another event has been asked for. Errors: as Poll().
  Result<bool> TakeEvents();
  /// The same for a host of several nodes on the device, which has got an event of this one, and
  /// the device's `errors`, of whichever node.
  Result<bool> TakeEvents(std::span<const ErrorEvent> errors);
  /// The final CQE of the message that was armed last has been taken.
  bool is_done() const;
  /// WQEs that the next poll would write, by what is complete now.
  QueueFeed::Count Refillable();
  /// All CQEs: none is missing, none is an error, and the receives are the blocks of this epoch in
  /// the program's order. An error here means that stale bytes may have been forwarded: flushed
  /// receives satisfy WAITs too.
  Status CheckAll();
  /// The same for the CQEs that there are, and for error events, when a run has ended early.
  Status CheckSoFar();
  /// The failure that explains most among the CQEs and events polled so far.
  const std::optional<Failure>& failure() const { return failure_; }

  /// Moves all QPs to the error state, whatever they are at, so that nothing is forwarded any more.
  void MoveToError() { lease_.MoveToError(); }
  /// Asks the device for everything; after Arm. Errors: those of Device::QueryQp() and QueryCq().
  Result<NodePosition> Position() const;
  /// Send `send` of the current message, as it stands in the ring. Needs that it was written and
  /// its slot not re-armed since.
  SendWqe Decode(QpId id, uint32_t send) const;
  /// The CQ that a WAIT names, and which CQE of the current message it waits for.
  std::optional<CqId> WaitedCq(const SendWqe& wait) const;
  uint32_t WaitedCqe(const SendWqe& wait, CqId cq) const;
  /// Where the QP or CQ is, or nothing if the device cannot say.
  std::optional<QpCounters> Query(QpId id) const;
  std::optional<CqCounters> Query(CqId id) const;

 private:
  /// A CQ and how far the host has read it.
  struct Completions {
    Cq cq;
    CqeReader reader;
    uint32_t taken = 0;                        ///< CQEs of this message
    uint32_t completed = 0;                    ///< of a send queue: WQEs that these complete
    std::vector<uint32_t> signaled = {};       ///< of a send queue: which WQEs make a CQE
    std::optional<uint32_t> event_after = {};  ///< an event was asked for when so many were taken
    bool is_error_event_due = false;           ///< an error event is asked for
    bool is_wrong = false;                     ///< what follows means nothing
  };

  ArmedNode(Device& device, const NodeProgram& program, const ArmConfig& config)
      : device_(&device), lease_(device), program_(&program), config_(config) {}

  Status MakeObjects();
  bool IsRead(CqId id) const;
  bool IsKept(CqId id) const { return config_.keeps_cqes || IsRead(id); }
  uint32_t EntriesOf(CqId id) const;
  void FindSignaled();
  Status MakeQueuePairs();
  void AdvanceBases();
  Status RequestErrorEvent(CqId id);
  void TakeAll();
  void FindCauseOfFlush();
  Status Verdict() const;
  void Note(Failure failure);
  void NoteDeviceErrors();
  void NoteDeviceError(const ErrorEvent& event);
  void Take(CqId id);
  bool TakeOne(CqId id, const Cqe& cqe);
  std::string WrongSend(Completions& it, QpId qp, const Cqe& cqe) const;
  Result<bool> TakeNew();
  Result<bool> TakeOrAsk();
  void ForgetRequests();
  void NoteWakeup() {
    if (on_wakeup_) on_wakeup_();
  }

  Device* device_;
  DeviceLease lease_;
  const NodeProgram* program_;
  ArmConfig config_;
  std::vector<uint32_t> lkeys_;  // by message
  size_t armed_ = 0;             // messages
  Bindings bindings_;
  std::vector<QueuePairImage> images_;  // while messages are to be armed
  std::vector<Completions> cqs_;        // by CqId
  std::vector<Qp> qps_;                 // by QpId
  std::vector<CqId> part_cqs_;          // of queues that do not fit their rings
  std::optional<QueueFeed> feed_;
  std::optional<Failure> failure_;
  ErrorPacer errors_;
  std::function<void()> on_wakeup_;  // may be empty
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_ARMED_NODE_H_
