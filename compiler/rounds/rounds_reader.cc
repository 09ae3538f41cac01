// SPDX-License-Identifier: Apache-2.0
//
// Steps: the file is read (rounds_file.h); nodes, root and blocks that nobody says are found; the
// transfers are checked (rounds_check.h); they become a plan (planned_transfers.h), in which a send
// waits for the receive by which its node got the block.
//
// The root. In the first round only the root has anything, so whoever sends in it is the root. This
// holds also for a file with slips: a node that is forgotten and so receives nothing is not taken
// for a second root, and a block that is sent to the root does not hide it.
//
// Example, 3 nodes, 2 blocks: "0>1:0", "0>1:1 1>2:0", "1>2:1" is the chain. Node 1's send of block
// 0 in round 1 waits for its receive of round 0.
#include "compiler/rounds/rounds_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/rounds/rounds_check.h"
#include "compiler/rounds/rounds_file.h"
#include "compiler/spec.h"
#include "ir/count.h"
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

Result<RoundsExtent> FindExtent(const RoundsFile& file, const RoundsOptions& options) {
  RoundsExtent extent;
  uint32_t blocks = 0;
  for (const PlannedTransfer& it : file.transfers) {
    extent.nodes = std::max({extent.nodes, it.from + 1, it.to + 1});
    blocks = std::max(blocks, it.block + 1);
  }
  if (options.nodes || file.nodes) extent.nodes = options.nodes ? *options.nodes : *file.nodes;
  if (extent.nodes == 0)
    return Rejected("no transfers, expected at least one such as 0>1:0", file.name);
  extent.blocks = file.blocks.value_or(blocks);
  if (extent.blocks == 0) {  // one node alone, to which no block goes
    extent.blocks = 1;
    if (options.message_bytes && options.block_bytes) {
      const Result<Payload> payload = MakePayload(*options.message_bytes, *options.block_bytes);
      if (payload.ok()) extent.blocks = payload->blocks;
    }
  }
  const std::optional<uint32_t> root = options.root ? options.root : file.root;
  if (root && *root >= extent.nodes) {
    return Rejected(
        fmt::format("root {} is out of range, the nodes are 0 to {}", *root, extent.nodes - 1),
        options.root ? "/root" : file.name);
  }
  if (root) {
    extent.collective.root = NodeId(*root);
    return extent;
  }
  const Result<NodeId> found = FindRoot(file, extent.nodes);
  if (!found.ok()) return found.status();
  extent.collective.root = *found;
  return extent;
}

/// The least size of `blocks` blocks, or more, that hold `bytes`.
uint64_t BlockBytesFor(uint64_t bytes, uint32_t blocks) {
  return std::max<uint64_t>(1, bytes / blocks + (bytes % blocks != 0 ? 1 : 0));
}

/// The message of `blocks` blocks that `options` ask for.
Result<Payload> PayloadOf(const RoundsOptions& options, uint32_t blocks) {
  uint64_t block_bytes = options.block_bytes.value_or(Spec().block_bytes);
  if (!options.message_bytes) {
    if (block_bytes <= kMessageBytesMax / blocks)
      return MakePayload(block_bytes * blocks, block_bytes);
    return Rejected(fmt::format("{} of {} bytes are more than a message may have, {} bytes",
                                Count(blocks, "block"), block_bytes, kMessageBytesMax),
                    "/block_bytes");
  }
  const uint64_t bytes = *options.message_bytes;
  const uint64_t fitting = BlockBytesFor(bytes, blocks);
  if (!options.block_bytes) block_bytes = fitting;
  Result<Payload> payload = MakePayload(bytes, block_bytes);
  if (!payload.ok()) {
    const Status status = payload.status();
    return Rejected(status.message(),
                    status.where() == "/bytes" ? "/message_bytes" : status.where());
  }
  if (payload->blocks == blocks) return payload;
  const std::string found =
      fmt::format("{} in blocks of {} are {}, but the rounds have {}", Count(bytes, "byte"),
                  Count(block_bytes, "byte"), Count(payload->blocks, "block"), blocks);
  const Result<Payload> other = MakePayload(bytes, fitting);
  const bool has_other = other.ok() && other->blocks == blocks;
  return Rejected(
      found + (has_other ? fmt::format("; blocks of {} make so many", Count(fitting, "byte")) : ""),
      options.block_bytes ? "/block_bytes" : "/message_bytes");
}

/// What the user may not have meant: more ports than one.
std::string NoteOfPorts(const RoundsFile& file, const CheckedRounds& checked) {
  const PlannedTransfer& busiest = file.transfers[*checked.busiest];
  uint32_t sends = 0;
  for (uint32_t t = *checked.busiest + 1; t-- > 0 && file.transfers[t].round == busiest.round;)
    sends += file.transfers[t].from == busiest.from ? 1 : 0;
  const bool is_send = sends == checked.ports;
  return file
      .At(*checked.busiest,
          fmt::format("node {} {} {}: the plan has {} ports", is_send ? busiest.from : busiest.to,
                      is_send ? "sends" : "receives", Count(checked.ports, "block"), checked.ports))
      .ToString();
}

Result<RoundsPlan> PlanOf(const Result<RoundsFile>& file, const RoundsOptions& options) {
  if (!file.ok()) return file.status();
  const Result<RoundsExtent> extent = FindExtent(*file, options);
  if (!extent.ok()) return extent.status();
  const Result<CheckedRounds> checked = CheckRounds(*file, *extent);
  if (!checked.ok()) return checked.status();
  const Result<Payload> payload = PayloadOf(options, extent->blocks);
  if (!payload.ok()) return payload.status();
  const auto source_of = [&](uint32_t transfer) -> std::span<const uint32_t> {
    const uint32_t& source = checked->source[transfer];
    return {&source, source == CheckedRounds::kNone ? size_t{0} : size_t{1}};
  };
  RoundsPlan result{.plan = PlanTransfers({.generator = kGenerator,
                                           .collective = extent->collective,
                                           .algorithm = kRoundsAlgorithm,
                                           .nodes = extent->nodes,
                                           .payload = *payload,
                                           .ports = checked->ports},
                                          file->transfers, source_of)
                                .plan};
  if (checked->busiest) result.notes.push_back(NoteOfPorts(*file, *checked));
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
