// SPDX-License-Identifier: Apache-2.0
//
// CirculantGraph: who sends what to whom in the circulant broadcast of n nodes. circulant.cc has
// the whole story and plays it; rack_circulant.cc builds on what is idle in it.
#ifndef PREPOST_COMPILER_SCHEDULES_CIRCULANT_GRAPH_H_
#define PREPOST_COMPILER_SCHEDULES_CIRCULANT_GRAPH_H_

#include <array>
#include <cstdint>

namespace prepost {

/// The skips of n >= 1 nodes, and what follows from them for any node. A value; root is node 0.
class CirculantGraph {
 public:
  static constexpr uint32_t kPhasesMax = 32;     ///< ceil(log2 n), n < 2^32
  using List = std::array<int32_t, kPhasesMax>;  ///< by phase; the first phases() are used

  explicit CirculantGraph(uint32_t nodes);

  uint32_t phases() const { return phases_; }  ///< q
  /// The phase of `round` >= 0 of a broadcast of `blocks`. Not for one node, which has none.
  uint32_t Phase(uint32_t round, uint32_t blocks) const {
    return (round % phases_ + Skipped(blocks)) % phases_;
  }
  uint32_t After(uint32_t node, uint32_t phase) const {
    return static_cast<uint32_t>((node + skips_[phase]) % nodes_);
  }
  uint32_t Before(uint32_t node, uint32_t phase) const {
    return static_cast<uint32_t>((node + nodes_ - skips_[phase]) % nodes_);
  }

  /// R of `node` != 0. Cost: O(log^2 n).
  List Receives(uint32_t node) const;
  /// S of `node`: what the node that it sends to receives. Cost: O(log^3 n).
  List Sends(uint32_t node) const;

 private:
  class Search;

  /// x: rounds of the first period that are left out, so that the last one ends a period.
  uint32_t Skipped(uint32_t blocks) const { return (phases_ - (blocks - 1) % phases_) % phases_; }
  /// The phase in which `node` gets a block of the same period; the root has none: phases().
  uint32_t BaseBlock(uint32_t node) const;

  uint32_t nodes_;
  uint32_t phases_;
  std::array<uint64_t, kPhasesMax + 1> skips_{};
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_CIRCULANT_GRAPH_H_
