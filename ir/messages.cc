// SPDX-License-Identifier: Apache-2.0
#include "ir/messages.h"

#include <algorithm>

namespace prepost {

MessageTable::MessageTable(const Plan& plan) {
  const std::span<const Op> ops = plan.ops();
  const size_t channels = plan.channels().size();
  std::vector<uint32_t> sends(channels), recvs(channels);
  for (const Op& op : ops) ++(op.is_send() ? sends : recvs)[op.channel.index()];

  channel_begin_.resize(channels + 1);
  for (size_t c = 0; c < channels; ++c) {
    channel_begin_[c + 1] = channel_begin_[c] + std::max(sends[c], recvs[c]);
  }
  send_.assign(channel_begin_.back(), kNone);
  recv_.assign(channel_begin_.back(), kNone);
  message_of_.resize(ops.size());
  std::ranges::fill(sends, 0);
  std::ranges::fill(recvs, 0);
  for (uint32_t i = 0; i < ops.size(); ++i) {
    const size_t channel = ops[i].channel.index();
    uint32_t& position = (ops[i].is_send() ? sends : recvs)[channel];
    message_of_[i] = channel_begin_[channel] + position++;
    (ops[i].is_send() ? send_ : recv_)[message_of_[i]] = i;
  }
}

}  // namespace prepost
