// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace prepost::nic {

Pairing PairUp(const Plan& plan, const Program& program) {
  const std::span<const Op> ops = plan.ops(program);
  const auto key = [&](const Op& op) {
    const Channel& channel = plan.channels()[op.channel.index()];
    return std::pair(op.is_send() ? channel.to : channel.from, channel.lane);
  };
  std::map<std::pair<NodeId, Lane>, uint32_t> positions;
  for (const Op& op : ops) positions.try_emplace(key(op));
  Pairing out;
  for (auto& [peer_and_lane, position] : positions) {
    position = static_cast<uint32_t>(out.pairs.size());
    out.pairs.push_back({.peer = peer_and_lane.first, .lane = peer_and_lane.second});
  }
  out.of_ops.reserve(ops.size());
  for (const Op& op : ops) {
    const uint32_t position = positions.find(key(op))->second;
    ++(op.is_send() ? out.pairs[position].sends : out.pairs[position].receives);
    out.of_ops.push_back(position);
  }
  return out;
}

Status ConnectAll(std::span<OpenNode> nodes) {
  const auto key = [](const OpenQp& qp) { return std::pair(qp.peer, qp.lane); };
  for (OpenNode& node : nodes) {
    for (OpenQp& qp : node.qps) {
      PREPOST_CHECK(qp.peer.index() < nodes.size());
      const OpenNode& peer = nodes[qp.peer.index()];
      const auto wanted = std::pair(node.node, qp.lane);
      const auto back = std::ranges::lower_bound(peer.qps, wanted, {}, key);
      if (back == peer.qps.end() || key(*back) != wanted) {
        return Rejected(fmt::format("node {} has no QP to node {} on lane {}", peer.node.value,
                                    node.node.value, NumberOf(qp.lane)));
      }
      PREPOST_RETURN_IF_ERROR(
          node.device->Connect(qp.qpn, {peer.device->port_address(), back->qpn}));
      qp.peer_qpn = back->qpn;
    }
  }
  return {};
}

}  // namespace prepost::nic
