// SPDX-License-Identifier: Apache-2.0
//
// MessageTable: the messages of a plan. A message is one send and the receive that it matches: the
// i-th of each on a channel. The verifier, the event graph, the drawings and the executors' tests
// look matches up here.
#ifndef PREPOST_IR_MESSAGES_H_
#define PREPOST_IR_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// Messages are numbered channel by channel, in channel order within. Ops are global indices into
/// Plan::ops().
class MessageTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  /// Needs channels in range. A send or receive without its other half makes a message with kNone
  /// there.
  explicit MessageTable(const Plan& plan);

  uint32_t size() const { return static_cast<uint32_t>(send_.size()); }
  uint32_t ChannelBegin(ChannelId channel) const { return channel_begin_[channel.index()]; }
  uint32_t ChannelEnd(ChannelId channel) const { return channel_begin_[channel.index() + 1]; }
  uint32_t send(uint32_t message) const { return send_[message]; }
  uint32_t recv(uint32_t message) const { return recv_[message]; }
  /// The message of an op.
  uint32_t MessageOf(uint32_t op) const { return message_of_[op]; }

 private:
  std::vector<uint32_t> channel_begin_;
  std::vector<uint32_t> send_;
  std::vector<uint32_t> recv_;
  std::vector<uint32_t> message_of_;
};

}  // namespace prepost

#endif  // PREPOST_IR_MESSAGES_H_
