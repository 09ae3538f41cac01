// SPDX-License-Identifier: Apache-2.0
//
// Without credits and windows a schedule's rounds overlap, so that blocks can be several times
// smaller than rounds that wait for each other want them. So plans without are begun with in four
// times more blocks, too. From the better size the search doubles and halves the number of blocks
// while that helps; the winner's is then tried in steps of the square root of two.
//
// Example, 32 nodes, 4 MiB, 400 Gb/s: by rounds the circulant wants 13 blocks. In these it takes
// 140 us with window=1, and 224 without credits; but without them 127 in 52 blocks, and 108 in 104.
//
// A plan of more blocks than are timed is timed in as many as are, and in half of them: with
// blocks of one size a schedule goes on as it began, so that further blocks take as much each. When
// it does is another matter: in crowded networks queues grow for a while, and two schedules
// (scatter_allgather, rack_circulant) depend on the number of blocks, or have periods of many. The
// search is content with short plans; what is reported is timed in plans twice as long, and again,
// until two in a row foretell the same.
#include "compiler/choice/plan_timing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>
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
/// The second setting of a schedule is tried if it takes with the first at most so many times as
/// long as the best so far.
constexpr double kEnterSlack = 3;
/// At its first block size at most so many times as long as the best: other sizes change less.
constexpr double kSearchSlack = 1.4;
/// Of the two settings of one schedule the worse at its first block sizes is tried in others if it
/// takes at most so many times as long.
constexpr double kSettingSlack = 1.1;
/// What nodes that need not keep step are begun with: so many times more blocks.
constexpr double kFreeBlocks = 4;
/// Of the two settings of one schedule the one that the search finds worse is reported on if it
/// takes at most so many times as long by short plans.
constexpr double kRetimedSlack = 1.05;
/// Transfers of a plan while the search goes on.
constexpr uint64_t kSearchTransfersMax = uint64_t{1} << 12;
/// Two plans foretell the same if they differ by less.
constexpr double kForetoldSlack = 0.003;
/// Times that differ by less are equal; the plan with fewer blocks, or the earlier, is taken.
constexpr double kTimeWorth = 0.995;

/// A way to keep nodes in step, or not.
struct Setting {
  SpecReady ready;
  SpecSendWindow send_window;
};

/// Whether that is what `candidate` has.
bool IsSame(const Setting& setting, const Candidate& candidate) {
  return setting.ready == candidate.ready && setting.send_window == candidate.send_window;
}

/// What is tried for `spec`: the rule's first, last what keeps nodes in step least.
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

  /// A plan that was timed, with what it has of readiness and windows.
  struct TimedPlan {
    Setting setting = {};
    std::optional<double> seconds = {};  ///< none: it cannot be run
  };

  /// A candidate with a setting.
  struct Entrant {
    size_t candidate = 0;
    Setting setting;
    Candidate best;                 ///< with plan_seconds if any of its plans could be timed
    std::set<uint64_t> tried = {};  ///< block sizes
    std::map<std::pair<uint64_t, uint64_t>, TimedPlan> timed = {};  ///< by block size and message
    bool is_behind = false;  ///< far behind the same schedule with the other setting
  };

  /// `free`: what keeps nodes in step least, which may be `setting`.
  Entrant Enter(const std::vector<Candidate>& candidates, size_t i, const Setting& setting,
                const Setting& free) {
    Entrant it = {.candidate = i, .setting = setting, .best = candidates[i]};
    if (&setting != &free || !spec_.choose_block_bytes) Try(candidates[i].block_bytes, &it);
    if (spec_.choose_block_bytes && (&setting == &free || IsSame(free, it.best)))
      TryBlocks(candidates[i].blocks * kFreeBlocks, &it);
    // A device may not hold the receives of so many.
    if (!it.best.plan_seconds) Try(candidates[i].block_bytes, &it);
    return it;
  }

  /// From now on plans are as long as it takes.
  void Lengthen() { is_thorough_ = true; }

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
    if (!it->tried.insert(block_bytes).second) return;
    Spec spec = spec_;
    spec.algorithm = it->best.algorithm;
    spec.choose_block_bytes = false;
    spec.block_bytes = block_bytes;
    spec.ready = it->setting.ready;
    spec.send_window = it->setting.send_window;
    const Result<Payload> payload = MakePayload(*spec.message_bytes, block_bytes);
    if (!payload.ok()) return;
    Candidate found = it->best;
    found.block_bytes = block_bytes;
    found.blocks = payload->blocks;
    const Algorithm algorithm = *FindAlgorithm(spec.algorithm);
    found.cost.rounds = algorithm.schedule->Rounds({.nodes = spec.nodes,
                                                    .blocks = found.blocks,
                                                    .racks = order_.rack_begin,
                                                    .fanout = algorithm.fanout});
    found.plan_seconds = SecondsOf(spec, it, &found);
    if (!found.plan_seconds) return;
    found.is_rough = false;
    const double worth = found.blocks > it->best.blocks ? kTimeWorth : 1;
    if (!it->best.plan_seconds || *found.plan_seconds < worth * *it->best.plan_seconds)
      it->best = std::move(found);
  }

  /// Of all blocks, or extrapolated; none if it cannot be run. Also what the plan has of readiness
  /// and windows.
  std::optional<double> SecondsOf(const Spec& spec, Entrant* it, Candidate* found) const {
    const uint64_t receivers = spec.nodes - 1;
    const auto blocks_of = [&](uint64_t transfers) {
      return std::bit_floor(std::max<uint64_t>(transfers / receivers, kTimedBlocksMin));
    };
    const uint64_t search_most = blocks_of(kSearchTransfersMax);
    const uint64_t most = is_thorough_ ? blocks_of(kTimedTransfersMax) : search_most;
    std::optional<double> foretold;
    for (uint64_t blocks = is_thorough_ ? search_most / 2 : search_most;; blocks *= 2) {
      if (found->blocks <= std::max(blocks, search_most))
        return Timed(spec, *spec.message_bytes, it, found);
      const uint64_t bytes = blocks * spec.block_bytes;
      const std::optional<double> shorter = Timed(spec, bytes / 2, it, found);
      if (!shorter) return std::nullopt;
      const std::optional<double> longer = Timed(spec, bytes, it, found);
      if (!longer) return std::nullopt;
      const auto more = static_cast<double>(*spec.message_bytes - bytes);
      const double seconds =
          *longer + (*longer - *shorter) * more / (static_cast<double>(bytes) / 2);
      if (blocks == most) return seconds;
      if (foretold && std::abs(seconds / *foretold - 1) < kForetoldSlack) return seconds;
      foretold = seconds;
    }
  }

  /// Of the first `bytes` of the message.
  std::optional<double> Timed(const Spec& spec, uint64_t bytes, Entrant* it,
                              Candidate* found) const {
    const auto [place, is_new] = it->timed.try_emplace({spec.block_bytes, bytes}, TimedPlan{});
    TimedPlan& timed = place->second;
    if (is_new) {
      Spec part = spec;
      part.message_bytes = bytes;
      const Result<VerifiedPlan> plan = Compile(part);
      if (!plan.ok()) return std::nullopt;
      timed.setting = {{.automatic = false, .ready = plan->header().ready},
                       {.automatic = false, .window = plan->header().send_window}};
      const Result<double> seconds = timer_(*plan, found->blocks);
      if (seconds.ok()) timed.seconds = *seconds;
    }
    found->ready = timed.setting.ready;
    found->send_window = timed.setting.send_window;
    return timed.seconds;
  }

  const Spec& spec_;
  const PlanTimer& timer_;
  const uint32_t blocks_max_;
  const NodeOrder order_;
  bool is_thorough_ = false;
};

double SecondsOf(const Search::Entrant& it) {
  return it.best.plan_seconds.value_or(std::numeric_limits<double>::infinity());
}

/// Times what is reported on: each schedule with its better setting, or both if they are near.
void TimeThoroughly(Search* search, size_t candidates, std::vector<Search::Entrant>* entrants) {
  std::vector<double> least(candidates, std::numeric_limits<double>::infinity());
  for (const Search::Entrant& it : *entrants)
    least[it.candidate] = std::min(least[it.candidate], SecondsOf(it));
  search->Lengthen();
  for (Search::Entrant& it : *entrants) {
    if (SecondsOf(it) <= kRetimedSlack * least[it.candidate]) {
      search->TimeAgain(&it);
    } else {
      it.best.plan_seconds.reset();
    }
  }
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
      if (own != 0 && SecondsOf(entrants.back()) > kEnterSlack * best) continue;
      entrants.push_back(search.Enter(*candidates, i, setting, settings.back()));
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
  TimeThoroughly(&search, candidates->size(), &entrants);
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
