// SPDX-License-Identifier: Apache-2.0
//
// A node's part of a plan from a stranger: read or refused, the same after it is written and read
// again, and, if it can be a part of a plan of 8 nodes at all, verified, whatever it says.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "prepost/ir/plan_shard.h"
#include "prepost/ir/verify_shard.h"

namespace {

prepost::Result<prepost::PlanShard> Read(const std::string& text) {
  std::istringstream in(text);
  return prepost::ReadShard(in, "shard", nullptr);
}

std::string Written(const prepost::PlanShard& shard) {
  std::ostringstream out;
  prepost::WriteShard(shard.part, shard.part.programs().front(), shard.channels, out);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const prepost::Result<prepost::PlanShard> shard =
      Read(std::string(reinterpret_cast<const char*>(data), size));
  if (!shard.ok()) {
    PREPOST_CHECK(!shard.status().message().empty());
    return 0;
  }
  const std::string text = Written(*shard);
  const prepost::Result<prepost::PlanShard> again = Read(text);
  PREPOST_CHECK(again.ok() && Written(*again) == text);

  prepost::PlanIndex index{.header = {.nodes = 8}, .channels = 100, .plan_hash = {}, .shards = {}};
  index.header.message = {.bytes = 40, .block_bytes = 10, .blocks = 4};
  index.header.send_window = 1;
  index.header.rounds = 20;
  index.shards.resize(index.header.nodes);
  if (shard->node.value >= index.header.nodes) return 0;
  index.shards[shard->node.index()] = {.ops = static_cast<uint32_t>(shard->part.ops().size()),
                                       .afters = static_cast<uint32_t>(shard->part.after_count()),
                                       .hash = {}};
  if (!prepost::CheckShard(index, shard->node, *shard).ok()) return 0;
  using prepost::ReadyMode;
  for (const ReadyMode mode : {ReadyMode::kBarrier, ReadyMode::kChannel, ReadyMode::kWindow}) {
    index.header.ready = {.mode = mode, .window = mode == ReadyMode::kWindow ? 1u : 0u};
    static_cast<void>(prepost::VerifyShard(index, *shard));
  }
  PREPOST_CHECK(prepost::NodePlan(index, *shard).ops().size() == shard->part.ops().size());
  return 0;
}
