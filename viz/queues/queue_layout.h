// SPDX-License-Identifier: Apache-2.0
//
// LayOutQueues: where the boxes of the queue picture stand in its columns, and where arrows run
// between them. It knows neither what executes the queues (queue_contents.h) nor how to draw
// (queues.cc).
#ifndef PREPOST_VIZ_QUEUES_QUEUE_LAYOUT_H_
#define PREPOST_VIZ_QUEUES_QUEUE_LAYOUT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ids.h"
#include "viz/queues/routes.h"

namespace prepost::viz {

inline constexpr int kQueueBoxHeight = 32;
inline constexpr int kQueueGapHeight = kRouteGrid;  ///< of a note on what is left out
inline constexpr int kQueueSpace = 2 * kRouteGrid - kQueueBoxHeight;

/// Where an entry is: its queue and its index there.
struct QueuePlace {
  size_t queue = 0;
  size_t index = 0;

  auto operator<=>(const QueuePlace&) const = default;
};

struct DrawnEntry {
  std::string_view css_class;
  std::string what;         ///< "WAIT CQ 1 until CQE 0"
  std::string detail;       ///< "for recv b0 from 0"
  std::string fields = {};  ///< "SEND_IMM imm 00000000 [0, 1048576) signaled", or none
  bool shown = true;
  std::optional<OpId> op = {};  ///< that it is of, or that it was made for
  std::optional<QueuePlace> waits_for;
  std::optional<QueuePlace> enables;  ///< up to there
  size_t rearm = 0;                   ///< the one that writes it, noted above; 0: noted nowhere
  int y = 0;                          ///< below the top of the columns
};

struct DrawnQueue {
  std::string title;   ///< "QP 1<>2 blocks"
  std::string detail;  ///< "send queue, CQ 3"
  std::vector<DrawnEntry> entries;
  /// Queues of the same one stand below each other, but those of the first.
  enum class Stack : uint8_t { kNone, kReceives, kManaged, kCounters, kSends };
  Stack stack = Stack::kNone;
  bool drawn = true;  ///< an entry is shown
  size_t ring = 0;    ///< of a queue that is written in parts; 0: it fits
  int width = 0;      ///< needed
  int height = 0;     ///< needed, with the title
  int y = 0;          ///< below the top of the columns
  size_t column = 0;
};

/// "re-arm 2: once WQE 23 has completed", above an entry.
std::string RearmNote(const DrawnQueue& queue, size_t rearm);

struct QueueLayout {
  std::vector<DrawnQueue> queues;
  std::vector<int> widths;  ///< of columns
  int height = 0;           ///< of the columns
  size_t shown = 0;         ///< entries
  size_t entries = 0;
  size_t empty = 0;                 ///< queues none of whose entries is shown: not drawn
  std::vector<QueuePlace> sources;  ///< of `arrows`, by route
  std::optional<Routes> arrows;     ///< always there
  size_t arrows_left_out = 0;       ///< all of them, when they are too many
};

QueueLayout LayOutQueues(std::vector<DrawnQueue> queues);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_QUEUES_QUEUE_LAYOUT_H_
