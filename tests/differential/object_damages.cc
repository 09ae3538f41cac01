// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/object_damages.h"

#include <cstdint>
#include <utility>

#include "backends/nic/device.h"

namespace prepost::test {
namespace {

/// A ring of one of the node's QPs or CQs gets another power of two; false: it has none, or would
/// have none.
template <auto kQueues, auto kRing, bool kIsDoubled>
bool Resize(nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
  uint32_t& ring = PickFrom(node.*kQueues, random).*kRing;
  if (ring == 0 || (ring == 1 && !kIsDoubled)) return false;
  ring = kIsDoubled ? ring * 2 : ring / 2;
  return true;
}
constexpr auto kQps = &nic::NodeProgram::qps;
constexpr auto kCqs = &nic::NodeProgram::cqs;

const ObjectDamage kObjectDamages[] = {
    {"ring of sends halved", Resize<kQps, &nic::QueuePair::sq_wqebbs, false>,
     "was longer than its queue's last part, or every WQE that now ends one is signaled"},
    {"ring of sends doubled", Resize<kQps, &nic::QueuePair::sq_wqebbs, true>,
     "is longer than it must be"},
    {"ring of receives halved", Resize<kQps, &nic::QueuePair::rq_wqes, false>,
     "is written in parts, and what finds no receive is retried"},
    {"ring of receives doubled", Resize<kQps, &nic::QueuePair::rq_wqes, true>,
     "is longer than it must be"},
    {"ring of sends beyond 2^14",
     [](nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
       PickFrom(node.qps, random).sq_wqebbs = 1u << 15;
       return true;
     },
     "the queue is shorter than 2^15"},
    {"ring of a CQ halved", Resize<kCqs, &nic::CompletionQueue::entries, false>},
    {"ring of a CQ doubled", Resize<kCqs, &nic::CompletionQueue::entries, true>,
     "is longer than it must be"},
    {"ring of a CQ of one",
     [](nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
       return std::exchange(PickFrom(node.cqs, random).entries, 1) != 1;
     }},
    {"ring of a CQ beyond 2^22",
     [](nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
       nic::CompletionQueue& cq = PickFrom(node.cqs, random);
       cq.entries = 1u << 23;
       return cq.role != nic::CompletionQueue::Role::kIdle;
     }},
    {"CQEs that the host expects",
     [](nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
       PickFrom(node.cqs, random).completions += random.Coin() ? 1 : ~0u;
       return true;
     }},
    {"RNR retries",
     [](nic::QueueProgram& program, nic::NodeProgram&, Random&) {
       program.rnr_retry = program.rnr_retry == 0 ? nic::kRnrRetryForEver : 0;
       return true;
     }},
    {"mode of the program",
     [](nic::QueueProgram& program, nic::NodeProgram&, Random&) {
       program.mode = program.mode == nic::LoweringMode::kInline ? nic::LoweringMode::kManaged
                                                                 : nic::LoweringMode::kInline;
       return true;
     }},
    {"mode of a queue",
     [](nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
       nic::QueuePair& qp = PickFrom(node.qps, random);
       qp.managed = !qp.managed;
       return true;
     }},
    {"size of a block in the head",
     [](nic::QueueProgram& program, nic::NodeProgram&, Random&) {
       ++program.payload.block_bytes;
       return true;
     }},
    {"op of a send or WAIT",
     [](nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
       std::vector<nic::SendEntry>& sends = PickFrom(node.qps, random).sends;
       if (sends.empty()) return false;
       PickFrom(sends, random).op.value += 1 + static_cast<uint32_t>(random.Below(3));
       return true;
     },
     "stands in no byte; from the plan it is set again"},
    {"op of a receive",
     [](nic::QueueProgram&, nic::NodeProgram& node, Random& random) {
       std::vector<nic::ReceiveEntry>& receives = PickFrom(node.qps, random).receives;
       if (receives.empty()) return false;
       PickFrom(receives, random).op = nic::kNoOp;
       return true;
     },
     "stands in no byte; from the plan it is set again"},
};

}  // namespace

std::span<const ObjectDamage> ObjectDamages() { return kObjectDamages; }

}  // namespace prepost::test
