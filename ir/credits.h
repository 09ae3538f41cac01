// SPDX-License-Identifier: Apache-2.0
//
// CreditTable: which channel's receives a credit channel grants, and how many receives each credit
// has granted. Only channels of blocks are granted, by the reverse channel of credits.
#ifndef PREPOST_IR_CREDITS_H_
#define PREPOST_IR_CREDITS_H_

#include <cstdint>
#include <vector>

#include "ir/messages.h"
#include "ir/plan.h"

namespace prepost {

class CreditTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  /// Needs a plan without findings of `shape` and `match`.
  CreditTable(const Plan& plan, const MessageTable& messages);

  /// The credit channel of a block channel, or the block channel of a credit channel; kNone where
  /// there is none.
  uint32_t Partner(ChannelId channel) const { return partner_[channel.index()]; }
  /// Receives that a credit message and those before it on its channel grant.
  uint64_t GrantedUpTo(uint32_t message) const { return granted_[message]; }
  /// The message on the credit channel that grants the `position`-th receive of its partner, or
  /// kNone.
  uint32_t CreditFor(ChannelId credit_channel, uint32_t position) const;

 private:
  const MessageTable& messages_;
  std::vector<uint32_t> partner_;
  std::vector<uint64_t> granted_;
};

}  // namespace prepost

#endif  // PREPOST_IR_CREDITS_H_
