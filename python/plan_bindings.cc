// SPDX-License-Identifier: Apache-2.0
//
// Plans: compiled, read, verified, drawn and simulated by what the command does these with. Long
// calls let other threads of Python run.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/choice/choice.h"
#include "compiler/compile.h"
#include "compiler/pass_manager.h"
#include "compiler/roll.h"
#include "compiler/rounds/rounds_reader.h"
#include "compiler/spec_json.h"
#include "compiler/topology/topology_json.h"
#include "compiler/verify_rolled.h"
#include "ir/json/plan_json.h"
#include "ir/json/rolled_plan_json.h"
#include "planning/files/loaded_run.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/files/shipped_files.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/profile_settings.h"
#include "planning/flags/simulation_flags.h"
#include "planning/flags/spec_flags.h"
#include "planning/report/choice_report.h"
#include "planning/report/explain_print.h"
#include "planning/report/plan_stats.h"
#include "planning/report/program_report.h"
#include "planning/simulation/simulate.h"
#include "planning/simulation/simulation_report.h"
#include "python/bindings.h"
#include "python/buffer_view.h"
#include "python/interpreter.h"
#include "python/status_error.h"
#include "viz/page_data/page.h"
#include "viz/plan/graph.h"
#include "viz/plan/spacetime.h"
#include "viz/plan/trace_picture.h"
#include "viz/plan/tree.h"
#include "viz/queues/queues.h"

namespace prepost::python {
namespace {

namespace py = pybind11;
using Finding = std::tuple<std::string, std::string, std::string, std::vector<std::string>>;

/// A plan, valid or not. Never changes.
class NativePlan {
 public:
  /// Verifies `plan`.
  explicit NativePlan(Plan&& plan) {
    Result<VerifiedPlan> verified = Verified(std::move(plan), {}, &verdict_);
    if (verified.ok()) {
      Keep(*std::move(verified));
    } else {
      invalid_ = std::move(plan);
    }
  }
  explicit NativePlan(VerifiedPlan&& plan) { Keep(std::move(plan)); }

  const Plan& any() const { return valid_ == nullptr ? invalid_ : valid_->plan; }
  /// Throws the findings, if there are any. Of any collective.
  const std::shared_ptr<const SimulatedPlan>& valid() const {
    if (valid_ == nullptr)
      throw StatusError(Rejected("the plan is invalid:" + verdict_.Continued()));
    return valid_;
  }
  std::vector<Finding> Findings() const {
    std::vector<Finding> findings;
    for (const Diagnostic& it : verdict_.diagnostics)
      findings.emplace_back(Name(it.rule), it.where, it.message, it.notes);
    return findings;
  }

 private:
  void Keep(VerifiedPlan plan) { valid_.reset(new SimulatedPlan{.plan = std::move(plan)}); }

  std::shared_ptr<const SimulatedPlan> valid_;
  Plan invalid_;
  Verdict verdict_;
};

/// The keys of `text` over `defaults`.
Spec SpecOf(const std::string& text, const Spec& defaults) {
  std::istringstream in(text);
  Spec spec = ValueOf(ReadSpec(in, "spec", defaults));
  if (spec.nodes == 0 && spec.topology)
    spec.nodes = static_cast<uint32_t>(spec.topology->nodes.size());
  return spec;
}

NativePlan CompilePlan(const std::string& text) {
  const Spec spec = ValueOf(SpecFlags().Settle(SpecOf(text, OpenSpec()), "spec",
                                               /*target=*/{}, /*is_quiet=*/true));
  return NativePlan(ValueOf(Compile(spec)));
}

/// `node`: the one whose program it has; none: all nodes.
RolledPlan RollPlan(const std::string& text, std::optional<uint32_t> node) {
  Spec spec = SpecOf(text, Spec());
  const SpecFlags flags;
  if (const Status status = CheckRolledKind(spec.collective); !status.ok())
    throw StatusError(flags.Locate(status, spec, "spec"));
  if (IsAutomatic(spec)) {
    throw StatusError(
        Rejected("auto depends on the size of the message, and a plan for any size has none",
                 spec.choose_block_bytes ? "spec: /block_bytes" : "spec: /algorithm"));
  }
  spec.message_bytes = 0;
  spec = ValueOf(flags.Settle(std::move(spec), "spec", /*target=*/{}, /*is_quiet=*/true));
  std::optional<NodeId> only;
  if (node) only = NodeId(*node);
  Result<RolledPlan> plan = Roll(spec, only);
  if (!plan.ok()) throw StatusError(flags.Locate(plan.status(), spec, "spec"));
  ThrowIfError(BlocksThatSettle(*plan).status());  // as for a file: what nobody could verify later
  return *std::move(plan);
}

RolledPlan ReadRolledText(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  return ValueOf(ReadRolledPlan(in, name));
}

RolledPlan LoadRolledFile(const std::string& path) { return ValueOf(ReadRolledPlanFile(path)); }

std::string TextOfRolled(const RolledPlan& plan) {
  std::ostringstream out;
  WriteRolledPlan(plan, out);
  return std::move(out).str();
}

constexpr const char* kRounds = "rounds";  ///< what rounds are called that have no file
using ReadTheRounds = std::function<Result<RoundsPlan>(const RoundsOptions&)>;
using Compiled = std::pair<NativePlan, std::vector<std::string>>;

/// The plan of what `read` gives, which is called `name`, and notes of it. `text` is a spec whose
/// keys stand beside the rounds; those that it does not have come from the rounds.
Compiled CompileRounds(const std::string& text, const std::string& name,
                       const ReadTheRounds& read) {
  const nlohmann::json given = nlohmann::json::parse(text);
  nlohmann::json complete = given;  // which the collective may be missing in: the rounds say it
  complete.emplace("collective", Name(CollectiveKind::kMulticast));
  std::istringstream in(complete.dump());
  const Spec spec = ValueOf(ReadSpec(in, "spec"));
  RoundsOptions options = {.message_bytes = spec.message_bytes};
  if (given.contains("collective")) options.collective = spec.collective;
  if (given.contains("combine")) options.combine = spec.combine;
  if (given.contains("nodes")) options.nodes = spec.nodes;
  if (given.contains("root")) options.root = spec.root.value;
  if (given.contains("block_bytes")) options.block_bytes = spec.block_bytes;
  const auto located = [&](const Status& status) {
    const std::string& where = status.where();
    const bool is_of_spec = where.starts_with("/") && !where.starts_with(name);
    return is_of_spec ? Rejected(status.message(), "spec: " + where) : status;
  };
  Result<RoundsPlan> rounds = read(options);
  if (!rounds.ok()) throw StatusError(located(rounds.status()));
  const CompileOptions compile;
  Result<VerifiedPlan> plan = CompletePlan(std::move(rounds->plan), spec.ready, spec.send_window,
                                           compile, rounds->where_of);
  if (!plan.ok()) throw StatusError(located(plan.status()));
  return {NativePlan(*std::move(plan)), std::move(rounds->notes)};
}

Compiled CompileRoundsFile(const std::string& spec, const std::string& path) {
  return CompileRounds(spec, path, [&](const RoundsOptions& options) {
    const auto read = [&](std::istream& in, const std::string& name,
                          std::vector<std::string>* warnings) {
      return ReadRounds(in, name, options, warnings);
    };
    return ReadWith(read, path);
  });
}

Compiled CompileRoundsText(const std::string& spec, const std::string& text) {
  return CompileRounds(spec, kRounds, [&](const RoundsOptions& options) {
    std::istringstream in(text);
    return ReadRounds(in, kRounds, options);
  });
}

/// `transfers`: round, sender, receiver, first block, how many, and whether they are combined, of
/// each, in 4 bytes each.
Compiled CompileTransfers(const std::string& spec, const py::buffer& transfers) {
  using Given = std::array<uint32_t, 6>;
  const BufferView view(transfers, /*is_written=*/false);
  const ReleasedInterpreter released;
  std::vector<PlannedTransfer> all(view.bytes() / sizeof(Given));
  for (size_t i = 0; i < all.size(); ++i) {
    Given given;
    std::memcpy(&given, view.data() + i * sizeof(Given), sizeof(Given));
    all[i] = {.round = given[0],
              .from = given[1],
              .to = given[2],
              .block = given[3],
              .count = given[4],
              .combines = given[5] != 0};
  }
  return CompileRounds(spec, kRounds, [&](const RoundsOptions& options) {
    return PlanRounds(all, kRounds, options);
  });
}

NativePlan ReadText(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  return NativePlan(ValueOf(ReadPlan(in, name)));
}

NativePlan LoadFile(const std::string& path) { return NativePlan(ValueOf(ReadPlanFile(path))); }

std::string TextOf(const NativePlan& plan, bool is_columns) {
  std::ostringstream out;
  WritePlan(plan.any(), out, is_columns ? PlanEncoding::kColumns : PlanEncoding::kRows);
  return std::move(out).str();
}

/// Its name, and its text if it is not the file of that name.
using GivenTopology = std::pair<std::string, std::optional<std::string>>;

Result<Network> TopologyOf(const GivenTopology& given) {
  if (!given.second) return LoadTopology(given.first);
  std::istringstream in(*given.second);
  return ReadTopology(in, given.first);
}

struct DrawOptions {
  std::string view, format;
  std::vector<uint32_t> nodes, blocks;
  std::optional<std::pair<uint32_t, uint32_t>> rounds;
  std::optional<GivenTopology> topology;
  std::vector<std::string> traces;
};

Result<std::string> Picture(const VerifiedPlan& plan, const DrawOptions& options) {
  viz::Selection wanted;
  for (const uint32_t node : options.nodes) wanted.nodes.emplace_back(node);
  wanted.blocks = options.blocks;
  if (options.rounds) wanted.rounds = viz::Rounds{options.rounds->first, options.rounds->second};
  const Result<viz::Selection> selection = viz::CheckSelection(plan, std::move(wanted));
  if (!selection.ok()) return selection.status();
  std::optional<Network> network;
  if (options.topology) {
    const Result<Network> topology = TopologyOf(*options.topology);
    if (!topology.ok()) return topology.status();
    Result<Network> made = NetworkOfFile(*topology, options.topology->first, plan.header().nodes);
    if (!made.ok()) return made.status();
    network = *std::move(made);
  }
  const Network* const on = network ? &*network : nullptr;
  const auto run = LoadTraces(options.traces, plan);
  if (!run.ok()) return run.status();
  const RunTrace* const trace = *run ? &(*run)->trace : nullptr;
  if (options.format == "html") {
    viz::PageSide side = {.label = "plan", .plan = &plan, .network = on};
    if (trace != nullptr) side.run = {.label = (*run)->label, .trace = trace, .info = (*run)->info};
    return viz::Page({side}, {.selection = *selection, .view = options.view});
  }
  if (options.view == "spacetime") {
    return trace != nullptr ? viz::DrawTrace(plan, *trace, *selection, on)
                            : viz::DrawSpacetime(plan, *selection, on);
  }
  if (options.view == "tree") return viz::DrawTree(plan, *selection, trace, on);
  if (options.view == "queues") return viz::DrawQueues(plan, *selection);
  static std::mutex graphviz;  // one at a time (viz/plan/graphviz.h)
  const std::lock_guard lock(graphviz);
  return viz::DrawGraph(plan, *selection,
                        options.format == "dot" ? viz::GraphFormat::kDot : viz::GraphFormat::kSvg,
                        on);
}

std::string DrawPlan(const NativePlan& plan, const DrawOptions& options) {
  const VerifiedPlan& valid = plan.valid()->plan;
  ThrowIfError(ExpectDrawn(valid, options.view == "queues"));
  const ReleasedInterpreter released;
  return ValueOf(Picture(valid, options));
}

/// Flags of a command, as it takes them. Throws what is wrong with them.
void Parse(CLI::App& app, std::vector<std::string> words) {
  std::ranges::reverse(words);
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw StatusError(UsageError(error.what()));
  }
}

constexpr const char* kProfile = "profile";  ///< what one is called that is no file

/// The flags of prepost simulate; what its --json prints. `profile`: the text of one, in place of
/// --profile; `topology`: in place of the profile's network.
std::string SimulatePlan(const NativePlan& plan, std::vector<std::string> words,
                         const std::optional<std::string>& profile,
                         const std::optional<GivenTopology>& topology) {
  SimulateContext context = {.plan = plan.valid(), .is_quiet = true};
  ThrowIfError(ExpectPlayed(context.plan->plan));
  const ReleasedInterpreter released;
  CLI::App app("", "simulate");
  SimulationFlags flags;
  flags.AddTo(app);
  Parse(app, std::move(words));
  flags.given = CommandLine::Of(app);
  if (topology) {
    ThrowIfError(CheckNoneOfNetwork(SettingsOf(flags.settings), "topology"));
    context.plan =
        std::make_shared<SimulatedPlan>(SimulatedPlan{.plan = context.plan->plan,
                                                      .topology = ValueOf(TopologyOf(*topology)),
                                                      .topology_path = topology->first});
    flags.given.Add("--topology", topology->first);
  }
  if (profile) {
    flags.profile = kProfile;
    context.profiles[kProfile] = {.name = kProfile, .text = *profile};
    ThrowIfError(CheckProfileText(context.profiles[kProfile]));
  } else {
    context.profiles[flags.profile] = ValueOf(LoadProfileText(flags.profile));
  }
  const Simulated simulated = ValueOf(Simulate(flags, &context));
  return ToJson(*simulated.simulation, /*has_lists=*/true).dump();
}

/// What prepost stats --json prints.
std::string StatsOf(const NativePlan& plan, const std::optional<GivenTopology>& topology) {
  const VerifiedPlan& valid = plan.valid()->plan;
  const uint32_t nodes = valid.header().nodes;
  Network network = Network::Uniform(nodes);
  if (topology) {
    ThrowIfError(ExpectPlayed(valid));
    network = ValueOf(NetworkOfFile(ValueOf(TopologyOf(*topology)), topology->first, nodes));
  }
  const PlanTables tables(valid);
  std::optional<std::string> name;
  if (topology) name = topology->first;
  return ToJson(PlanStats(tables, std::move(network), name)).dump();
}

/// What prepost explain --json prints.
std::string ExplainIn(const NativePlan& plan, const std::string& what) {
  const PlanTables tables(plan.valid()->plan);
  const Reasons reasons(tables);
  const Explanation explanation = ValueOf(Explain(tables, reasons, what));
  return ExplanationJson(tables, reasons.times(), explanation).dump();
}

/// The flags of prepost lower; what its --json prints.
std::string LowerFor(const NativePlan& plan, std::vector<std::string> words,
                     std::optional<uint32_t> node) {
  const VerifiedPlan& valid = plan.valid()->plan;
  CLI::App app("", "lower");
  LoweringFlags flags;
  flags.AddTo(app);
  Parse(app, std::move(words));
  ThrowIfError(flags.Check());
  nic::LowerOptions options = ValueOf(flags.ToOptions());
  if (node) options.node = NodeId(*node);
  const nic::QueueProgram program = ValueOf(nic::Lower(valid, options));
  return ToJson(program, FitsOf(valid, std::move(options))).dump();
}

/// The flags of prepost choose, for the keys of `text`; what its --json prints.
std::string ChooseFor(const std::string& text, std::vector<std::string> words) {
  CLI::App app("", "choose");
  SpecFlags flags;
  flags.AddTo(app, AutoFlags::kAll);
  flags.AddCollectivesTo(app);
  Parse(app, std::move(words));
  const Spec spec = SpecOf(text, OpenSpec());
  if (spec.collective == CollectiveKind::kMulticast)
    return ToJson(ValueOf(flags.ChooseFor(spec, "spec", {}, /*weighs_rule=*/true))).dump();
  return ToJson(WithImplied(spec), ValueOf(flags.CollectiveCandidatesFor(spec, "spec"))).dump();
}

std::string ShippedProfile(const std::string& name) {
  for (const ShippedFile& file : kShippedProfiles)
    if (file.name == name) return std::string(file.text);
  throw StatusError(UsageError(
      fmt::format("no profile '{}' is shipped; known are {}", name, NamesOf(kShippedProfiles))));
}

}  // namespace

void AddPlans(py::module_& module) {
  using Release = py::call_guard<ReleasedInterpreter>;
  py::class_<NativePlan>(module, "Plan")
      .def("findings", &NativePlan::Findings)
      .def("text", &TextOf, Release())
      .def("draw",
           [](const NativePlan& plan, std::string view, std::string format,
              std::vector<uint32_t> nodes, std::vector<uint32_t> blocks,
              std::optional<std::pair<uint32_t, uint32_t>> rounds,
              std::optional<GivenTopology> topology, std::vector<std::string> traces) {
             return DrawPlan(
                 plan, {std::move(view), std::move(format), std::move(nodes), std::move(blocks),
                        rounds, std::move(topology), std::move(traces)});
           })
      .def("simulate", &SimulatePlan)
      .def("stats", &StatsOf, Release())
      .def("explain", &ExplainIn, Release())
      .def("lower", &LowerFor, Release())
      .def("equals", [](const NativePlan& a, const NativePlan& b) { return a.any() == b.any(); })
      .def_property_readonly("algorithm",
                             [](const NativePlan& it) { return it.any().header().algorithm; })
      .def_property_readonly("nodes", [](const NativePlan& it) { return it.any().header().nodes; })
      .def_property_readonly(
          "root", [](const NativePlan& it) { return it.any().header().collective.root.value; })
      .def_property_readonly("rounds",
                             [](const NativePlan& it) { return it.any().header().rounds; })
      .def_property_readonly("message_bytes",
                             [](const NativePlan& it) { return it.any().header().payload.bytes; })
      .def_property_readonly(
          "block_bytes", [](const NativePlan& it) { return it.any().header().payload.block_bytes; })
      .def_property_readonly("blocks",
                             [](const NativePlan& it) { return it.any().header().payload.blocks; })
      .def_property_readonly("ops", [](const NativePlan& it) { return it.any().ops().size(); });
  py::class_<RolledPlan>(module, "RolledPlan")
      .def("text", &TextOfRolled, Release())
      .def(
          "unroll",
          [](const RolledPlan& plan, uint64_t bytes) {
            return NativePlan(ValueOf(Unroll(plan, bytes)));
          },
          Release())
      .def("equals", [](const RolledPlan& a, const RolledPlan& b) { return a == b; })
      .def_property_readonly("algorithm", [](const RolledPlan& it) { return it.header.algorithm; })
      .def_property_readonly("nodes", [](const RolledPlan& it) { return it.header.nodes; })
      .def_property_readonly("root",
                             [](const RolledPlan& it) { return it.header.collective.root.value; })
      .def_property_readonly("block_bytes",
                             [](const RolledPlan& it) { return it.header.payload.block_bytes; })
      .def_property_readonly("programs", [](const RolledPlan& it) { return it.programs.size(); });
  module.def("choose", &ChooseFor, Release());
  module.def("shipped_profile", &ShippedProfile);
  module.def("check_topology",
             [](const std::string& path) { ThrowIfError(LoadTopology(path).status()); });
  module.def("roll", &RollPlan, Release());
  module.def("read_rolled", &ReadRolledText, Release());
  module.def("load_rolled", &LoadRolledFile, Release());
  module.def("compile", &CompilePlan, Release());
  module.def("compile_rounds_file", &CompileRoundsFile, Release());
  module.def("compile_rounds_text", &CompileRoundsText, Release());
  module.def("compile_transfers", &CompileTransfers);
  module.attr("transfers_max") = kTransfersMax;
  module.def("read_plan", &ReadText, Release());
  module.def("load_plan", &LoadFile, Release());
}

}  // namespace prepost::python
