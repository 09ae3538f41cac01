// SPDX-License-Identifier: Apache-2.0
//
// QueueProgram: a plan lowered for NICs. Per node its CQs, QPs and the entries of their queues,
// still symbolic: objects are named by position, addresses by offset into the message, and every
// index counts from the start of the run. The encoder makes bytes and relocations of it; listings
// and reports use it to name what the bytes are for.
#ifndef PREPOST_BACKENDS_NIC_QUEUE_PROGRAM_H_
#define PREPOST_BACKENDS_NIC_QUEUE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "prepost/backends/nic/wqe.h"
#include "prepost/ir/plan.h"

namespace prepost::nic {

/// Positions in NodeProgram::cqs and NodeProgram::qps.
using CqId = Id<struct CqTag>;
using QpId = Id<struct QpTag>;

/// The op of an entry that no op of the plan asked for.
inline constexpr OpId kNoOp{0xffffffff};

/// The immediate of a block: what the receiving host checks once all is done.
constexpr uint32_t BlockImmediate(uint8_t epoch, uint32_t block) {
  return uint32_t{epoch} << 24 | (block & 0xffffff);
}

/// One WQE of a send queue. Each takes one basic block.
struct SendEntry {
  /// kWait, kSend (credit), kSendImm (block) or kNop (the final one).
  Opcode opcode = Opcode::kNop;
  bool signaled = false;
  CqId cq = {};  ///< kWait: on this CQ
  /// kWait: for its CQE number cqe_index, counted from the start of the run.
  uint32_t cqe_index = 0;
  uint32_t block = kNoBlock;  ///< kSendImm
  uint64_t offset = 0;        ///< kSendImm: first byte in the message
  uint32_t bytes = 0;         ///< kSendImm
  OpId op = kNoOp;            ///< the op it carries out; a WAIT has that of its send

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

struct CompletionQueue {
  enum class Role : uint8_t {
    kSends,     ///< of one QP's signaled sends
    kReceives,  ///< of one QP's receives
    kFinal,     ///< the one CQE that the host waits for
    kIdle       ///< of all directions that are not used
  };
  Role role = Role::kIdle;
  QpId qp = {};              ///< kSends, kReceives, kFinal
  uint32_t completions = 0;  ///< CQEs of one run; 0 when idle

  friend bool operator==(const CompletionQueue&, const CompletionQueue&) = default;
};

/// One RC QP. It is used in both directions: the channels node>peer and peer>node of one lane.
struct QueuePair {
  NodeId peer;  ///< the node itself for the loopback QP
  uint32_t lane = 0;
  bool loopback = false;
  CqId send_cq;
  CqId recv_cq;
  std::vector<SendEntry> sends;
  std::vector<ReceiveEntry> receives;

  friend bool operator==(const QueuePair&, const QueuePair&) = default;
};

struct NodeProgram {
  NodeId node;
  std::vector<CompletionQueue> cqs;
  std::vector<QueuePair> qps;  ///< sorted by (peer, lane); the loopback QP is last
  CqId final_cq;

  uint64_t wqes() const;  ///< of all send and receive queues
  uint64_t waits() const;
  uint64_t doorbells() const;  ///< send queues with work: the doorbells that start the node

  friend bool operator==(const NodeProgram&, const NodeProgram&) = default;
};

struct QueueProgram {
  Message message;
  uint8_t rnr_retry = 0;                ///< of every QP: 0 fails at once, 7 tries forever
  std::vector<NodeProgram> nodes = {};  ///< sorted by node; or only the one asked for

  friend bool operator==(const QueueProgram&, const QueueProgram&) = default;
};

/// "sends", "receives", "final", "idle".
const char* Name(CompletionQueue::Role role);
/// "QP 1>4 blocks", "QP 1>4 credits", "QP 1 loopback".
std::string Describe(const NodeProgram& program, QpId qp);
/// "sends of QP 1>4 blocks", "receives of QP 1>4 credits", "final", "idle".
std::string Describe(const NodeProgram& program, CqId cq);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_QUEUE_PROGRAM_H_
