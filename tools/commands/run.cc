// SPDX-License-Identifier: Apache-2.0
//
// prepost run: plays a plan, moves a file to all nodes or takes their inputs from it, checks that
// all copies are the same, or each output what the plan makes of the inputs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "backends/nic/program/lower.h"
#include "backends/registry.h"
#include "compiler/choice/stream_advice.h"
#include "ir/base/count.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/spec_flags.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "runtime/base/interrupt.h"
#include "runtime/executor/executor_choice.h"
#include "runtime/files/message_file.h"
#include "runtime/files/output_set.h"
#include "runtime/run/local_group.h"
#include "tools/commands/commands.h"
#include "tools/commands/run_job.h"
#include "tools/report/report_print.h"
#include "tools/report/trace_output.h"

namespace prepost::tools {
namespace {

struct RunFlags {
  std::string plan_path;
  SpecFlags spec;
  std::string input_path;
  std::string executor = "auto";
  std::string transport;  // empty: not given
  bool is_sealed = false;
  PlayFlags play;
  std::string device;     // empty: not given
  std::string scheduler;  // empty: not given
  std::optional<uint64_t> seed;
  LoweringFlags lowering;
  std::string output_folder;
  TraceOutput trace;
};

constexpr emulated::SchedulerMode kSchedulers[] = {emulated::SchedulerMode::kRoundRobin,
                                                   emulated::SchedulerMode::kRandom,
                                                   emulated::SchedulerMode::kAdversarial};

std::vector<std::string> SchedulerNames() {
  std::vector<std::string> names;
  for (const emulated::SchedulerMode mode : kSchedulers) names.emplace_back(Name(mode));
  return names;
}

emulated::SchedulerMode SchedulerOf(const std::string& name) {
  if (name.empty()) return emulated::SchedulerMode::kRoundRobin;
  const auto mode = std::ranges::find(
      kSchedulers, name, [](emulated::SchedulerMode m) { return std::string(Name(m)); });
  PREPOST_CHECK(mode != std::end(kSchedulers));  // CheckFlags saw to it
  return *mode;
}

TransportKind TransportOf(const RunFlags& flags) {
  return ValueOf(kTransportNames, flags.transport, TransportKind::kTcp);
}

Executor ExecutorOf(const RunFlags& flags) {
  return ValueOf(kExecutorNames, flags.executor, Executor::kAuto);
}

/// Each node's process has the device, instead of all nodes being on NICs of one process.
bool IsPerNode(const RunFlags& flags) { return IsLibraryDevice(flags.device); }

/// A flag that only NICs can use, for messages; null when none was given. --device itself decides.
const char* ForOffload(const RunFlags& flags) {
  return !flags.scheduler.empty() ? "--scheduler" : flags.seed ? "--seed" : flags.lowering.given();
}

/// auto, and nothing that could be offloaded to is named.
bool IsOnCpusByItself(const RunFlags& flags) {
  return ExecutorOf(flags) == Executor::kAuto && (flags.device.empty() || !flags.transport.empty());
}

/// Where it comes from, for messages.
std::string NameOfPlan(const RunFlags& flags) {
  return flags.plan_path.empty() ? "--collective" : NameOfInput(flags.plan_path);
}

/// Only what CPUs write to connections can be sealed.
Status CheckSeal(const RunFlags& flags) {
  if (!flags.is_sealed) return {};
  if (ExecutorOf(flags) == Executor::kOffload || !flags.device.empty()) {
    return {StatusCode::kUsage,
            fmt::format("--seal: what goes over {} the NIC itself moves, which seals nothing",
                        flags.device.empty() ? "--executor offload" : "--device " + flags.device)};
  }
  if (TransportOf(flags) == TransportKind::kTcp) return {};
  return {StatusCode::kUsage,
          fmt::format("--seal is for connections, of which --transport {} has none",
                      Name(TransportOf(flags)))};
}

Status CheckFlags(const RunFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckWord("--executor", flags.executor, Words(kExecutorNames)));
  if (!flags.scheduler.empty())
    PREPOST_RETURN_IF_ERROR(CheckWord("--scheduler", flags.scheduler, SchedulerNames()));
  if (!flags.transport.empty()) {
    PREPOST_RETURN_IF_ERROR(CheckWord("--transport", flags.transport, Words(kTransportNames)));
    if (ExecutorOf(flags) == Executor::kOffload)
      return {StatusCode::kUsage, "--transport is for CPUs, not for --executor offload"};
  }
  PREPOST_RETURN_IF_ERROR(flags.play.Check());
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  PREPOST_RETURN_IF_ERROR(CheckSeal(flags));
  if (IsPerNode(flags)) {
    const char* const unfit = ForOffload(flags) != nullptr ? ForOffload(flags)
                              : !flags.transport.empty()   ? "--transport"
                                                           : nullptr;
    if (unfit != nullptr) {
      return {StatusCode::kUsage, fmt::format("{} is not for --device {}", unfit, flags.device)};
    }
  } else if (!flags.device.empty()) {
    const Status known = CheckWord("--device", flags.device, SoftwareDeviceNames());
    if (!known.ok()) {
      return {
          known.code(),
          known.message() +
              ", or fabric:PROVIDER or verbs:NAME (see prepost devices); a card carries one node "
              "per machine: prepost node"};
    }
  }
  if (ExecutorOf(flags) == Executor::kOffload)
    PREPOST_RETURN_IF_ERROR(flags.play.wait.CheckOffload());
  if (ExecutorOf(flags) == Executor::kOffload && !IsPerNode(flags) &&
      !flags.play.failure_max_text.empty()) {
    return {StatusCode::kUsage,
            "--failure-max is for nodes that are processes, not for emulated NICs of one"};
  }
  if (ExecutorOf(flags) == Executor::kCpu) {
    const char* flag = flags.device.empty() || IsPerNode(flags) ? ForOffload(flags) : "--device";
    if (flag != nullptr) {
      return {StatusCode::kUsage, fmt::format("{} is for offload, not for --executor cpu", flag)};
    }
  }
  if (IsOnCpusByItself(flags) && ForOffload(flags) != nullptr) {
    return {StatusCode::kUsage,
            fmt::format("{} is for offload: {}", ForOffload(flags),
                        flags.transport.empty() ? "add --executor offload or --device"
                                                : "--transport is for CPUs")};
  }
  if (flags.plan_path.empty() && !flags.spec.any()) {
    return {StatusCode::kUsage, "run needs a PLAN, a SPEC or flags such as --nodes (see --help)"};
  }
  if (flags.input_path == "-") {
    return {StatusCode::kUsage, "--input: a file is needed, not stdin, because it is mapped"};
  }
  return {};
}

using RunChoice = ExecutorChoice<nic::QueueProgram>;

/// What NICs of this process are to carry, or none; for auto with the reason on stderr. Errors:
/// those of ChooseExecutor() and of Lower(). `plan`: null only if PlaysRolled().
Result<RunChoice> ChooseFor(const RunFlags& flags, const VerifiedPlan* plan,
                            const nic::LowerOptions& lower) {
  if (IsPerNode(flags)) return RunChoice();
  const ExecutorWish wish = {.executor = ExecutorOf(flags),
                             .device = flags.device,
                             .cpu_because = flags.device.empty()       ? "no --device is named"
                                            : !flags.transport.empty() ? "--transport is named"
                                                                       : ""};
  Result<RunChoice> choice = RunChoice();
  if (plan != nullptr) {
    choice =
        ChooseExecutor<nic::QueueProgram>(wish, *plan, [&] { return nic::Lower(*plan, lower); });
  } else if (wish.executor == Executor::kAuto) {
    choice->why = wish.cpu_because;
  }
  const bool is_for_cpus = plan != nullptr && WhyNotPreposted(*plan);
  if (!choice.ok())
    return is_for_cpus ? Rejected(choice.status().message(), NameOfPlan(flags)) : choice.status();
  // What is asked for, or goes without saying.
  if (flags.device.empty() && (!flags.transport.empty() || is_for_cpus)) return choice;
  std::string note = choice->note();
  if (note.empty()) return choice;
  const bool is_cpu = !flags.device.empty() && !choice->program;
  const char* unused = choice->program && flags.play.wait.any() ? "--wait"
                       : is_cpu && !flags.scheduler.empty()     ? "--scheduler"
                       : is_cpu && flags.seed                   ? "--seed"
                                                                : nullptr;
  if (unused != nullptr) note += fmt::format("; {} is not used", unused);
  PrintNote("executor " + note);
  return choice;
}

/// CPUs play a rolled plan as it is. A NIC is given all of its ops, and a trace has all of them.
bool PlaysRolled(const RunFlags& flags) {
  const bool is_cpu = ExecutorOf(flags) == Executor::kCpu || IsOnCpusByItself(flags);
  return is_cpu && !flags.trace.is_wanted() && !IsPerNode(flags);
}

Status MissingInput() { return {StatusCode::kUsage, "--input is required (see --help)"}; }

/// The rolled plan of the file, for an input of `given` bytes.
Result<PlayedPlan> GetRolledPlan(const RunFlags& flags, std::optional<uint64_t> given) {
  if (!given) return MissingInput();
  const uint64_t bytes = *given;
  Result<RolledPlan> rolled = ReadRolledPlanFile(flags.plan_path);
  if (!rolled.ok()) return rolled.status();
  PREPOST_RETURN_IF_ERROR(CheckSize(*rolled, bytes, "input " + flags.input_path));
  if (PlaysRolled(flags)) {
    if (rolled->programs.size() != rolled->header.nodes) {
      return Rejected(fmt::format("programs of {} of {} nodes are there; run needs all",
                                  rolled->programs.size(), rolled->header.nodes),
                      flags.plan_path);
    }
    return PlayedPlan::Rolled(std::move(*rolled), bytes, flags.plan_path);
  }
  return PlayedPlan::Unrolled(*rolled, bytes, flags.plan_path,
                              flags.trace.is_wanted() ? "a trace" : "offload");
}

/// What can be said of a flat plan before its input is looked at.
Result<PlayedPlan> Checked(const RunFlags& flags, bool has_input, VerifiedPlan plan) {
  const std::string name = NameOfPlan(flags);
  PREPOST_RETURN_IF_ERROR(CheckOperation(plan.header(), name));
  const CollectiveKind kind = plan.header().collective.kind;
  if (!has_input && kind != CollectiveKind::kBarrier) return MissingInput();
  return PlayedPlan(std::move(plan));
}

/// Bytes of a part of `spec`, another collective than a multicast, if all nodes' inputs have
/// `bytes` together; of one that says the sizes of its parts, none.
Result<std::optional<uint64_t>> PartBytesFor(const Spec& spec, uint64_t bytes,
                                             const std::string& input_path) {
  if (!spec.part_bytes.empty() || spec.nodes == 0 || spec.nodes > kNodesMax)
    return std::optional<uint64_t>();
  const uint64_t parts = PartsOf(spec.collective, spec.nodes);
  if (parts > kBlocksMax || spec.root.value >= spec.nodes) return std::optional<uint64_t>();
  const Roles roles({.kind = spec.collective, .root = spec.root}, spec.nodes,
                    static_cast<uint32_t>(parts));
  uint64_t contributed = 0;
  for (uint32_t node = 0; node < spec.nodes; ++node)
    contributed += roles.Contributed(NodeId(node)).count;
  const uint64_t element =
      Combines(spec.collective) ? std::max<uint64_t>(SizeOf(spec.combine.type), 1) : 1;
  if (bytes % (contributed * element) == 0) return std::optional(bytes / contributed);
  return Rejected(fmt::format(
      "input {} has {}, no multiple of {}: {} {} of {} {}{}", input_path, Count(bytes, "byte"),
      contributed * element, ArticleOf(spec.collective), Name(spec.collective),
      Count(spec.nodes, "node"),
      contributed == 1 ? "takes one part"
                       : fmt::format("takes {} of one size", Count(contributed, "part")),
      element == 1 ? "" : fmt::format(", each of whole {}", Name(spec.combine.type))));
}

/// The spec of the file, of flags or both, for an input of `bytes`, if there is one.
Result<Spec> GetSpec(const RunFlags& flags, std::optional<uint64_t> bytes,
                     const AutoTarget& target) {
  Result<Spec> spec = flags.spec.Read(flags.plan_path, std::nullopt);
  if (!spec.ok()) return spec;
  const bool is_multicast = spec->collective == CollectiveKind::kMulticast;
  const bool is_barrier = spec->collective == CollectiveKind::kBarrier;
  if (!bytes && !is_barrier) return MissingInput();
  if (is_multicast) {
    spec->message_bytes = bytes;
  } else if (!is_barrier) {
    const Result<std::optional<uint64_t>> part = PartBytesFor(*spec, *bytes, flags.input_path);
    if (!part.ok()) return part.status();
    if (*part) spec->message_bytes = *part;
  }
  return flags.spec.Settle(*std::move(spec), flags.plan_path, target);
}

/// The plan of the file or, of a spec or without a file, that for an input of `bytes`.
Result<PlayedPlan> GetPlan(const RunFlags& flags, std::optional<uint64_t> bytes,
                           const nic::LowerOptions& lower) {
  const Result<FileKind> kind =
      flags.plan_path.empty() ? Result(FileKind::kSpec) : KindOf(flags.plan_path);
  if (!kind.ok()) return kind.status();
  if (*kind != FileKind::kSpec && flags.spec.any()) {
    return Status(StatusCode::kUsage, "run takes either a PLAN or flags such as --nodes, not both");
  }
  if (*kind == FileKind::kRolledPlan) return GetRolledPlan(flags, bytes);
  if (*kind != FileKind::kSpec) {
    Result<VerifiedPlan> plan = LoadPlayedPlan(flags.plan_path);
    return plan.ok() ? Checked(flags, bytes.has_value(), *std::move(plan)) : plan.status();
  }
  const bool is_cpu =
      ExecutorOf(flags) == Executor::kCpu || IsOnCpusByItself(flags) || IsPerNode(flags);
  const Result<Spec> spec =
      GetSpec(flags, bytes, {.is_offload = !is_cpu, .is_streams = is_cpu, .lower = lower});
  if (!spec.ok()) return spec.status();
  Result<VerifiedPlan> plan = [&] {
    const Ticker ticker("compiling");
    return CompileForDevice(*spec, is_cpu ? nullptr : &lower);
  }();
  return plan.ok() ? Checked(flags, bytes.has_value(), *std::move(plan)) : plan.status();
}

/// The transfer, offloaded if there is a `program`, with its files.
Result<LocalRun> Carry(const RunFlags& flags, const PlayedPlan& plan, const MappedInput& input,
                       const nic::QueueProgram* program, const InterruptSignals& signals,
                       RunTrace* trace) {
  std::optional<OutputSet> outputs;
  if (!flags.output_folder.empty()) {
    Result<OutputSet> created =
        OutputSet::Create({.folder = flags.output_folder,
                           .name = std::filesystem::path(flags.input_path).filename(),
                           .nodes = plan.header().nodes,
                           .roles = plan.header().roles()});
    if (!created.ok()) return created.status();
    outputs.emplace(std::move(*created));
  }
  const RunJob job{.plan = plan,
                   .input = input,
                   .outputs = outputs ? &*outputs : nullptr,
                   .interrupt_fd = signals.fd(),
                   .transport = TransportOf(flags),
                   .wait = flags.play.wait.policy(),
                   .no_progress_max = flags.play.no_progress_max(),
                   .failure_max = flags.play.failure_max(),
                   .show_progress = ShowsProgress(),
                   .device = FindSoftwareDevice(IsPerNode(flags) ? "" : flags.device),
                   .scheduler = SchedulerOf(flags.scheduler),
                   .seed = flags.seed.value_or(1),
                   .program = program,
                   .trace = trace,
                   .player_device = IsPerNode(flags) ? flags.device : "",
                   .executor = ExecutorOf(flags),
                   .is_sealed = flags.is_sealed};
  if (IsPerNode(flags)) {
    Result<DeviceRun> run = RunOverDevice(job);
    if (!run.ok()) return run.status();
    if (!run->note.empty()) PrintNote("executor " + run->note);
    return std::move(run->run);
  }
  return program != nullptr ? RunOffloaded(job) : RunCpu(job);
}

Status Run(RunFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckFlags(flags));
  const Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  const bool has_input = !flags.input_path.empty();
  const Result<MappedInput> input =
      has_input ? MappedInput::Open(flags.input_path) : MappedInput::Empty();
  if (!input.ok()) return input.status();
  std::optional<uint64_t> bytes;
  if (has_input) bytes = input->size_bytes();
  const Result<PlayedPlan> plan = GetPlan(flags, bytes, *lower);
  if (!plan.ok()) return plan.status();
  if (!has_input && !flags.output_folder.empty()) {
    return {StatusCode::kUsage,
            "--output-dir: outputs have the name of --input, which is not given"};
  }
  PREPOST_RETURN_IF_ERROR(CheckInputSize(plan->header(), *input));
  PREPOST_RETURN_IF_ERROR(flags.trace.Prepare(plan->flat(), {flags.input_path, flags.plan_path}));
  const Result<RunChoice> choice = ChooseFor(flags, plan->flat(), *lower);
  if (!choice.ok()) return choice.status();
  const bool is_over_tcp = !choice->program && !IsPerNode(flags) &&
                           TransportOf(flags) == TransportKind::kTcp && !flags.plan_path.empty();
  if (const auto advice = is_over_tcp ? AdviceForStreams(plan->header()) : std::nullopt)
    PrintNote(*advice);
  Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  const Result<LocalRun> run =
      Carry(flags, *plan, *input, choice->program ? &*choice->program : nullptr, *signals,
            flags.trace.table());
  TraceInfo info = {.executor = choice->name(),
                    .detail = IsPerNode(flags)  ? flags.device
                              : choice->program ? FindSoftwareDevice(flags.device).name
                                                : std::string(Name(TransportOf(flags)))};
  if (run.ok()) {
    info.executor = run->report.executor;  // a library's device decides it by itself
    info.hosts = HostsOf(run->report);
  }
  const Status written = flags.trace.Write(plan->flat(), info, run.status());
  if (!run.ok()) return run.status();
  signals->HoldToTheEnd();  // the copies have their names
  PrintRun(plan->header(), *run, OutputCheck::kInputs, flags.play.json, std::cout);
  return written;
}

constexpr const char* kHelp =
    "Sends the input to all nodes of the plan on this machine and checks that all copies are the "
    "same: with\n"
    "--executor cpu by one process per node, over TCP or shared memory; with --executor offload "
    "preposted to a NIC\n"
    "in software per node. Without --output-dir the copies are received into memory and dropped; "
    "with it, node i's\n"
    "copy is "
    "DIR/node-i/NAME (NAME as the input's), and it has that name only when all copies are "
    "complete. The root has\n"
    "the message already and gets no copy. Instead of a plan, a spec, flags or both compile one "
    "for the input's size;\n"
    "where ready is auto and the receives of that plan do not fit a device's ring, with --ready "
    "window=1, and a note\n"
    "says so. CPUs play a rolled plan as it is, in memory that does not grow with the message; for "
    "offload and --trace\n"
    "it is unrolled. Plans of other collectives are played by CPUs: the input has what each node "
    "contributes, one node after\n"
    "the other, each output is what its node wants, and all are checked against what the plan's "
    "expressions make of the input.\n"
    "Under --executor auto a note says which is chosen, why, and which flag that "
    "cannot "
    "use.\n\n"
    "The report has a line per node: the time to its completion; posts, how often its host "
    "handed work over\n"
    "(offload: doorbells), and how many of these during the transfer; requests, where there are "
    "any, how often the host\n"
    "asked its NIC for an event during it; wake-ups, how often its host came back from waiting; "
    "cpu ms, the processor time of its host;\n"
    "retries, how often a block came before its receive was posted; re-arms, where a queue is "
    "longer than its ring, how\n"
    "often the host wrote to one again during the transfer, and the bound on that.\n\n"
    "Examples:\n"
    "  prepost run plan.json --input image.raw --output-dir copies\n"
    "  prepost run plan.json --input image.raw --executor cpu --transport shm --wait hybrid\n"
    "  prepost run plan.json --input image.raw --executor offload --device emulated --timeout 10\n"
    "  prepost run plan.json --input image.raw --executor offload --device fabric:sockets\n"
    "  prepost run plan.json --input image.raw --executor cpu --device fabric:tcp\n"
    "  prepost run plan.json --input image.raw --executor cpu --device verbs:rxe0,gid=1\n"
    "  prepost run plan.json --input image.raw --executor offload --device mlx5:emulated\n"
    "  prepost run plan.json --input image.raw --executor offload --mode managed "
    "--device-profile tiny\n"
    "  prepost run examples/specs/pipeline-8.json --input image.raw --wait hybrid\n"
    "  prepost run --nodes 8 --algorithm chain --input image.raw --json\n"
    "  prepost run plan.json --input image.raw --trace trace.json\n"
    "  prepost run rolled.json --input image.raw --executor cpu --transport shm\n"
    "  prepost compile --collective allreduce --combine sum:float32 --nodes 4 --message-bytes "
    "750kB -o allreduce.json\n"
    "  prepost run allreduce.json --input image.raw --transport shm\n"
    "  prepost run --nodes 3 --collective allgather --input image.raw --output-dir all\n"
    "  prepost run --nodes 6 --collective barrier";

}  // namespace

void AddRun(CLI::App& app, Action* action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand(
      "run", "Run a plan: send a file to all nodes, or have them exchange and combine its parts");
  command->footer(kHelp);
  command->add_option("PLAN", flags->plan_path, "Plan, rolled plan or spec file, - for stdin");
  command
      ->add_option(
          "-i,--input", flags->input_path,
          "The message; of another collective the inputs of all nodes, one after the other; a "
          "barrier needs none")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command
      ->add_option("--output-dir", flags->output_folder,
                   "Where copies, or outputs, are written [nowhere]")
      ->type_name("DIR")
      ->check(NameOf("a folder"));
  command
      ->add_option("--executor", flags->executor,
                   "auto, cpu or offload; auto offloads where a --device is named and the plan "
                   "fits it [auto]")
      ->type_name("NAME");
  command
      ->add_option(
          "--transport", flags->transport,
          fmt::format("How CPUs reach each other: {} [tcp]", fmt::join(kTransportNames, ", ")))
      ->type_name("NAME");
  command->add_flag("--seal", flags->is_sealed,
                    "Encrypt and authenticate what passes over --transport tcp, under a fresh key: "
                    "what --seal of prepost node costs");
  command
      ->add_option("--device", flags->device,
                   fmt::format("What executes queue programs, {} [emulated], or a provider of "
                               "libfabric or a device of libibverbs that everything goes over, "
                               "fabric:sockets, verbs:NAME",
                               fmt::join(SoftwareDeviceNames(), ", ")))
      ->type_name("NAME")
      ->check(NameOf("a device"));
  command
      ->add_option("--scheduler", flags->scheduler,
                   fmt::format("Order in which the emulated NICs act: {} [round-robin]",
                               fmt::join(SchedulerNames(), ", ")))
      ->type_name("NAME");
  command->add_option("--seed", flags->seed, "Seed of the scheduler [1]")
      ->type_name("S")
      ->check(WholeNumber(0, UINT64_MAX));
  flags->lowering.AddTo(*command);
  flags->trace.AddTo(*command);
  flags->play.AddTo(*command);
  flags->spec.AddTo(*command);
  flags->spec.AddCollectivesTo(*command);
  // What is there too much is mostly the input without its flag.
  command->allow_extras();
  command->callback([flags, action, command] {
    const bool has_extras = command->remaining_size() != 0;
    if (has_extras && flags->input_path.empty()) throw CLI::RequiredError("--input");
    if (has_extras) throw CLI::ExtrasError(command->get_name(), command->remaining());
    *action = [flags] { return Run(*flags); };
  });
}

}  // namespace prepost::tools
