// SPDX-License-Identifier: Apache-2.0
//
// Both formats are read line by line into switches with hosts and neighbours. Sources: Slurm's
// topology.conf(5), infiniband-diags' ibnetdiscover(8).
#include "compiler/topology/topology_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "compiler/topology/slurm_tree.h"
#include "compiler/topology/slurm_yaml.h"
#include "ir/base/near_name.h"
#include "ir/json/rate_text.h"
#include "ir/plan.h"

namespace prepost {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// The lines of a text, one after the other, and where they are.
class Lines {
 public:
  Lines(std::string_view text, const std::string& name) : left_(text), name_(name) {}

  bool Next(std::string_view* line) {
    if (left_.empty()) return false;
    const size_t end = std::min(left_.find('\n'), left_.size());
    *line = left_.substr(0, end);
    left_.remove_prefix(std::min(end + 1, left_.size()));
    ++number_;
    return true;
  }
  std::string where() const { return WhereOf(number_); }
  std::string WhereOf(size_t number) const { return fmt::format("{}:{}", name_, number); }
  size_t number() const { return number_; }

 private:
  std::string_view left_;
  const std::string& name_;
  size_t number_ = 0;
};

/// A first line that says something. No switch's line begins so, nor anything else that is read.
bool LooksLikeYaml(std::string_view line) {
  return line.starts_with("---") || line.starts_with("- ") || line.starts_with("%YAML") ||
         line == "[" || line.starts_with("[{") || line.starts_with("[ {");
}

std::string_view NextLine(std::string_view text, size_t* begin) {
  const size_t end = std::min(text.find('\n', *begin), text.size());
  const std::string_view line = text.substr(*begin, end - *begin);
  *begin = end + 1;
  return line;
}

class SlurmReader {
 public:
  SlurmReader(std::string_view text, const std::string& name)
      : lines_(text, name), tree_("topology.conf", name) {}

  Result<TopologyImport> Run(const SlurmRates& rates) {
    std::string_view line;
    while (lines_.Next(&line)) PREPOST_RETURN_IF_ERROR(ReadLine(line));
    if (!pending_.empty()) PREPOST_RETURN_IF_ERROR(ReadSwitch(std::exchange(pending_, {})));
    return std::move(tree_).Make(rates);
  }

 private:
  Status ReadLine(std::string_view line) {
    line = Trim(line.substr(0, line.find('#')));
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.remove_suffix(1);
    pending_ += line;
    if (pending_.size() > kLineBytesMax)
      return Rejected(fmt::format("the line has more than {} bytes", kLineBytesMax),
                      lines_.where());
    if (goes_on || pending_.empty()) return {};
    return ReadSwitch(std::exchange(pending_, {}));
  }

  Status ReadSwitch(std::string_view line) {
    SlurmSwitch read{.line = lines_.number()};
    while (!line.empty()) {
      const size_t end = std::min(line.find_first_of(kBlanks), line.size());
      const std::string_view word = line.substr(0, end);
      line = Trim(line.substr(end));
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos) {
        return Rejected(fmt::format("expected KEY=VALUE, found '{}'", word.substr(0, 80)),
                        lines_.where());
      }
      if (Status status = ReadKey(word.substr(0, equals), word.substr(equals + 1), &read);
          !status.ok())
        return Rejected(status.message(), lines_.where());
    }
    if (read.name.empty()) return Rejected("SwitchName is missing", lines_.where());
    return tree_.Add(std::move(read));
  }

  Status ReadKey(std::string_view key, std::string_view value, SlurmSwitch* out) {
    const std::string lower = Lower(key);
    if (value.empty()) return Rejected(fmt::format("{} has no value", key));
    if (lower == "switchname") {
      if (!out->name.empty() || value.find_first_of("[,") != std::string_view::npos)
        return Rejected("a line is about one switch");
      out->name = value;
      return {};
    }
    if (lower == "linkspeed") return tree_.ReadSpeed(value, out);
    if (lower == "level") return {};  // of scontrol; who is below whom says it, too
    if (lower != "nodes" && lower != "switches") {
      if (lower.starts_with("block"))
        return Rejected(fmt::format("{}: block topologies are not read, only trees", key));
      return Rejected(
          fmt::format("unknown key '{}'{}", key.substr(0, 40),
                      DidYouMean(key, {"SwitchName", "Nodes", "Switches", "LinkSpeed", "Level"})));
    }
    if (lower == "nodes" && Lower(value) == "all") {
      return Rejected(
          fmt::format("{}=ALL: which nodes these are stands in slurm.conf; list them", key));
    }
    return tree_.ReadNames(value, lower == "nodes" ? &out->nodes : &out->switches);
  }

  static constexpr size_t kLineBytesMax = 1u << 20;

  Lines lines_;
  std::string pending_;  // the beginning of a line that goes on
  SlurmTree tree_;
};

/// What stands between the first two quotes; `rest` is what follows. Empty: no quotes.
std::string_view Quoted(std::string_view text, std::string_view* rest) {
  const size_t open = text.find('"');
  const size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  *rest = text.substr(close + 1);
  return text.substr(open + 1, close - open - 1);
}

/// Bytes/s of data on one lane, by the name that ibnetdiscover prints: signalling less encoding.
struct LaneRate {
  std::string_view name;
  double gbits;
};
constexpr LaneRate kLaneRates[] = {
    {"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 14.0625 * 64 / 66},
    {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200},
};

/// The rate in "... 4xEDR ...", bytes/s.
std::optional<double> LinkRate(std::string_view text) {
  for (text = Trim(text); !text.empty();) {
    const size_t end = std::min(text.find_first_of(kBlanks), text.size());
    const std::string_view word = text.substr(0, end);
    text = Trim(text.substr(end));
    unsigned width = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), width);
    if (error != std::errc() || rest == word.data() + word.size() || *rest != 'x' || width == 0 ||
        width > 12)
      continue;
    const std::string_view speed = word.substr(static_cast<size_t>(rest - word.data()) + 1);
    for (const LaneRate& lane : kLaneRates) {
      if (lane.name == speed) return width * lane.gbits * 1e9 / 8;
    }
  }
  return std::nullopt;
}

/// A section "Switch .." of ibnetdiscover and its connectivity lines.
struct FabricSwitch {
  struct Adapter {
    std::string id, description;
    double rate = 0;
  };
  std::string id, description;
  std::vector<Adapter> adapters;
  double up_rate = 0;
  size_t line = 0;
};

class IbnetdiscoverReader {
 public:
  IbnetdiscoverReader(std::string_view text, const std::string& name) : lines_(text, name) {}

  Result<TopologyImport> Run() {
    std::string_view line;
    while (lines_.Next(&line)) PREPOST_RETURN_IF_ERROR(ReadLine(line));
    if (switches_.empty())
      return Rejected("no switch is there: expected lines that begin with Switch",
                      lines_.WhereOf(1));
    return Make();
  }

 private:
  Status ReadLine(std::string_view line) {
    const auto is_section = [&](std::string_view word) {
      return line.starts_with(word) && line.size() > word.size() &&
             kBlanks.find(line[word.size()]) != std::string_view::npos;
    };
    if (is_section("Switch")) {
      std::string_view rest;
      FabricSwitch read{.id = std::string(Quoted(line, &rest)), .line = lines_.number()};
      if (!read.id.starts_with("S-"))
        return Rejected("a switch has an id such as \"S-0002c902004b0918\"", lines_.where());
      if (!ids_.emplace(read.id, read.line).second)
        return Rejected(fmt::format("switch {} is there twice", read.id), lines_.where());
      read.description = Quoted(rest, &rest);
      switches_.push_back(std::move(read));
      in_switch_ = true;
      return {};
    }
    if (is_section("Ca") || is_section("Rt")) in_switch_ = false;
    if (is_section("Ca")) {
      std::string_view rest;
      own_sections_.emplace(Quoted(line, &rest));
    }
    // Links stand at both ends; those of switches are enough. All else describes the devices.
    return in_switch_ && line.starts_with('[') ? ReadLink(line) : Status();
  }

  /// [22] "H-0008f10403961354"[1](8f10403961355) # "host HCA-1" lid 4 4xSDR
  Status ReadLink(std::string_view line) {
    std::string_view rest;
    const std::string_view id = Quoted(line, &rest);
    const size_t hash = rest.find('#');
    if (id.size() < 3 || hash == std::string_view::npos)
      return Rejected("expected [PORT] \"ID\"[PORT] # \"DESCRIPTION\" ...", lines_.where());
    rest.remove_prefix(hash + 1);
    const std::string_view description = Quoted(rest, &rest);
    const std::optional<double> rate = LinkRate(rest);
    if (!rate)
      return Rejected(fmt::format("expected a link's width and speed, such as 4xEDR, found '{}'",
                                  Trim(rest).substr(0, 40)),
                      lines_.where());
    FabricSwitch& here = switches_.back();
    if (id.starts_with("S-")) {
      here.up_rate += *rate;
    } else if (id.starts_with("H-") &&
               description.find("Aggregation Node") == std::string_view::npos) {
      here.adapters.push_back({std::string(id), std::string(description), *rate});
      if (++adapters_ > kNodesMax)
        return Rejected(fmt::format("there are more than {} adapters", kNodesMax), lines_.where());
    }
    return {};
  }

  /// First words of descriptions that several adapters have: those of one host differ, so that
  /// these are of several hosts, which have not been named ("localhost").
  std::set<std::string> SharedNames() const {
    std::unordered_map<std::string, std::string> ids;  // by description
    std::set<std::string> shared;
    for (const FabricSwitch& one : switches_) {
      for (const FabricSwitch::Adapter& adapter : one.adapters) {
        const auto [found, is_new] = ids.try_emplace(adapter.description, adapter.id);
        if (!is_new && found->second != adapter.id) shared.insert(HostName(adapter));
      }
    }
    return shared;
  }
  /// "node001" of "node001 HCA-1" and "node001 mlx5_0"; the id where a description is the maker's.
  static std::string HostName(const FabricSwitch::Adapter& adapter) {
    const std::string_view text = Trim(adapter.description);
    const size_t blank = std::min(text.find_first_of(kBlanks), text.size());
    const std::string second = Lower(Trim(text.substr(blank)));
    const bool is_own = second.empty() || second.starts_with("hca") || second.starts_with("mlx") ||
                        second.starts_with("hfi") || second.starts_with("ib");
    return blank == 0 || !is_own ? adapter.id : std::string(text.substr(0, blank));
  }

  /// Where some adapters have one of their own, as all have that the tool prints.
  void NoteMissingSections(std::vector<std::string>* notes) const {
    std::set<std::string> missing;
    for (const FabricSwitch& one : switches_) {
      for (const FabricSwitch::Adapter& adapter : one.adapters) {
        if (!own_sections_.contains(adapter.id)) missing.insert(adapter.id);
      }
    }
    if (own_sections_.empty() || missing.empty()) return;
    notes->push_back(
        fmt::format("of {} adapters that switches name {}, the first {}, no section "
                    "Ca is there: is the file cut short?",
                    adapters_, missing.size(), *missing.begin()));
  }

  Result<TopologyImport> Make() const {
    TopologyImport made;
    std::unordered_map<std::string, size_t> ports;  // of hosts that are there
    std::unordered_map<std::string, size_t> names;  // racks of that description
    const std::set<std::string> shared = SharedNames();
    size_t left_out = 0, nameless = 0;
    std::string first_nameless;
    const auto leaves = std::ranges::count_if(
        switches_, [](const FabricSwitch& one) { return !one.adapters.empty(); });
    for (const FabricSwitch& one : switches_) {
      std::vector<Network::Node> hosts;
      double rate = 0;
      for (const FabricSwitch::Adapter& adapter : one.adapters) {
        std::string name = HostName(adapter);
        if (shared.contains(name)) name = adapter.id;
        if (++ports[name] > 1) {
          ++left_out;
          continue;
        }
        if (name == adapter.id && nameless++ == 0) first_nameless = adapter.id;
        hosts.push_back({.name = std::move(name),
                         .rack = static_cast<uint32_t>(made.topology.racks.size()),
                         .out_rate = adapter.rate,
                         .in_rate = adapter.rate});
        rate += adapter.rate;
      }
      if (hosts.empty()) continue;
      if (one.up_rate == 0 && leaves > 1) {
        return Rejected(fmt::format("switch {} has no uplink: no link to another switch", one.id),
                        lines_.WhereOf(one.line));
      }
      const double up = one.up_rate == 0 ? rate : one.up_rate;
      const bool is_named = !one.description.empty() && ++names[one.description] == 1;
      made.topology.racks.push_back(
          {.name = is_named ? one.description : one.id, .up_rate = up, .down_rate = up});
      std::ranges::move(hosts, std::back_inserter(made.topology.nodes));
    }
    if (left_out != 0)
      made.notes.push_back(fmt::format("{} further ports of hosts are left out", left_out));
    if (nameless != 0) {
      made.notes.push_back(
          fmt::format("{} adapters carry no host's name, or one that others carry too, and count "
                      "as a host each, called by its GUID, the first {}",
                      nameless, first_nameless));
    }
    NoteMissingSections(&made.notes);
    if (Status status = CheckTopology(made.topology); !status.ok())
      return Rejected(status.message(), lines_.WhereOf(switches_[0].line));
    return made;
  }

  Lines lines_;
  bool in_switch_ = false;
  std::vector<FabricSwitch> switches_;
  std::unordered_map<std::string, size_t> ids_;
  std::set<std::string> own_sections_;  ///< ids of adapters that have one
  size_t adapters_ = 0;
};

}  // namespace

std::optional<TopologySource> GuessTopologySource(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const std::string_view line = Trim(NextLine(text, &begin));
    if (line.empty() || line[0] == '#') continue;
    if (LooksLikeYaml(line)) return TopologySource::kSlurm;
    if (line[0] == '{') return TopologySource::kJson;
    const std::string lower = Lower(line.substr(0, 32));
    for (const char* key : {"switchname=", "blockname=", "blocksizes="}) {
      if (lower.find(key) != std::string::npos) return TopologySource::kSlurm;
    }
    if (lower.starts_with("vendid=") || lower.starts_with("switch\t") ||
        lower.starts_with("switch "))
      return TopologySource::kIbnetdiscover;
  }
  return std::nullopt;
}

Result<TopologyImport> ReadSlurmTopology(std::string_view text, const std::string& name,
                                         const SlurmRates& rates) {
  size_t begin = 0;
  std::string_view line;
  do {
    line = Trim(NextLine(text, &begin));
  } while (begin < text.size() && (line.empty() || line[0] == '#'));
  if (LooksLikeYaml(line)) return ReadSlurmYaml(text, name, rates);
  return SlurmReader(text, name).Run(rates);
}

Result<TopologyImport> ReadIbnetdiscover(std::string_view text, const std::string& name) {
  return IbnetdiscoverReader(text, name).Run();
}

}  // namespace prepost
