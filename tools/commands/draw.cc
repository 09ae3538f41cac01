// SPDX-License-Identifier: Apache-2.0
//
// prepost draw: a picture of a plan, as SVG or dot text, or a page with all views of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "runtime/op_times.h"
#include "runtime/trace_file.h"
#include "tools/commands/commands.h"
#include "tools/flags/lowering_flags.h"
#include "tools/flags/named_file.h"
#include "tools/flags/plan_file.h"
#include "tools/flags/values.h"
#include "tools/report/messages.h"
#include "tools/report/plan_stats.h"
#include "viz/graph.h"
#include "viz/page.h"
#include "viz/queues.h"
#include "viz/spacetime.h"
#include "viz/trace_picture.h"
#include "viz/tree.h"

namespace prepost::tools {
namespace {

struct DrawFlags {
  std::string path;
  std::string output = "-";
  std::string view = "spacetime";
  std::string format;  ///< empty: by the suffix of `output`
  std::vector<uint32_t> nodes;
  std::vector<uint32_t> blocks;
  std::string rounds;
  std::vector<std::string> traces;
  std::optional<std::string> simulation;
  std::optional<std::string> against;
  std::optional<std::string> against_trace;
  std::optional<std::string> topology;
  std::vector<std::string> engines;  ///< of the queues view; empty: "nic"
  LoweringFlags lowering;

  bool Has(const std::string& engine) const { return std::ranges::count(engines, engine) != 0; }
};

/// "plan.json" of "plans/plan.json"; "-" is itself.
std::string NameOfFile(const std::string& path) {
  const std::filesystem::path file(path);
  return file.has_filename() ? file.filename() : file.parent_path().filename();
}

const std::vector<std::string>& Views() {
  static const std::vector<std::string> views = {"graph", "queues", "spacetime", "tree"};
  return views;
}

const std::vector<std::string>& Formats() {
  static const std::vector<std::string> formats = {"svg", "dot", "html"};
  return formats;
}

/// The format asked for, or the one that the output's suffix names; stdout gets SVG.
Result<std::string> FormatOf(const DrawFlags& flags) {
  std::string format = flags.format;
  if (format.empty()) {
    if (flags.output == "-") return std::string("svg");
    format = SuffixOf(flags.output);
    if (format.empty()) {
      return Status(StatusCode::kUsage,
                    fmt::format("'{}' has no suffix that names a format: .{}, or use --format",
                                flags.output, fmt::join(Formats(), ", .")));
    }
  }
  PREPOST_RETURN_IF_ERROR(CheckWord(flags.format.empty() ? "-o" : "--format", format, Formats()));
  if (format == "dot" && flags.view != "graph") {
    return Status(StatusCode::kUsage,
                  fmt::format("the {} view has no dot form, only --view graph has", flags.view));
  }
  return format;
}

Result<viz::Selection> SelectionOf(const DrawFlags& flags, const Plan& plan) {
  viz::Selection selection;
  for (uint32_t node : flags.nodes) selection.nodes.push_back(NodeId(node));
  selection.blocks = flags.blocks;
  if (!flags.rounds.empty()) {
    const Result<viz::Rounds> rounds = viz::ParseRounds(flags.rounds);
    if (!rounds.ok()) return rounds.status();
    selection.rounds = *rounds;
  }
  return viz::CheckSelection(plan, std::move(selection));
}

/// What files say of one run.
struct LoadedRun {
  std::string label;
  RunTrace trace;
  TraceInfo info;
};

/// The trace files together; none when there are none.
Result<std::optional<LoadedRun>> LoadTraces(const std::vector<std::string>& paths,
                                            const Plan& plan) {
  if (paths.empty()) return std::optional<LoadedRun>();
  Result<RunTrace> trace = RunTrace::Make(plan);
  if (!trace.ok()) return trace.status();
  LoadedRun run = {.label = NameOfFile(paths.front()), .trace = *std::move(trace), .info = {}};
  for (const std::string& path : paths) {
    const Ticker ticker("reading " + path);
    const std::string failed = run.info.outcome == "completed" ? "" : run.info.outcome;
    PREPOST_RETURN_IF_ERROR(WithInput(path, [&](std::istream& in, const std::string& name) {
      return ReadTrace(in, name, plan, &run.trace, &run.info);
    }));
    if (!failed.empty()) run.info.outcome = failed;
  }
  return std::optional<LoadedRun>(std::move(run));
}

/// Those of the first plan; a simulation's is one that says so.
Result<std::optional<LoadedRun>> LoadOwnRun(const DrawFlags& flags, const Plan& plan) {
  if (!flags.simulation) return LoadTraces(flags.traces, plan);
  Result<std::optional<LoadedRun>> run = LoadTraces({*flags.simulation}, plan);
  if (run.ok() && (*run)->trace.modelled.empty()) {
    return Status(
        StatusCode::kRejected,
        "it is of a run and of no simulation (prepost simulate --trace): --trace shows it",
        *flags.simulation);
  }
  return run;
}

/// The network that `plan` runs on; none when it is not known.
Result<std::optional<Network>> NetworkUnder(const DrawFlags& flags, const Plan& plan) {
  if (!flags.topology) return std::optional<Network>();
  const Result<Topology> topology = LoadTopology(*flags.topology);
  if (!topology.ok()) return topology.status();
  Result<Network> network = NetworkOfFile(*topology, *flags.topology, plan.header().nodes);
  if (!network.ok()) return network.status();
  return std::optional<Network>(std::move(*network));
}

/// Those that are named; without names, of a picture the NIC's, of a page all.
Result<viz::QueueEngines> EnginesOf(const DrawFlags& flags, bool is_page = false) {
  const Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  const bool is_all = is_page && flags.engines.empty();
  viz::QueueEngines engines = {.deferred = is_all || flags.Has("deferred"),
                               .cpu = is_all || flags.Has("cpu")};
  engines.nic.reset();
  if (flags.engines.empty() || flags.Has("nic")) engines.nic = *lower;
  return engines;
}

Result<std::string> Draw(const DrawFlags& flags, const std::string& format,
                         const VerifiedPlan& plan) {
  const Result<viz::Selection> selection = SelectionOf(flags, plan);
  if (!selection.ok()) return selection.status();
  const Result<std::optional<Network>> known = NetworkUnder(flags, plan);
  if (!known.ok()) return known.status();
  const Network* network = *known ? &**known : nullptr;
  const Result<std::optional<LoadedRun>> run = LoadOwnRun(flags, plan);
  if (!run.ok()) return run.status();
  const RunTrace* const trace = *run ? &(*run)->trace : nullptr;
  if (flags.view == "spacetime") {
    return trace != nullptr ? viz::DrawTrace(plan, *trace, *selection, network)
                            : viz::DrawSpacetime(plan, *selection, network);
  }
  if (flags.view == "tree") return viz::DrawTree(plan, *selection, trace, network);
  if (flags.view == "queues") {
    const Result<viz::QueueEngines> engines = EnginesOf(flags);
    if (!engines.ok()) return engines.status();
    size_t shown = 0;
    Result<std::string> picture = viz::DrawQueues(plan, *selection, *engines, &shown);
    if (picture.ok() && shown == 0) {
      PrintNote(
          fmt::format("the picture is empty: nothing in node {}'s queues is "
                      "of these blocks and rounds",
                      selection->nodes.front().value));
    }
    return picture;
  }
  return viz::DrawGraph(plan, *selection,
                        format == "dot" ? viz::GraphFormat::kDot : viz::GraphFormat::kSvg, network);
}

/// A side of a page, with what it points at.
class LoadedSide {
 public:
  LoadedSide(const DrawFlags& flags, const std::string& path, const VerifiedPlan& plan,
             std::optional<LoadedRun> run)
      : run_(std::move(run)) {
    side_ = {.label = NameOfFile(path), .plan = &plan};
    if (run_) side_.run = {.label = run_->label, .trace = &run_->trace, .info = run_->info};
    topology_ = flags.topology;
  }
  LoadedSide(const LoadedSide&) = delete;
  LoadedSide& operator=(const LoadedSide&) = delete;

  /// `network`: none if it is not known.
  void Analyse(std::optional<Network> network) {
    network_ = std::move(network);
    if (network_) side_.network = &*network_;
    const PlanTables tables(*side_.plan);
    side_.stats =
        ToJson(PlanStats(tables,
                         network_ ? *network_ : Network::Uniform(side_.plan->header().nodes),
                         network_ ? topology_ : std::nullopt))
            .dump();
  }
  const viz::PageSide& side() const { return side_; }

 private:
  std::optional<LoadedRun> run_;
  std::optional<Network> network_;
  std::optional<std::string> topology_;
  viz::PageSide side_;
};

/// Whether --against names a run of the same plan, and not another plan. Of what is no file, as a pipe,
/// nothing can be read before: it counts as a plan.
bool IsTrace(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream in(path, std::ios::binary);
  std::string begin(256, '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin.find("\"prepost.trace\"") != std::string::npos;
}

Result<std::string> DrawPage(const DrawFlags& flags, const VerifiedPlan& plan) {
  const Result<viz::Selection> selection = SelectionOf(flags, plan);
  if (!selection.ok()) return selection.status();
  const Result<viz::QueueEngines> engines = EnginesOf(flags, /*is_page=*/true);
  if (!engines.ok()) return engines.status();
  std::deque<VerifiedPlan> others;
  std::deque<LoadedSide> sides;
  const auto add = [&](const std::string& path, const VerifiedPlan& of,
                       Result<std::optional<LoadedRun>> run) -> Status {
    if (!run.ok()) return run.status();
    if (of.header().rounds > viz::kPageRoundsMax) {
      return Status(StatusCode::kRejected,
                    fmt::format("the plan has {} rounds, and a page shows {}: -o FILE.svg draws it",
                                of.header().rounds, viz::kPageRoundsMax),
                    path);
    }
    Result<std::optional<Network>> network = NetworkUnder(flags, of);
    if (!network.ok()) return network.status();
    sides.emplace_back(flags, path, of, *std::move(run)).Analyse(*std::move(network));
    return {};
  };
  PREPOST_RETURN_IF_ERROR(add(flags.path, plan, LoadOwnRun(flags, plan)));
  if (flags.against && IsTrace(*flags.against)) {
    PREPOST_RETURN_IF_ERROR(add(flags.path, plan, LoadTraces({*flags.against}, plan)));
  } else if (flags.against) {
    Result<VerifiedPlan> other = LoadPlan(*flags.against);
    if (!other.ok()) return other.status();
    others.push_back(*std::move(other));
    std::vector<std::string> traces;
    if (flags.against_trace) traces.push_back(*flags.against_trace);
    PREPOST_RETURN_IF_ERROR(add(*flags.against, others.back(), LoadTraces(traces, others.back())));
  }
  std::vector<viz::PageSide> shown;
  for (const LoadedSide& side : sides) shown.push_back(side.side());
  return viz::Page(shown, {.engines = *engines, .selection = *selection, .view = flags.view});
}

/// Of pictures, which show one view of one plan.
Status CheckPicture(const DrawFlags& flags) {
  for (const auto& [name, is_given] : {std::pair("--simulation", flags.simulation.has_value()),
                                       std::pair("--against", flags.against.has_value())}) {
    if (is_given) return {StatusCode::kUsage, fmt::format("{} is for pages: -o FILE.html", name)};
  }
  if (!flags.traces.empty() && flags.view != "spacetime" && flags.view != "tree") {
    return {
        StatusCode::kUsage,
        fmt::format("the {} view shows no times, --trace is for spacetime and tree", flags.view)};
  }
  if (flags.topology && flags.view == "queues") {
    return {StatusCode::kUsage,
            "the queues view shows one node, --topology is for spacetime, graph and tree"};
  }
  if (flags.lowering.given() != nullptr && flags.view != "queues") {
    return {StatusCode::kUsage, fmt::format("{} is for the queues view", flags.lowering.given())};
  }
  if (!flags.engines.empty() && flags.view != "queues")
    return {StatusCode::kUsage, "--engine is for the queues view"};
  return {};
}

Status Run(const DrawFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckWord("--view", flags.view, Views()));
  const Result<std::string> format = FormatOf(flags);
  if (!format.ok()) return format.status();
  if (*format != "html") PREPOST_RETURN_IF_ERROR(CheckPicture(flags));
  const auto is_stdin = [](const std::optional<std::string>& path) { return path == "-"; };
  if (is_stdin(flags.path) + is_stdin(flags.topology) + is_stdin(flags.simulation) +
          is_stdin(flags.against) + is_stdin(flags.against_trace) +
          std::ranges::count(flags.traces, "-") >
      1) {
    return {StatusCode::kUsage,
            "only one of PLAN, --topology, --trace, --simulation and --against-trace can be stdin"};
  }
  if (is_stdin(flags.against))
    return {StatusCode::kUsage, "--against: a file is needed, not stdin"};
  if (flags.against && is_stdin(flags.topology))
    return {StatusCode::kUsage, "--topology: with --against, a file is needed, not stdin"};
  if (flags.simulation && !flags.traces.empty())
    return {StatusCode::kUsage, "one of --trace and --simulation: --against shows another run"};
  if (flags.against_trace && (!flags.against || IsTrace(*flags.against)))
    return {StatusCode::kUsage, "--against-trace is of another plan: --against PLAN"};
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  for (const std::string& engine : flags.engines)
    PREPOST_RETURN_IF_ERROR(CheckWord("--engine", engine, {"nic", "deferred", "cpu"}));
  if (flags.lowering.given() != nullptr && !flags.engines.empty() && !flags.Has("nic"))
    return {StatusCode::kUsage, fmt::format("{} is for --engine nic", flags.lowering.given())};
  const Result<VerifiedPlan> plan = LoadPlan(flags.path);
  if (!plan.ok()) return plan.status();
  const Result<std::string> picture =
      *format == "html" ? DrawPage(flags, *plan) : Draw(flags, *format, *plan);
  if (!picture.ok()) return picture.status();
  return WriteFile(flags.output, [&](std::ostream& out) { out << *picture; });
}

}  // namespace

void AddDraw(CLI::App& app, Action* action) {
  auto flags = std::make_shared<DrawFlags>();
  CLI::App* command = app.add_subcommand("draw", "Draw a plan");
  command->footer(
      "spacetime: a row per node, a column per round, the blocks received and sent; a summary "
      "above 64 nodes or 80\n"
      "rounds. With --trace: measured times over the plan's rounds.\n"
      "graph: every send and receive with what it waits for, laid out by Graphviz; up to 500 ops.\n"
      "tree: the way of one block (0 without --block), with --trace with times; up to 256 nodes "
      "are "
      "drawn.\n"
      "queues: the queues of one --node for an --engine: a NIC, with what each WAIT waits for and "
      "SEND_EN enables; a\n"
      "provider of libfabric, with its deferred work; a CPU, with what it posts after what; up to "
      "400 entries.\n"
      "With --topology, all but queues: racks with their names, and which transfers cross between "
      "them.\n"
      "-o FILE.html: a page for a browser, with all views, linked by one selection and one clock. "
      "The flags above say\n"
      "what it shows first; --against puts another run or plan beside it.\n\n"
      "Examples:\n"
      "  prepost draw plan.json -o plan.svg\n"
      "  prepost draw plan.json --view graph --node 5 --rounds 2:6 -o node5.svg\n"
      "  prepost draw plan.json --view tree --block 3 -o tree.svg\n"
      "  prepost draw plan.json --topology examples/topologies/2x4.json -o racks.svg\n"
      "  prepost draw plan.json --view queues --node 5 -o queues.svg\n"
      "  prepost draw plan.json --view queues --node 5 --block 0 --mode managed -o managed.svg\n"
      "  prepost draw plan.json --view queues --node 5 --engine nic --engine deferred --engine cpu "
      "-o engines.svg\n"
      "  prepost run plan.json --input image.raw --trace trace.json\n"
      "  prepost draw plan.json --trace trace.json -o run.svg\n"
      "  prepost compile --nodes 8 --message-bytes 4MiB | prepost draw - --block 3 -o block3.html\n"
      "  prepost run plan.json --input image.raw --executor offload --trace offload.json\n"
      "  prepost draw plan.json --trace trace.json --against offload.json -o both.html");
  command->add_option("PLAN", flags->path, "Plan file, - for stdin")->required();
  command->add_option("--view", flags->view, "spacetime (default), graph, tree or queues")
      ->type_name("VIEW");
  command
      ->add_option("-o,--output", flags->output,
                   "File: .svg, .html, or .dot of a graph (default: svg to stdout)")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command->add_option("--format", flags->format, "svg, dot or html, whatever the file's suffix")
      ->type_name("FORMAT");
  command
      ->add_option(
          "--node", flags->nodes,
          "Only this node (with its peers in a graph, the way to it in a tree); may be repeated")
      ->type_name("I")
      ->check(NodeNumber())
      ->allow_extra_args(false);
  command->add_option("--block", flags->blocks, "Only this block; may be repeated")
      ->type_name("B")
      ->check(BlockNumber())
      ->allow_extra_args(false);
  command->add_option("--rounds", flags->rounds, "Only rounds A to B, both included")
      ->type_name("A:B");
  command
      ->add_option("--trace", flags->traces,
                   "Draw the times of this run of the plan (prepost run --trace); may be repeated "
                   "for files of several nodes, which are aligned by their starts")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--topology", flags->topology,
                   "Topology file, - for stdin: node i of the plan is its host i; shows the racks")
      ->type_name("FILE");
  command
      ->add_option("--simulation", flags->simulation,
                   "On a page: the times of this simulation (prepost simulate --trace)")
      ->type_name("FILE");
  command
      ->add_option("--against", flags->against,
                   "On a page: another run of the plan (a trace file), or another plan, beside it")
      ->type_name("OTHER");
  command->add_option("--against-trace", flags->against_trace, "The times of a run of that plan")
      ->type_name("FILE");
  command
      ->add_option(
          "--engine", flags->engines,
          "Whose queues: nic, deferred (work of libfabric) or cpu; several stand below each "
          "other [nic; on a page all]")
      ->type_name("ENGINE")
      ->allow_extra_args(false);
  flags->lowering.AddTo(*command);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
