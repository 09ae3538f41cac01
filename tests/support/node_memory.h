// SPDX-License-Identifier: Apache-2.0
//
// MemoryOf: a node's part of a Transfer, as the CPU executor wants it.
#ifndef PREPOST_TESTS_SUPPORT_NODE_MEMORY_H_
#define PREPOST_TESTS_SUPPORT_NODE_MEMORY_H_

#include "runtime/executor/executor.h"
#include "tests/support/transfer.h"

namespace prepost::test {

inline NodeMemory MemoryOf(const test::Transfer& transfer, NodeId node, const Roles& roles) {
  if (roles.IsSource(node)) return {.source = transfer.message(), .target = {}};
  const std::span<std::byte> buffer = transfer.buffers()[node.index()];
  return {.source = buffer, .target = buffer};
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_NODE_MEMORY_H_
