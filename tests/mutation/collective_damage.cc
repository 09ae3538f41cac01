// SPDX-License-Identifier: Apache-2.0
//
// Damages to what only collectives other than multicast have: combines, scratch buffers, ranges,
// operations and parts.
#include "tests/mutation/mutator.h"

namespace prepost::test {
namespace {

bool IsCombine(const DraftOp& op) { return op.op.is_combine(); }
bool IsPlainReceive(const DraftOp& op) { return op.op.kind == OpKind::kRecv && !op.op.is_credit(); }
bool HasScratch(const DraftOp& op) { return op.op.scratch != kNoScratch; }
bool IsBlockOp(const DraftOp& op) { return !op.op.is_credit(); }

bool TakeInsteadOfCombine(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsCombine);
  if (!site) return false;
  DraftOp& op = draft.at(*site);
  op.op.kind = OpKind::kRecv;
  op.after.clear();
  if (random.Coin()) op.op.scratch = kNoScratch;
  return true;
}

bool CombineInsteadOfTake(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsPlainReceive);
  if (!site) return false;
  Op& op = draft.at(*site).op;
  op.kind = OpKind::kCombine;
  if (op.scratch == kNoScratch) {
    op.scratch = static_cast<uint16_t>(draft.header.scratch);
    ++draft.header.scratch;
  }
  return true;
}

bool CombineCredit(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random,
                           [](const DraftOp& op) { return op.op.is_credit() && !op.op.is_send(); });
  if (!site) return false;
  draft.at(*site).op.kind = OpKind::kCombine;
  return true;
}

/// A combine waits for nothing any more.
bool HastyCombine(Draft& draft, Random& random) {
  const auto site = PickOp(
      draft, random, [](const DraftOp& op) { return op.op.is_combine() && !op.after.empty(); });
  if (!site) return false;
  draft.at(*site).after.clear();
  return true;
}

bool OtherBuffer(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, HasScratch);
  if (!site || draft.header.scratch < 2) return false;
  draft.at(*site).op.scratch = static_cast<uint16_t>(random.Below(draft.header.scratch));
  return true;
}
bool LoseBuffer(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, HasScratch);
  if (!site) return false;
  draft.at(*site).op.scratch = kNoScratch;
  return true;
}
bool BufferOnOtherOp(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, [](const DraftOp& op) { return !HasScratch(op); });
  if (!site || draft.header.scratch == 0) return false;
  draft.at(*site).op.scratch = static_cast<uint16_t>(random.Below(draft.header.scratch));
  return true;
}
bool FewerBuffers(Draft& draft, Random& random) {
  if (draft.header.scratch == 0) return false;
  draft.header.scratch = random.Below(draft.header.scratch);
  return true;
}

bool WrongCount(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsBlockOp);
  if (!site) return false;
  uint32_t& count = draft.at(*site).op.count;
  count = random.Coin() ? count + 1 : count - 1;
  return true;
}
bool WrongCountAtBothEnds(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsBlockOp);
  if (!site) return false;
  uint32_t& count = draft.at(*site).op.count;
  count = random.Coin() ? count + 1 : count - 1;
  draft.at(*draft.Partner(*site)).op.count = count;
  return true;
}

/// As if for another collective with the same parts.
bool OtherCollective(Draft& draft, Random& random) {
  using enum CollectiveKind;
  const CollectiveKind others[] = {kMulticast, kReduce,  kAllreduce, kReduceScatter, kAllgather,
                                   kGather,    kScatter, kAlltoall,  kBarrier};
  draft.header.collective.kind = random.Pick(others);
  return true;
}
bool OtherOperation(Draft& draft, Random& random) {
  const CombineOp others[] = {CombineOp::kNone, CombineOp::kSum,  CombineOp::kMax,
                              CombineOp::kXor,  CombineOp::kUser, CombineOp::kUserOrdered};
  draft.header.combine.op = random.Pick(others);
  return true;
}
bool OtherType(Draft& draft, Random& random) {
  const ElementType others[] = {ElementType::kNone, ElementType::kInt8, ElementType::kFloat64,
                                ElementType::kInt32};
  draft.header.combine.type = random.Pick(others);
  return true;
}
bool OtherParts(Draft& draft, Random& random) {
  draft.header.payload.parts += random.Coin() ? 1 : ~0u;
  return true;
}
bool OtherPartSize(Draft& draft, Random& random) {
  std::vector<uint64_t>& sizes = draft.header.payload.part_bytes;
  if (sizes.empty()) return false;
  if (random.Below(4) == 0) {
    sizes.pop_back();
  } else {
    sizes[random.Below(static_cast<uint32_t>(sizes.size()))] = random.Below(60);
  }
  return true;
}
bool OneHelper(Draft& draft, Random&) {
  ++draft.header.collective.helpers;
  return true;
}

constexpr Mutator kCollectiveDamages[] = {
    {"take instead of combine", TakeInsteadOfCombine},
    {"combine instead of take", CombineInsteadOfTake},
    {"combine a credit", CombineCredit},
    {"combine without its edges", HastyCombine},
    {"another buffer", OtherBuffer},
    {"lose a buffer", LoseBuffer},
    {"a buffer on another op", BufferOnOtherOp},
    {"fewer buffers", FewerBuffers},
    {"wrong count", WrongCount},
    {"wrong count at both ends", WrongCountAtBothEnds},
    {"another collective", OtherCollective},
    {"another operation", OtherOperation},
    {"another type", OtherType},
    {"wrong parts", OtherParts},
    {"wrong size of a part", OtherPartSize},
    {"a helper", OneHelper},
};

}  // namespace

std::span<const Mutator> CollectiveDamages() { return kCollectiveDamages; }

}  // namespace prepost::test
