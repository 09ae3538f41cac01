// SPDX-License-Identifier: Apache-2.0
//
// The part of validation that needs one node only; what it finds out about the node's queues is
// kept for the part that needs all.
#ifndef PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_NODE_H_
#define PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_NODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/nic/host/queue_objects.h"
#include "backends/nic/validate/validate.h"
#include "ir/plan.h"

namespace prepost::nic {

/// What a send WQE does, as far as order goes.
struct QueueStep {
  enum class Kind : uint8_t { kWait, kEnable, kSend, kNop };
  Kind kind = Kind::kNop;
  bool signaled = false;
  /// kWait: position of the CQ. kEnable: of the QP. kSend: of the QP of which the host posts
  /// receives first.
  uint32_t target = 0;
  /// kWait: CQE. kEnable: WQEs. kSend: receives posted, 0: it does not matter. All are counted from
  /// the start of the run.
  uint32_t value = 0;
};

struct QueueSteps {
  NodeId peer;
  Lane lane = Lane::kBlocks;
  uint32_t number = 0;
  uint32_t peer_qpn = 0;
  bool loopback = false;
  bool managed = false;
  uint32_t send_cq = 0;  ///< position
  uint32_t recv_cq = 0;
  uint32_t receives = 0;
  uint32_t send_ring = 1;
  uint32_t receive_ring = 0;
  std::vector<QueueStep> steps;
};

struct NodeSteps {
  NodeId node;
  uint32_t cqs = 0;
  std::vector<QueueSteps> queues;
};

/// Collects findings, of which the first are kept.
class ValidationFindings {
 public:
  void Add(const QueueObjects& objects, size_t qp, size_t position, const char* rule,
           const std::string& what);
  /// About no queue in particular.
  void AddGlobal(const char* rule, const std::string& what);
  /// Sorted.
  ValidationReport Take(uint64_t wqes);
  bool empty() const { return report_.findings == 0; }
  /// Whether a message is worth making.
  bool is_full() const { return report_.first.size() >= kKeptMax; }
  void Count() { ++report_.findings; }

 private:
  static constexpr size_t kKeptMax = 4 * kValidationFindingsMax;
  ValidationReport report_;
};

/// As a listing names the object, with its number: "QP 1<>2 blocks (0x1001)",
/// "CQ receives 2>1 blocks (0x402)".
std::string DescribeQp(const QueueObjects& objects, size_t qp);
std::string DescribeCq(const QueueObjects& objects, size_t cq);
/// "QP 1<>2 blocks (0x1001)", of the queue at `position` of `node`.
std::string DescribeQp(const NodeSteps& node, size_t position);

NodeSteps ValidateNode(const Plan& plan, const QueueObjects& objects, ValidationFindings* findings);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_NODE_H_
