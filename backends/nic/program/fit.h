// SPDX-License-Identifier: Apache-2.0
//
// Fit: what a lowered plan needs of its nodes' NICs beside what they have. Lower() refuses a plan
// by the first finding; `prepost verify --device-profile` prints them all.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_FIT_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_FIT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/nic/program/lower.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"
#include "ir/plan.h"

namespace prepost::nic {

/// Something that does not fit.
struct Misfit {
  std::string where;           ///< JSON pointer into the plan; empty: it is the device's lack
  std::optional<NodeId> node;  ///< none: of all nodes
  std::string what;            ///< "receive queue of QP 1<>0 blocks", "node", "block"
  uint64_t needed = 0;         ///< 0 of what is no amount, such as a capability
  uint64_t limit = 0;
  std::string message;  ///< with all of these but the node

  /// "node 1: ..." or the message alone.
  std::string ToString() const;
};

/// A queue that is longer than its ring, and so written in parts.
struct PartedQueue {
  NodeId node;
  std::string what;  ///< "send queue of QP 1<>0 blocks"
  uint64_t wqes = 0;
  uint32_t ring = 0;
  uint64_t rearms = 0;  ///< see Rearms()
};

enum class Resource : uint8_t { kQps, kCqs, kSendQueue, kReceiveQueue, kCompletionQueue, kBlock };
inline constexpr std::array<std::string_view, 6> kResourceNames = {
    "qps", "cqs", "send_queue_wqes", "receive_queue_wqes", "cq_entries", "block_bytes"};
constexpr std::string_view Name(Resource resource) {
  return kResourceNames[static_cast<size_t>(resource)];
}

struct ResourceUse {
  uint64_t most = 0;   ///< of a node (QPs, CQs), or of a single queue or block
  NodeId node;         ///< which needs the most; the first of several
  uint64_t total = 0;  ///< of all nodes and queues; of blocks: the message
  uint64_t limit = 0;  ///< on `most`; of send and receive queues: what is written at once
};

struct Fit {
  static constexpr size_t kListedMax = 20;

  LoweringMode mode = LoweringMode::kInline;
  uint64_t misfits = 0;
  std::vector<Misfit> first_misfits;  ///< kListedMax at most, in the plan's order
  uint64_t parted = 0;                ///< queues written in parts
  std::vector<PartedQueue> first_parted;
  uint64_t rearms = 0;                                       ///< of all queues
  std::array<ResourceUse, kResourceNames.size()> uses = {};  ///< by Resource
  /// False: the device can do nothing of it, so no node's needs were computed.
  bool is_counted = false;

  bool ok() const { return misfits == 0; }
  const ResourceUse& of(Resource resource) const { return uses[static_cast<size_t>(resource)]; }
};

/// Adds up nodes. The header and options must outlive it.
class FitCheck {
 public:
  /// Checks what needs no node: the device's capabilities and the block.
  FitCheck(const PlanHeader& header, const LowerOptions& options);

  /// False when nothing can be lowered for the device: then no node may be added.
  bool is_usable() const { return is_usable_; }
  /// `position` is that of the node's program in the plan.
  void Add(const NodeProgram& program, size_t position);

  const Fit& fit() const { return fit_; }
  /// kRejected with the first finding, if any.
  Status status() const;

 private:
  void CheckDevice();
  void RefuseAtNode(const std::string& what, uint64_t needed, uint64_t limit, std::string message);
  void AtMost(const std::string& what, uint64_t needed, const char* unit, uint64_t limit);
  void AddQueuePair(QpId id);
  void CheckCredits(QpId id);
  void AddParts(QpId id, const char* kind, uint64_t wqes, uint32_t ring);
  void AddUse(Resource resource, uint64_t most, uint64_t total);
  void Refuse(Misfit misfit);

  const PlanHeader& header_;
  const DeviceProfile& profile_;
  const NodeProgram* program_ = nullptr;  // the one being added
  size_t position_ = 0;                   // of that one
  bool is_usable_ = true;
  Fit fit_;
};

/// The fit of all nodes of `plan`, which must be valid, with the device of `options`. Linear; holds
/// one node's queues at a time.
Fit CheckFit(const Plan& plan, const LowerOptions& options);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_FIT_H_
