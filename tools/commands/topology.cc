// SPDX-License-Identifier: Apache-2.0
//
// prepost topology: what other systems know of their network, as a topology file and as a table.
#include "compiler/topology/topology.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/topology/host_list.h"
#include "compiler/topology/topology_import.h"
#include "compiler/topology/topology_json.h"
#include "ir/base/count.h"
#include "ir/json/rate_text.h"
#include "planning/files/named_file.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

constexpr size_t kFileBytesMax = size_t{64} << 20;
constexpr size_t kShownHostsMax = 40;  ///< bytes of a host list in the table

struct TopologyFlags {
  std::string path;
  std::string from = "auto";
  std::string host_rate;  // empty: not given
  std::string up_rate;
  std::string output;
  bool json = false;
};

struct RackSummary {
  std::vector<std::string> hosts;
  double slowest = 0;  ///< what a host can send, bytes/s
  double fastest = 0;
  double all = 0;
};

std::vector<RackSummary> Summarise(const Network& topology) {
  std::vector<RackSummary> racks(topology.racks.size());
  for (const Network::Node& host : topology.nodes) {
    RackSummary& rack = racks[host.rack];
    rack.slowest = rack.hosts.empty() ? host.out_rate : std::min(rack.slowest, host.out_rate);
    rack.fastest = std::max(rack.fastest, host.out_rate);
    rack.all += host.out_rate;
    rack.hosts.push_back(host.name);
  }
  return racks;
}

Result<std::optional<double>> RateFlag(const char* flag, const std::string& text) {
  if (text.empty()) return std::optional<double>();
  const Result<double> rate = ParseRate(text);
  if (!rate.ok())
    return Status(StatusCode::kUsage, fmt::format("{}: {}", flag, rate.status().message()));
  return std::optional(*rate);
}

Result<TopologyImport> ReadJsonText(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  TopologyImport read;
  Result<Network> topology = ReadTopology(in, name, &read.notes);
  if (!topology.ok()) return topology.status();
  read.topology = *std::move(topology);
  return read;
}

Result<TopologyImport> Import(const TopologyFlags& flags) {
  PREPOST_RETURN_IF_ERROR(
      CheckWord("--from", flags.from, {"auto", "json", "slurm", "ibnetdiscover"}));
  const Result<std::optional<double>> host_rate = RateFlag("--host-rate", flags.host_rate);
  if (!host_rate.ok()) return host_rate.status();
  const Result<std::optional<double>> up_rate = RateFlag("--up-rate", flags.up_rate);
  if (!up_rate.ok()) return up_rate.status();
  std::string name, text;
  PREPOST_RETURN_IF_ERROR(
      WithText(flags.path, kFileBytesMax, [&](const std::string& read, const std::string& given) {
        text = read;
        name = given;
        return Status();
      }));

  std::optional<TopologySource> source = GuessTopologySource(text);
  if (flags.from == "json") source = TopologySource::kJson;
  if (flags.from == "slurm") source = TopologySource::kSlurm;
  if (flags.from == "ibnetdiscover") source = TopologySource::kIbnetdiscover;
  if (!source) {
    return Rejected(
        "it looks like neither a topology file nor Slurm's topology.conf or topology.yaml nor what "
        "scontrol show topology or ibnetdiscover prints; --from names its format",
        name);
  }
  if (source != TopologySource::kSlurm && (*host_rate || *up_rate))
    return Status(StatusCode::kUsage, "--host-rate and --up-rate are for topology.conf only");
  switch (*source) {
    case TopologySource::kJson:
      return ReadJsonText(text, name);
    case TopologySource::kSlurm: {
      SlurmRates rates{.up_rate = *up_rate};
      if (*host_rate) rates.host_rate = **host_rate;
      return ReadSlurmTopology(text, name, rates);
    }
    case TopologySource::kIbnetdiscover:
      return ReadIbnetdiscover(text, name);
  }
  PREPOST_CHECK(false);
  return Status();
}

/// What stands out of a path besides its rate and latency.
std::string PathTraits(const Network::Link& link) {
  std::vector<std::string> traits;
  if (link.jitter != 0) traits.push_back("jitter " + WriteLatency(link.jitter));
  if (link.loss != 0) traits.push_back(fmt::format("loss {}", link.loss));
  if (link.policer) {
    traits.push_back(fmt::format("policed at {}, burst {} B", WriteRate(link.policer->rate),
                                 link.policer->burst));
  }
  if (link.pace) traits.push_back("paced to " + WriteRate(*link.pace));
  if (link.streams != 0) traits.push_back(Count(link.streams, "stream"));
  if (link.mtu != Network::Link().mtu) traits.push_back(fmt::format("packets of {} B", link.mtu));
  if (link.queue) traits.push_back(fmt::format("queue {} B", *link.queue));
  return fmt::format("{}", fmt::join(traits, ", "));
}

void PrintPaths(const Network& topology) {
  const auto name_of = [&](const Network::Link& link) {
    return fmt::format("{} - {}", topology.EndName(link.from), topology.EndName(link.to));
  };
  size_t width = 4;
  for (size_t i = 0; i < topology.links.size(); i += 2)
    width = std::max(width, name_of(topology.links[i]).size());
  std::cout << fmt::format("\n{:<{}}  {:>12}  {:>10}  {}\n", "path", width, "each way",
                           topology.are_sites ? "round trip" : "one way", "besides");
  for (size_t i = 0; i < topology.links.size(); i += 2) {
    const Network::Link& link = topology.links[i];
    const std::string traits = PathTraits(link);
    std::cout << fmt::format("{:<{}}  {:>12}  {:>10}{}{}\n", name_of(link), width,
                             WriteRate(link.rate),
                             WriteLatency(topology.are_sites ? 2 * link.latency : link.latency),
                             traits.empty() ? "" : "  ", traits);
  }
  if (!topology.switches.empty() || !topology.routes.empty()) {
    std::cout << fmt::format("{} without hosts, {} given\n",
                             topology.switches.size() == 1
                                 ? "1 switch"
                                 : fmt::format("{} switches", topology.switches.size()),
                             Count(topology.routes.size(), "route"));
  }
}

void PrintTopologyTable(const Network& topology) {
  const std::vector<RackSummary> racks = Summarise(topology);
  std::cout << fmt::format("{}, {}\n", Count(topology.racks.size(), topology.RackWord()),
                           Count(topology.nodes.size(), "host"));
  size_t width = 4;
  for (const Network::Rack& rack : topology.racks) width = std::max(width, rack.name.size());
  std::cout << fmt::format("{:<{}}  {:>5}  {:>21}  {:>12}  {:>12}  {:>6}  {}\n",
                           topology.RackWord(), width, "hosts", "each", "up", "down", "over",
                           "names");
  for (size_t i = 0; i < racks.size(); ++i) {
    const RackSummary& rack = racks[i];
    std::string each = WriteRate(rack.slowest);
    if (rack.fastest != rack.slowest) each += "-" + WriteRate(rack.fastest);
    std::string hosts = WriteHostList(rack.hosts);
    if (hosts.size() > kShownHostsMax) hosts = hosts.substr(0, kShownHostsMax) + "...";
    std::cout << fmt::format(
        "{:<{}}  {:>5}  {:>21}  {:>12}  {:>12}  {:>6.3g}  {}\n", topology.racks[i].name, width,
        rack.hosts.size(), each, WriteRate(topology.racks[i].up_rate),
        WriteRate(topology.racks[i].down_rate), rack.all / topology.racks[i].up_rate, hosts);
  }
  if (!topology.links.empty()) PrintPaths(topology);
}

void PrintTopologyJson(const Network& topology) {
  const std::vector<RackSummary> summaries = Summarise(topology);
  nlohmann::ordered_json racks = nlohmann::ordered_json::array();
  for (size_t i = 0; i < summaries.size(); ++i) {
    racks.push_back({{"name", topology.racks[i].name},
                     {"hosts", summaries[i].hosts.size()},
                     {"names", WriteHostList(summaries[i].hosts)},
                     {"host_rate_min", summaries[i].slowest},
                     {"host_rate_max", summaries[i].fastest},
                     {"up_rate", topology.racks[i].up_rate},
                     {"down_rate", topology.racks[i].down_rate},
                     {"oversubscription", summaries[i].all / topology.racks[i].up_rate}});
  }
  nlohmann::ordered_json json = {
      {"name", topology.name}, {"hosts", topology.nodes.size()}, {"racks", racks}};
  for (size_t i = 0; i < topology.links.size(); i += 2) {
    const Network::Link& link = topology.links[i];
    const auto or_null = [](const auto& value) {
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    };
    nlohmann::ordered_json police;
    if (link.policer) police = {{"rate", link.policer->rate}, {"burst", link.policer->burst}};
    json["paths"].push_back({{"between", {topology.EndName(link.from), topology.EndName(link.to)}},
                             {"rate", link.rate},
                             {"latency_seconds", link.latency},
                             {"jitter_seconds", link.jitter},
                             {"loss", link.loss},
                             {"police", police},
                             {"pace", or_null(link.pace)},
                             {"queue", or_null(link.queue)},
                             {"streams", link.streams},
                             {"mtu", link.mtu}});
  }
  if (!topology.switches.empty()) json["switches"] = topology.switches;
  if (!topology.routes.empty()) json["routes"] = topology.routes.size();
  PrintJson(json, std::cout);
}

Status Run(const TopologyFlags& flags) {
  const Result<TopologyImport> import = Import(flags);
  if (!import.ok()) return import.status();
  for (const std::string& note : import->notes) PrintNote(note);
  if (!flags.output.empty()) {
    PREPOST_RETURN_IF_ERROR(
        WriteFile(flags.output, [&](std::ostream& out) { WriteTopology(import->topology, out); }));
    if (flags.output == "-") return {};
  }
  (flags.json ? PrintTopologyJson : PrintTopologyTable)(import->topology);
  return {};
}

}  // namespace

void AddTopology(CLI::App& app, Action* action) {
  auto flags = std::make_shared<TopologyFlags>();
  CLI::App* command =
      app.add_subcommand("topology", "Import a network's topology, and show its racks");
  command->footer(
      "FILE is a topology file, a topology.conf or topology.yaml of Slurm, or what `scontrol show "
      "topology` or\n"
      "ibnetdiscover printed; leaf switches become racks. The\n"
      "table has a line per rack: how many hosts; what each sends; the rack's rates to the core "
      "and from it; over, how\n"
      "often all its hosts together send what goes up (1 or less: the uplinks never limit); its "
      "hosts. docs/compiler.md has\n"
      "the format and what is read of others.\n\n"
      "Examples:\n"
      "  prepost topology examples/topologies/8x16-oversubscribed.json\n"
      "  prepost topology examples/topologies/slurm-topology.conf --host-rate 25Gbit/s -o "
      "cluster.json\n"
      "  prepost topology examples/topologies/ibnetdiscover.txt --from ibnetdiscover --json");
  command->add_option("FILE", flags->path, "What to read, - for stdin")->required();
  command->add_option("--from", flags->from, "Its format: json, slurm, ibnetdiscover [auto]")
      ->type_name("FORMAT");
  command->add_option("--host-rate", flags->host_rate, "slurm: the rate of every host [100Gbit/s]")
      ->type_name("RATE");
  command
      ->add_option("--up-rate", flags->up_rate,
                   "slurm: the rate of every rack's uplinks [LinkSpeed, or its hosts' together]")
      ->type_name("RATE");
  command->add_option("-o,--output", flags->output, "Topology file to write, - for stdout")
      ->type_name("T.json")
      ->check(NameOf("a file"));
  command->add_flag("--json", flags->json, "Print the summary as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
