// SPDX-License-Identifier: Apache-2.0
#include "ir/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "ir/base/count.h"
#include "ir/plan_fields.h"

namespace prepost {
namespace {

uint32_t Narrow(size_t size) {
  PREPOST_CHECK(size <= std::numeric_limits<uint32_t>::max());
  return static_cast<uint32_t>(size);
}

/// "2>5:1", "5>2"; "2>5:8-11" of 4 blocks.
std::string Route(const Channel& channel, uint32_t block, uint32_t count = 1) {
  const bool is_credit = block == kNoBlock;
  std::string route = fmt::format("{}>{}", channel.from.value, channel.to.value);
  if (!is_credit) route += fmt::format(":{}", block);
  if (count != 1) route += fmt::format("-{}", uint64_t{block} + count - 1);
  if (channel.carries_credits() != is_credit)
    route += fmt::format(" lane {}", NumberOf(channel.lane));
  return route;
}

/// The same, or what can be said of an op whose channel does not exist.
std::string Route(const Plan& plan, const Op& op) {
  if (op.channel.index() >= plan.channels().size())
    return fmt::format("channel {}?", op.channel.value);
  return Route(plan.channels()[op.channel.index()], op.block, op.count);
}

std::string DescribeOp(NodeId node, uint64_t op, OpKind kind, bool is_credit,
                       const std::string& route) {
  return fmt::format("node {} op {} ({} {}{})", node.value, op, Name(kind),
                     is_credit ? "credit " : "", route);
}

}  // namespace

uint64_t Payload::BlockSize(uint32_t b) const {
  PREPOST_CHECK(b < blocks);
  const uint64_t begin = BlockOffset(b);
  const uint64_t end = is_uneven() ? PartSize(b / (blocks / parts)) : bytes;
  return begin >= end ? 0 : std::min(block_bytes, end - begin);
}

uint64_t Payload::AllBytes() const {
  return is_uneven() ? std::accumulate(part_bytes.begin(), part_bytes.end(), uint64_t{0})
                     : bytes * parts;
}

uint64_t Payload::RangeSize(uint32_t first, uint32_t count) const {
  if (first == kNoBlock) return 0;
  uint64_t size = 0;
  for (uint32_t i = 0; i < count; ++i) size += BlockSize(first + i);
  return size;
}

Plan Plan::WithHeader(PlanHeader header) const {
  Plan plan = *this;
  plan.header_ = std::move(header);
  return plan;
}

bool operator==(const Plan& a, const Plan& b) {
  const auto same_op = [&](const Op& x, const Op& y) {
    bool is_same = std::ranges::equal(a.after(x), b.after(y));
    ListFields(std::type_identity<Op>(),
               [&](const PlanField&, auto get) { is_same = is_same && get(x) == get(y); });
    return is_same;
  };
  const auto same_program = [](const Program& x, const Program& y) {
    return x.node == y.node && x.op_begin == y.op_begin && x.op_count == y.op_count;
  };
  return a.header_ == b.header_ && a.channels_ == b.channels_ &&
         std::ranges::equal(a.programs_, b.programs_, same_program) &&
         std::ranges::equal(a.ops_, b.ops_, same_op);
}

PlanBuilder::PlanBuilder(PlanHeader header) { plan_.header_ = std::move(header); }

void PlanBuilder::Reserve(size_t ops, size_t afters) {
  plan_.ops_.reserve(ops);
  plan_.after_.reserve(afters);
}

ChannelId PlanBuilder::AddChannel(Channel channel) {
  plan_.channels_.push_back(channel);
  return ChannelId(Narrow(plan_.channels_.size()) - 1);
}

void PlanBuilder::BeginProgram(NodeId node) {
  plan_.programs_.push_back({.node = node, .op_begin = Narrow(plan_.ops_.size()), .op_count = 0});
}

void PlanBuilder::SetNode(NodeId node) {
  PREPOST_CHECK(!plan_.programs_.empty());
  plan_.programs_.back().node = node;
}

OpId PlanBuilder::AddOp(Op op, std::span<const OpId> after) {
  PREPOST_CHECK(!plan_.programs_.empty());
  op.after_begin = Narrow(plan_.after_.size());
  op.after_count = Narrow(after.size());
  plan_.after_.insert(plan_.after_.end(), after.begin(), after.end());
  plan_.ops_.push_back(op);
  Narrow(plan_.ops_.size());
  return OpId(plan_.programs_.back().op_count++);
}

Plan PlanBuilder::Build() && { return std::move(plan_); }

const char* Name(OpKind kind) {
  switch (kind) {
    case OpKind::kSend:
      return "send";
    case OpKind::kRecv:
      return "recv";
    case OpKind::kCombine:
      return "combine";
  }
  PREPOST_CHECK(false);
  return "";
}

const char* Name(ReadyMode mode) {
  switch (mode) {
    case ReadyMode::kBarrier:
      return "barrier";
    case ReadyMode::kChannel:
      return "channel";
    case ReadyMode::kWindow:
      return "window";
    case ReadyMode::kRetry:
      return "retry";
  }
  PREPOST_CHECK(false);
  return "";
}

const char* Name(Lane lane) {
  switch (lane) {
    case Lane::kBlocks:
      return "blocks";
    case Lane::kCredits:
      return "credits";
  }
  PREPOST_CHECK(false);
  return "";
}

std::string ToString(const Ready& ready) {
  if (ready.mode == ReadyMode::kWindow) return fmt::format("window={}", ready.window);
  return Name(ready.mode);
}

Result<Payload> MakePayload(uint64_t bytes, uint64_t block_bytes, uint64_t parts) {
  constexpr const char* kAtBlocks = "/block_bytes";
  if (bytes > kMessageBytesMax) {
    return Rejected(
        fmt::format("message of {} bytes is above the limit of {}", bytes, kMessageBytesMax),
        "/bytes");
  }
  if (block_bytes == 0) return Rejected("block size is 0 bytes, expected 1 or more", kAtBlocks);
  if (block_bytes > kMessageBytesMax) {
    return Rejected(fmt::format("block size of {} bytes is above the limit of {}", block_bytes,
                                kMessageBytesMax),
                    kAtBlocks);
  }
  const uint64_t blocks = bytes == 0 ? 1 : (bytes - 1) / block_bytes + 1;
  if (blocks > kBlocksMax || parts > kBlocksMax / blocks) {
    return Rejected(fmt::format("{} of {} bytes in blocks of {} makes {} blocks{}, the limit is {}",
                                parts == 1 ? "message" : "part", bytes, block_bytes, blocks,
                                parts == 1 ? "" : fmt::format(", {} parts", parts), kBlocksMax),
                    kAtBlocks);
  }
  return Payload{.bytes = bytes,
                 .block_bytes = block_bytes,
                 .blocks = static_cast<uint32_t>(blocks * parts),
                 .parts = static_cast<uint32_t>(parts)};
}

Result<Payload> MakePayload(std::vector<uint64_t> part_bytes, uint64_t block_bytes) {
  PREPOST_CHECK(!part_bytes.empty());
  const auto most = std::ranges::max_element(part_bytes);
  if (*most > kMessageBytesMax) {
    return Rejected(
        fmt::format("part of {} bytes is above the limit of {}", *most, kMessageBytesMax),
        fmt::format("/part_bytes/{}", most - part_bytes.begin()));
  }
  const bool is_even = std::ranges::count(part_bytes, *most) == std::ssize(part_bytes);
  Result<Payload> payload = MakePayload(*most, block_bytes, part_bytes.size());
  if (payload.ok() && !is_even) payload->part_bytes = std::move(part_bytes);
  return payload;
}

Status CheckMemory(const Collective& collective, uint32_t nodes, const Payload& payload,
                   uint64_t scratch) {
  if (collective.kind == CollectiveKind::kMulticast) return {};
  if (collective.kind == CollectiveKind::kBarrier && payload.bytes != 0)
    return Rejected(fmt::format("a barrier carries nothing, found {} bytes", payload.bytes),
                    "/bytes");
  const uint64_t most = std::max<uint64_t>(payload.parts, nodes);
  if (payload.bytes > kMessageBytesMax / most) {
    return Rejected(fmt::format("{} times {} bytes are above the limit of {}", most, payload.bytes,
                                kMessageBytesMax),
                    "/bytes");
  }
  if (scratch != 0 && payload.block_bytes > kMessageBytesMax / scratch) {
    return Rejected(fmt::format("{} scratch buffers of {} bytes are above the limit of {}", scratch,
                                payload.block_bytes, kMessageBytesMax),
                    "/scratch");
  }
  return {};
}

bool IsPlainMulticast(const PlanHeader& header) {
  return header.collective.kind == CollectiveKind::kMulticast && header.collective.helpers == 0 &&
         header.scratch == 0;
}

bool IsPlainMulticast(const Plan& plan) {
  const auto is_plain = [](const Op& op) {
    return op.count == 1 && op.scratch == kNoScratch && !op.is_combine();
  };
  return IsPlainMulticast(plan.header()) && std::ranges::all_of(plan.ops(), is_plain) &&
         std::ranges::all_of(plan.channels(), [](const Channel& it) { return it.fabric == 0; });
}

Status ExpectPlainMulticast(const Plan& plan) {
  if (IsPlainMulticast(plan)) return {};
  const CollectiveKind kind = plan.header().collective.kind;
  return Rejected(
      fmt::format("a plan of {}, and this takes plans of multicasts{}", Name(kind),
                  kind == CollectiveKind::kMulticast
                      ? " without helpers, ranges of blocks, scratch buffers and further fabrics"
                      : ""));
}

std::string Dump(const Plan& plan) {
  const PlanHeader& header = plan.header();
  fmt::memory_buffer out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "plan {} {}: {}, root {}, {} in {} of {}, ready {}, send window {}, {}, {}\n",
                 Name(header.collective.kind), header.algorithm, Count(header.nodes, "node"),
                 header.collective.root.value, Count(header.payload.bytes, "byte"),
                 Count(header.payload.blocks, "block"), header.payload.block_bytes,
                 ToString(header.ready),
                 header.send_window ? fmt::to_string(*header.send_window) : "none",
                 Count(header.rounds, "round"), Count(header.ports, "port"));
  for (const Program& program : plan.programs()) {
    fmt::format_to(to, "node {}\n", program.node.value);
    uint32_t id = 0;
    for (const Op& op : plan.ops(program)) {
      fmt::format_to(to, "  op {} {} {}{}", id++, Name(op.kind), op.is_credit() ? "credit " : "",
                     Route(plan, op));
      if (op.grants != 0) fmt::format_to(to, " grants {}", op.grants);
      if (op.scratch != kNoScratch) fmt::format_to(to, " scratch {}", op.scratch);
      fmt::format_to(to, " round {}", op.round);
      const char* separator = " after ";
      for (OpId before : plan.after(op)) {
        fmt::format_to(to, "{}{}", separator, before.value);
        separator = ",";
      }
      fmt::format_to(to, "\n");
    }
  }
  return fmt::to_string(out);
}

std::string Describe(const Plan& plan, const Program& program, OpId op) {
  if (op.value >= program.op_count)
    return fmt::format("node {} op {}?", program.node.value, op.value);
  const Op& it = plan.ops(program)[op.index()];
  return DescribeOp(program.node, op.value, it.kind, it.is_credit(), Route(plan, it));
}

std::string Describe(NodeId node, uint64_t op, OpKind kind, const Channel& channel,
                     uint32_t block) {
  return DescribeOp(node, op, kind, block == kNoBlock, Route(channel, block));
}

}  // namespace prepost
