// SPDX-License-Identifier: Apache-2.0
//
// Validator: is the order that NICs will follow, read from nothing but the bytes of their queues
// and the table of objects, the plan's? It shares no code with lowering, encoding and linking, so
// that a mistake there cannot hide itself; which op a WQE carries out is recovered by counting.
//
// What is checked (each finding names its rule):
//   wqe       every WQE is well formed and names its own index and queue
//   op        the WQEs of a queue are its channels' ops in order: blocks with their bytes, key and
//             immediate, credits empty
//   wait      every WAIT names a CQ that exactly one queue and direction completes to, and a CQE
//             that will come
//   enable    every SEND_EN names a managed queue of the node, raises its limit, and not beyond the
//             part of the queue that it begins in; in the end everything is enabled, each queue by
//             one master
//   order     every op in an op's `after` has completed before the op can start
//   hazard    no block is read before its receive has completed (receives do not overlap, by `op`)
//   final     the last WQE of the last loopback queue is a signaled NOP that follows everything
//   window    no more is written ahead of the NIC, or comes to a CQ, than cyclic indices tell apart
//   part      of a queue that is longer than its ring, the last WQE of every half ring is signaled;
//             CQs hold a CQE of every WQE in the ring, which a queue that breaks gives
//   post      a credit is rung for only when the receives that it grants are posted
//   acyclic   all queues of all nodes together run to their end, written and rung as hosts do it
#ifndef PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_H_
#define PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/nic/host/queue_objects.h"
#include "ir/base/status.h"
#include "ir/plan.h"

namespace prepost::nic {

struct ValidationFinding {
  NodeId node;
  uint32_t qp = 0;        ///< position in QueueObjects::qps
  uint32_t position = 0;  ///< of the WQE
  const char* rule = "";
  std::string message;  ///< with place, expected and found

  /// "node 1: QP 1<>2 blocks (0x1001): WQE 3: order: ..."
  std::string ToString() const { return message; }
};

struct ValidationReport {
  uint64_t findings = 0;
  std::vector<ValidationFinding> first;  ///< at most kValidationFindingsMax, sorted by place
  uint64_t wqes = 0;                     ///< that were read

  bool ok() const { return findings == 0; }
  /// An error (kRejected) with the first findings, a line each.
  Status ToStatus() const;
};
inline constexpr size_t kValidationFindingsMax = 20;

/// Nodes are added one by one, so that the bytes of only one need exist at a time; twelve bytes per
/// WQE are kept. Time is linear in WQEs and `after` entries, but for sends that wait for their
/// block by way of other sends (validate_order.h). Not for use by several threads.
class Validator {
 public:
  /// `plan` must be verified and outlive the validator.
  explicit Validator(const Plan& plan);
  ~Validator();
  Validator(const Validator&) = delete;
  Validator& operator=(const Validator&) = delete;

  /// Everything but `acyclic`. Each node at most once.
  void Add(const QueueObjects& objects);
  /// After the nodes: `acyclic`, provided that all nodes of the plan were added without findings.
  ValidationReport Finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_H_
