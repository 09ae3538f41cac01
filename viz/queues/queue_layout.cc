// SPDX-License-Identifier: Apache-2.0
//
// Queues stand in columns, in their order; short ones of a kind below each other. An arrow runs to
// a box from what it waits for, when both are drawn and there are not too many arrows.
//
//   QP 1<>0 blocks       QP 1<>2 blocks
//   receive queue, CQ 1 send queue, CQ 2
//   [RECV b0 from 0]    [WAIT CQ 1 until CQE 0]
//   [CQE 0 of CQ 1 ]--->[for recv b0 from 0   ]
//                       [SEND b0 to 2         ]
#include "viz/queues/queue_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "viz/queues/queues.h"
#include "viz/svg/chart.h"

namespace prepost::viz {
namespace {

constexpr int kQueueTitleHeight = 2 * kRouteGrid;
constexpr int kBoxWidthMin = 150;

/// How often a queue is written to again before entry `index` is there.
size_t RearmOf(const DrawnQueue& queue, size_t index) {
  return queue.ring == 0 || index < queue.ring ? 0 : (index - queue.ring) / (queue.ring / 2) + 1;
}

class Placement {
 public:
  explicit Placement(std::vector<DrawnQueue> queues) { layout_.queues = std::move(queues); }

  QueueLayout Make() && {
    PlaceQueues();
    MakeArrows();
    return std::move(layout_);
  }

 private:
  void PlaceQueues();
  void MakeArrows();
  void Measure(DrawnQueue& queue);
  static void PlaceEntries(DrawnQueue& queue);

  QueueLayout layout_;
};

/// Counts entries, and says which notes and how much room the queue needs.
void Placement::Measure(DrawnQueue& queue) {
  double text = std::max(TextWidth(queue.title, 14), TextWidth(queue.detail, 12));
  queue.drawn = false;
  size_t rearm = 0;  // of the entry shown before
  for (size_t i = 0; i < queue.entries.size(); ++i) {
    DrawnEntry& entry = queue.entries[i];
    ++layout_.entries;
    if (!entry.shown) continue;
    ++layout_.shown;
    queue.drawn = true;
    if (RearmOf(queue, i) != rearm) {
      rearm = entry.rearm = RearmOf(queue, i);
      text = std::max(text, TextWidth(RearmNote(queue, rearm), 11));
    }
    text = std::max({text, TextWidth(entry.what, 11.5) + 34, TextWidth(entry.detail, 11) + 34});
  }
  queue.width = std::max(kBoxWidthMin, static_cast<int>(std::ceil(text)) + 8);
}

/// For a queue whose `y` is 0.
void Placement::PlaceEntries(DrawnQueue& queue) {
  int y = kQueueTitleHeight;
  bool gap = false;
  for (DrawnEntry& entry : queue.entries) {
    if (entry.rearm != 0) y += kQueueGapHeight;
    entry.y = y;  // of a gap: read at its first entry only
    if (entry.shown) {
      y += kQueueBoxHeight + kQueueSpace;
    } else if (!gap) {
      y += kQueueGapHeight;
    }
    gap = !entry.shown;
  }
  queue.height = y;
}

/// Several queues of a stack share a column, as long as they are no higher together than the
/// highest of those that stand alone.
void Placement::PlaceQueues() {
  int highest = 0;
  for (DrawnQueue& queue : layout_.queues) {
    Measure(queue);
    PlaceEntries(queue);
    if (!queue.drawn) ++layout_.empty;
    if (queue.drawn && queue.stack == DrawnQueue::Stack::kNone)
      highest = std::max(highest, queue.height);
  }
  std::vector<int>& widths = layout_.widths;
  int y = 0;
  const DrawnQueue* above = nullptr;
  for (DrawnQueue& queue : layout_.queues) {
    if (!queue.drawn) continue;
    const bool may_share =
        above != nullptr && queue.stack != DrawnQueue::Stack::kNone && queue.stack == above->stack;
    above = &queue;
    if (!may_share || y + queue.height > highest) {
      widths.push_back(0);
      y = 0;
    }
    queue.column = widths.size() - 1;
    queue.y = y;
    for (DrawnEntry& entry : queue.entries) entry.y += y;
    widths.back() = std::max(widths.back(), queue.width);
    y += queue.height;
    layout_.height = std::max(layout_.height, y);
  }
}

void Placement::MakeArrows() {
  const size_t columns = layout_.widths.size();
  std::map<QueuePlace, std::vector<RouteEnd>> ends;  // by source
  size_t arrows = 0;
  const auto add = [&](QueuePlace from, QueuePlace to) {
    const DrawnEntry& entry = layout_.queues[to.queue].entries[to.index];
    if (!entry.shown || !layout_.queues[from.queue].entries[from.index].shown) return;
    ends[from].push_back({.column = layout_.queues[to.queue].column, .y = entry.y});
    ++arrows;
  };
  for (size_t queue = 0; queue < layout_.queues.size(); ++queue) {
    for (size_t i = 0; i < layout_.queues[queue].entries.size(); ++i) {
      const DrawnEntry& entry = layout_.queues[queue].entries[i];
      if (entry.waits_for) add(*entry.waits_for, {.queue = queue, .index = i});
      if (entry.enables) add({.queue = queue, .index = i}, *entry.enables);
    }
  }
  std::vector<Route> routes;
  for (auto& [place, to] : ends) {
    const DrawnQueue& queue = layout_.queues[place.queue];
    layout_.sources.push_back(place);
    routes.push_back(
        {.from = {.column = queue.column, .y = queue.entries[place.index].y}, .to = std::move(to)});
  }
  layout_.arrows.emplace(std::move(routes), columns);
  if (layout_.arrows->most() <= kArrowsSideBySideMax) return;
  layout_.arrows_left_out = arrows;
  layout_.arrows.emplace(std::vector<Route>(), columns);
}

}  // namespace

std::string RearmNote(const DrawnQueue& queue, size_t rearm) {
  return fmt::format("re-arm {}: once WQE {} has completed", rearm, rearm * (queue.ring / 2) - 1);
}

QueueLayout LayOutQueues(std::vector<DrawnQueue> queues) {
  return Placement(std::move(queues)).Make();
}

}  // namespace prepost::viz
