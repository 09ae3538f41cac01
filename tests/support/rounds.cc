// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <vector>

#include "compiler/pass_manager.h"
#include "compiler/rounds/rounds_file.h"

namespace prepost::test {
namespace {

using Rounds = std::vector<std::vector<std::string>>;  // transfers, by round

Rounds RoundsOf(const Plan& plan) {
  Rounds rounds(plan.header().rounds);
  for (const Op& op : plan.ops()) {
    const Channel& channel = plan.channels()[op.channel.index()];
    if (op.is_send() || op.is_credit()) continue;
    rounds[op.round].push_back(ToString(PlannedTransfer{.from = channel.from.value,
                                                        .to = channel.to.value,
                                                        .block = op.block,
                                                        .count = op.count,
                                                        .combines = op.is_combine()}));
  }
  return rounds;
}

std::string Text(const Rounds& rounds) {
  std::string text;
  for (const auto& transfers : rounds)
    text += transfers.empty() ? "-\n" : fmt::format("{}\n", fmt::join(transfers, " "));
  return text;
}

/// Who holds what, while rounds are made.
struct Holdings {
  Holdings(uint32_t nodes, uint32_t blocks, uint32_t root)
      : has(nodes, std::vector<bool>(blocks)), missing(size_t{nodes - 1} * blocks) {
    has[root].assign(blocks, true);
  }
  std::vector<std::vector<bool>> has;
  size_t missing;
};

/// Transfers of one round: those that `random` picks of all that are possible.
std::vector<std::string> MakeRound(Random& random, uint32_t ports, Holdings* holdings) {
  struct Candidate {
    uint32_t from, to, block;
  };
  const auto nodes = static_cast<uint32_t>(holdings->has.size());
  const auto blocks = static_cast<uint32_t>(holdings->has[0].size());
  std::vector<Candidate> candidates;
  for (uint32_t from = 0; from < nodes; ++from) {
    for (uint32_t to = 0; to < nodes; ++to) {
      for (uint32_t block = 0; block < blocks; ++block) {
        if (holdings->has[from][block] && !holdings->has[to][block])
          candidates.push_back({from, to, block});
      }
    }
  }
  random.Shuffle(candidates);
  std::vector<uint32_t> sends(nodes), receives(nodes);
  std::vector<std::string> transfers;
  for (const auto& [from, to, block] : candidates) {
    if (holdings->has[to][block] || sends[from] == ports || receives[to] == ports) continue;
    if (random.Below(4) == 0) continue;
    ++sends[from];
    ++receives[to];
    holdings->has[to][block] = true;
    --holdings->missing;
    transfers.push_back(fmt::format("{}>{}:{}", from, to, block));
  }
  return transfers;
}

/// The same rounds, written in another way.
std::string Scribble(Random& random, const std::string& text) {
  std::string scribbled;
  for (const char c : text) {
    if (c == '\n') {
      if (random.Coin()) scribbled += random.Coin() ? " # 0>1:0" : "\t\r";
      scribbled += '\n';
      if (random.Below(4) == 0) scribbled += random.Coin() ? " \n\n" : "#\n";
    } else {
      scribbled += c;
      if (c == ' ' && random.Coin()) scribbled += '\t';
    }
  }
  return scribbled;
}

}  // namespace

std::string RoundsText(const Plan& plan) {
  const PlanHeader& header = plan.header();
  std::string heading;
  if (header.collective.kind != CollectiveKind::kMulticast) {
    heading = Name(header.collective.kind);
    if (!header.combine.is_none()) heading += " " + ToString(header.combine);
    heading += "\n";
  }
  return heading + Text(RoundsOf(plan));
}

std::string RoundsJson(const Plan& plan) {
  const PlanHeader& header = plan.header();
  std::vector<std::string> rounds;
  for (const auto& transfers : RoundsOf(plan)) {
    std::vector<std::string> quoted;
    for (const std::string& transfer : transfers) quoted.push_back('"' + transfer + '"');
    rounds.push_back(fmt::format("[{}]", fmt::join(quoted, ",")));
  }
  std::string collective;
  if (header.collective.kind != CollectiveKind::kMulticast)
    collective = fmt::format(R"("collective": "{}", )", Name(header.collective.kind));
  if (!header.combine.is_none()) {
    collective += fmt::format(R"("combine": {{"op": "{}", "type": "{}"}}, )",
                              Name(header.combine.op), Name(header.combine.type));
  }
  return fmt::format(
      R"({{"format": "prepost.rounds", "version": "1.{}", {}"nodes": {}, "root": {}, "blocks": {},)"
      "\n\"rounds\": [{}]}}",
      collective.empty() ? 0 : 1, collective, header.nodes, header.collective.root.value,
      header.payload.blocks, fmt::join(rounds, ",\n"));
}

RandomRounds MakeRandomRounds(Random& random, uint32_t nodes_max, uint32_t blocks_max) {
  const uint32_t nodes = random.Between(2, nodes_max);
  const uint32_t blocks = random.Between(1, blocks_max);
  RandomRounds made{.text = {}, .ports = random.Between(1, 3)};
  Holdings holdings(nodes, blocks, random.Below(nodes));
  Rounds rounds;
  while (holdings.missing > 0) rounds.push_back(MakeRound(random, made.ports, &holdings));
  made.text = Scribble(random, Text(rounds));
  return made;
}

Result<VerifiedPlan> CompileRounds(const std::string& text, const RoundsOptions& options,
                                   const SpecReady& ready, const SpecSendWindow& send_window) {
  std::istringstream in(text);
  Result<RoundsPlan> read = ReadRounds(in, "r.txt", options);
  if (!read.ok()) return read.status();
  const CompileOptions compile_options;
  return CompletePlan(std::move(read->plan), ready, send_window, compile_options, read->where_of);
}

}  // namespace prepost::test
