// SPDX-License-Identifier: Apache-2.0
//
// QueueProgram: a plan lowered for NICs. Per node its CQs, QPs and the entries of their queues,
// still symbolic: objects are named by position, addresses by offset into the message, and every
// index counts from the start of the run. The encoder makes bytes and relocations of it; listings
// and reports use it to name what the bytes are for.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_QUEUE_PROGRAM_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_QUEUE_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/nic/wqe.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/device/block_immediate.h"

namespace prepost::nic {

/// Positions in NodeProgram::cqs and NodeProgram::qps.
using CqId = Id<struct CqTag>;
using QpId = Id<struct QpTag>;

/// The op of an entry that no op of the plan asked for.
inline constexpr OpId kNoOp{0xffffffff};

/// How data queues are driven; both are named after who holds the WAITs.
enum class LoweringMode : uint8_t {
  kInline,  ///< every data queue holds its own WAITs, each directly before its send
  kManaged  ///< data queues hold sends only; WAIT and SEND_EN stand on a loopback master
};
inline constexpr std::array<std::string_view, 2> kLoweringModeNames = {"inline", "managed"};
constexpr std::string_view Name(LoweringMode mode) {
  return kLoweringModeNames[static_cast<size_t>(mode)];
}

/// One WQE of a send queue. Each takes one basic block.
struct SendEntry {
  /// kWait, kSendEnable, kSend (credit), kSendImm (block) or kNop (the final one).
  Opcode opcode = Opcode::kNop;
  bool signaled = false;
  CqId cq = {};  ///< kWait: on this CQ
  /// kWait: for its CQE number cqe_index, counted from the start of the run.
  uint32_t cqe_index = 0;
  /// kSendEnable: the managed QP. kSend, kSendImm: the QP whose receives must be posted before this
  /// may start.
  QpId qp = {};
  /// kSendEnable: basic blocks that may run, from the start of the run. kSend, kSendImm: receives
  /// of `qp` that must be posted; 0: none.
  uint32_t count = 0;
  uint32_t block = kNoBlock;  ///< kSendImm
  uint64_t offset = 0;        ///< kSendImm: first byte in the message
  uint32_t bytes = 0;         ///< kSendImm
  /// The op it carries out; WAIT and SEND_EN have that of their send, merged ones of the last.
  OpId op = kNoOp;

  friend bool operator==(const SendEntry&, const SendEntry&) = default;
};

/// One WQE of a receive queue. The i-th gives CQE i of the queue's CQ.
struct ReceiveEntry {
  uint32_t block = kNoBlock;  ///< kNoBlock: a credit, no bytes
  uint64_t offset = 0;
  uint32_t bytes = 0;
  OpId op = kNoOp;

  friend bool operator==(const ReceiveEntry&, const ReceiveEntry&) = default;
};

/// How often a queue of `entries` is written to after the first time: half a ring each, once that
/// half is free. At most max(0, ceil(2 entries / ring) - 2).
constexpr uint64_t Rearms(uint64_t entries, uint64_t ring) {
  return entries <= ring ? 0 : (2 * entries + ring - 1) / ring - 2;
}

struct CompletionQueue {
  enum class Role : uint8_t {
    kSends,     ///< of one QP's signaled send WQEs
    kReceives,  ///< of one QP's receives
    kFinal,     ///< of the last loopback QP: its last CQE is the one that the host waits for
    kIdle       ///< of all directions that are not used
  };
  Role role = Role::kIdle;
  QpId qp = {};              ///< kSends, kReceives, kFinal
  uint32_t completions = 0;  ///< CQEs of one run; 0 when idle
  uint32_t entries = 1;      ///< of its ring, a power of two

  friend bool operator==(const CompletionQueue&, const CompletionQueue&) = default;
};

/// One RC QP. It is used in both directions: the channels node>peer and peer>node of one lane.
struct QueuePair {
  NodeId peer;  ///< the node itself for the loopback QP
  Lane lane = Lane::kBlocks;
  bool loopback = false;
  bool managed = false;  ///< runs what SEND_EN enables
  CqId send_cq;
  CqId recv_cq;
  /// Rings, powers of two; 0: no receive queue. A queue that is longer than its ring is written in
  /// parts of half a ring, and the last WQE of each such part of a send queue is signaled.
  uint32_t sq_wqebbs = 1;
  uint32_t rq_wqes = 0;
  std::vector<SendEntry> sends;
  std::vector<ReceiveEntry> receives;

  bool sends_in_parts() const { return sends.size() > sq_wqebbs; }
  bool receives_in_parts() const { return receives.size() > rq_wqes; }

  friend bool operator==(const QueuePair&, const QueuePair&) = default;
};

struct NodeProgram {
  NodeId node;
  std::vector<CompletionQueue> cqs;
  std::vector<QueuePair> qps;  ///< sorted by (peer, lane); loopback QPs are last
  CqId final_cq;               ///< of the last of all

  uint64_t wqes() const;  ///< of all send and receive queues
  uint64_t waits() const;
  uint64_t enables() const;
  /// Send queues with work that are not managed: the doorbells that start the node.
  uint64_t doorbells() const;
  uint64_t rearms() const;  ///< of all queues, see Rearms()
  /// The bytes of all rings, of WQEs and CQEs, as the host allocates them.
  uint64_t ring_bytes() const;

  friend bool operator==(const NodeProgram&, const NodeProgram&) = default;
};

struct QueueProgram {
  Payload payload;
  LoweringMode mode = LoweringMode::kInline;
  uint8_t rnr_retry = 0;                ///< of every QP: see QpConfig
  std::vector<NodeProgram> nodes = {};  ///< sorted by node; or only the one asked for

  friend bool operator==(const QueueProgram&, const QueueProgram&) = default;
};

/// QueueProgram::rnr_retry of a plan. With a barrier every receive is there before any send: one
/// that is missing is a bug, not something to wait for.
uint8_t RnrRetryOf(const PlanHeader& header);
/// The same of a member whose peers' rings are not known: one that is CPU-driven posts what does
/// not fit its ring as others complete, behind a barrier, too. `kSureRingWqes` fit any card.
uint8_t RnrRetryOfMember(const PlanHeader& header);
inline constexpr uint32_t kSureRingWqes = 1024;

/// The QP towards `peer` on `lane`. Every node that this one has a QP to has one back.
Result<QpId> FindQp(const NodeProgram& program, NodeId peer, Lane lane);

/// "sends", "receives", "final", "idle".
const char* Name(CompletionQueue::Role role);
/// One direction of a QP, as plans write it: "1>4 blocks", "1>4 credits".
std::string NameOfDirection(NodeId from, NodeId to, Lane lane);
/// The name of a QP between two nodes: "QP 1<>4 blocks".
std::string NameOfQp(NodeId node, NodeId peer, Lane lane);
/// The name of the loopback QP at `index` of `count`: "QP 1 loopback"; of several "QP 1 loopback
/// 0".
std::string NameOfLoopback(NodeId node, size_t index, size_t count);
/// NameOfQp() or NameOfLoopback().
std::string Describe(const NodeProgram& program, QpId qp);
/// "sends 1>4 blocks", "receives 4>1 credits", "sends of QP 1 loopback", "final", "idle".
std::string Describe(const NodeProgram& program, CqId cq);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_QUEUE_PROGRAM_H_
