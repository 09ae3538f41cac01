// SPDX-License-Identifier: Apache-2.0
//
// What a collective must make of its inputs, by the expressions of its plan, evaluated here one
// after the other: for checking what nodes have made of them.
#ifndef PREPOST_RUNTIME_FILES_COLLECTIVE_SUMS_H_
#define PREPOST_RUNTIME_FILES_COLLECTIVE_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/base/status.h"
#include "ir/verify/verify.h"
#include "runtime/base/checkpoint.h"
#include "runtime/files/message_sum.h"

namespace prepost {

/// Where each node's input begins in the inputs of all, one after the other; the last: their bytes.
std::vector<uint64_t> InputOffsets(const PlanHeader& header);
/// Bytes of a run's input: of a multicast its message, else of all nodes' inputs.
uint64_t InputBytesOf(const PlanHeader& header);

/// By node: the first node whose output has the same blocks, and so the same bytes: the rules value
/// and agree see to that, and built-in operations are the same with swapped operands. Itself: it is
/// the first, or has no output. Linear in the nodes for every collective.
std::vector<NodeId> FirstsOfEqualOutputs(const PlanHeader& header);

/// Reads bytes of all nodes' inputs, one after the other, from `offset` on.
using ReadInputs = std::function<Status(uint64_t offset, std::span<std::byte> out)>;

/// By node: the sum of its output; none: it has none. A built-in operation. Costs as many combines
/// as the plan, on one core. Errors: those of `read` and `checkpoint`.
Result<std::vector<std::optional<MessageSum>>> ExpectedSums(const VerifiedPlan& plan,
                                                            const ReadInputs& read,
                                                            const Checkpoint& checkpoint = {});

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_COLLECTIVE_SUMS_H_
