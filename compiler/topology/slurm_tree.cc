// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/slurm_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "compiler/topology/host_list.h"
#include "ir/json/rate_text.h"
#include "ir/plan.h"

namespace prepost {

std::string SlurmTree::WhereOf(size_t line) const { return fmt::format("{}:{}", name_, line); }

Status SlurmTree::ReadNames(std::string_view value, std::vector<std::string>* out) {
  names_ += out->size();
  Result<std::vector<std::string>> names =
      ExpandHostList(value, kNodesMax - std::min<size_t>(names_, kNodesMax));
  if (!names.ok()) return names.status();
  names_ += names->size();
  *out = *std::move(names);
  return {};
}

Status SlurmTree::ReadSpeed(std::string_view value, SlurmSwitch* out) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  const bool is_bare = error == std::errc() && rest == end;
  out->has_default_speed = is_bare && number == 1;
  if (out->has_default_speed) return {};
  const Result<double> rate =
      ParseRate(is_bare ? fmt::format("{}Gbit/s", value) : std::string(value));
  if (!rate.ok()) return rate.status();
  out->link_speed = *rate;
  return {};
}

Status SlurmTree::Add(SlurmSwitch one) {
  if (!index_.emplace(one.name, switches_.size()).second)
    return Rejected(fmt::format("a switch '{}' is there already", one.name), WhereOf(one.line));
  switches_.push_back(std::move(one));
  return {};
}

Result<TopologyImport> SlurmTree::Make(const SlurmRates& rates) && {
  PREPOST_RETURN_IF_ERROR(CheckTree());
  PREPOST_RETURN_IF_ERROR(PlaceNodes());
  return MakeRacks(rates);
}

/// Each switch is under one other at most.
Status SlurmTree::CheckTree() {
  for (const SlurmSwitch& parent : switches_) {
    for (const std::string& child : parent.switches) {
      const auto found = index_.find(child);
      if (found == index_.end())
        return Rejected(fmt::format("no line is about switch '{}'", child), WhereOf(parent.line));
      SlurmSwitch& below = switches_[found->second];
      if (std::exchange(below.has_parent, true)) {
        return Rejected(fmt::format("switch '{}' is below two others", child),
                        WhereOf(parent.line));
      }
    }
  }
  if (switches_.empty()) return Rejected("no switch is there", WhereOf(1));
  // One parent each: what walks from the tops do not reach hangs on a ring.
  for (size_t i = 0; i < switches_.size(); ++i)
    if (!switches_[i].has_parent) from_top_.push_back(i);
  tops_ = from_top_.size();
  for (size_t i = 0; i < from_top_.size(); ++i) {
    for (const std::string& child : switches_[from_top_[i]].switches)
      from_top_.push_back(index_.at(child));
  }
  if (from_top_.size() == switches_.size()) return {};
  return Rejected("switches are above each other in a ring", WhereOf(switches_[0].line));
}

/// Each node is at one switch: `scontrol show topology` lists it at those above as well.
Status SlurmTree::PlaceNodes() {
  NumberSwitches();
  std::unordered_map<std::string, const SlurmSwitch*> place;
  for (auto at = from_top_.rbegin(); at != from_top_.rend(); ++at) {
    SlurmSwitch& one = switches_[*at];
    std::vector<std::string> own;
    for (std::string& node : one.nodes) {
      const auto [found, is_new] = place.emplace(node, &one);
      if (is_new) {
        own.push_back(std::move(node));
      } else if (IsBelow(*found->second, one)) {
        one.repeats_nodes = true;
      } else {
        const auto [first, second] = std::minmax(found->second->line, one.line);
        return Rejected(fmt::format("node '{}' is there twice, first in line {}", node, first),
                        WhereOf(second));
      }
    }
    one.nodes = std::move(own);
  }
  return {};
}

/// Numbers switches so that those below one follow it. Linear.
void SlurmTree::NumberSwitches() {
  for (auto at = from_top_.rbegin(); at != from_top_.rend(); ++at) {
    SlurmSwitch& one = switches_[*at];
    one.size = 1;
    for (const std::string& child : one.switches) one.size += switches_[index_.at(child)].size;
  }
  size_t next_top = 0;
  for (size_t i = 0; i < from_top_.size(); ++i) {
    SlurmSwitch& one = switches_[from_top_[i]];
    if (i < tops_) one.number = std::exchange(next_top, next_top + one.size);
    size_t next = one.number + 1;
    for (const std::string& child : one.switches) {
      SlurmSwitch& below = switches_[index_.at(child)];
      below.number = std::exchange(next, next + below.size);
    }
  }
}

bool SlurmTree::IsBelow(const SlurmSwitch& low, const SlurmSwitch& high) {
  return low.number > high.number && low.number < high.number + high.size;
}

Result<TopologyImport> SlurmTree::MakeRacks(const SlurmRates& rates) const {
  TopologyImport made;
  size_t by_link_speed = 0;
  for (const SlurmSwitch& one : switches_) {
    if (one.nodes.empty()) continue;
    double up = rates.host_rate * static_cast<double>(one.nodes.size());
    if (rates.up_rate) {
      up = *rates.up_rate;
    } else if (one.link_speed) {
      up = *one.link_speed;
      ++by_link_speed;
    }
    const auto rack = static_cast<uint32_t>(made.topology.racks.size());
    made.topology.racks.push_back({.name = one.name, .up_rate = up, .down_rate = up});
    for (const std::string& node : one.nodes) {
      made.topology.nodes.push_back(
          {.name = node, .rack = rack, .out_rate = rates.host_rate, .in_rate = rates.host_rate});
    }
  }
  if (tops_ > 1) {
    made.notes.push_back(fmt::format(
        "no switch is above all others: the {} that have none above are taken to be joined",
        tops_));
  }
  if (std::ranges::any_of(switches_, &SlurmSwitch::repeats_nodes))
    made.notes.push_back("nodes that stand at several switches are at the lowest of them");
  made.notes.push_back(
      fmt::format("{} has no rates of hosts: all have {}", kind_, WriteRate(rates.host_rate)));
  if (!rates.up_rate && std::ranges::any_of(switches_, &SlurmSwitch::has_default_speed)) {
    made.notes.push_back(
        "LinkSpeed=1, which scontrol shows where none is set, is not taken as a rate: 1Gbit/s or "
        "--up-rate would be");
  }
  if (by_link_speed != 0) {
    made.notes.push_back(
        fmt::format("LinkSpeed is taken as the rate of switches' uplinks ({} have it), a bare "
                    "number as Gbit/s",
                    by_link_speed));
  } else if (!rates.up_rate) {
    made.notes.push_back("no uplink has a rate: each has that of its rack's hosts together");
  }
  if (Status status = CheckTopology(made.topology); !status.ok())
    return Rejected(status.message(), WhereOf(switches_[0].line));
  return made;
}

}  // namespace prepost
