// SPDX-License-Identifier: Apache-2.0
//
// OpStream: the program of one node, op by op in id order, for whoever plays it and must not hold
// all of it. A flat plan's program is one, and so is a rolled one's (rolled_play.h).
#ifndef PREPOST_IR_OP_STREAM_H_
#define PREPOST_IR_OP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// Used by one thread. Ops are numbered from 0 as they come, ids modulo 2^32.
class OpStream {
 public:
  virtual ~OpStream() = default;

  /// How many ops are held at once, at most: whoever takes the op with number i has seen all up to
  /// i - look_ahead() complete. All of the program, or a power of two.
  size_t look_ahead() const { return look_ahead_; }
  /// Entries of `after` that look_ahead() ops in a row have together, at most.
  size_t afters_max() const { return afters_max_; }

  /// The next op; false when there is none.
  virtual bool Next() = 0;
  /// What Next() found. Its slice of a plan's `after` says nothing.
  const Op& op() const { return op_; }
  /// The ops that it comes after, which are less than look_ahead() before it; those further back
  /// are left out. Until the next Next().
  std::span<const OpId> after() const { return after_; }

 protected:
  OpStream(size_t look_ahead, size_t afters_max)
      : look_ahead_(look_ahead), afters_max_(afters_max) {}

  Op op_;
  std::span<const OpId> after_;

 private:
  const size_t look_ahead_;
  const size_t afters_max_;
};

/// A program of a flat plan, which must outlive it. Look-ahead: all of it.
class FlatOpStream final : public OpStream {
 public:
  FlatOpStream(const Plan& plan, const Program& program);
  bool Next() override;

 private:
  const Plan& plan_;
  const std::span<const Op> ops_;
  size_t next_ = 0;
};

/// A channel that starts or ends at a node, and its ops there.
struct ChannelOps {
  ChannelId channel;
  bool outgoing = false;
  uint32_t ops = 0;

  friend bool operator==(const ChannelOps&, const ChannelOps&) = default;
};
/// The channels of a flat program, by first op.
std::vector<ChannelOps> ChannelOpsOf(const Plan& plan, const Program& program);

}  // namespace prepost

#endif  // PREPOST_IR_OP_STREAM_H_
