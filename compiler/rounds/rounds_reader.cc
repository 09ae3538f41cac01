// SPDX-License-Identifier: Apache-2.0
//
// Steps: the file is read (rounds_file.h); nodes, root and blocks that nobody says are found; the
// transfers are checked (rounds_check.h); they become a plan (planned_transfers.h), in which a send
// waits for the receives by which its node got the blocks, and a combine for what its node did with
// them before. A node takes what comes in a round, one sender after the other, and then combines.
//
// The root. In the first round only the root of a multicast or a scatter has anything, so whoever
// sends in it is the root. This holds also for a file with slips: a node that is forgotten and so
// receives nothing is not taken for a second root, and a block that is sent to the root does not
// hide it. In a reduce or a gather everybody has something; the root is who receives and sends
// nothing.
//
// Example, 3 nodes, 2 blocks: "0>1:0", "0>1:1 1>2:0", "1>2:1" is the chain. Node 1's send of block
// 0 in round 1 waits for its receive of round 0.
#include "compiler/rounds/rounds_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler/rounds/rounds_check.h"
#include "compiler/rounds/rounds_file.h"
#include "compiler/spec.h"
#include "ir/base/count.h"
#include "ir/planned_transfers.h"
#include "ir/version.h"

namespace prepost {
namespace {

constexpr const char* kRoundsAlgorithm = "rounds";

/// Who sends in the first round; of several, the one that never receives.
Result<NodeId> FindRoot(const RoundsFile& file, uint32_t nodes) {
  std::vector<bool> receives(nodes), sends_first(nodes);
  std::vector<uint32_t> senders;  // in the first round, as transfers
  for (uint32_t t = 0; t < file.transfers.size(); ++t) {
    const PlannedTransfer& it = file.transfers[t];
    if (it.to < nodes) receives[it.to] = true;
    if (it.round != file.transfers.front().round || it.from >= nodes || sends_first[it.from])
      continue;
    sends_first[it.from] = true;
    senders.push_back(t);
  }
  if (senders.empty()) return NodeId(0);
  const auto from = [&](uint32_t t) { return file.transfers[t].from; };
  if (senders.size() == 1) return NodeId(from(senders.front()));
  const auto never_receives = [&](uint32_t t) { return !receives[from(t)]; };
  if (std::ranges::count_if(senders, never_receives) == 1)
    return NodeId(from(*std::ranges::find_if(senders, never_receives)));
  const Status where = file.At(
      senders[1],
      fmt::format("nodes {} and {} both send in the first round, in which only the root has "
                  "anything: which is it? {} names it",
                  from(senders[0]), from(senders[1]), file.positions.empty() ? "root" : "--root"));
  return where;
}

/// Who receives and sends nothing.
Result<NodeId> FindLastTaker(const RoundsFile& file, CollectiveKind kind, uint32_t nodes) {
  std::vector<bool> receives(nodes), sends(nodes);
  for (const PlannedTransfer& it : file.transfers) {
    if (it.from < nodes) sends[it.from] = true;
    if (it.to < nodes) receives[it.to] = true;
  }
  std::vector<uint32_t> takers;
  for (uint32_t node = 0; node < nodes && takers.size() < 2; ++node) {
    if (receives[node] && !sends[node]) takers.push_back(node);
  }
  if (takers.size() == 1) return NodeId(takers.front());
  if (file.transfers.empty()) return NodeId(0);
  const std::string which =
      takers.empty()
          ? "all nodes that receive something send something, too"
          : fmt::format("nodes {} and {} both receive and send nothing", takers[0], takers[1]);
  return Rejected(fmt::format("{}: which is the root of the {}? {} names it", which, Name(kind),
                              file.positions.empty() ? "root" : "--root"),
                  file.name);
}

Result<NodeId> RootOf(const RoundsFile& file, const RoundsOptions& options,
                      const RoundsExtent& extent) {
  const std::optional<uint32_t> root = options.root ? options.root : file.root;
  if (root && *root >= extent.nodes) {
    return Rejected(
        fmt::format("root {} is out of range, the nodes are 0 to {}", *root, extent.nodes - 1),
        options.root ? "/root" : file.name);
  }
  if (extent.collective.kind == CollectiveKind::kMulticast) {
    const auto combining = std::ranges::find_if(file.transfers, &PlannedTransfer::combines);
    if (combining != file.transfers.end()) {
      const char* const how = file.positions.empty()
                                  ? "collective and combine name"
                                  : "a first line such as 'allreduce sum:float32', or --collective "
                                    "and --combine, name";
      return file.At(static_cast<size_t>(combining - file.transfers.begin()),
                     fmt::format("{} combines, and a multicast does not; {} another collective",
                                 ToString(*combining), how));
    }
  }
  if (root) return NodeId(*root);
  switch (extent.collective.kind) {
    case CollectiveKind::kMulticast:
    case CollectiveKind::kScatter:
      return FindRoot(file, extent.nodes);
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
      return FindLastTaker(file, extent.collective.kind, extent.nodes);
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kBarrier:
      break;
  }
  return NodeId(0);
}

/// As many in each part. The last part that moves has the last block that a transfer names.
Result<uint32_t> BlocksOf(const RoundsFile& file, const RoundsOptions& options,
                          const RoundsExtent& extent) {
  const uint64_t parts = PartsOf(extent.collective.kind, extent.nodes);
  PREPOST_RETURN_IF_ERROR(CheckParts(extent.collective.kind, extent.nodes, "node", file.name));
  if (file.blocks) {
    if (*file.blocks % parts == 0) return *file.blocks;
    return Rejected(fmt::format("{} cannot be those of {} of equally many blocks, which {} between "
                                "{} has",
                                Count(*file.blocks, "block"), Count(parts, "part"),
                                Name(extent.collective.kind), Count(extent.nodes, "node")),
                    file.name);
  }
  uint32_t named = 0;
  for (const PlannedTransfer& it : file.transfers) named = std::max(named, it.block + it.count);
  uint64_t per_part = 0;
  if (named != 0) {
    const uint32_t moving = MovingParts(extent.collective, extent.nodes);
    per_part = (named + uint64_t{moving} - 1) / moving;
  } else if (options.message_bytes && options.block_bytes) {  // one node alone, to which none goes
    const Result<Payload> payload =
        MakePayload(*options.message_bytes, *options.block_bytes, parts);
    if (payload.ok()) per_part = payload->blocks / parts;
  }
  per_part = std::max<uint64_t>(per_part, 1);
  if (per_part * parts <= kBlocksMax) return static_cast<uint32_t>(per_part * parts);
  return Rejected(
      fmt::format("block {} makes {} of {}, and a plan has at most {} in all", named - 1,
                  Count(parts, "part"), Count(per_part, "block"), kBlocksMax),
      file.name);
}

Result<RoundsExtent> FindExtent(const RoundsFile& file, const RoundsOptions& options) {
  RoundsExtent extent;
  extent.collective.kind =
      options.collective.value_or(file.collective.value_or(CollectiveKind::kMulticast));
  for (const PlannedTransfer& it : file.transfers)
    extent.nodes = std::max({extent.nodes, it.from + 1, it.to + 1});
  if (options.nodes || file.nodes) extent.nodes = options.nodes ? *options.nodes : *file.nodes;
  if (extent.nodes == 0)
    return Rejected("no transfers, expected at least one such as 0>1:0", file.name);
  const Result<NodeId> root = RootOf(file, options, extent);
  if (!root.ok()) return root.status();
  extent.collective.root = *root;
  const Result<uint32_t> blocks = BlocksOf(file, options, extent);
  if (!blocks.ok()) return blocks.status();
  extent.blocks = *blocks;
  return extent;
}

/// What `kind` does to values.
Result<Combine> CombineOf(const RoundsFile& file, const RoundsOptions& options,
                          CollectiveKind kind) {
  Combine combine = options.combine ? *options.combine : file.combine.value_or(Combine());
  if (kind == CollectiveKind::kBarrier && combine.is_none())
    combine = {.op = CombineOp::kAnd, .type = ElementType::kUint8};
  const std::string where = !options.combine && file.combine ? file.name : "/combine";
  if (Combines(kind) == combine.is_none()) {
    return Rejected(
        combine.is_none()
            ? fmt::format("what {} does to values is missing, such as sum:float32", Name(kind))
            : fmt::format("{} combines nothing", Name(kind)),
        where);
  }
  if (const Status status = CheckCombine(combine); !status.ok())
    return Rejected(status.message(), where);
  return combine;
}

/// The least size of `blocks` blocks, or more, that hold `bytes`, in whole elements.
uint64_t BlockBytesFor(uint64_t bytes, uint32_t blocks, uint64_t element) {
  const uint64_t least = std::max<uint64_t>(1, bytes / blocks + (bytes % blocks != 0 ? 1 : 0));
  return (least + element - 1) / element * element;
}

/// As the verifier would say it of the plan.
Status CheckElements(const Payload& payload, ElementType type) {
  const uint64_t element = std::max<uint64_t>(1, SizeOf(type));
  const auto uneven = [&](uint64_t bytes, const char* where) {
    return Rejected(fmt::format("{} bytes are not a whole number of {} ({} bytes each)", bytes,
                                Name(type), element),
                    where);
  };
  if (payload.bytes % element != 0) return uneven(payload.bytes, "/message_bytes");
  if (payload.bytes > payload.block_bytes && payload.block_bytes % element != 0)
    return uneven(payload.block_bytes, "/block_bytes");
  return {};
}

/// The payload that `options` ask for.
Result<Payload> PayloadOf(const RoundsOptions& options, const RoundsExtent& extent,
                          ElementType type) {
  const auto parts = static_cast<uint32_t>(PartsOf(extent.collective.kind, extent.nodes));
  const uint32_t blocks = extent.blocks / parts;  // of each
  const char* const of_part = parts == 1 ? "" : " in a part";
  uint64_t block_bytes = options.block_bytes.value_or(Spec().block_bytes);
  std::optional<uint64_t> said = options.message_bytes;
  if (extent.collective.kind == CollectiveKind::kBarrier) said = said.value_or(0);
  if (!said) {
    if (block_bytes <= kMessageBytesMax / blocks)
      return MakePayload(block_bytes * blocks, block_bytes, parts);
    return Rejected(fmt::format("{} of {} bytes are more than a message may have, {} bytes",
                                Count(blocks, "block"), block_bytes, kMessageBytesMax),
                    "/block_bytes");
  }
  const uint64_t bytes = *said;
  const uint64_t fitting = BlockBytesFor(bytes, blocks, std::max<uint64_t>(1, SizeOf(type)));
  if (!options.block_bytes && options.message_bytes) block_bytes = fitting;
  Result<Payload> payload = MakePayload(bytes, block_bytes, parts);
  if (!payload.ok()) {
    const Status status = payload.status();
    return Rejected(status.message(),
                    status.where() == "/bytes" ? "/message_bytes" : status.where());
  }
  if (payload->blocks == extent.blocks) return payload;
  const std::string found = fmt::format("{} in blocks of {} are {}, but the rounds have {}{}",
                                        Count(bytes, "byte"), Count(block_bytes, "byte"),
                                        Count(payload->blocks / parts, "block"), blocks, of_part);
  const Result<Payload> other = MakePayload(bytes, fitting, parts);
  const bool has_other = other.ok() && other->blocks == extent.blocks;
  return Rejected(
      found + (has_other ? fmt::format("; blocks of {} make so many", Count(fitting, "byte")) : ""),
      options.block_bytes ? "/block_bytes" : "/message_bytes");
}

/// What the user may not have meant: more ports than one.
std::string NoteOfPorts(const RoundsFile& file, const RoundPorts& ports) {
  const PlannedTransfer& busiest = file.transfers[*ports.busiest];
  uint32_t sends = 0;
  for (uint32_t t = *ports.busiest + 1; t-- > 0 && file.transfers[t].round == busiest.round;)
    sends += file.transfers[t].from == busiest.from ? 1u : 0u;
  const bool is_send = sends == ports.ports;
  return file
      .At(*ports.busiest,
          fmt::format("node {} {} {}: the plan has {} ports", is_send ? busiest.from : busiest.to,
                      is_send ? "sends" : "receives",
                      Count(ports.ports, busiest.count == 1 ? "block" : "message"), ports.ports))
      .ToString();
}

/// Where the transfer of an op stands, or else the file.
std::string WhereOf(const RoundsFile& file, const Plan& plan, const Place& place) {
  if (place.section != Place::Section::kPrograms || place.op == Place::kWhole) return file.name;
  const Op& op = plan.ops(plan.programs()[place.index])[place.op];
  const Channel& channel = plan.channels()[op.channel.index()];
  if (op.is_credit()) return file.name;
  const auto in_round =
      std::ranges::equal_range(file.transfers, op.round, {}, &PlannedTransfer::round);
  const auto found = std::ranges::find_if(in_round, [&](const PlannedTransfer& it) {
    return NodeId(it.from) == channel.from && NodeId(it.to) == channel.to && it.block == op.block;
  });
  if (found == in_round.end()) return file.name;
  return file.PlaceOf(static_cast<size_t>(found - file.transfers.begin()));
}

Result<RoundsPlan> PlanOf(Result<RoundsFile> read, const RoundsOptions& options) {
  if (!read.ok()) return read.status();
  const auto file = std::make_shared<const RoundsFile>(*std::move(read));
  const Result<RoundsExtent> extent = FindExtent(*file, options);
  if (!extent.ok()) return extent.status();
  const Result<Combine> combine = CombineOf(*file, options, extent->collective.kind);
  if (!combine.ok()) return combine.status();
  PREPOST_RETURN_IF_ERROR(CheckRounds(*file, *extent));
  const RoundPorts ports = PortsOf(file->transfers);
  const Result<Payload> payload = PayloadOf(options, *extent, combine->type);
  if (!payload.ok()) return payload.status();
  PREPOST_RETURN_IF_ERROR(CheckElements(*payload, combine->type));
  RoundsPlan result{.plan = PlanInOrder({.generator = kGenerator,
                                         .collective = extent->collective,
                                         .algorithm = kRoundsAlgorithm,
                                         .nodes = extent->nodes,
                                         .payload = *payload,
                                         .combine = *combine,
                                         .ports = ports.ports},
                                        file->transfers)
                                .plan,
                    .where_of = {}};
  result.where_of = [file](const Plan& plan, const Diagnostic& finding) {
    return WhereOf(*file, plan, finding.place);
  };
  if (ports.busiest) result.notes.push_back(NoteOfPorts(*file, ports));
  return result;
}

}  // namespace

Result<RoundsPlan> ReadRounds(std::istream& in, const std::string& name,
                              const RoundsOptions& options, std::vector<std::string>* warnings) {
  return PlanOf(ReadRoundsFile(in, name, warnings), options);
}

Result<RoundsPlan> PlanRounds(std::span<const PlannedTransfer> transfers, const std::string& name,
                              const RoundsOptions& options) {
  return PlanOf(RoundsOfProgram(transfers, name), options);
}

}  // namespace prepost
