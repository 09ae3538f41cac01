// SPDX-License-Identifier: Apache-2.0
//
// Parts of a plan from a stranger. A text is a shard, or an index with the shards of its nodes,
// from
// 0 on, each behind a line "---". What is read is the same after it is written and read again. A
// shard by itself that can be a part of a plan of 8 nodes at all is verified, whatever it says.
// Shards that belong to the index make the plan that they are parts of, and are right if it is.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "ir/json/plan_shard.h"
#include "ir/verify/verify.h"
#include "ir/verify/verify_shard.h"

namespace {

using prepost::NodeId;
using prepost::Plan;
using prepost::PlanIndex;
using prepost::PlanShard;
using prepost::Result;

Result<PlanShard> ReadShard(const std::string& text) {
  std::istringstream in(text);
  return prepost::ReadShard(in, "shard", nullptr);
}
std::string Written(const PlanShard& shard) {
  std::ostringstream out;
  prepost::WriteShard(shard.part, shard.part.programs().front(), shard.channels, out);
  return out.str();
}

Result<PlanIndex> ReadIndex(const std::string& text) {
  std::istringstream in(text);
  return prepost::ReadPlanIndex(in, "index", nullptr);
}
std::string Written(const PlanIndex& index) {
  std::ostringstream out;
  prepost::WritePlanIndex(index, out);
  return out.str();
}

/// What `read` makes of the text, which must be the same when it is written and read again.
template <typename Read>
auto ReadTwice(Read read, const std::string& text) -> decltype(read(text)) {
  auto first = read(text);
  if (!first.ok()) {
    PREPOST_CHECK(!first.status().message().empty());
    return first;
  }
  const std::string written = Written(*first);
  const auto again = read(written);
  PREPOST_CHECK(again.ok() && Written(*again) == written);
  return first;
}

void CheckNodePlan(const PlanIndex& index, const PlanShard& shard) {
  const Plan plan = prepost::NodePlan(index, shard);
  PREPOST_CHECK(plan.ops().size() == shard.part.ops().size());
  PREPOST_CHECK(plan.channels().size() == shard.channels.size());
  for (const prepost::Op& op : plan.ops())
    PREPOST_CHECK(op.channel.index() < plan.channels().size());
}

/// As a part of some plan.
void CheckAlone(const PlanShard& shard) {
  PlanIndex index{.header = {.nodes = 8}, .channels = 100, .plan_hash = {}, .shards = {}};
  index.header.payload = {.bytes = 40, .block_bytes = 10, .blocks = 4};
  index.header.send_window = 1;
  index.header.rounds = 20;
  index.shards.resize(index.header.nodes);
  if (shard.node.value >= index.header.nodes) return;
  index.shards[shard.node.index()] = {.ops = static_cast<uint32_t>(shard.part.ops().size()),
                                      .afters = static_cast<uint32_t>(shard.part.after_count()),
                                      .hash = {}};
  if (!prepost::CheckShard(index, shard.node, shard).ok()) return;
  using prepost::ReadyMode;
  for (const ReadyMode mode : {ReadyMode::kBarrier, ReadyMode::kChannel, ReadyMode::kWindow}) {
    index.header.ready = {.mode = mode, .window = mode == ReadyMode::kWindow ? 1u : 0u};
    static_cast<void>(prepost::VerifyShard(index, shard));
  }
  CheckNodePlan(index, shard);
}

/// As all parts of the plan of `index`.
void CheckTogether(const PlanIndex& index, const std::vector<PlanShard>& shards) {
  if (shards.size() != index.header.nodes) return;
  prepost::PlanAssembler assembler(index);
  for (uint32_t node = 0; node < shards.size(); ++node) {
    if (!prepost::CheckShard(index, NodeId(node), shards[node]).ok()) return;
    CheckNodePlan(index, shards[node]);
    assembler.Add(shards[node]);
  }
  const Result<Plan> plan = std::move(assembler).Build();
  if (!plan.ok()) return;
  const prepost::ChannelsByNode channels(*plan);
  const bool is_valid = prepost::Verify(*plan).ok();
  for (const PlanShard& shard : shards) {
    PREPOST_CHECK(std::ranges::equal(channels.At(shard.node), shard.channels));
    const prepost::Verdict verdict = prepost::VerifyShard(index, shard);
    PREPOST_CHECK(verdict.ok() || !is_valid);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string separator = "---\n";
  size_t end = text.find(separator);
  const std::string first = text.substr(0, end);
  if (end == std::string::npos) {
    if (const Result<PlanShard> shard = ReadTwice(ReadShard, first); shard.ok()) CheckAlone(*shard);
    return 0;
  }
  const Result<PlanIndex> index = ReadTwice(ReadIndex, first);
  std::vector<PlanShard> shards;
  while (end != std::string::npos) {
    const size_t begin = end + separator.size();
    end = text.find(separator, begin);
    Result<PlanShard> shard =
        ReadTwice(ReadShard, text.substr(begin, end == std::string::npos ? end : end - begin));
    if (!shard.ok()) return 0;
    shards.push_back(*std::move(shard));
  }
  if (index.ok()) CheckTogether(*index, shards);
  return 0;
}
