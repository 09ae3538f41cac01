// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric/channel_end.h"

#include <unordered_map>

namespace prepost::fabric {

std::vector<ChannelEnd> EndsOf(const Plan& plan, const Program& program) {
  std::vector<ChannelEnd> ends;
  std::unordered_map<ChannelId, size_t> end_of;
  const std::span<const Op> ops = plan.ops(program);
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto [at, is_new] = end_of.try_emplace(ops[i].channel, ends.size());
    if (is_new) {
      const Channel& channel = plan.channels()[ops[i].channel.index()];
      ends.push_back({.channel = ops[i].channel,
                      .peer = ops[i].is_send() ? channel.to : channel.from,
                      .lane = channel.lane,
                      .is_send = ops[i].is_send()});
    }
    ends[at->second].ops.push_back(OpId::FromIndex(i));
  }
  return ends;
}

}  // namespace prepost::fabric
