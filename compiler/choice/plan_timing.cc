// SPDX-License-Identifier: Apache-2.0
//
// Without credits and windows a schedule's rounds overlap, so that blocks can be several times
// smaller than rounds that wait for each other want them. From the block size that suits the rounds
// the search therefore doubles and halves the number of blocks while that helps; the winner's is then
// tried in steps of the square root of two. The search is content with short plans; those that end up
// close to each other are timed again in longer ones.
//
// Example, 16 nodes, 16 MiB, 400 Gb/s: by rounds the binomial pipeline in 20 blocks, 441 us, is best.
// Preposted it takes 427 us with window=1, and the two trees without credits, in 256 blocks, 348.
//
// A plan of more blocks than are timed is timed in as many as are, and in half of them: with
// blocks of one size a schedule goes on as it began, so that further blocks take as much each.
#include "compiler/choice/plan_timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "compiler/choice/choice.h"
#include "compiler/compile.h"
#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"

namespace prepost {
namespace {

/// By rounds at most so many times as long as the best: window and credits change less.
constexpr double kRoundsSlack = 4;
/// So many schedules are timed at most; in large groups, where a plan takes long, fewer.
constexpr size_t kTimedMax = 12;
constexpr size_t kTimedMaxOfLarge = 4;
constexpr uint32_t kLargeNodes = 128;
/// Of those in large groups so many, with their settings, are tried in blocks of other sizes.
constexpr size_t kSearchedMaxOfLarge = 2;
/// At its first block size at most so many times as long as the best: other sizes change less.
constexpr double kSearchSlack = 1.7;
/// Of the two settings of one schedule the worse at its first block size is tried in others if it
/// takes at most so many times as long.
constexpr double kSettingSlack = 1.1;
/// The best, and those that take at most so many times as long, are timed in longer plans.
constexpr double kRetimedSlack = 1.03;
constexpr size_t kRetimedMax = 3;
/// Transfers of a plan while the search goes on.
constexpr uint64_t kSearchTransfersMax = kTimedTransfersMax / 4;
/// Times that differ by less are equal; the plan with fewer blocks, or the earlier, is taken.
constexpr double kTimeWorth = 0.995;

/// A way to keep nodes in step, or not.
struct Setting {
  SpecReady ready;
  SpecSendWindow send_window;
};

/// What is tried for `spec`: the rule's first.
std::vector<Setting> SettingsFor(const Spec& spec) {
  std::vector<Setting> settings = {{spec.ready, spec.send_window}};
  if (!spec.ready.automatic && !spec.send_window.automatic) return settings;
  Setting free = settings.front();
  if (free.ready.automatic)
    free.ready = {.automatic = false, .ready = {.mode = ReadyMode::kBarrier}};
  if (free.send_window.automatic) free.send_window = {.automatic = false, .window = {}};
  settings.push_back(free);
  return settings;
}

class Search {
 public:
  Search(const Spec& spec, const PlanTimer& timer, uint32_t blocks_max)
      : spec_(spec), timer_(timer), blocks_max_(blocks_max), order_(OrderNodes(spec)) {}

  /// A candidate with a setting.
  struct Entrant {
    size_t candidate = 0;
    Setting setting;
    Candidate best;  ///< with plan_seconds if any of its plans could be timed
    std::map<uint64_t, double> tried = {};  ///< seconds by block size
    bool is_behind = false;                 ///< far behind the same schedule with the other setting
  };

  Entrant Enter(const std::vector<Candidate>& candidates, size_t i, const Setting& setting) {
    Entrant it = {.candidate = i, .setting = setting, .best = candidates[i]};
    Try(candidates[i].block_bytes, &it);
    return it;
  }

  /// From now on plans are as long as may be.
  void Lengthen() { transfers_max_ = kTimedTransfersMax; }

  /// In the block size that was found best.
  void TimeAgain(Entrant* it) {
    it->tried.clear();
    it->best.plan_seconds.reset();
    Try(it->best.block_bytes, it);
  }

  void Double(Entrant* it) {
    if (!spec_.choose_block_bytes || !it->best.plan_seconds) return;
    for (const double factor : {2.0, 0.5}) {
      for (bool moved = true; moved;) {
        const uint64_t from = it->best.block_bytes;
        TryBlocks(it->best.blocks * factor, it);
        moved = it->best.block_bytes != from;
      }
    }
  }

  void Refine(Entrant* it) {
    if (!spec_.choose_block_bytes || !it->best.plan_seconds) return;
    const double from = it->best.blocks;
    for (const double factor : {std::numbers::sqrt2, 1 / std::numbers::sqrt2})
      TryBlocks(from * factor, it);
  }

 private:
  void TryBlocks(double blocks, Entrant* it) {
    const auto most = static_cast<double>(std::max(blocks_max_, 1u));
    const auto count = static_cast<uint64_t>(std::clamp(std::round(blocks), 1.0, most));
    const uint64_t bytes = std::max<uint64_t>(*spec_.message_bytes, 1);
    Try(RoundUpBlock((bytes - 1) / count + 1), it);
  }

  void Try(uint64_t block_bytes, Entrant* it) {
    const auto [place, is_new] = it->tried.try_emplace(block_bytes);
    if (!is_new) return;
    Spec spec = spec_;
    spec.algorithm = it->best.algorithm;
    spec.choose_block_bytes = false;
    spec.block_bytes = block_bytes;
    spec.ready = it->setting.ready;
    spec.send_window = it->setting.send_window;
    const Result<Message> message = MakeMessage(*spec.message_bytes, block_bytes);
    if (!message.ok()) return;
    Candidate found = it->best;
    found.block_bytes = block_bytes;
    found.blocks = message->blocks;
    const Algorithm algorithm = *FindAlgorithm(spec.algorithm);
    found.cost.rounds = algorithm.schedule->Rounds({.nodes = spec.nodes,
                                                    .blocks = found.blocks,
                                                    .racks = order_.rack_begin,
                                                    .fanout = algorithm.fanout});
    found.plan_seconds = SecondsOf(spec, &found);
    if (!found.plan_seconds) return;
    found.is_rough = false;
    place->second = *found.plan_seconds;
    const double worth = found.blocks > it->best.blocks ? kTimeWorth : 1;
    if (!it->best.plan_seconds || *found.plan_seconds < worth * *it->best.plan_seconds)
      it->best = std::move(found);
  }

  /// Of all blocks, or extrapolated; none if it cannot be run. Also what the plan has of readiness
  /// and windows.
  std::optional<double> SecondsOf(const Spec& spec, Candidate* found) const {
    const uint64_t receivers = spec.nodes - 1;
    const auto most =
        static_cast<uint32_t>(std::max<uint64_t>(transfers_max_ / receivers, kTimedBlocksMin));
    if (found->blocks <= most) return Timed(spec, found);
    const auto timed = [&](uint32_t blocks) {
      Spec part = spec;
      part.message_bytes = blocks * spec.block_bytes;
      return Timed(part, found);
    };
    const std::optional<double> half = timed(most / 2);
    if (!half) return std::nullopt;
    const std::optional<double> whole = timed(most / 2 * 2);
    if (!whole) return std::nullopt;
    const double each = (*whole - *half) / (most / 2);
    return *whole + each * (found->blocks - most / 2 * 2);
  }

  std::optional<double> Timed(const Spec& spec, Candidate* found) const {
    const Result<VerifiedPlan> plan = Compile(spec);
    if (!plan.ok()) return std::nullopt;
    found->ready = {.automatic = false, .ready = plan->header().ready};
    found->send_window = {.automatic = false, .window = plan->header().send_window};
    const Result<double> seconds = timer_(*plan, found->blocks);
    if (!seconds.ok()) return std::nullopt;
    return *seconds;
  }

  const Spec& spec_;
  const PlanTimer& timer_;
  const uint32_t blocks_max_;
  const NodeOrder order_;
  uint64_t transfers_max_ = kSearchTransfersMax;
};

bool IsSame(const Setting& setting, const Candidate& candidate) {
  return setting.ready == candidate.ready && setting.send_window == candidate.send_window;
}

double SecondsOf(const Search::Entrant& it) {
  return it.best.plan_seconds.value_or(std::numeric_limits<double>::infinity());
}

}  // namespace

void TimePlans(const Spec& spec, const PlanTimer& timer, uint32_t blocks_max,
               std::vector<Candidate>* candidates) {
  Search search(spec, timer, blocks_max);
  std::vector<Search::Entrant> entrants;
  const std::vector<Setting> settings = SettingsFor(spec);
  const size_t most = spec.nodes < kLargeNodes ? kTimedMax : kTimedMaxOfLarge;
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0, timed = 0; i < candidates->size() && timed < most; ++i) {
    if ((*candidates)[i].cost.seconds > kRoundsSlack * candidates->front().cost.seconds) continue;
    ++timed;
    size_t own = 0;
    for (const Setting& setting : settings) {
      // Where the rule asks for neither credits nor a window, both are one.
      if (own != 0 && IsSame(setting, entrants.back().best)) continue;
      entrants.push_back(search.Enter(*candidates, i, setting));
      best = std::min(best, SecondsOf(entrants.back()));
      ++own;
    }
    if (own < 2) continue;
    Search::Entrant& a = entrants[entrants.size() - 2];
    Search::Entrant& b = entrants.back();
    a.is_behind = SecondsOf(a) > kSettingSlack * SecondsOf(b);
    b.is_behind = SecondsOf(b) > kSettingSlack * SecondsOf(a);
  }
  std::ranges::stable_sort(entrants, {}, SecondsOf);
  const size_t searched = spec.nodes < kLargeNodes ? entrants.size() : kSearchedMaxOfLarge;
  for (size_t i = 0; i < std::min(entrants.size(), searched); ++i) {
    if (SecondsOf(entrants[i]) > kSearchSlack * best) break;
    if (entrants[i].is_behind) continue;
    search.Double(&entrants[i]);
    best = std::min(best, SecondsOf(entrants[i]));
  }
  std::ranges::stable_sort(entrants, {}, SecondsOf);
  search.Lengthen();
  for (size_t i = 0; i < std::min(entrants.size(), kRetimedMax); ++i) {
    if (SecondsOf(entrants[i]) <= kRetimedSlack * best) search.TimeAgain(&entrants[i]);
  }
  const auto winner = std::ranges::min_element(entrants, {}, SecondsOf);
  if (winner == entrants.end() || !winner->best.plan_seconds) return;
  search.Refine(&*winner);
  for (const Search::Entrant& it : entrants) {
    Candidate& candidate = (*candidates)[it.candidate];
    if (!it.best.plan_seconds) continue;
    if (candidate.plan_seconds && *it.best.plan_seconds >= *candidate.plan_seconds) continue;
    const bool is_bounded = it.best.blocks > blocks_max - blocks_max / 16;
    candidate = it.best;
    candidate.is_bounded = is_bounded && spec.choose_block_bytes;
  }
  std::ranges::stable_sort(*candidates, [](const Candidate& a, const Candidate& b) {
    if (a.plan_seconds.has_value() != b.plan_seconds.has_value()) return a.plan_seconds.has_value();
    return a.plan_seconds && *a.plan_seconds < *b.plan_seconds;
  });
}

}  // namespace prepost
