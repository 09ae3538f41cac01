// SPDX-License-Identifier: Apache-2.0
//
// Machine: what a plan means, as a state machine. A channel has four counters: receives posted,
// sends started, messages delivered, and of these combined (a plain receive is at once, when it is
// its turn); the plan says when each may rise by one. Whoever plays the
// plan picks among the events that are allowed, as late or early as it likes. The interpreter and
// the oracle play it; nothing here knows the verifier's rules.
//
// The machine is monotone: taking an event never disallows another one on another counter. So the
// largest state that is reachable without some event is found by taking all others until nothing is
// left.
#ifndef PREPOST_TESTS_SUPPORT_MACHINE_H_
#define PREPOST_TESTS_SUPPORT_MACHINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/plan.h"
#include "tests/support/depths.h"

namespace prepost::test {

enum class Step : uint8_t { kPost, kStart, kDeliver, kCombine };
inline constexpr Step kSteps[] = {Step::kPost, Step::kStart, Step::kDeliver, Step::kCombine};

/// The `index`-th post, start, delivery or combination on `channel`.
struct Event {
  Step step = Step::kPost;
  uint32_t channel = 0;
  uint32_t index = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

/// An op as its channel sees it: the index-th send or receive there. Completed when
/// delivered[channel] > index; of a combine, combined[channel].
struct Place {
  uint32_t channel = 0;
  uint32_t index = 0;
  bool is_combine = false;
};

class Machine {
 public:
  /// counts[4 * channel + step]; posts of all channels are also counted together, for the barrier.
  struct State {
    std::vector<uint32_t> counts;
    uint32_t posts = 0;

    uint32_t count(uint32_t channel, Step step) const {
      return counts[4 * channel + static_cast<uint32_t>(step)];
    }
    friend bool operator==(const State&, const State&) = default;
  };

  /// One op. For a send: what it waits for, and where its node gets the block from.
  struct End {
    NodeId node;
    uint32_t block = kNoBlock;
    uint32_t count = 1;
    bool is_combine = false;
    uint32_t scratch = 0;
    uint32_t id = 0;  ///< of the op
    std::vector<Place> after;
    /// Of each block of a block send that its node does not contribute: the receives there.
    std::vector<std::vector<Place>> sources;
    /// A credit starts only when `grant_count` receives are posted on `grant_channel`.
    uint32_t grant_channel = 0;
    uint32_t grant_count = 0;
  };

  /// Fails for a plan that nobody could play: an op without a channel, at a node that is no end of
  /// its channel, of a block that the message lacks, an `after` entry that names no op, a node with
  /// no program or two, a root that is no member, parts that are not those of the collective, a
  /// combine without an operation on whole elements, a buffer that is missing.
  static Result<Machine> Make(const Plan& plan, Depths depths = {});

  uint32_t channel_count() const { return static_cast<uint32_t>(sends_.size()); }
  const std::vector<End>& sends(uint32_t channel) const { return sends_[channel]; }
  const std::vector<End>& recvs(uint32_t channel) const { return recvs_[channel]; }
  const PlanHeader& header() const { return header_; }
  /// Whether the op at `place` has completed.
  bool IsCompleted(const State& state, Place place) const {
    return state.count(place.channel, place.is_combine ? Step::kCombine : Step::kDeliver) >
           place.index;
  }

  State Initial() const;
  /// The next event of this kind on the channel, if there is one and the plan allows it now.
  std::optional<Event> Next(const State& state, Step step, uint32_t channel) const;
  /// All events that the plan allows now, channel after channel.
  std::vector<Event> Allowed(const State& state) const;
  /// `event` must come from Next() or Allowed().
  void Take(State* state, Event event) const;
  /// Every send and every receive has completed.
  bool IsComplete(const State& state) const;
  /// The sender of `event` (a start of a block send) has the blocks: it contributes them, or has
  /// received them.
  bool HoldsBlock(const State& state, Event event) const;

 private:
  Machine() = default;
  Status AddOps(const Plan& plan);
  void AddGrants(const Plan& plan);
  void AddSources();
  bool AllCompleted(const State& state, const std::vector<Place>& places) const;

  PlanHeader header_;
  Depths depths_;
  std::vector<std::vector<End>> sends_;  ///< [channel][index]
  std::vector<std::vector<End>> recvs_;
  uint32_t recv_count_ = 0;
};

/// The largest state that is reachable without the events that are withheld.
Machine::State LargestRun(const Machine& machine,
                          const std::function<bool(const Event& event)>& is_withheld);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_MACHINE_H_
