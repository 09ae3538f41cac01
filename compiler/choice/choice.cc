// SPDX-License-Identifier: Apache-2.0
//
// For each schedule Choose() searches the best number of blocks k, then it compares the schedules.
//
// On a flat network r0 + r1 k rounds of k blocks take T(k) = (r0 + r1 k)(a + m / (k R)), a the cost
// of a round, m the message and R the rate. Its least is at k* = sqrt(m r0 / (R r1 a)): many blocks
// fill the pipeline soon, few cost little. For n = 4, the binomial pipeline (r0 = r1 = 1), 1 MiB at
// 12.5 GB/s and a = 2.76 us: k* = sqrt(83.9 us / 2.76 us) = 5.5, five or six blocks.
//
// With racks and slow nodes bytes and rounds have slopes of their own, T = b W(k) + L(k) with block
// size b; near k both are nearly linear, so two exact costs give slopes and a second k*. From the
// best so far the search climbs: k is multiplied and divided by less and less while that helps. One
// block, and, as scatter_allgather cuts messages into n parts, multiples of n are tried too. T has
// one valley, flat around k* (20 % off costs less than 2 %), but for what rounding does (of block
// sizes, RoundUpBlock(), and of k, which is whole) and, with a topology, for k's remainder by log2
// n: there all small k and those around the best are tried.
//
// Then plans are timed, if there is a timer (plan_timing.cc).
//
// Equal times go to the schedule that help lists first. In large groups, where an exact cost takes
// long, schedules whose time is rough and still far above the best one's are left out.
//
// Source: the closed form is that of Bar-Noy and Kipnis 1994 for pipelined broadcast.
#include "compiler/choice/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "ir/json/rate_text.h"

namespace prepost {
namespace {

/// Fan-outs of the schedules that take one.
constexpr uint32_t kFanouts[] = {2, 4, 8, 16};

/// Up to so many nodes a schedule is left out only if its rough time is kHopeless times the best
/// one's; above, kRoughSlack times.
constexpr uint32_t kExactNodesMax = 64;
constexpr double kHopeless = 4;
constexpr double kRoughSlack = 1.25;

/// Above so many nodes the search climbs no further than to the second k*.
constexpr uint32_t kClimbNodesMax = 8192;

/// Nor if it is so far above the best of other schedules there.
constexpr double kClimbSlack = 2;

/// Times that differ by less are equal.
constexpr double kRoundingSlack = 1e-9;

std::string Percent(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }

/// For ratios above 0, however small.
std::string PercentMore(double ratio) {
  return 100 * ratio < 0.05 ? "less than 0.1 %" : Percent(ratio);
}

constexpr uint64_t kPage = 4096;

/// The most blocks that are tried for `nodes` nodes.
uint32_t BlocksMax(uint32_t nodes) {
  if (nodes == 1) return 1;
  uint64_t blocks = std::max<uint64_t>(kChosenBlocksMax / nodes, kChosenBlocksLeast);
  while (!CheckTransfers(nodes, static_cast<uint32_t>(blocks)).ok()) blocks /= 2;
  return static_cast<uint32_t>(blocks);
}

/// Searches the best block size of one schedule.
class BlockSearch {
 public:
  struct Found {
    Payload payload;
    ScheduleCost cost;
  };

  BlockSearch(CostModel& model, const Spec& spec, Algorithm algorithm)
      : model_(model), spec_(spec), algorithm_(algorithm), blocks_max_(BlocksMax(spec.nodes)) {}

  /// The best by rough costs: the k* of rounds that are linear in k, or, for those that are not,
  /// some other number of blocks.
  Payload Guess() const {
    if (!spec_.choose_block_bytes) return PayloadOf(spec_.block_bytes);
    const double n = spec_.nodes;
    Payload best = InBlocks(ClosedForm());
    for (const double blocks : {1.0, n, 8 * n, 64 * n}) {
      const Payload other = InBlocks(blocks);
      if (model_.RoughSeconds(algorithm_, other) < model_.RoughSeconds(algorithm_, best))
        best = other;
    }
    return best;
  }

  /// By exact costs, from `guess` on; not to the end if that is far above `others_seconds`.
  Found Run(const Payload& guess, double others_seconds) {
    Try(guess);
    if (spec_.choose_block_bytes) {
      TryBlocks(1);
      TryFitted(guess.blocks);
      const bool is_hopeful = best_->cost.seconds < kClimbSlack * others_seconds;
      if (is_hopeful && spec_.nodes <= kClimbNodesMax) Climb();
    }
    return *best_;
  }

  /// Whether `found` has as many blocks as allowed, or, as sizes are rounded, a few less; and they
  /// could be smaller.
  bool IsBounded(const Payload& found) const {
    if (!spec_.choose_block_bytes || spec_.nodes == 1 || found.block_bytes == RoundUpBlock(1))
      return false;
    return found.block_bytes == InBlocks(blocks_max_).block_bytes ||
           found.blocks > blocks_max_ - blocks_max_ / 16;
  }

 private:
  double Bytes() const { return static_cast<double>(*spec_.message_bytes); }
  Payload PayloadOf(uint64_t block_bytes) const {
    return *MakePayload(*spec_.message_bytes, block_bytes);
  }
  /// k*, of the slope that rounds have at the most blocks.
  double ClosedForm() const {
    const auto rounds_of = [&](uint32_t blocks) {
      return double{1} * algorithm_.schedule->Rounds(model_.ExtentOf(algorithm_, blocks));
    };
    const uint32_t fewer = blocks_max_ / 2;
    if (fewer == 0) return 1;
    const double slope = (rounds_of(blocks_max_) - rounds_of(fewer)) / (blocks_max_ - fewer);
    const double constant = rounds_of(blocks_max_) - slope * blocks_max_;
    if (slope <= 0) return 1;
    return BestBlockCount(Bytes(), model_.fastest_rate(), constant, slope, model_.lowest_latency());
  }
  /// In about so many blocks, as near as the limit and RoundUpBlock() allow.
  Payload InBlocks(double blocks) const {
    const double most = blocks_max_;
    const auto count = static_cast<uint32_t>(blocks >= 1 ? std::min(blocks, most) : 1);  // or NaN
    const uint64_t bytes = std::max<uint64_t>(*spec_.message_bytes, 1);
    const uint64_t exact = (bytes - 1) / count + 1;
    return PayloadOf(RoundUpBlock(exact));
  }

  const ScheduleCost& TryBlocks(double blocks) {
    const Payload payload = InBlocks(blocks);
    return Try(payload);
  }
  const ScheduleCost& Try(const Payload& payload) {
    const auto [place, is_new] = tried_.try_emplace(payload.block_bytes);
    if (!is_new) return place->second;
    place->second = model_.CostOf(algorithm_, payload);
    if (!best_ || place->second.seconds < best_->cost.seconds * (1 - kRoundingSlack))
      best_ = {payload, place->second};
    return place->second;
  }

  /// At the k* of the slopes that the costs have at `blocks` and the double of it.
  void TryFitted(uint32_t blocks) {
    const Payload one = InBlocks(blocks), two = InBlocks(2.0 * blocks);
    const ScheduleCost at_one = TryBlocks(blocks), at_two = TryBlocks(2.0 * blocks);
    const double more = double{1} * two.blocks - one.blocks;
    if (more <= 0) return;
    const auto widths = [](const ScheduleCost& cost, const Payload& payload) {
      return (cost.seconds - cost.latency()) / static_cast<double>(payload.block_bytes);
    };
    const double slope = (widths(at_two, two) - widths(at_one, one)) / more;
    const double constant = widths(at_one, one) - slope * one.blocks;
    const double round = (at_two.latency() - at_one.latency()) / more;
    if (constant > 0 && round > 0) TryBlocks(std::sqrt(Bytes() * constant / round));
  }

  void Climb() {
    const double n = spec_.nodes;
    const double multiple = best_->payload.blocks / n;
    for (const double whole : {std::floor(multiple), std::ceil(multiple)})
      if (whole >= 1) TryBlocks(whole * n);
    for (const double factor : {2.0, 1.3, 1.1, 1.04}) {
      for (bool moved = true; moved;) {
        const uint32_t from = best_->payload.blocks;
        TryBlocks(std::max(from * factor, from + 1.0));
        TryBlocks(std::min(from / factor, from - 1.0));
        moved = best_->payload.blocks != from;
      }
    }
    const auto bits = static_cast<uint32_t>(std::bit_width(spec_.nodes));
    // With many blocks a few rounds of another kind are nothing.
    if (spec_.topology && best_->payload.blocks <= 16 * bits) TryPhases(bits);
  }

  /// Pipelines over hypercubes and circulants have as many kinds of rounds as a node number has
  /// bits. Which of them come once more depends on k, and on racks and slow nodes they cost
  /// differently.
  void TryPhases(uint32_t bits) {
    for (uint32_t blocks = 2; blocks <= 2 * bits; ++blocks) TryBlocks(blocks);
    const double best = best_->payload.blocks;
    for (uint32_t i = 1; i <= bits; ++i) {
      TryBlocks(best - i);
      TryBlocks(best + i);
    }
  }

  CostModel& model_;
  const Spec& spec_;
  const Algorithm algorithm_;
  const uint32_t blocks_max_;
  std::map<uint64_t, ScheduleCost> tried_;  // by block size
  std::optional<Found> best_;
};

/// Names of the schedules that come into question.
std::vector<std::string> AlgorithmsFor(const Spec& spec, uint32_t racks) {
  if (spec.algorithm != kAutoAlgorithm) return {spec.algorithm};
  std::vector<std::string> names;
  for (const Schedule* schedule : Schedules()) {
    if (schedule->NeedsWholeRacks() && racks < 2) continue;
    const std::string name(schedule->name());
    if (schedule->default_fanout() == 0) {
      names.push_back(name);
      continue;
    }
    for (const uint32_t fanout : kFanouts) {
      // With more than n - 1 it is the same as with n - 1.
      if (fanout < spec.nodes) names.push_back(fmt::format("{}={}", name, fanout));
    }
  }
  return names;
}

/// All candidates, the winner first.
class Contest {
 public:
  Contest(const Spec& spec, CostModel model) : spec_(spec), model_(std::move(model)) {}

  std::vector<Candidate> Run() && {
    for (const std::string& name : AlgorithmsFor(spec_, model_.racks())) Enter(name);
    // Promising ones first, so that hopeless ones are known as such.
    std::vector<size_t> order(entries_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return entries_[i].cost.seconds; });
    const double slack = spec_.nodes <= kExactNodesMax ? kHopeless : kRoughSlack;
    double best = std::numeric_limits<double>::infinity();
    for (const size_t i : order) {
      Candidate& entry = entries_[i];
      if (entry.cost.seconds > slack * best || model_.IsTooLarge(*FindAlgorithm(entry.algorithm)))
        continue;
      Count(entry, best);
      best = std::min(best, entry.cost.seconds);
    }
    std::ranges::stable_sort(entries_, {}, [](const Candidate& it) {
      return std::pair(it.is_rough, InSteps(it.cost.seconds));
    });
    return std::move(entries_);
  }

 private:
  /// In steps that rounding does not see, so that equals stay as they were.
  static int64_t InSteps(double seconds) {
    const double steps = std::log(seconds + std::numeric_limits<double>::min()) / kRoundingSlack;
    return std::isfinite(steps) ? std::llround(steps) : std::numeric_limits<int64_t>::max();
  }
  void Enter(const std::string& name) {
    const Algorithm algorithm = *FindAlgorithm(name);
    const Payload payload = BlockSearch(model_, spec_, algorithm).Guess();
    const ScheduleCost rough = {
        .rounds = algorithm.schedule->Rounds(model_.ExtentOf(algorithm, payload.blocks)),
        .seconds = model_.RoughSeconds(algorithm, payload)};
    entries_.push_back({.algorithm = name,
                        .block_bytes = payload.block_bytes,
                        .blocks = payload.blocks,
                        .cost = rough,
                        .is_rough = true});
  }
  void Count(Candidate& entry, double others_seconds) {
    const Payload guess = *MakePayload(*spec_.message_bytes, entry.block_bytes);
    BlockSearch search(model_, spec_, *FindAlgorithm(entry.algorithm));
    const BlockSearch::Found found = search.Run(guess, others_seconds);
    entry.block_bytes = found.payload.block_bytes;
    entry.blocks = found.payload.blocks;
    entry.cost = found.cost;
    entry.is_rough = false;
    entry.is_bounded = search.IsBounded(found.payload);
  }

  const Spec& spec_;
  CostModel model_;
  std::vector<Candidate> entries_;
};

/// What is wrong with `spec` whatever is chosen.
Status CheckFixed(const Spec& spec) {
  Spec fixed = spec;
  if (fixed.algorithm == kAutoAlgorithm) fixed.algorithm = ChainSchedule().name();
  if (fixed.choose_block_bytes) {
    fixed.choose_block_bytes = false;
    fixed.block_bytes = kMessageBytesMax;
  }
  return CheckSpec(fixed);
}

/// What most of the winner's time goes into.
std::string LimitOf(const ScheduleCost& cost) {
  if (cost.seconds == 0) return "";
  const double share = cost.shares[static_cast<size_t>(cost.largest_share())];
  return fmt::format(", {} of it for {}", Percent(share / cost.seconds),
                     Name(cost.largest_share()));
}

/// Why the first of `candidates` is it.
std::string Compare(const std::vector<Candidate>& candidates) {
  const Candidate& winner = candidates.front();
  const std::string time =
      WriteLatency(winner.seconds()) + (winner.plan_seconds ? ", of the plan timed"
                                        : winner.is_rough   ? ", by its rounds alone"
                                                            : LimitOf(winner.cost));
  if (candidates.size() == 1) return fmt::format("predicted time {}", time);
  const Candidate& next = candidates[1];
  if (winner.plan_seconds && !next.plan_seconds)
    return fmt::format("least predicted time, {}; no other is near", time);
  const double ratio = next.seconds() / winner.seconds() - 1;
  if (!(std::abs(ratio) >= kRoundingSlack))
    return fmt::format("least predicted time, {}; as {}, which is listed later", time,
                       next.algorithm);
  return fmt::format("least predicted time, {}; {} takes {}{} more", time, next.algorithm,
                     next.is_rough ? "about " : "", PercentMore(ratio));
}

std::string Describe(const Choice& choice, const Spec& asked) {
  if (asked.nodes == 1) return "one node: nothing is sent";
  std::string reason = Compare(choice.candidates);
  if (choice.winner().is_bounded)
    reason += "; more blocks might take less time, these are about the most that are tried";
  return reason;
}

/// Of connections that buffer.
Result<std::vector<Candidate>> CompeteAsStreams(const Spec& spec, StreamParameters parameters) {
  const NodeOrder order = OrderNodes(spec);
  const std::vector<uint32_t>& racks = order.rack_begin;
  if (spec.topology)
    parameters = ParametersFor(*spec.topology, order, *spec.message_bytes, parameters);
  std::vector<std::string> names = {spec.algorithm};
  if (spec.algorithm == kAutoAlgorithm) names = StreamAlgorithms(spec.nodes, racks.size());
  std::vector<StreamCandidate> streams;
  std::vector<Candidate> candidates;
  for (const std::string& name : names) {
    Result<StreamCandidate> stream = MakeStreamCandidate(name, spec.nodes);
    if (!stream.ok()) return stream.status();
    streams.push_back(*std::move(stream));
  }
  const uint64_t block_bytes = spec.choose_block_bytes ? 0 : spec.block_bytes;
  const auto find = [&](const std::vector<StreamCandidate>& among) {
    return ChooseStream(among, spec.nodes, *spec.message_bytes, block_bytes, parameters, racks);
  };
  for (const StreamCandidate& stream : streams) {
    const StreamChoice best = find({stream});
    const Payload payload = *MakePayload(*spec.message_bytes, best.block_bytes);
    Candidate& it = candidates.emplace_back();
    it.algorithm = stream.algorithm;
    it.block_bytes = best.block_bytes;
    it.blocks = payload.blocks;
    it.cost.rounds = stream.schedule->Rounds(
        {.nodes = spec.nodes, .blocks = payload.blocks, .racks = racks, .fanout = stream.fanout});
    const CostShare share = parameters.is_path_rate ? CostShare::kLinks : CostShare::kNodes;
    it.cost.seconds = it.cost.shares[static_cast<size_t>(share)] = best.seconds;
    it.ready = spec.ready;
    if (it.ready.automatic) it.ready = {.automatic = false, .ready = {.mode = ReadyMode::kBarrier}};
    it.send_window = spec.send_window;
    if (it.send_window.automatic) it.send_window = {.automatic = false, .window = {}};
  }
  // Which of near equals wins is for that to say.
  std::swap(candidates.front(), candidates[find(streams).candidate]);
  return candidates;
}

/// As a group does that leaves everything open; none: it carries it by a plan.
std::optional<double> ShortSeconds(const Spec& spec, const ChoiceOptions& options) {
  const bool is_open = spec.algorithm == kAutoAlgorithm && spec.choose_block_bytes;
  const uint64_t bytes = *spec.message_bytes;
  if (!options.streams || !is_open || spec.topology || spec.nodes < 2 ||
      bytes > options.short_bytes_max)
    return std::nullopt;
  std::vector<StreamCandidate> streams;
  for (const std::string& name : StreamAlgorithms(spec.nodes)) {
    Result<StreamCandidate> stream = MakeStreamCandidate(name, spec.nodes);
    if (stream.ok()) streams.push_back(*std::move(stream));
  }
  if (bytes > EagerMax(streams, spec.nodes, options.short_bytes_max, *options.streams))
    return std::nullopt;
  return EagerSeconds(spec.nodes, bytes, *options.streams);
}

/// What wins of what `spec` leaves open, and everything else, the winner first.
Result<std::vector<Candidate>> Compete(const Spec& spec, const ChoiceOptions& options) {
  if (options.streams && spec.nodes > 1) return CompeteAsStreams(spec, *options.streams);
  Result<Network> network = CostNetwork(spec, options.parameters);
  if (!network.ok()) return network.status();
  std::vector<Candidate> candidates =
      Contest(spec, CostModel(*std::move(network), OrderNodes(spec))).Run();
  if (!std::isfinite(candidates.front().cost.seconds)) {
    return Rejected(
        "rates are too low or latencies too long for a prediction: it is beyond all numbers",
        spec.topology ? "/topology" : "");
  }
  for (Candidate& it : candidates) {
    it.ready = spec.ready;
    it.send_window = spec.send_window;
  }
  if (options.timer && spec.nodes > 1 && spec.nodes <= kTimedNodesMax)
    TimePlans(spec, options.timer, BlocksMax(spec.nodes), &candidates);
  return candidates;
}

}  // namespace

uint64_t RoundUpBlock(uint64_t bytes) {
  const uint64_t unit = std::clamp<uint64_t>(std::bit_floor(bytes / 64), 1, kPage);
  return (bytes - 1) / unit * unit + unit;
}

double BestBlockCount(double bytes, double rate, double r0, double r1, double round_seconds) {
  if (r0 <= 0 || bytes <= 0) return 1;
  if (round_seconds <= 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(bytes * r0 / (rate * r1 * round_seconds));
}

Spec OpenSpec() {
  Spec spec;
  spec.algorithm = kAutoAlgorithm;
  spec.choose_block_bytes = true;
  return spec;
}

bool IsAutomatic(const Spec& spec) {
  return spec.algorithm == kAutoAlgorithm || spec.choose_block_bytes;
}

Result<Choice> Choose(const Spec& spec, const ChoiceOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckFixed(spec));
  Choice choice;
  Spec asked = spec;
  choice.rule = options.rules.Apply(&asked);
  if (choice.rule) {
    if (const Status status = CheckFixed(asked); !status.ok()) {
      // Among the settings of a rule only these are keys of its own.
      const bool is_key = status.where() == "/block_bytes" || status.where() == "/algorithm";
      return Rejected(status.message(), fmt::format("rules {}: /rules/{}{}", options.rules.name,
                                                    *choice.rule, is_key ? status.where() : ""));
    }
  }
  Result<std::vector<Candidate>> candidates = Compete(asked, options);
  if (!candidates.ok()) return candidates.status();
  choice.candidates = *std::move(candidates);
  choice.reason = Describe(choice, asked);
  choice.short_seconds = ShortSeconds(asked, options);
  if (choice.rule) {
    choice.reason =
        fmt::format("{}: /rules/{} says {}; {}", options.rules.name, *choice.rule,
                    options.rules.rules[*choice.rule].For(spec).Describe(), choice.reason);
    if (options.weighs_rule) {
      candidates = Compete(spec, options);
      if (!candidates.ok()) return candidates.status();
      choice.unpinned = candidates->front();
    }
  }
  return choice;
}

Spec Resolve(Spec spec, const Choice& choice) {
  spec.algorithm = choice.winner().algorithm;
  spec.block_bytes = choice.winner().block_bytes;
  spec.choose_block_bytes = false;
  spec.ready = choice.winner().ready;
  spec.send_window = choice.winner().send_window;
  return spec;
}

}  // namespace prepost
