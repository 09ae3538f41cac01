// SPDX-License-Identifier: Apache-2.0
//
// Ends that receive come first, then the CPU, last ends that send. The CPU's entries stand in the
// order of its program: each waits for the last completion that the send needs, and posts it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/channel_ends.h"
#include "runtime/executor/program.h"
#include "viz/queues/queue_contents.h"

namespace prepost::viz {
namespace {

std::string EndTitle(const Plan& plan, const ChannelEnd& end) {
  const Channel& channel = plan.channels()[end.channel.index()];
  return fmt::format("{}>{} {}", channel.from.value, channel.to.value, Name(channel.lane));
}

}  // namespace

std::vector<DrawnQueue> QueuesOfCpu(const Plan& plan, const Selection& selection, NodeId node) {
  const ShownOps shown(plan, node, selection);
  const ChannelEnds ends(plan, node);
  std::vector<DrawnQueue> queues;
  std::map<uint32_t, size_t> queue_of;  // by end
  const auto add_ends = [&](bool is_send) {
    for (uint32_t i = 0; i < ends.size(); ++i) {
      if (ends[i].is_send != is_send) continue;
      queue_of[i] = queues.size();
      DrawnQueue& queue = queues.emplace_back();
      queue.title = EndTitle(plan, ends[i]);
      queue.detail = is_send ? "sends" : "receives";
      queue.stack = is_send ? DrawnQueue::Stack::kSends : DrawnQueue::Stack::kReceives;
      for (const OpId op : ends[i].ops) {
        queue.entries.push_back({.css_class = is_send ? "send" : "recv",
                                 .what = fmt::format("{} (op {})", shown.Name(op), op.value),
                                 .detail = "its completion wakes the CPU",
                                 .shown = shown.Has(op),
                                 .op = op});
      }
    }
  };
  const auto place_of = [&](OpId op) {
    const ChannelEnds::Place place = ends.PlaceOf(op);
    return QueuePlace{.queue = queue_of.at(place.end), .index = place.position};
  };
  add_ends(/*is_send=*/false);
  const size_t cpu = queues.size();
  queues.push_back({.title = "the CPU", .detail = "posts, in an order that time decides"});
  add_ends(/*is_send=*/true);
  const std::span<const Op> ops = plan.ops(ProgramOf(plan, node));
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].is_send()) continue;
    const OpId id = OpId::FromIndex(i);
    const auto after = plan.after(ops[i]);
    DrawnEntry entry{.css_class = "host",
                     .what = fmt::format("post {}", shown.Name(id)),
                     .detail = "at the start",
                     .shown = shown.Has(id),
                     .op = id,
                     .enables = place_of(id)};
    if (!after.empty()) {
      const OpId last = *std::ranges::max_element(after, {}, &OpId::value);
      entry.detail =
          fmt::format("after {}{}", shown.Name(last),
                      after.size() == 1 ? "" : fmt::format(" and {} more", after.size() - 1));
      entry.waits_for = place_of(last);
    }
    queues[cpu].entries.push_back(std::move(entry));
  }
  return queues;
}

}  // namespace prepost::viz
