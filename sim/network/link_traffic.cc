// SPDX-License-Identifier: Apache-2.0
#include "sim/network/link_traffic.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace prepost::sim {

LinkTraffic::LinkTraffic(const TimeTrail& trail, const Network& network)
    : trail_(trail),
      network_(network),
      row_(network),
      has_duplex_(network.CountOf(ResourceKind::kNodeBoth) != 0),
      uses_(row_.size()) {
  for (MessageId id = 0; id < trail.messages().size(); ++id) {
    const TimedMessage& it = trail.messages()[id];
    if (it.left <= it.departed) continue;  // no time on links, or not sent
    for (const size_t link : LinksOf(it))
      uses_[link].push_back({.begin = it.departed, .end = it.left, .message = id});
  }
  for (std::vector<Use>& uses : uses_) {
    std::ranges::sort(uses, {}, [](const Use& it) { return std::tuple(it.begin, it.message); });
    Picoseconds latest = 0;
    for (Use& it : uses) it.latest = latest = std::max(latest, it.end);
  }
}

std::vector<size_t> LinkTraffic::LinksOf(const TimedMessage& message) const {
  const NodeId from = trail_.HostOf(message.group, message.from);
  const NodeId to = trail_.HostOf(message.group, message.to);
  std::vector<size_t> links;
  network_.ForEachOnWay(from, to, [&](Resource resource) {
    if (resource.kind != ResourceKind::kCore || network_.core_rate)
      links.push_back(row_.At(resource));
  });
  if (has_duplex_) {
    links.push_back(row_.At({ResourceKind::kNodeBoth, from.value}));
    links.push_back(row_.At({ResourceKind::kNodeBoth, to.value}));
  }
  return links;
}

double LinkTraffic::RateOf(size_t link) const { return network_.RateOf(row_.Of(link)); }

double LinkTraffic::BytesOf(const TimedMessage& message) const {
  const Payload& it = trail_.plan(message.group).header().payload;
  const uint64_t bytes = message.block == kNoBlock ? 0 : it.BlockSize(message.block);
  return static_cast<double>(bytes + trail_.costs().message_overhead_bytes);
}

/// On one link, while the message was on it.
LinkTraffic::Bytes LinkTraffic::Meanwhile(size_t link, const TimedMessage& message) const {
  const std::vector<Use>& uses = uses_[link];
  Bytes bytes;
  auto it = std::ranges::lower_bound(uses, message.left, {}, &Use::begin);
  while (it != uses.begin() && (--it)->latest > message.departed) {
    const Picoseconds both =
        std::min(it->end, message.left) - std::max(it->begin, message.departed);
    if (both <= 0) continue;
    const TimedMessage& other = trail_.messages()[it->message];
    const double part = BytesOf(other) * static_cast<double>(both) /
                        static_cast<double>(other.left - other.departed);
    (other.group == message.group ? bytes.own : bytes.others) += part;
  }
  return bytes;
}

Picoseconds LinkTraffic::OfOtherGroups(MessageId id, Picoseconds time) const {
  const TimedMessage& message = trail_.messages()[id];
  if (message.left <= message.departed) return 0;
  Bytes most;
  double used = -1;
  for (const size_t link : LinksOf(message)) {
    const Bytes bytes = Meanwhile(link, message);
    const double here = (bytes.own + bytes.others) / RateOf(link);
    if (here <= used) continue;
    used = here;
    most = bytes;
  }
  const double own = std::max(0.0, most.own - BytesOf(message));
  if (own + most.others <= 0) return 0;
  const double share = most.others / (own + most.others);
  return std::clamp<Picoseconds>(std::llround(static_cast<double>(time) * share), 0, time);
}

}  // namespace prepost::sim
