// SPDX-License-Identifier: Apache-2.0
//
// prepost choose: what auto would be for algorithm, block size, readiness and send window, and what
// that was compared with.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "ir/base/count.h"
#include "ir/json/rate_text.h"
#include "planning/flags/spec_flags.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

struct ChooseFlags {
  SpecInput input;
  bool json = false;
};

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

void PrintChoiceTable(const Choice& choice, std::ostream& out) {
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
}

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

void PrintChoiceJson(const Choice& choice, std::ostream& out) {
  Json json = {{"algorithm", choice.winner().algorithm},
               {"block_bytes", choice.winner().block_bytes},
               {"ready", ToString(choice.winner().ready)},
               {"send_window", ToString(choice.winner().send_window)},
               {"reason", choice.reason},
               {"rule", nullptr},
               {"candidates", Json::array()}};
  if (choice.rule) json["rule"] = *choice.rule;
  if (choice.unpinned) {
    json["without_rule"] = CandidateJson(*choice.unpinned);
    json["without_rule"]["percent"] = PercentWithoutRule(choice);
  }
  for (const Candidate& it : choice.candidates) json["candidates"].push_back(CandidateJson(it));
  PrintJson(json, out);
}

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

void PrintCandidates(const Spec& spec, const std::vector<CollectiveChoice>& candidates,
                     std::ostream& out) {
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

void PrintCandidatesJson(const Spec& spec, const std::vector<CollectiveChoice>& candidates,
                         std::ostream& out) {
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
  PrintJson(json, out);
}

/// Another collective than a multicast.
Status RunCollective(const ChooseFlags& flags, const Spec& spec) {
  const auto candidates = flags.input.flags.CollectiveCandidatesFor(spec, flags.input.path);
  if (!candidates.ok()) return candidates.status();
  (flags.json ? PrintCandidatesJson : PrintCandidates)(WithImplied(spec), *candidates, std::cout);
  return {};
}

Status Run(const ChooseFlags& flags) {
  const Result<Spec> spec = flags.input.Read();
  if (!spec.ok()) return spec.status();
  if (spec->collective != CollectiveKind::kMulticast) return RunCollective(flags, *spec);
  const Result<Choice> choice = [&] {
    const Ticker ticker("choosing");
    return flags.input.flags.ChooseFor(*spec, flags.input.path, /*target=*/{},
                                       /*weighs_rule=*/true);
  }();
  if (!choice.ok()) return choice.status();
  Spec chosen = *spec;
  chosen.algorithm = choice->winner().algorithm;
  NoteOneRack(chosen);
  (flags.json ? PrintChoiceJson : PrintChoiceTable)(*choice, std::cout);
  return {};
}

}  // namespace

void AddChoose(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ChooseFlags>();
  CLI::App* command =
      app.add_subcommand("choose", "Show which algorithm and block size auto chooses, and why");
  command->footer(
      "A line per schedule, each with the block size that suits it best: rounds, the modelled "
      "time, "
      "how often the winner's\n"
      "that is, and what most of it goes into. With --algorithm or --block-bytes only what is left "
      "open is chosen. ~ marks\n"
      "schedules left out early. Where a rule decides, what would win without it is shown, too. "
      "docs/compiler.md tells the model.\n"
      "Of another collective a line for each schedule that it is chosen from, by the model of "
      "hosts "
      "and their connections.\n\n"
      "Examples:\n"
      "  prepost choose --nodes 16 --message-bytes 256MiB\n"
      "  prepost choose --topology examples/topologies/4x8.json --message-bytes 1MiB --json\n"
      "  prepost choose --nodes 8 --message-bytes 4KiB --rules examples/rules/small.json\n"
      "  prepost choose --nodes 100 --message-bytes 1GiB --algorithm chain --rate 25Gbit/s "
      "--latency 5us\n"
      "  prepost choose --collective allreduce --combine sum:float32 --nodes 6 --message-bytes "
      "64MiB\n"
      "  prepost choose --collective alltoall --nodes 16 --message-bytes 1KiB --profile fractus");
  flags->input.AddTo(*command, /*takes_any=*/false);
  flags->input.flags.AddCollectivesTo(*command);
  for (const char* open : {"--block-bytes", "--algorithm"}) {
    CLI::Option* option = command->get_option(open);
    const std::string text = option->get_description();
    option->description(text.substr(0, text.rfind('[')) + "[auto]");
  }
  command->add_flag("--json", flags->json, "Print it all as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
