// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/circulant_graph.h"

#include <bit>

namespace prepost {

/// Paths to `target`, as the essay of circulant.cc has it. Goes no deeper than there are skips.
class CirculantGraph::Search {
 public:
  Search(const CirculantGraph& graph, uint64_t target, uint32_t without)
      : graph_(graph), target_(target) {
    // Largest first; `without` is not in it.
    uint32_t last = kNone;
    for (uint32_t e = graph.phases_ + 1; e-- > 0;) {
      next_[e] = kNone;
      if (e == without) continue;
      (last == kNone ? head_ : next_[last]) = e;
      previous_[e] = last;
      last = e;
    }
  }

  /// Extends a path that ends at `path` by skips, as long as it stays below `bound`.
  void From(uint64_t path, uint64_t bound) { From(path, bound, head_); }
  const List& found() const { return found_; }

 private:
  static constexpr uint32_t kNone = kPhasesMax + 1;

  bool Reaches(uint64_t path, uint32_t count) const {
    return count <= graph_.phases_ && path + graph_.skips_[count] <= target_;
  }

  void From(uint64_t path, uint64_t bound, uint32_t first) {
    for (uint32_t e = first; e != kNone && count_ < graph_.phases_; e = next_[e]) {
      const uint64_t at = path + graph_.skips_[e];
      if (!Reaches(at, count_) || at >= bound) continue;
      if (Reaches(at, count_ + 1)) From(at, bound, e);
      if (count_ == graph_.phases_ || !Reaches(path, count_ + 1)) return;
      bound = at;
      found_[count_++] = static_cast<int32_t>(e);
      Remove(e);
    }
  }
  /// What was removed still knows what follows it.
  void Remove(uint32_t e) {
    (previous_[e] == kNone ? head_ : next_[previous_[e]]) = next_[e];
    if (next_[e] != kNone) previous_[next_[e]] = previous_[e];
  }

  const CirculantGraph& graph_;
  uint64_t target_;
  uint32_t head_ = kNone;
  std::array<uint32_t, kPhasesMax + 1> next_{};
  std::array<uint32_t, kPhasesMax + 1> previous_{};
  List found_{};
  uint32_t count_ = 0;
};

CirculantGraph::CirculantGraph(uint32_t nodes)
    : nodes_(nodes), phases_(static_cast<uint32_t>(std::bit_width(nodes - 1))) {
  skips_[phases_] = nodes;
  for (uint32_t i = phases_; i-- > 0;) skips_[i] = skips_[i + 1] / 2 + skips_[i + 1] % 2;
}

uint32_t CirculantGraph::BaseBlock(uint32_t node) const {
  uint64_t left = node;
  for (uint32_t i = phases_; i-- > 0;) {
    if (skips_[i] == left) return i;
    if (skips_[i] < left) left -= skips_[i];
  }
  return phases_;
}

CirculantGraph::List CirculantGraph::Receives(uint32_t node) const {
  const uint32_t base = BaseBlock(node);
  Search search(*this, uint64_t{nodes_} + node, base);
  search.From(0, 2 * uint64_t{nodes_});
  List list = search.found();
  for (uint32_t j = 0; j < phases_; ++j) {
    const auto q = static_cast<int32_t>(phases_);
    list[j] = list[j] == q ? static_cast<int32_t>(base) : list[j] - q;
  }
  return list;
}

CirculantGraph::List CirculantGraph::Sends(uint32_t node) const {
  List list{};
  for (uint32_t j = 0; j < phases_; ++j) {
    const uint32_t to = After(node, j);
    if (node == 0) {
      list[j] = static_cast<int32_t>(j);
    } else if (to != 0) {
      list[j] = Receives(to)[j];
    }
  }
  return list;
}

}  // namespace prepost
