// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/slow_flag.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "planning/flags/host_choice.h"
#include "planning/flags/values.h"

namespace prepost {
namespace {

constexpr uint64_t kDrawnPairsMax = uint64_t{1} << 24;  ///< of hosts, by --slow random

Status BadSlow(const std::string& text, const Status& why) {
  return BadParts("--slow", text, why,
                  "2->5=0.5, 3=0.5, random=0.05,factor=0.5, hosts=4,factor=0.5 or "
                  "share=0.1,factor=0.5");
}
Status BadSlow(const std::string& text, const std::string& why) {
  return BadSlow(text, UsageError(why));
}

double DrawOfPair(uint64_t seed, NodeId from, NodeId to) {
  return DrawOf(seed, uint64_t{from.value} << 32 | to.value);
}

/// Reads all --slow and then changes a network.
class SlowReader {
 public:
  SlowReader(uint64_t seed, const Network& network)
      : seed_(seed), network_(network), nodes_(static_cast<uint32_t>(network.nodes.size())) {}

  Status Read(const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return BadSlow(text, "no factor");
    const std::string_view what = std::string_view(text).substr(0, equals);
    const std::string_view value = std::string_view(text).substr(equals + 1);
    for (const char* drawn : {"random", "hosts", "share", "factor"}) {
      if (what == drawn) return ReadDrawn(text);
    }
    const std::optional<double> factor = NumberOf<double>(value);
    if (!factor || !(*factor > 0 && *factor <= 1)) return BadFactor(text, value);
    const size_t arrow = what.find("->");
    const std::optional<uint32_t> from = NumberOf<uint32_t>(what.substr(0, arrow));
    if (!from || *from >= nodes_) return BadNode(text, what.substr(0, arrow));
    if (arrow == std::string_view::npos) {
      if (!slow_nodes_.emplace(*from, *factor).second)
        return BadSlow(text, fmt::format("node {} is there twice", *from));
      return {};
    }
    const std::optional<uint32_t> to = NumberOf<uint32_t>(what.substr(arrow + 2));
    if (!to || *to >= nodes_) return BadNode(text, what.substr(arrow + 2));
    if (from == to) return BadSlow(text, "a node sends nothing to itself");
    if (!pairs_.emplace(std::pair(NodeId(*from), NodeId(*to)), *factor).second)
      return BadSlow(text, fmt::format("the pair {}->{} is there twice", *from, *to));
    return {};
  }

  void Apply(Network* network) {
    DrawPairs();
    for (const NodeId node : drawn_nodes_) Slow(node.value, drawn_factor_, &slow_nodes_);
    for (const auto& [pair, factor] : pairs_) {
      const double rate = std::min(network_.nodes[pair.first.index()].out_rate,
                                   network_.nodes[pair.second.index()].in_rate);
      network->pairs.push_back({pair.first, pair.second, rate * factor});
    }
    for (const auto& [node, factor] : slow_nodes_) {
      Network::Node& slow = network->nodes[node];
      slow.out_rate *= factor;
      slow.in_rate *= factor;
      if (slow.duplex_rate) *slow.duplex_rate *= factor;
    }
  }

 private:
  struct Random {
    double probability = 0;
    double factor = 1;
  };

  static Status BadFactor(const std::string& text, std::string_view value) {
    return BadSlow(text, fmt::format("the factor '{}' is not above 0 and at most 1", value));
  }
  Status BadNode(const std::string& text, std::string_view value) const {
    return BadSlow(text, NoSuchNode(std::string(value), nodes_));
  }

  /// Of what is named and drawn, or was slow already, the lower factor counts.
  template <typename Key>
  static void Slow(const Key& key, double factor, std::map<Key, double>* factors) {
    const auto [it, is_new] = factors->emplace(key, factor);
    if (!is_new) it->second = std::min(it->second, factor);
  }

  void DrawPairs() {
    for (uint32_t from = 0; random_ && from < nodes_; ++from) {
      for (uint32_t to = 0; to < nodes_; ++to) {
        const std::pair pair{NodeId(from), NodeId(to)};
        if (from != to && DrawOfPair(seed_, pair.first, pair.second) < random_->probability)
          Slow(pair, random_->factor, &pairs_);
      }
    }
  }

  /// "random=0.05,factor=0.5", or "hosts=4" or "share=0.1" in place of random, in any order.
  Status ReadDrawn(const std::string& text) {
    const auto parts = ParseParts(text, {"random", "hosts", "share", "factor"});
    if (!parts.ok()) return BadSlow(text, parts.status());
    if (!parts->contains("factor")) return BadSlow(text, "no factor");
    const std::string& value = parts->at("factor");
    const std::optional<double> factor = NumberOf<double>(value);
    if (!factor || !(*factor > 0 && *factor <= 1)) return BadFactor(text, value);
    const auto random = parts->find("random");
    if (random == parts->end()) return ReadDrawnNodes(text, *parts, *factor);
    if (parts->size() > 2)
      return BadSlow(text, "random is of paths, and stands without hosts or share");
    return ReadRandom(text, random->second, *factor);
  }

  Status ReadDrawnNodes(const std::string& text, const std::map<std::string, std::string>& parts,
                        double factor) {
    const Result<HostChoice> choice = HostChoice::Of(parts);
    if (!choice.ok()) return BadSlow(text, choice.status());
    if (!choice->is_drawn()) return BadSlow(text, "random, hosts or share is missing");
    if (has_drawn_nodes_) return BadSlow(text, "hosts or share is there twice");
    has_drawn_nodes_ = true;
    Result<std::vector<NodeId>> nodes = choice->Among(nodes_, seed_, DrawingFlag::kSlow);
    if (!nodes.ok()) return BadSlow(text, nodes.status());
    drawn_nodes_ = *std::move(nodes);
    drawn_factor_ = factor;
    return {};
  }

  Status ReadRandom(const std::string& text, const std::string& value, double factor) {
    if (random_) return BadSlow(text, "random is there twice");
    if (const uint64_t pairs = uint64_t{nodes_} * nodes_; pairs > kDrawnPairsMax) {
      return Rejected(fmt::format("--slow random: {} hosts have {} pairs, the limit is {}", nodes_,
                                  pairs, kDrawnPairsMax));
    }
    const std::optional<double> probability = NumberOf<double>(value);
    if (!probability || !(*probability >= 0 && *probability <= 1))
      return BadSlow(text, fmt::format("the probability '{}' is not from 0 to 1", value));
    random_ = {*probability, factor};
    return {};
  }

  const uint64_t seed_;
  const Network network_;  // as it was
  const uint32_t nodes_;
  std::optional<Random> random_;
  bool has_drawn_nodes_ = false;
  std::vector<NodeId> drawn_nodes_;
  double drawn_factor_ = 1;
  std::map<std::pair<NodeId, NodeId>, double> pairs_;
  std::map<uint32_t, double> slow_nodes_;
};

}  // namespace

Status SlowNetwork(const std::vector<std::string>& texts, uint64_t seed, Network* network) {
  if (texts.empty()) return {};
  SlowReader reader(seed, *network);
  for (const std::string& text : texts) PREPOST_RETURN_IF_ERROR(reader.Read(text));
  reader.Apply(network);
  return {};
}

}  // namespace prepost
