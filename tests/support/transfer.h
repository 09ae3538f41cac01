// SPDX-License-Identifier: Apache-2.0
//
// Transfer: the memory of one multicast under test: a message of bytes that name their place, and a
// buffer per node that starts out wrong. Any executor's tests can use it.
#ifndef PREPOST_TESTS_SUPPORT_TRANSFER_H_
#define PREPOST_TESTS_SUPPORT_TRANSFER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost::test {

class Transfer {
 public:
  /// Messages of different seeds differ nearly everywhere.
  explicit Transfer(const PlanHeader& header, uint64_t seed = 0)
      : root_(header.collective.root), message_(header.payload.bytes) {
    uint64_t state = 0x9e3779b97f4a7c15 * (seed + 1);
    for (std::byte& byte : message_) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::byte>(state >> 56);
    }
    memory_.resize(header.nodes);
    for (size_t node = 0; node < memory_.size(); ++node) {
      memory_[node].assign(node == root_.index() ? 0 : message_.size(), std::byte{0xee});
      buffers_.push_back(memory_[node]);
    }
  }

  std::span<const std::byte> message() const { return message_; }
  std::span<const std::span<std::byte>> buffers() const { return buffers_; }

  void ExpectDelivered() const { ExpectHolds(std::vector(memory_.size(), message_)); }
  /// `expected`: by node, as the oracle gives it. The root's is not compared.
  void ExpectHolds(const std::vector<std::vector<std::byte>>& expected) const {
    ASSERT_EQ(expected.size(), memory_.size());
    for (size_t node = 0; node < memory_.size(); ++node) {
      if (node == root_.index()) continue;
      EXPECT_TRUE(memory_[node] == expected[node]) << "at node " << node;
    }
  }

 private:
  NodeId root_;
  std::vector<std::byte> message_;
  std::vector<std::vector<std::byte>> memory_;  // by node
  std::vector<std::span<std::byte>> buffers_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_TRANSFER_H_
