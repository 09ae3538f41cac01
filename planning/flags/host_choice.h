// SPDX-License-Identifier: Apache-2.0
//
// HostChoice: which hosts a flag of prepost simulate is for: all of them, one (node=3), or some
// that are drawn by --seed: so many (hosts=4) or a share of them (share=0.1).
#ifndef PREPOST_PLANNING_FLAGS_HOST_CHOICE_H_
#define PREPOST_PLANNING_FLAGS_HOST_CHOICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"

namespace prepost {

/// Each flag draws by itself, whatever others draw.
enum class DrawingFlag : uint8_t { kSlow, kPreempt, kNeighbours };

class HostChoice {
 public:
  /// Those of `parts` (ParseParts()) with the keys "node", "hosts" and "share"; without any all
  /// hosts. Errors (kUsage, without a place): more than one of them, no number of hosts, a share
  /// that is not from 0 to 1.
  static Result<HostChoice> Of(const std::map<std::string, std::string>& parts);

  bool is_of_all() const { return !node_ && !count_ && !share_; }
  bool is_drawn() const { return count_ || share_; }

  /// Those among hosts 0 to `hosts` - 1, rising. Drawn are the first of an order that `seed` and
  /// `flag` alone give: those of hosts=4 are among those of hosts=5. A share is rounded to the
  /// nearest number of hosts. Errors (without a place): kUsage; kRejected: of hosts
  /// that a larger plan would have.
  Result<std::vector<NodeId>> Among(uint32_t hosts, uint64_t seed, DrawingFlag flag) const;

 private:
  std::optional<std::string> node_;
  std::optional<uint32_t> count_;
  std::optional<double> share_;
};

/// "no node '8', the nodes are 0 to 7"; kRejected where a larger plan has the node, else kUsage.
Status NoSuchNode(const std::string& node, uint32_t nodes);

/// Uniform in [0, 1), of a seed and what is drawn: SplitMix64 (Steele, Lea and Flood 2014) of both.
double DrawOf(uint64_t seed, uint64_t what);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_HOST_CHOICE_H_
