// SPDX-License-Identifier: Apache-2.0
//
// CollectiveTransfer: the memory of one collective under test: inputs of every node, outputs that
// start out wrong, and what these must be in the end. The expectation knows no plan: of each part
// that a node wants, the contributions of all ranks, combined in exact integers.
#ifndef PREPOST_TESTS_SUPPORT_COLLECTIVE_TRANSFER_H_
#define PREPOST_TESTS_SUPPORT_COLLECTIVE_TRANSFER_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/executor/executor.h"
#include "runtime/executor/playable.h"
#include "tests/support/random.h"

namespace prepost::test {

/// Of elements that are integers, where anything is combined and compared with what it must be.
class CollectiveTransfer {
 public:
  CollectiveTransfer(const PlanHeader& header, Random& random) : header_(header) {
    for (uint32_t node = 0; node < header.nodes; ++node) {
      const NodeBytes bytes = NodeBytesOf(header, NodeId(node));
      std::vector<std::byte>& input = inputs_.emplace_back(bytes.input);
      for (std::byte& byte : input) byte = static_cast<std::byte>(random.Below(256));
      outputs_.emplace_back(bytes.output, std::byte{0xee});
      scratch_.emplace_back(bytes.scratch, std::byte{0xdd});
    }
    given_ = inputs_;
  }

  NodeMemory memory(NodeId node) {
    NodeMemory memory{.source = inputs_[node.index()],
                      .target = outputs_[node.index()],
                      .scratch = scratch_[node.index()]};
    if (!header_.combine.is_none()) memory.combine = CombineFunctionOf(header_.combine);
    return memory;
  }
  /// The same for endpoints of NICs, of all nodes: blocks that lie apart have a place as well.
  std::vector<NodeMemory> StagedMemory(const VerifiedPlan& plan) {
    std::vector<NodeMemory> all;
    for (uint32_t node = 0; node < header_.nodes; ++node) {
      const BlockPlaces& its = *places_.emplace_back(Playable(plan).PlacesOf(NodeId(node)));
      NodeMemory& memory = all.emplace_back(this->memory(NodeId(node)));
      memory.staging = staging_.emplace_back(its.staging_bytes(), std::byte{0xcc});
      memory.places = &its;
    }
    return all;
  }
  const std::vector<std::byte>& input(NodeId node) const { return given_[node.index()]; }
  const std::vector<std::byte>& output(NodeId node) const { return outputs_[node.index()]; }

  void ExpectDelivered() const {
    EXPECT_TRUE(inputs_ == given_) << "an input was written";
    for (uint32_t node = 0; node < header_.nodes; ++node)
      EXPECT_TRUE(outputs_[node] == Expected(NodeId(node))) << "at node " << node;
  }

  /// What the output of `node` must be.
  std::vector<std::byte> Expected(NodeId node) const {
    std::vector<std::byte> expected;
    if (outputs_[node.index()].empty()) return expected;
    const Roles roles = header_.roles();
    const PartRow wanted = roles.Wanted(node);
    for (uint32_t i = 0; i < wanted.count; ++i) {
      std::vector<std::byte> part;
      for (uint32_t rank = 0; rank < roles.members(); ++rank) {
        const PartRow row = roles.Contributed(NodeId(rank));
        if (!row.Has(wanted.At(i))) continue;
        uint64_t begin = 0;  // behind the parts before it
        for (uint32_t before = 0; row.At(before) != wanted.At(i); ++before)
          begin += BytesOf(row.At(before));
        const auto first = given_[rank].begin() + static_cast<ptrdiff_t>(begin);
        const std::vector<std::byte> own(first,
                                         first + static_cast<ptrdiff_t>(BytesOf(wanted.At(i))));
        part = part.empty() ? own : Combined(part, own);
      }
      expected.insert(expected.end(), part.begin(), part.end());
    }
    return expected;
  }

 private:
  uint64_t BytesOf(uint32_t part) const {
    const Payload& payload = header_.payload;
    return payload.part_bytes.empty() ? payload.bytes : payload.part_bytes[part];
  }

  /// Written for tests: elements are numbers of 64 bits, of which all but the lowest bytes are cut
  /// off.
  std::vector<std::byte> Combined(const std::vector<std::byte>& a,
                                  const std::vector<std::byte>& b) const {
    static_assert(std::endian::native == std::endian::little);
    PREPOST_CHECK(!IsFloat(header_.combine.type));
    const uint64_t size = SizeOf(header_.combine.type);
    PREPOST_CHECK(size != 0 && a.size() == b.size() && a.size() % size == 0);
    std::vector<std::byte> result(a.size());
    for (size_t at = 0; at < a.size(); at += size) {
      uint64_t x = 0, y = 0;
      std::memcpy(&x, &a[at], size);
      std::memcpy(&y, &b[at], size);
      const uint64_t value = CombinedNumber(x, y);
      std::memcpy(&result[at], &value, size);
    }
    return result;
  }

  uint64_t CombinedNumber(uint64_t a, uint64_t b) const {
    // With the highest bit of an element turned over, signed numbers have the order of unsigned
    // ones.
    const ElementType type = header_.combine.type;
    const bool is_signed = type == ElementType::kInt8 || type == ElementType::kInt16 ||
                           type == ElementType::kInt32 || type == ElementType::kInt64;
    const uint64_t turned = is_signed ? uint64_t{1} << (8 * SizeOf(type) - 1) : 0;
    const bool is_less = (a ^ turned) < (b ^ turned);
    switch (header_.combine.op) {
      case CombineOp::kSum:
        return a + b;
      case CombineOp::kProd:
        return a * b;
      case CombineOp::kMin:
        return is_less ? a : b;
      case CombineOp::kMax:
        return is_less ? b : a;
      case CombineOp::kAnd:
        return a & b;
      case CombineOp::kOr:
        return a | b;
      case CombineOp::kXor:
        return a ^ b;
      case CombineOp::kNone:
      case CombineOp::kUser:
      case CombineOp::kUserOrdered:
        break;
    }
    PREPOST_CHECK(false);
    return 0;
  }

  const PlanHeader header_;
  std::vector<std::vector<std::byte>> inputs_, given_, outputs_, scratch_;  // by node
  std::deque<std::vector<std::byte>> staging_;                              // by node, as the next
  std::vector<std::unique_ptr<const BlockPlaces>> places_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_COLLECTIVE_TRANSFER_H_
