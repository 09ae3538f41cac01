// SPDX-License-Identifier: Apache-2.0
//
// prepost draw: a picture of a plan, as SVG or dot text, or a page with all views of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "tools/commands/commands.h"
#include "tools/commands/draw_flags.h"
#include "tools/commands/draw_page.h"
#include "viz/plan/graph.h"
#include "viz/plan/spacetime.h"
#include "viz/plan/trace_picture.h"
#include "viz/plan/tree.h"
#include "viz/queues/queues.h"

namespace prepost::tools {
namespace {

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

/// Of pictures, which show one view of one plan.
Status CheckPicture(const DrawFlags& flags) {
  for (const auto& [name, is_given] : {std::pair("--simulation", flags.simulation.has_value()),
                                       std::pair("--against", !flags.against.empty())}) {
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
  const auto stdins = [](const std::vector<std::string>& paths) {
    return std::ranges::count(paths, "-");
  };
  if (is_stdin(flags.path) + is_stdin(flags.topology) + is_stdin(flags.simulation) +
          stdins(flags.traces) + stdins(flags.against_traces) >
      1) {
    return {StatusCode::kUsage,
            "only one of PLAN, --topology, --trace, --simulation and --against-trace can be stdin"};
  }
  if (stdins(flags.against) > 0)
    return {StatusCode::kUsage, "--against: a file is needed, not stdin"};
  if (!flags.against.empty() && is_stdin(flags.topology))
    return {StatusCode::kUsage, "--topology: with --against, a file is needed, not stdin"};
  if (flags.simulation && !flags.traces.empty())
    return {StatusCode::kUsage, "one of --trace and --simulation: --against shows another run"};
  const bool is_plan = !flags.against.empty() && !IsTrace(flags.against.front());
  if (!flags.against_traces.empty() && !is_plan)
    return {StatusCode::kUsage, "--against-trace is of another plan: --against PLAN"};
  if (flags.against.size() > 1 && is_plan)
    return {StatusCode::kUsage, "--against: one plan, or the traces of one run"};
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  for (const std::string& engine : flags.engines)
    PREPOST_RETURN_IF_ERROR(CheckWord("--engine", engine, {"nic", "deferred", "cpu"}));
  if (flags.lowering.given() != nullptr && !flags.engines.empty() && !flags.Has("nic"))
    return {StatusCode::kUsage, fmt::format("{} is for --engine nic", flags.lowering.given())};
  const Result<VerifiedPlan> plan = LoadAnyPlan(flags.path);
  if (!plan.ok()) return plan.status();
  const Status drawn = ExpectDrawn(*plan, flags.HasQueues());
  if (!drawn.ok()) return Rejected(drawn.message(), NameOfInput(flags.path));
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
                   "Network file, - for stdin: node i of the plan is its host i; shows the racks")
      ->type_name("FILE");
  command
      ->add_option("--simulation", flags->simulation,
                   "On a page: the times of this simulation (prepost simulate --trace)")
      ->type_name("FILE");
  command
      ->add_option("--against", flags->against,
                   "On a page: another plan, or another run of the plan (a trace file; may be "
                   "repeated as --trace), beside it")
      ->type_name("OTHER")
      ->allow_extra_args(false);
  command
      ->add_option("--against-trace", flags->against_traces,
                   "The times of a run of that plan; may be repeated as --trace")
      ->type_name("FILE")
      ->allow_extra_args(false);
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
