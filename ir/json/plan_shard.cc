// SPDX-License-Identifier: Apache-2.0
#include "ir/json/plan_shard.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/count.h"
#include "ir/json/json_fields.h"
#include "ir/json/json_reader.h"
#include "ir/json/plan_forms.h"

namespace prepost {
namespace {

constexpr uint32_t kShardMajor = 1;
constexpr uint32_t kShardMinor = 1;
constexpr uint32_t kShardMinorOfMulticasts = 0;
constexpr size_t kHashDigits = 64;

/// Reads 64 hexadecimal digits.
JsonForm::ReadScalar ReadHash(std::string* out) {
  return [out](const JsonScalar& scalar) -> Status {
    const bool is_hash = scalar.kind == JsonScalar::Kind::kString &&
                         scalar.text.size() == kHashDigits &&
                         scalar.text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_hash) {
      return Rejected(
          fmt::format("expected {} digits 0 to f, found {}", kHashDigits, scalar.Describe()));
    }
    *out = scalar.text;
    return {};
  };
}

/// Of a shard, too: what goes beyond multicasts shows in its plan's header.
uint32_t MinorOf(const PlanHeader& header) {
  return IsPlainMulticast(header) ? kShardMinorOfMulticasts : kShardMinor;
}

/// The form of an index, whose entries stand in the order of their nodes.
class IndexReader {
 public:
  explicit IndexReader(std::vector<std::string>* warnings) {
    entry_.OnBegin([this] { reading_ = {}; })
        .Scalar("node", [this](const JsonScalar& scalar) { return ExpectNode(scalar); })
        .Scalar("file", [this](const JsonScalar& scalar) { return ExpectFile(scalar); })
        .Scalar("ops", ReadUint32(&reading_.ops))
        .Scalar("after", ReadUint32(&reading_.afters))
        .Scalar("hash", ReadHash(&reading_.hash))
        .OnEnd([this]() -> Status {
          index_.shards.push_back(reading_);
          return count_.Add(reading_.ops, reading_.afters);
        });
    form_.Scalar("format", ExpectString(kPlanIndexFormat))
        .Scalar("version", ExpectVersion(kShardMajor, kShardMinor, warnings));
    header_.AddAll(&form_, index_.header);
    form_.Scalar("channels", ReadUint32(&index_.channels))
        .Scalar("plan_hash", ReadHash(&index_.plan_hash))
        .Objects("shards", &entry_)
        .OnEnd([this]() -> Status {
          if (index_.shards.size() == index_.header.nodes) return {};
          return Rejected(fmt::format("{} for {}", Count(index_.shards.size(), "shard"),
                                      Count(index_.header.nodes, "node")));
        });
  }

  Result<PlanIndex> Read(std::istream& in, const std::string& name) {
    PREPOST_RETURN_IF_ERROR(ReadJson(in, name, &form_));
    if (index_.header.nodes == 0) return Rejected("a plan has at least 1 node", name + ": /nodes");
    return std::move(index_);
  }

 private:
  Status ExpectNode(const JsonScalar& scalar) {
    const uint32_t next = static_cast<uint32_t>(std::min<size_t>(index_.shards.size(), kNodesMax));
    uint32_t node = 0;
    PREPOST_RETURN_IF_ERROR(ReadUint32(&node, kNodesMax - 1)(scalar));
    if (node == next) return {};
    return Rejected(fmt::format("expected node {}, found {}", next, node));
  }
  Status ExpectFile(const JsonScalar& scalar) {
    const uint32_t next = static_cast<uint32_t>(std::min<size_t>(index_.shards.size(), kNodesMax));
    return ExpectString(ShardFileName(NodeId(next)))(scalar);
  }

  PlanIndex index_;
  ShardEntry reading_;
  EntryCount count_;
  JsonForm form_, entry_;
  FieldForms header_;
};

}  // namespace

ChannelsByNode::ChannelsByNode(const Plan& plan) : begin_(plan.header().nodes + size_t{1}) {
  const uint32_t nodes = plan.header().nodes;
  const auto for_each_end = [&](auto work) {
    for (size_t c = 0; c < plan.channels().size(); ++c) {
      const Channel& channel = plan.channels()[c];
      if (channel.from.value < nodes) work(channel.from, c);
      if (channel.to.value < nodes && channel.to != channel.from) work(channel.to, c);
    }
  };
  for_each_end([&](NodeId node, size_t) { ++begin_[node.index() + 1]; });
  for (size_t node = 0; node < nodes; ++node) begin_[node + 1] += begin_[node];
  channels_.resize(begin_.back());
  std::vector<size_t> next = begin_;
  for_each_end([&](NodeId node, size_t c) {
    channels_[next[node.index()]++] = {.id = ChannelId::FromIndex(c),
                                       .channel = plan.channels()[c]};
  });
}

std::string ShardFileName(NodeId node) { return fmt::format("node-{:05}.json", node.value); }

Result<PlanShard> ReadShard(std::istream& in, const std::string& name,
                            std::vector<std::string>* warnings) {
  PlanShard shard;
  PlanBuilder builder{PlanHeader{}};
  builder.BeginProgram(NodeId(0));
  EntryCount count;
  ChannelColumns channels(ChannelColumns::Ids::kListed);
  OpColumns ops(&builder, &count);
  JsonForm form;
  form.Scalar("format", ExpectString(kShardFormat))
      .Scalar("version", ExpectVersion(kShardMajor, kShardMinor, warnings))
      .Scalar("node", ReadUint32(&shard.node.value, kNodesMax - 1))
      .Object("channels", channels.form())
      .Object("columns", ops.form());
  PREPOST_RETURN_IF_ERROR(ReadJson(in, name, &form));
  for (size_t i = 0; i < channels.size(); ++i)
    shard.channels.push_back({.id = ChannelId(channels.id(i)), .channel = channels.channel(i)});
  builder.SetNode(shard.node);
  shard.part = std::move(builder).Build();
  return shard;
}

void WriteShard(const Plan& plan, const Program& program, std::span<const PlacedChannel> channels,
                std::ostream& stream) {
  std::vector<Channel> plain;
  std::vector<uint32_t> ids;
  for (const PlacedChannel& placed : channels) {
    plain.push_back(placed.channel);
    ids.push_back(placed.id.value);
  }
  JsonWriter json(stream, JsonWriter::Style::kSpaced);
  json.BeginObject().Format(kShardFormat, kShardMajor, MinorOf(plan.header()));
  json.Field("node", program.node.value).Line(2).Key("channels");
  WriteChannelColumns(plain, ids, json);
  json.Line(2).Key("columns");
  WriteOpColumns(plan, program, json);
  json.EndObject();
}

Result<PlanIndex> ReadPlanIndex(std::istream& in, const std::string& name,
                                std::vector<std::string>* warnings) {
  return IndexReader(warnings).Read(in, name);
}

void WritePlanIndex(const PlanIndex& index, std::ostream& stream) {
  JsonWriter json(stream, JsonWriter::Style::kSpaced);
  json.BeginObject().Format(kPlanIndexFormat, kShardMajor, MinorOf(index.header));
  WriteFields(index.header, json);
  json.Line(2).Field("channels", index.channels).Line(2).Field("plan_hash", index.plan_hash);
  json.Line(2).Key("shards").BeginArray();
  for (size_t node = 0; node < index.shards.size(); ++node) {
    const ShardEntry& entry = index.shards[node];
    json.Line(4).BeginObject().Field("node", node);
    json.Field("file", ShardFileName(NodeId::FromIndex(node)));
    json.Field("ops", entry.ops).Field("after", entry.afters).Field("hash", entry.hash);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

Status CheckShard(const PlanIndex& index, NodeId node, const PlanShard& shard) {
  const ShardEntry& entry = index.shards[node.index()];
  if (shard.node != node)
    return Rejected(fmt::format("the shard of node {}, expected that of node {}", shard.node.value,
                                node.value));
  const size_t ops = shard.part.ops().size();
  if (ops != entry.ops || shard.part.after_count() != entry.afters) {
    return Rejected(fmt::format("{} with {} entries of 'after', the index says {} with {}",
                                Count(ops, "op"), shard.part.after_count(), entry.ops,
                                entry.afters));
  }
  for (size_t i = 0; i < shard.channels.size(); ++i) {
    const auto& [id, channel] = shard.channels[i];
    if (id.value >= index.channels || (i > 0 && id <= shard.channels[i - 1].id)) {
      return Rejected(fmt::format("channel {} is out of range or order, the plan has {}", id.value,
                                  Count(index.channels, "channel")));
    }
    const NodeId peer = channel.from == node ? channel.to : channel.from;
    if ((channel.from != node && channel.to != node) || peer == node ||
        peer.value >= index.header.nodes) {
      return Rejected(fmt::format("channel {} is {}>{}, expected one between node {} and another",
                                  id.value, channel.from.value, channel.to.value, node.value));
    }
  }
  for (const Op& op : shard.part.ops()) {
    if (!std::ranges::binary_search(shard.channels, op.channel, {}, &PlacedChannel::id)) {
      return Rejected(fmt::format("op {} is on channel {}, which is not among the shard's channels",
                                  &op - shard.part.ops().data(), op.channel.value));
    }
  }
  return {};
}

void PlanAssembler::Add(const PlanShard& shard) {
  ends_.insert(ends_.end(), shard.channels.begin(), shard.channels.end());
  builder_.BeginProgram(shard.node);
  for (const Op& op : shard.part.ops()) builder_.AddOp(op, shard.part.after(op));
}

Result<Plan> PlanAssembler::Build() && {
  std::ranges::stable_sort(ends_, {}, &PlacedChannel::id);
  for (size_t c = 0; c < channels_; ++c) {
    const bool is_there = 2 * c + 1 < ends_.size() && ends_[2 * c].id.index() == c;
    if (!is_there || ends_[2 * c] != ends_[2 * c + 1]) {
      return Rejected(fmt::format(
          "channel {} is not in two shards that say the same of it, those of its nodes", c));
    }
    builder_.AddChannel(ends_[2 * c].channel);
  }
  if (ends_.size() != 2 * size_t{channels_}) {
    return Rejected(fmt::format("channel {} is in more shards than those of its two nodes",
                                ends_[2 * size_t{channels_}].id.value));
  }
  return std::move(builder_).Build();
}

namespace {

ChannelId PositionOf(ChannelId channel, std::span<const PlacedChannel> channels) {
  const auto placed = std::ranges::lower_bound(channels, channel, {}, &PlacedChannel::id);
  return ChannelId::FromIndex(static_cast<size_t>(placed - channels.begin()));
}

/// `ops` are those of `of`.
Plan MakeNodePlan(const PlanHeader& header, NodeId node, std::span<const PlacedChannel> channels,
                  const Plan& of, std::span<const Op> ops) {
  PlanBuilder builder(header);
  size_t afters = 0;
  for (const Op& op : ops) afters += op.after_count;
  builder.Reserve(ops.size(), afters);
  for (const PlacedChannel& placed : channels) builder.AddChannel(placed.channel);
  builder.BeginProgram(node);
  for (const Op& op : ops) {
    Op own = op;
    own.channel = PositionOf(op.channel, channels);
    builder.AddOp(own, of.after(op));
  }
  return std::move(builder).Build();
}

}  // namespace

ChannelId LocalChannel(const PlanShard& shard, ChannelId channel) {
  return PositionOf(channel, shard.channels);
}

Plan NodePlan(const PlanIndex& index, const PlanShard& shard) {
  return MakeNodePlan(index.header, shard.node, shard.channels, shard.part, shard.part.ops());
}

Plan NodePlan(const Plan& plan, const Program& program, std::span<const PlacedChannel> channels) {
  return MakeNodePlan(plan.header(), program.node, channels, plan, plan.ops(program));
}

}  // namespace prepost
