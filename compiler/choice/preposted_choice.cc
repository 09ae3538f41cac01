// SPDX-License-Identifier: Apache-2.0
#include "compiler/choice/preposted_choice.h"

#include <algorithm>
#include <bit>

namespace prepost {
namespace {

constexpr uint64_t kBlockMin = uint64_t{16} << 10;
constexpr uint64_t kBlocks = 512;

}  // namespace

std::string PrepostedAlgorithm(uint32_t nodes) { return nodes <= 2 ? "chain" : "two_tree"; }

uint64_t PrepostedBlockBytes(uint64_t message_bytes) {
  const uint64_t least = message_bytes / kBlocks + (message_bytes % kBlocks != 0 ? 1 : 0);
  return std::bit_ceil(std::max(least, kBlockMin));
}

}  // namespace prepost
