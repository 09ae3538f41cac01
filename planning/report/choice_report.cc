// SPDX-License-Identifier: Apache-2.0
#include "planning/report/choice_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "ir/base/count.h"
#include "ir/json/rate_text.h"
#include "planning/text/plan_text.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

std::string LimitOf(const Candidate& it) {
  if (it.is_rough) return "left out";
  const double share = it.cost.shares[static_cast<size_t>(it.cost.largest_share())];
  return std::string(it.cost.seconds == 0 ? "nothing"
                     : share == 0         ? "-"
                                          : Name(it.cost.largest_share())) +
         (it.is_bounded ? "; blocks at their limit" : "");
}

/// "--algorithm chain --block-bytes 4096 --ready barrier --send-window none".
std::string FlagsOf(const Candidate& it) {
  return fmt::format("--algorithm {} --block-bytes {} --ready {} --send-window {}", it.algorithm,
                     it.block_bytes, ToString(it.ready), ToString(it.send_window));
}

/// How much more the choice would take without the rule; less than 0: how much less. Of one that
/// takes no time, 0.
double PercentWithoutRule(const Choice& choice) {
  const double with = choice.winner().seconds();
  return with == 0 ? 0 : 100 * (choice.unpinned->seconds() / with - 1);
}

/// With "~" where it is rough.
std::string TimeOf(const Candidate& it) {
  return (it.is_rough ? "~" : "") + WriteLatency(it.seconds());
}

void PrintWithoutRule(const Choice& choice, std::ostream& out) {
  const Candidate& other = *choice.unpinned;
  const double percent = PercentWithoutRule(choice);
  out << fmt::format("without the rule: {}, {}, {}\n", FlagsOf(other), TimeOf(other),
                     std::abs(percent) < 0.05 ? "the same" : fmt::format("{:+.1f} %", percent));
}

}  // namespace

void Print(const Choice& choice, std::ostream& out) {
  const Candidate& winner = choice.winner();
  out << fmt::format("{}\nwhy: {}\n", FlagsOf(winner), choice.reason);
  if (choice.unpinned) PrintWithoutRule(choice, out);
  out << "\n";
  out << fmt::format("{:<18} {:>9} {:>14} {:>9} {:>6} {:>10} {:>14} {:>8}  {}\n", "algorithm",
                     "blocks", "block bytes", "ready", "window", "rounds", "modelled time",
                     "to best", "most of it for");
  for (const Candidate& it : choice.candidates) {
    const double ratio = winner.seconds() == 0 ? 1 : it.seconds() / winner.seconds();
    const bool is_pinned = choice.rule && &it == &winner;
    const bool is_untimed = winner.plan_seconds && !it.plan_seconds && !it.is_rough;
    out << fmt::format(
        "{:<18} {:>9} {:>14} {:>9} {:>6} {:>10} {:>14} {:>8}  {}{}{}\n", it.algorithm, it.blocks,
        it.block_bytes, ToString(it.ready), ToString(it.send_window), it.cost.rounds, TimeOf(it),
        fmt::format("{:.3f}", ratio), LimitOf(it), is_untimed ? "; by its rounds" : "",
        is_pinned ? fmt::format("  <- /rules/{}", *choice.rule) : "");
  }
  if (choice.short_seconds) {
    out << fmt::format(
        "groups of the library carry it as a short message, down a tree without blocks: modelled "
        "time {}\n",
        WriteLatency(*choice.short_seconds));
  }
}

namespace {

Json CandidateJson(const Candidate& it) {
  Json json = {{"algorithm", it.algorithm},
               {"blocks", it.blocks},
               {"block_bytes", it.block_bytes},
               {"ready", ToString(it.ready)},
               {"send_window", ToString(it.send_window)},
               {"rounds", it.cost.rounds},
               {"modelled_seconds", it.seconds()},
               {"accuracy", it.plan_seconds    ? "timed"
                            : it.is_rough      ? "rough"
                            : it.cost.is_exact ? "exact"
                                               : "reckoned"},
               {"blocks_at_limit", it.is_bounded}};
  if (it.is_rough) return json;
  json["rounds_seconds"] = it.cost.seconds;
  Json& shares = json["shares"];
  for (size_t i = 0; i < kCostShares; ++i)
    shares[Name(static_cast<CostShare>(i))] = it.cost.shares[i];
  return json;
}

}  // namespace

Json ToJson(const Choice& choice) {
  Json json = {{"algorithm", choice.winner().algorithm},
               {"block_bytes", choice.winner().block_bytes},
               {"ready", ToString(choice.winner().ready)},
               {"send_window", ToString(choice.winner().send_window)},
               {"reason", choice.reason},
               {"rule", nullptr},
               {"candidates", Json::array()}};
  if (choice.rule) json["rule"] = *choice.rule;
  if (choice.short_seconds) json["short_message_seconds"] = *choice.short_seconds;
  if (choice.unpinned) {
    json["without_rule"] = CandidateJson(*choice.unpinned);
    json["without_rule"]["percent"] = PercentWithoutRule(choice);
  }
  for (const Candidate& it : choice.candidates) json["candidates"].push_back(CandidateJson(it));
  return json;
}

namespace {

/// Why the first of `candidates` is the choice.
std::string ReasonOf(const Spec& spec, const std::vector<CollectiveChoice>& candidates) {
  const std::string kind = fmt::format("{} {}", ArticleOf(spec.collective), Name(spec.collective));
  if (spec.algorithm != kAutoAlgorithm) return fmt::format("{} is given", spec.algorithm);
  if (spec.is_deterministic) return "sums do not depend on the size: --deterministic";
  if (spec.combine.is_ordered())
    return fmt::format("operands of {} stay in the order of ranks", Name(spec.combine.op));
  if (candidates.size() == 1) return fmt::format("the only one that {} is chosen from", kind);
  return fmt::format("least modelled time of {} for {} of {}", candidates.size(), kind,
                     Count(spec.nodes, "node"));
}

/// Of the schedule with its own blocks.
uint64_t BlocksOf(const Spec& spec, const CollectiveChoice& it) {
  Spec sized = spec;
  sized.block_bytes = it.block_bytes;
  const Result<Payload> payload = PayloadOf(sized);
  return payload.ok() ? payload->blocks : 0;
}

}  // namespace

void Print(const Spec& spec, const std::vector<CollectiveChoice>& candidates, std::ostream& out) {
  const CollectiveChoice& best = candidates.front();
  const Spec chosen = WithChoice(spec, best);
  out << fmt::format("--algorithm {} --block-bytes {} --send-window {}\nwhy: {}\n\n",
                     chosen.algorithm, chosen.block_bytes, ToString(chosen.send_window),
                     ReasonOf(spec, candidates));
  out << fmt::format("{:<18} {:>9} {:>14} {:>6} {:>14} {:>8}\n", "algorithm", "blocks",
                     "block bytes", "window", "modelled time", "to best");
  for (const CollectiveChoice& it : candidates) {
    out << fmt::format("{:<18} {:>9} {:>14} {:>6} {:>14} {:>8.3f}\n", it.algorithm,
                       BlocksOf(spec, it), it.block_bytes,
                       it.send_window ? fmt::to_string(*it.send_window) : "auto",
                       WriteLatency(it.seconds), best.seconds == 0 ? 1 : it.seconds / best.seconds);
  }
}

Json ToJson(const Spec& spec, const std::vector<CollectiveChoice>& candidates) {
  const Spec chosen = WithChoice(spec, candidates.front());
  Json json = {
      {"collective", Name(spec.collective)},  {"algorithm", chosen.algorithm},
      {"block_bytes", chosen.block_bytes},    {"send_window", ToString(chosen.send_window)},
      {"reason", ReasonOf(spec, candidates)}, {"candidates", Json::array()}};
  for (const CollectiveChoice& it : candidates) {
    json["candidates"].push_back({{"algorithm", it.algorithm},
                                  {"blocks", BlocksOf(spec, it)},
                                  {"block_bytes", it.block_bytes},
                                  {"send_window", it.send_window ? Json(*it.send_window) : Json()},
                                  {"modelled_seconds", it.seconds}});
  }
  return json;
}

}  // namespace prepost
