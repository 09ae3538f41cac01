// SPDX-License-Identifier: Apache-2.0
//
// Copies: a message of known bytes at the root and a buffer for every other node, and the check
// that all are equal.
#ifndef PREPOST_TESTS_SUPPORT_COPIES_H_
#define PREPOST_TESTS_SUPPORT_COPIES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "prepost/ir/plan.h"
#include "prepost/runtime/executor.h"

namespace prepost::testing {

/// Bytes that differ between any two places, so that a misplaced block cannot look right.
inline std::vector<std::byte> MessageBytes(size_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  return bytes;
}

class Copies {
 public:
  explicit Copies(const Plan& plan)
      : root_(plan.header().root),
        message_(MessageBytes(plan.header().message.bytes)),
        buffers_(plan.header().nodes, std::vector<std::byte>(message_.size())) {}

  NodeMemory At(NodeId node) {
    if (node == root_) return {.source = message_, .target = {}};
    std::vector<std::byte>& buffer = buffers_[node.index()];
    return {.source = buffer, .target = buffer};
  }

  void ExpectEqual() const {
    for (size_t node = 0; node < buffers_.size(); ++node) {
      if (node == root_.index()) continue;
      EXPECT_TRUE(buffers_[node] == message_) << "node " << node;
    }
  }

 private:
  NodeId root_;
  std::vector<std::byte> message_;
  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace prepost::testing

#endif  // PREPOST_TESTS_SUPPORT_COPIES_H_
