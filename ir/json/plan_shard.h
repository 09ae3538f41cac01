// SPDX-License-Identifier: Apache-2.0
//
// PlanShard, PlanIndex: a plan in parts, one per node, so that a node reads its own only. Their
// files are described by ir/json/plan_shard.schema.json and ir/json/plan_index.schema.json; the
// folder that holds them is runtime/files/plan_folder.h's business.
//
// A shard is one node's part of the plan: its program and the channels from and to it. Ids are
// those of the whole plan, so that nodes agree about them and the parts can be put together again.
#ifndef PREPOST_IR_JSON_PLAN_SHARD_H_
#define PREPOST_IR_JSON_PLAN_SHARD_H_

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// The files' "format".
inline constexpr const char* kShardFormat = "prepost.plan_shard";
inline constexpr const char* kPlanIndexFormat = "prepost.plan_index";

/// A channel and its id in the whole plan.
struct PlacedChannel {
  ChannelId id;
  Channel channel;

  friend bool operator==(const PlacedChannel&, const PlacedChannel&) = default;
};

struct PlanShard {
  NodeId node;
  std::vector<PlacedChannel> channels;  ///< those from and to the node, by id
  /// One program, the node's. Its header and channels mean nothing: they stand in the index, and
  /// above.
  Plan part;
};

/// The index's entry for one shard.
struct ShardEntry {
  uint32_t ops = 0;
  uint32_t afters = 0;
  std::string hash;  ///< 64 hexadecimal digits; of what the shard says (runtime/files/plan_hash.h)
};

struct PlanIndex {
  PlanHeader header;
  uint32_t channels = 0;
  std::string plan_hash;           ///< as in ShardEntry
  std::vector<ShardEntry> shards;  ///< by node, as many as the header has nodes
};

/// The channels at each node of a plan. Ends that are no nodes of it are left out. Linear.
class ChannelsByNode {
 public:
  explicit ChannelsByNode(const Plan& plan);
  /// By id.
  std::span<const PlacedChannel> At(NodeId node) const {
    return std::span(channels_).subspan(begin_[node.index()],
                                        begin_[node.index() + 1] - begin_[node.index()]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<PlacedChannel> channels_;
};

/// The name of a node's file in the folder: "node-00007.json".
std::string ShardFileName(NodeId node);

/// Read and write the files; as ReadPlan() and WritePlan(), in columns. What is read has the form
/// of the file; of an index also one entry for each node.
Result<PlanShard> ReadShard(std::istream& in, const std::string& name,
                            std::vector<std::string>* warnings);
void WriteShard(const Plan& plan, const Program& program, std::span<const PlacedChannel> channels,
                std::ostream& out);
Result<PlanIndex> ReadPlanIndex(std::istream& in, const std::string& name,
                                std::vector<std::string>* warnings);
void WritePlanIndex(const PlanIndex& index, std::ostream& out);

/// Whether `shard` can be the one of `node` in the plan of `index`: its size is what the index
/// says, its channels are the node's, rising and in range, its ops are on them. Errors have no
/// place.
Status CheckShard(const PlanIndex& index, NodeId node, const PlanShard& shard);

/// Puts a plan together. Shards are added node by node, from 0 on, after CheckShard(). Memory and
/// time go with what is added, not with what the index says.
class PlanAssembler {
 public:
  explicit PlanAssembler(const PlanIndex& index)
      : builder_(index.header), channels_(index.channels) {}
  void Add(const PlanShard& shard);
  /// Errors: the nodes of a channel do not both have it, or say different things of it.
  Result<Plan> Build() &&;

 private:
  PlanBuilder builder_;
  uint32_t channels_;
  std::vector<PlacedChannel> ends_;  ///< of all shards
};

/// The place of `channel`, one of the shard's, among them. Logarithmic.
ChannelId LocalChannel(const PlanShard& shard, ChannelId channel);

/// The plan that the node runs by: its program and its channels, numbered by LocalChannel(), below
/// the header of the whole. For a shard that passed CheckShard(). Linear in the shard.
Plan NodePlan(const PlanIndex& index, const PlanShard& shard);
/// The same of a whole plan. `channels` are the node's, by id.
Plan NodePlan(const Plan& plan, const Program& program, std::span<const PlacedChannel> channels);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_PLAN_SHARD_H_
