// SPDX-License-Identifier: Apache-2.0
#include "ir/credits.h"

#include <llvm/ADT/DenseMap.h>

#include <algorithm>

namespace prepost {

CreditTable::CreditTable(const Plan& plan, const MessageTable& messages)
    : messages_(messages), partner_(plan.channels().size(), kNone), granted_(messages.size()) {
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> credit_channels;  // (from, to)
  for (uint32_t c = 0; c < plan.channels().size(); ++c) {
    const Channel& channel = plan.channels()[c];
    if (!channel.carries_credits()) continue;
    credit_channels[{channel.from.value, channel.to.value}] = c;
    uint64_t total = 0;
    for (uint32_t m = messages.ChannelBegin(ChannelId(c)); m < messages.ChannelEnd(ChannelId(c));
         ++m) {
      total += plan.ops()[messages.send(m)].grants;
      granted_[m] = total;
    }
  }
  for (uint32_t c = 0; c < plan.channels().size(); ++c) {
    const Channel& channel = plan.channels()[c];
    if (channel.carries_credits()) continue;
    const auto credits = credit_channels.find({channel.to.value, channel.from.value});
    if (credits == credit_channels.end()) continue;
    partner_[c] = credits->second;
    partner_[credits->second] = c;
  }
}

uint32_t CreditTable::CreditFor(ChannelId credit_channel, uint32_t position) const {
  const auto begin = granted_.begin() + messages_.ChannelBegin(credit_channel);
  const auto end = granted_.begin() + messages_.ChannelEnd(credit_channel);
  const auto credit = std::upper_bound(begin, end, position);
  return credit == end ? kNone : static_cast<uint32_t>(credit - granted_.begin());
}

}  // namespace prepost
