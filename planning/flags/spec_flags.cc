// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/spec_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "compiler/collectives/collective_schedule.h"
#include "compiler/roll.h"
#include "compiler/schedules/schedule.h"
#include "compiler/spec_json.h"
#include "ir/base/count.h"
#include "ir/json/rate_text.h"
#include "ir/plan.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/part_bytes.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/profile_settings.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "runtime/files/message_file.h"
#include "runtime/session/eager_lane.h"

namespace prepost {

Result<uint64_t> ParseMessageBytes(const std::string& flag, const std::string& text) {
  const Result<uint64_t> bytes = ParseSize(text);
  if (!bytes.ok()) return Status(StatusCode::kUsage, flag + ": " + bytes.status().message());
  const Status status = MakePayload(*bytes, kMessageBytesMax).status();
  if (!status.ok()) return Status(StatusCode::kUsage, flag + ": " + status.message());
  return *bytes;
}

void MessageSize::AddTo(CLI::App& command, bool takes_any) {
  takes_any_ = takes_any;
  CLI::Option* bytes =
      command
          .add_option("--message-bytes", bytes_,
                      takes_any ? "Size of the message, such as 10MiB, or any for one plan that "
                                  "serves every size"
                                : "Size of the message, such as 10MiB")
          ->type_name("M")
          ->group(kSpecGroup);
  command.add_option("--message", path_, "Take the size of this file")
      ->type_name("FILE")
      ->check(NameOf("a file"))
      ->group(kSpecGroup)
      ->excludes(bytes);
}

Result<std::optional<uint64_t>> MessageSize::Bytes() const {
  if (!bytes_.empty()) {
    const Result<uint64_t> bytes = ParseMessageBytes("--message-bytes", bytes_);
    if (!bytes.ok()) return bytes.status();
    return std::optional(*bytes);
  }
  if (path_.empty()) return std::optional<uint64_t>();
  const Result<uint64_t> bytes = MessageFileBytes(path_);
  if (!bytes.ok()) return Rejected(bytes.status().message(), "--message");
  return std::optional(*bytes);
}

namespace {

/// The flag for a key of the spec: "--block-bytes" for "/block_bytes", "--order" for "/order/3".
std::string FlagOf(const std::string& pointer) {
  std::string flag = "--" + pointer.substr(1, pointer.find('/', 1) - 1);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

/// The cluster that `auto` chooses for where none is said.
constexpr const char* kAutoProfile = "fractus";

constexpr size_t kOrderBytesMax = size_t{16} << 20;

/// Nodes as numbers between blanks, line ends and commas.
Result<std::vector<NodeId>> ParseOrder(const std::string& text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  std::vector<NodeId> order;
  for (size_t begin = text.find_first_not_of(kBetween); begin != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    uint32_t node = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), node);
    if (error != std::errc() || rest != word.data() + word.size())
      return Rejected(
          fmt::format("'{}' is no node, expected a number", word.substr(0, kWordBytesShownMax)));
    order.emplace_back(node);
    begin = text.find_first_not_of(kBetween, end);
  }
  if (order.empty()) return Rejected("an order names each node, found none");
  return order;
}

/// "3,0,1" itself, or the file that holds it.
Result<std::vector<NodeId>> LoadOrder(const std::string& given) {
  if (given.find_first_not_of("0123456789,") == std::string::npos) {
    Result<std::vector<NodeId>> order = ParseOrder(given);
    if (order.ok()) return order;
    return Status(StatusCode::kUsage, "--order: " + order.status().message());
  }
  std::error_code unknown;
  if (given != "-" && !std::filesystem::exists(given, unknown)) {
    return Status(StatusCode::kUsage,
                  fmt::format("--order: '{}' is no list of nodes such as 3,0,1, and there is no "
                              "such file",
                              given.substr(0, kWordBytesShownMax)));
  }
  std::vector<NodeId> order;
  const auto parse = [&](const std::string& text, const std::string& name) -> Status {
    Result<std::vector<NodeId>> read = ParseOrder(text);
    if (!read.ok()) return Rejected(read.status().message(), name);
    order = *std::move(read);
    return {};
  };
  PREPOST_RETURN_IF_ERROR(WithText(given, kOrderBytesMax, parse));
  return order;
}

/// The file that a spec names for its topology.
std::string BesideSpec(const std::string& spec_path, const std::string& path) {
  return (std::filesystem::path(spec_path).parent_path() / path).string();
}

/// An input that neither a flag nor a spec file gives.
Status Missing(const std::string& flag, const std::string& what) {
  return {StatusCode::kUsage, fmt::format("{}: {} (see --help)", flag, what)};
}

/// A flag's value error, with the flag's name.
Status Usage(const char* flag, const Status& status) {
  return {StatusCode::kUsage, fmt::format("{}: {}", flag, status.message())};
}

/// The schedules, with "[=C]" where one takes a number.
std::string NamesWithFanouts() {
  std::vector<std::string> names;
  for (const Schedule* schedule : Schedules()) {
    std::string& name = names.emplace_back(schedule->name());
    if (schedule->default_fanout() != 0) name += name == "kary_tree" ? "[=D]" : "[=C]";
  }
  return fmt::to_string(fmt::join(names, ", "));
}

/// The schedules that no multicast has.
std::string NamesOfOtherCollectives() {
  std::vector<std::string_view> names;
  for (const CollectiveSchedule* schedule : CollectiveSchedules())
    names.push_back(schedule->name());
  return fmt::to_string(fmt::join(names, ", "));
}

constexpr const char* kAutoGroup = "What auto chooses by (docs/compiler.md)";

/// `help` of a flag with `more` before the default, which stands last in brackets.
std::string Widened(std::string help, const std::string& more) {
  return help.insert(std::min(help.rfind(" ["), help.size()), more);
}

}  // namespace

void NoteOneRack(const Spec& spec) {
  const Result<Algorithm> algorithm = FindAlgorithm(spec.algorithm);
  if (!algorithm.ok() || !algorithm->schedule->NeedsWholeRacks()) return;
  if (spec.topology || spec.nodes < 2) return;
  PrintNote(
      fmt::format("{} without a topology: all {} nodes are one rack; --topology FILE says "
                  "which share one",
                  spec.algorithm, spec.nodes));
}

void SpecFlags::AddTo(CLI::App& command, AutoFlags others) {
  const std::string group = kSpecGroup;
  command.add_option("--nodes", nodes_, "Nodes, the root included")
      ->type_name("N")
      ->check(WholeNumber(1, kNodesMax))
      ->group(group);
  command.add_option("--root", root_, "The node that has the message [0]")
      ->type_name("R")
      ->check(NodeNumber())
      ->group(group);
  command
      .add_option("--block-bytes", block_bytes_,
                  "Size of a block, such as 64KiB, or auto [auto; 1MiB of a "
                  "plan for any size]")
      ->type_name("B")
      ->group(group);
  command
      .add_option("--algorithm", algorithm_,
                  fmt::format("auto or one of {} [auto; binomial_pipeline of a plan for any "
                              "size]",
                              NamesWithFanouts()))
      ->type_name("A")
      ->group(group);
  command
      .add_option("--ready", ready_,
                  "How senders know that receives are posted: auto, barrier, channel, window=W, "
                  "retry [auto]")
      ->type_name("MODE")
      ->group(group);
  command
      .add_option("--send-window", send_window_,
                  "Block sends of a node in flight: auto, W or none [auto]")
      ->type_name("W")
      ->group(group);
  command
      .add_option("--topology", topology_,
                  "Topology file: node i is its host i, racks stay together [one rack]")
      ->type_name("T")
      ->check(NameOf("a file"))
      ->group(group);
  command
      .add_option("--order", order_,
                  "The node at each place of the schedule, the root first: 3,0,1,.. or a file of "
                  "numbers [see --show-order of compile]")
      ->type_name("LIST")
      ->check(NameOf("a list of nodes or a file"))
      ->group(group);
  const CostParameters defaults;
  const std::string by = kAutoGroup;
  command.add_option("--rules", rules_, "Rule file that pins choices by nodes and bytes")
      ->type_name("FILE")
      ->check(NameOf("a file"))
      ->group(by);
  if (others == AutoFlags::kAll) {
    command
        .add_option("--profile", profile_,
                    fmt::format("The cluster: a file, or {} [{}]", ShippedProfiles(), kAutoProfile))
        ->type_name("P")
        ->check(NameOf("a file or a shipped profile"))
        ->group(by);
    command
        .add_option("--executor", executor_,
                    "What runs the plan: offload (preposted) or cpu [offload]")
        ->type_name("E")
        ->group(by);
    command
        .add_option("--transport", transport_,
                    "What CPUs send over: nic, tcp or shm; the last two imply --executor cpu [nic]")
        ->type_name("T")
        ->group(by);
  }
  if (others != AutoFlags::kNone) {
    command
        .add_option("--rate", rate_,
                    fmt::format("Rate of each node's port, without --topology [the profile's, {}; "
                                "of tcp and shm {}]",
                                "100Gbit/s", WriteRate(StreamParameters().rate)))
        ->type_name("RATE")
        ->group(by);
    command.add_option("--latency", latency_, "One way, without --topology [the profile's, 600ns]")
        ->type_name("TIME")
        ->group(by);
  }
  command
      .add_option("--block-overhead", block_overhead_,
                  fmt::format("What each block costs [{}]", WriteLatency(defaults.block_overhead)))
      ->type_name("TIME")
      ->group(by);
}

void SpecFlags::AddCollectivesTo(CLI::App& command) {
  takes_collectives_ = true;
  const std::string group = kSpecGroup;
  command
      .add_option(
          "--collective", collective_,
          "multicast, reduce, allreduce, reduce_scatter, allgather, gather, scatter, alltoall "
          "or barrier; --message-bytes is of a part [multicast]")
      ->type_name("C")
      ->group(group);
  command
      .add_option("--combine", combine_,
                  "What reduce, allreduce and reduce_scatter do to elements of which type, such as "
                  "sum:float32")
      ->type_name("OP:TYPE")
      ->group(group);
  command
      .add_option("--part-bytes", part_bytes_,
                  "Sizes of parts that differ: 4KiB,0,7,.. or a file of them; of an alltoall a row "
                  "for each node that sends [--message-bytes for each]")
      ->type_name("SIZES")
      ->check(NameOf("a list of sizes or a file"))
      ->group(group);
  command
      .add_flag(
          "--deterministic", is_deterministic_,
          "Sums are the same expression whatever the size, and take longer: chain, or ring of a "
          "reduce_scatter")
      ->group(group);
  const auto widen = [&](const char* flag, const std::string& more) {
    CLI::Option* const option = command.get_option(flag);
    option->description(Widened(option->get_description(), more));
  };
  widen("--root", ", or gets it, of a reduce or gather");
  widen("--algorithm",
        fmt::format("; of other collectives (docs/compiler.md) {}, and of reduce and "
                    "allreduce also a multicast's",
                    NamesOfOtherCollectives()));
  for (const char* flag : {"--rules", "--executor", "--transport"}) {
    const CLI::Option* const option = command.get_option_no_throw(flag);
    if (option != nullptr && option->get_group() == kAutoGroup) widen(flag, "; of multicasts only");
  }
}

void SpecFlags::RefuseCollectives(CLI::App& command, std::string why) {
  why_no_collectives_ = std::move(why);
  constexpr const char* kHidden = "";
  command.add_option("--collective", collective_)->group(kHidden);
  command.add_option("--combine", combine_)->group(kHidden);
}

Status SpecFlags::Locate(const Status& status, const Spec& spec,
                         const std::string& spec_path) const {
  if (!status.where().starts_with("/")) return status;
  const std::string flag = FlagOf(status.where());
  const bool is_size = flag == "--message-bytes";
  if (is_size && !spec.message_bytes && spec_path.empty()) return Missing(flag, status.message());
  const auto flags = Flags();
  const bool is_flag = spec_path.empty() || flag == "--node" ||  // no file says it
                       std::ranges::find(flags, std::pair(flag, true)) != flags.end();
  return Rejected(status.message(), is_flag ? flag : spec_path + ": " + status.where());
}

std::vector<std::pair<std::string, bool>> SpecFlags::Flags() const {
  return {{"--collective", collective_.has_value()},
          {"--combine", combine_.has_value()},
          {"--part-bytes", part_bytes_.has_value()},
          {"--deterministic", is_deterministic_},
          {"--nodes", nodes_.has_value()},
          {"--root", root_.has_value()},
          {"--block-bytes", block_bytes_.has_value()},
          {"--algorithm", algorithm_.has_value()},
          {"--ready", ready_.has_value()},
          {"--send-window", send_window_.has_value()},
          {"--topology", topology_.has_value()},
          {"--order", order_.has_value()},
          {"--rules", rules_.has_value()},
          {"--rate", rate_.has_value()},
          {"--latency", latency_.has_value()},
          {"--block-overhead", block_overhead_.has_value()},
          {"--profile", profile_.has_value()},
          {"--executor", executor_.has_value()},
          {"--transport", transport_.has_value()}};
}

std::string SpecFlags::FirstGiven(bool has_topology) const {
  for (const auto& [flag, is_given] : Flags()) {
    if (is_given && (has_topology || flag != "--topology")) return flag;
  }
  return "";
}

Status SpecFlags::ApplyTopology(const std::string& spec_path, Spec* spec) const {
  if (topology_ || !spec->topology_path.empty()) {
    Result<Network> topology =
        LoadTopology(topology_ ? *topology_ : BesideSpec(spec_path, spec->topology_path));
    if (!topology.ok()) return topology.status();
    spec->topology = *std::move(topology);
    spec->topology_path.clear();
  }
  if (spec->topology && spec->nodes == 0 && !nodes_)
    spec->nodes = static_cast<uint32_t>(spec->topology->nodes.size());
  if (order_) {
    Result<std::vector<NodeId>> order = LoadOrder(*order_);
    if (!order.ok()) return order.status();
    spec->order = *std::move(order);
  }
  return {};
}

Result<Spec> SpecFlags::Read(const std::string& spec_path, std::optional<uint64_t> message_bytes,
                             const Spec& defaults) const {
  Spec spec = defaults;
  if (!spec_path.empty()) {
    PREPOST_RETURN_IF_ERROR(
        WithInput(spec_path, [&](std::istream& in, const std::string& name) -> Status {
          std::vector<std::string> warnings;
          Result<Spec> read = ReadSpec(in, name, spec, &warnings);
          PrintWarnings(name, warnings);
          if (!read.ok()) return read.status();
          spec = *read;
          return {};
        }));
  }
  if (collective_) {
    const Result<CollectiveKind> kind = ParseCollective(*collective_);
    if (!kind.ok()) return Usage("--collective", kind.status());
    spec.collective = *kind;
  }
  if (combine_) {
    const Result<Combine> combine = ParseCombine(*combine_);
    if (!combine.ok()) return Usage("--combine", combine.status());
    spec.combine = *combine;
  }
  if (is_deterministic_) spec.is_deterministic = true;
  if (!takes_collectives_ && spec.collective != CollectiveKind::kMulticast) {
    const std::string why =
        why_no_collectives_.empty() ? ", and this takes specs of multicasts" : why_no_collectives_;
    return Rejected(fmt::format("a spec of {}{}", Name(spec.collective), why),
                    spec_path.empty() ? "--collective" : NameOfInput(spec_path));
  }
  if (nodes_) spec.nodes = *nodes_;
  if (root_) spec.root = NodeId(*root_);
  if (message_bytes) spec.message_bytes = *message_bytes;
  if (part_bytes_) {
    Result<std::vector<uint64_t>> sizes = LoadPartBytes(*part_bytes_);
    if (!sizes.ok()) return sizes.status();
    spec.part_bytes = *std::move(sizes);
  }
  if (!spec.part_bytes.empty()) spec.nodes = WithImplied(spec).nodes;
  if (algorithm_) {
    if (*algorithm_ != kAutoAlgorithm && spec.collective == CollectiveKind::kMulticast) {
      const Result<Algorithm> algorithm = FindAlgorithm(*algorithm_);
      if (!algorithm.ok()) return Usage("--algorithm", algorithm.status());
    }
    spec.algorithm = *algorithm_;
  }
  if (block_bytes_) {
    spec.choose_block_bytes = *block_bytes_ == "auto";
    if (!spec.choose_block_bytes) {
      const Result<uint64_t> bytes = ParseSize(*block_bytes_);
      if (!bytes.ok()) return Usage("--block-bytes", bytes.status());
      const Status status = MakePayload(/*bytes=*/0, *bytes).status();
      if (!status.ok()) return Usage("--block-bytes", status);
      spec.block_bytes = *bytes;
    }
  }
  if (ready_) {
    const Result<SpecReady> ready = ParseReady(*ready_);
    if (!ready.ok()) return Usage("--ready", ready.status());
    spec.ready = *ready;
  }
  if (send_window_) {
    const Result<SpecSendWindow> send_window = ParseSendWindow(*send_window_);
    if (!send_window.ok()) return Usage("--send-window", send_window.status());
    spec.send_window = *send_window;
  }
  PREPOST_RETURN_IF_ERROR(ApplyTopology(spec_path, &spec));
  if (profile_ && !spec.topology && spec.nodes >= 1 && spec.nodes <= kNodesMax) {
    const Result<sim::Profile> cluster = ClusterOf(spec);
    if (!cluster.ok()) return cluster.status();
    if (cluster->rack_hosts != 0) spec.topology = cluster->NetworkOf(spec.nodes);
  }
  if (spec.nodes == 0 && !nodes_ && spec_path.empty() && spec.part_bytes.empty())
    return Missing("--nodes", "the number of nodes is missing, and no topology says it");
  return spec;
}

Result<AutoTarget> SpecFlags::TargetOf(AutoTarget given) const {
  if (executor_) {
    PREPOST_RETURN_IF_ERROR(CheckWord("--executor", *executor_, {"offload", "cpu"}));
    given.is_offload = *executor_ == "offload";
  }
  if (!transport_) return given;
  PREPOST_RETURN_IF_ERROR(CheckWord("--transport", *transport_, {"nic", "tcp", "shm"}));
  if (*transport_ == "nic") return given;
  if (executor_ && given.is_offload)
    return Usage("--transport", Rejected("only CPUs send over it, not --executor offload"));
  if (profile_)
    return Usage("--profile", Rejected("is of NICs; of tcp and shm --rate is what matters"));
  given.is_offload = false;
  given.is_streams = true;
  return given;
}

Result<sim::Profile> SpecFlags::ClusterOf(const Spec& spec) const {
  const std::string name = profile_.value_or(kAutoProfile);
  const Result<ProfileText> text = LoadProfileText(name);
  if (!text.ok()) return text.status();
  Result<sim::Profile> profile = ProfileWith(*text, {});
  if (!profile.ok()) return profile;
  for (const auto& [flag, is_given] :
       {std::pair("--rate", rate_.has_value()), std::pair("--latency", latency_.has_value())}) {
    if (is_given && profile->rack_hosts != 0 && !spec.topology)
      return Usage(flag,
                   Rejected(fmt::format("profile {} has racks with rates of their own", name)));
  }
  if (rate_) {
    const Result<double> rate = ParseRate(*rate_);
    if (!rate.ok()) return Usage("--rate", rate.status());
    profile->SetHostRate(*rate);
    profile->network.nodes[0].duplex_rate.reset();  // of another port
  }
  if (latency_) {
    const Result<double> latency = ParseLatency(*latency_);
    if (!latency.ok()) return Usage("--latency", latency.status());
    profile->network.rack_latency = profile->network.core_latency = *latency;
  }
  return profile;
}

Result<ChoiceOptions> SpecFlags::ToChoiceOptions(const Spec& spec, const AutoTarget& given) const {
  ChoiceOptions options;
  if (rate_ && spec.topology) return Usage("--rate", Rejected("the topology has the rates"));
  if (latency_ && spec.topology)
    return Usage("--latency", Rejected("the topology has the latencies"));
  Result<sim::Profile> cluster = given.profile != nullptr ? *given.profile : ClusterOf(spec);
  if (!cluster.ok()) return cluster.status();
  const Result<AutoTarget> target = TargetOf(given);
  if (!target.ok()) return target.status();
  options.parameters.rate = cluster->host_rate();
  options.parameters.latency = cluster->network.rack_latency;
  if (block_overhead_) {
    const Result<double> overhead = ParseLatency(*block_overhead_);
    if (!overhead.ok()) return Usage("--block-overhead", overhead.status());
    options.parameters.block_overhead = *overhead;
  }
  if (target->is_streams) {
    options.short_bytes_max = kEagerBytesMax;
    StreamParameters& streams = options.streams.emplace();
    if (rate_) streams.rate = options.parameters.rate;
    if (latency_) streams.hop = options.parameters.latency;
    if (block_overhead_) streams.block_overhead = options.parameters.block_overhead;
  } else if (!target->is_streams && spec.nodes >= 1 && spec.nodes <= kTimedNodesMax) {
    Result<Network> network =
        spec.topology ? spec.topology->First(spec.nodes) : cluster->NetworkOf(spec.nodes);
    if (network.ok()) {  // else the choice says what is wrong with it
      options.timer = sim::MakePlanTimer({.profile = *std::move(cluster),
                                          .network = *std::move(network),
                                          .is_offload = target->is_offload && !cluster->is_tcp,
                                          .wait = target->wait,
                                          .lower = target->lower});
    }
  }
  if (!rules_) return options;
  Result<ChoiceRules> rules = ReadWith(ReadChoiceRules, *rules_);
  if (!rules.ok()) return rules.status();
  options.rules = *std::move(rules);
  return options;
}

Result<Choice> SpecFlags::ChooseFor(const Spec& spec, const std::string& spec_path,
                                    const AutoTarget& target, bool weighs_rule) const {
  Result<ChoiceOptions> options = ToChoiceOptions(spec, target);
  if (!options.ok()) return options.status();
  options->weighs_rule = weighs_rule;
  Result<Choice> choice = Choose(spec, *options);
  if (!choice.ok()) return Locate(choice.status(), spec, spec_path);
  return choice;
}

Result<Spec> SpecFlags::ToSpec(const std::string& spec_path, std::optional<uint64_t> message_bytes,
                               const AutoTarget& target) const {
  Result<Spec> spec = Read(spec_path, message_bytes);
  if (!spec.ok()) return spec;
  return Settle(*std::move(spec), spec_path, target);
}

Result<CollectiveParameters> SpecFlags::ToCollectiveParameters(const Spec& spec,
                                                               const AutoTarget& target) const {
  constexpr std::pair<const char*, const char*> kOfMulticasts[] = {
      {"--rules", "is of multicasts: no rule pins what is chosen for other collectives"},
      {"--executor", "is of multicasts: CPUs carry other collectives"},
      {"--transport",
       "is of multicasts: what is chosen for other collectives does not go by it; --rate and "
       "--latency say how fast it is"}};
  const auto flags = Flags();
  for (const auto& [flag, why] : kOfMulticasts) {
    if (std::ranges::find(flags, std::pair(std::string(flag), true)) != flags.end())
      return Usage(flag, Rejected(why));
  }
  CollectiveParameters parameters;
  if (target.profile != nullptr) {
    parameters = sim::CollectiveParametersOf(*target.profile);
  } else if (profile_) {
    const Result<sim::Profile> cluster = ClusterOf(spec);
    if (!cluster.ok()) return cluster.status();
    parameters = sim::CollectiveParametersOf(*cluster);
  }
  if (rate_) {
    const Result<double> rate = ParseRate(*rate_);
    if (!rate.ok()) return Usage("--rate", rate.status());
    parameters.rate = *rate;
  }
  const auto set_time = [](const char* flag, const std::optional<std::string>& text, double* out) {
    if (!text) return Status();
    const Result<double> time = ParseLatency(*text);
    if (!time.ok()) return Usage(flag, time.status());
    *out = *time;
    return Status();
  };
  // A profile's cluster has it beside what its hosts take.
  if (!profile_) PREPOST_RETURN_IF_ERROR(set_time("--latency", latency_, &parameters.hop));
  PREPOST_RETURN_IF_ERROR(
      set_time("--block-overhead", block_overhead_, &parameters.block_overhead));
  return parameters;
}

Result<std::vector<CollectiveChoice>> SpecFlags::CollectiveCandidatesFor(
    const Spec& spec, const std::string& spec_path) const {
  const Result<CollectiveParameters> parameters = ToCollectiveParameters(spec, {});
  if (!parameters.ok()) return parameters.status();
  // What is wrong with it is the same of all that could be chosen.
  const Spec chosen = WithDefaults(spec, *parameters);
  if (const Status status = CheckSpec(chosen); !status.ok())
    return Locate(status, chosen, spec_path);
  std::vector<CollectiveChoice> candidates =
      CollectiveCandidates(SizeToChooseFor(WithImplied(spec)), *parameters);
  if (candidates.empty()) {
    return Locate(Rejected(fmt::format("the model says nothing of {} for {} {}", spec.algorithm,
                                       ArticleOf(spec.collective), Name(spec.collective)),
                           "/algorithm"),
                  spec, spec_path);
  }
  return candidates;
}

Result<Spec> SpecFlags::SettleCollective(Spec spec, const AutoTarget& target, bool is_quiet) const {
  const bool is_auto = spec.algorithm == kAutoAlgorithm;
  const Result<CollectiveParameters> parameters = ToCollectiveParameters(spec, target);
  if (!parameters.ok()) return parameters.status();
  for (const auto& [flag, is_given] : Flags()) {
    const bool is_for_auto = flag == "--rate" || flag == "--latency" ||
                             flag == "--block-overhead" || flag == "--profile";
    if (is_for_auto && is_given && !is_auto)
      return Usage(flag.c_str(), Rejected("is for --algorithm auto"));
  }
  spec = WithDefaults(std::move(spec), *parameters);
  if (is_auto && asks_auto() && !is_quiet) {
    PrintNote(fmt::format("auto is --algorithm {} --block-bytes {} --send-window {}",
                          spec.algorithm, spec.block_bytes, ToString(spec.send_window)));
  }
  return spec;
}

Result<Spec> SpecFlags::Settle(Spec spec, const std::string& spec_path, const AutoTarget& target,
                               bool is_quiet) const {
  if (spec.collective != CollectiveKind::kMulticast) {
    Result<Spec> chosen = SettleCollective(std::move(spec), target, is_quiet);
    if (!chosen.ok()) return chosen;
    spec = *std::move(chosen);
  } else if (IsAutomatic(spec)) {
    const Result<Choice> choice = [&] {
      std::optional<Ticker> ticker;
      if (!is_quiet) ticker.emplace("choosing");
      return ChooseFor(spec, spec_path, target, /*weighs_rule=*/false);
    }();
    if (!choice.ok()) return choice.status();
    spec = Resolve(std::move(spec), *choice);
    if (!is_quiet && (asks_auto() || !spec_path.empty())) {
      PrintNote(fmt::format(
          "auto is --algorithm {} --block-bytes {} --ready {} --send-window {}, {}: {}",
          spec.algorithm, spec.block_bytes, ToString(spec.ready), ToString(spec.send_window),
          Count(choice->winner().blocks, "block"), choice->reason));
    }
  } else {
    for (const auto& [flag, is_given] : Flags()) {
      const bool is_for_auto = flag == "--rules" || flag == "--rate" || flag == "--latency" ||
                               flag == "--block-overhead" || flag == "--profile" ||
                               flag == "--executor" || flag == "--transport";
      if (is_for_auto && is_given)
        return Usage(flag.c_str(), Rejected("is for --algorithm auto or --block-bytes auto"));
    }
  }
  if (const Status status = CheckSpec(spec); !status.ok()) return Locate(status, spec, spec_path);
  if (!is_quiet) NoteOneRack(spec);
  return spec;
}

Result<Spec> SpecFlags::ToSpecForAnySize(const std::string& spec_path) const {
  const Result<Spec> spec = Read(spec_path, 0, Spec());
  if (!spec.ok()) return spec;
  if (const Status status = CheckRolledKind(spec->collective); !status.ok())
    return Locate(status, *spec, spec_path);
  if (!IsAutomatic(*spec)) return Settle(*spec, spec_path, {});
  const char* key = spec->choose_block_bytes ? "/block_bytes" : "/algorithm";
  return Locate(
      Rejected("auto depends on the size of the message, and a plan for any size has none; "
               "prepost choose shows what it would be for one",
               key),
      *spec, spec_path);
}

Result<RoundsRequest> SpecFlags::ToRounds(std::optional<uint64_t> message_bytes) const {
  struct Refused {
    const char* flag;
    bool is_given;
    const char* reason;
  };
  constexpr const char* kPlaced =
      "the rounds name the nodes themselves, so none are placed; stats, draw and simulate take the "
      "topology of a plan";
  constexpr const char* kAuto = "is for --algorithm auto or --block-bytes auto";
  const Refused all_refused[] = {
      {"--algorithm", algorithm_.has_value(), "the rounds of --rounds are the schedule"},
      {"--part-bytes", part_bytes_.has_value(),
       "rounds are of parts of one size, which is --message-bytes"},
      {"--deterministic", is_deterministic_,
       "the rounds of --rounds say in which order values are combined"},
      {"--topology", topology_.has_value(), kPlaced},
      {"--order", order_.has_value(), kPlaced},
      {"--rules", rules_.has_value(), kAuto},
      {"--rate", rate_.has_value(), kAuto},
      {"--latency", latency_.has_value(), kAuto},
      {"--block-overhead", block_overhead_.has_value(), kAuto},
      {"--profile", profile_.has_value(), kAuto},
      {"--executor", executor_.has_value(), kAuto},
      {"--transport", transport_.has_value(), kAuto},
      {"--block-bytes", block_bytes_ == "auto",
       "auto chooses how many blocks there are, and the rounds say it"}};
  for (const Refused& it : all_refused) {
    if (it.is_given) return Usage(it.flag, Rejected(it.reason));
  }
  const Result<Spec> spec = Read(/*spec_path=*/"", message_bytes, {.nodes = 1});
  if (!spec.ok()) return spec.status();
  RoundsRequest request{.options = {.collective = {},
                                    .combine = {},
                                    .nodes = nodes_,
                                    .root = root_,
                                    .message_bytes = message_bytes},
                        .ready = spec->ready,
                        .send_window = spec->send_window};
  if (block_bytes_) request.options.block_bytes = spec->block_bytes;
  if (collective_) request.options.collective = spec->collective;
  if (combine_) request.options.combine = spec->combine;
  return request;
}

void SpecInput::AddTo(CLI::App& command, bool takes_any) {
  command.add_option("SPEC", path, "Spec file, - for stdin");
  flags.AddTo(command, AutoFlags::kAll);
  size.AddTo(command, takes_any);
}

Result<Spec> SpecInput::ToSpec() const {
  const Result<std::optional<uint64_t>> bytes = size.Bytes();
  if (!bytes.ok()) return bytes.status();
  return flags.ToSpec(path, *bytes);
}

Result<Spec> SpecInput::Read() const {
  const Result<std::optional<uint64_t>> bytes = size.Bytes();
  if (!bytes.ok()) return bytes.status();
  return flags.Read(path, *bytes);
}

}  // namespace prepost
