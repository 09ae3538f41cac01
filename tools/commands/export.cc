// SPDX-License-Identifier: Apache-2.0
//
// prepost export: a plan in the forms of other tools.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "ir/exchange/goal_writer.h"
#include "ir/exchange/graphml.h"
#include "ir/exchange/msccl.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

/// A form, the suffix of its files, and what it takes and gives.
struct ExportFormat {
  const char* name;
  const char* suffix;
  Status (*check)(const Plan&);
  void (*write)(const Plan&, std::ostream&);
  std::string (*losses)(const Plan&);  ///< may be empty
};
Status AlwaysFits(const Plan&) { return {}; }
std::string NoLosses(const Plan&) { return {}; }
constexpr ExportFormat kFormats[] = {
    {"goal", "goal", AlwaysFits, WriteGoal, GoalLosses},
    {"graphml", "graphml", AlwaysFits, WriteGraphml, NoLosses},
    {"msccl", "xml", CheckMsccl, WriteMsccl, MscclLosses},
};

struct ExportFlags {
  std::string path;
  std::string output = "-";
  std::string format;  ///< empty: by the suffix of `output`
};

Result<const ExportFormat*> FormatOf(const ExportFlags& flags) {
  const bool by_suffix = flags.format.empty();
  if (by_suffix && flags.output == "-")
    return Status(StatusCode::kUsage, "--format is needed where -o names no file");
  const std::string word = by_suffix ? SuffixOf(flags.output) : flags.format;
  std::vector<std::string> words;
  for (const ExportFormat& format : kFormats) {
    words.emplace_back(by_suffix ? format.suffix : format.name);
    if (words.back() == word) return &format;
  }
  if (word.empty()) {
    return Status(StatusCode::kUsage,
                  fmt::format("'{}' has no suffix that names a format: .{}, or use --format",
                              flags.output, fmt::join(words, ", .")));
  }
  return CheckWord(by_suffix ? "-o" : "--format", word, words);
}

Status Run(const ExportFlags& flags) {
  const Result<const ExportFormat*> format = FormatOf(flags);
  if (!format.ok()) return format.status();
  const Result<VerifiedPlan> plan = LoadAnyPlan(flags.path);
  if (!plan.ok()) return plan.status();
  if (const Status fits = (*format)->check(*plan); !fits.ok())
    return Rejected(fits.message(), NameOfInput(flags.path));
  PREPOST_RETURN_IF_ERROR(
      WriteFile(flags.output, [&](std::ostream& out) { (*format)->write(*plan, out); }));
  const std::string losses = (*format)->losses(*plan);
  if (!losses.empty()) PrintNote(losses);
  return {};
}

}  // namespace

void AddExport(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand("export", "Write a plan in the form of another tool");
  command->footer(
      "goal (.goal): the text that LogGOPSim's txt2bin compiles; prepost import reads it back.\n"
      "graphml (.graphml): ops and their order as a graph, for NetworkX, Gephi or yEd.\n"
      "msccl (.xml): an algorithm for MSCCL's interpreter in NCCL; up to 256 steps per thread "
      "block and 32 peers per node.\n"
      "What a form cannot hold is said on stderr, in a line (docs/inspect.md).\n\n"
      "Examples:\n"
      "  prepost export plan.json -o plan.goal\n"
      "  prepost export plan.json --format msccl\n"
      "  prepost compile --nodes 4 --message-bytes 4MiB | prepost export - -o pipeline.graphml");
  command->add_option("PLAN", flags->path, "Plan file, - for stdin")->required();
  command->add_option("--format", flags->format, "goal, graphml or msccl, whatever -o's suffix")
      ->type_name("FORMAT");
  command->add_option("-o,--output", flags->output, "File to write, - for stdout [-]")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
