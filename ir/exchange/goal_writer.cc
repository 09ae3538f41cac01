// SPDX-License-Identifier: Apache-2.0
//
// GOAL knows ranks, point-to-point messages matched by (source, tag) first come first served, and
// two orders between ops of a rank: "x requires y", y has completed before x starts, and
// "x irequires y", y has started. A plan's order at a node becomes those:
// * an op in an `after` list: requires;
// * sends of one channel start in id order: irequires, unless the op before is required anyway;
// * a send's own block: its receive is required by name, even where a reduced `after` implies it
//   through the order of a channel, which GOAL does not have. Other tools see the flow of the data.
//
// A combine is a recv and a calc, which requires the recv, what the combine's `after` names and the
// calc before it on its channel; whoever waits for the combine requires the calc. A block's last
// receive before a send is its cause, and of a range the last one of any of its blocks.
//
// Example, node 1 of a chain of 3, 2 blocks of 10 bytes, ready barrier, send window 1:
//   rank 1 {
//   l1: recv 10b from 0 tag 0
//   l2: recv 10b from 0 tag 1
//   l3: send 10b to 2 tag 0
//   l3 requires l1
//   l4: send 10b to 2 tag 1
//   l4 requires l2
//   l4 requires l3
//   }
// Linear in ops and `after` entries.
#include "ir/exchange/goal_writer.h"

#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <vector>

#include "ir/base/text_writer.h"

namespace prepost {
namespace {

constexpr uint32_t kNoLabel = 0xffffffff;

class GoalWriter {
 public:
  GoalWriter(const Plan& plan, std::ostream& out)
      : plan_(plan), out_(out), sent_(plan.channels().size()), received_(sent_.size()) {}

  void Run() {
    std::vector<const Program*> programs;
    for (const Program& program : plan_.programs()) programs.push_back(&program);
    std::ranges::sort(programs, {}, [](const Program* program) { return program->node; });
    out_.Put("num_ranks {}\n", plan_.header().nodes);
    for (const Program* program : programs) WriteProgram(*program);
  }

 private:
  void WriteProgram(const Program& program) {
    llvm::DenseMap<uint32_t, uint32_t> recv_of;       // block -> its last receive
    llvm::DenseMap<uint32_t, uint32_t> last_send;     // channel -> its last send
    llvm::DenseMap<uint32_t, uint32_t> last_combine;  // channel -> its last combine
    out_.Put("\nrank {} {{\n", program.node.value);
    ops_ = plan_.ops(program);
    for (uint32_t id = 0; id < ops_.size(); ++id) {
      const Op& op = ops_[id];
      WriteOp(id, op);
      if (op.is_combine()) {
        const auto [before, is_first] = last_combine.try_emplace(op.channel.value, id);
        WriteCombine(id, op, is_first ? kNoLabel : before->second);
        before->second = id;
      }
      uint32_t cause = kNoLabel;
      for (uint32_t i = 0; !op.is_credit() && i < op.count; ++i) {
        if (!op.is_send()) {
          recv_of[op.block + i] = id;
          continue;
        }
        const auto found = recv_of.find(op.block + i);
        if (found != recv_of.end() && (cause == kNoLabel || cause < found->second))
          cause = found->second;
      }
      if (!op.is_send()) continue;
      const auto [before, is_first] = last_send.try_emplace(op.channel.value, id);
      WriteOrder(id, op, cause, is_first ? kNoLabel : before->second);
      before->second = id;
    }
    out_.Put("}}\n");
  }

  void WriteOp(uint32_t id, const Op& op) {
    const Channel& channel = plan_.channels()[op.channel.index()];
    uint32_t& position = (op.is_send() ? sent_ : received_)[op.channel.index()];
    const uint64_t bytes =
        op.is_credit() ? kGoalCreditBytes : plan_.header().payload.RangeSize(op.block, op.count);
    const uint32_t tag = op.is_credit() ? kGoalCreditTag + position : op.block;
    ++position;
    if (op.is_send()) {
      out_.Put("l{}: send {}b to {} tag {}\n", id + 1, bytes, channel.to.value, tag);
    } else {
      out_.Put("l{}: recv {}b from {} tag {}\n", id + 1, bytes, channel.from.value, tag);
    }
  }

  /// What others wait for when they wait for op `id`.
  uint32_t LabelOf(uint32_t id) const {
    return (ops_[id].is_combine() ? static_cast<uint32_t>(ops_.size()) : 0) + id + 1;
  }

  /// What follows the recv of a combine; `previous`: the combine before it on its channel.
  void WriteCombine(uint32_t id, const Op& op, uint32_t previous) {
    const uint64_t bytes = plan_.header().payload.RangeSize(op.block, op.count);
    out_.Put("l{}: calc {}\n", LabelOf(id), (bytes + kGoalCombineBytes - 1) / kGoalCombineBytes);
    out_.Put("l{} requires l{}\n", LabelOf(id), id + 1);
    for (OpId before : plan_.after(op)) {
      out_.Put("l{} requires l{}\n", LabelOf(id), LabelOf(before.value));
      if (before.value == previous) previous = kNoLabel;
    }
    if (previous != kNoLabel) out_.Put("l{} requires l{}\n", LabelOf(id), LabelOf(previous));
  }

  /// `cause` is the receive of the op's block, `previous` the send before it on its channel;
  /// kNoLabel for none.
  void WriteOrder(uint32_t id, const Op& op, uint32_t cause, uint32_t previous) {
    for (OpId before : plan_.after(op)) {
      out_.Put("l{} requires l{}\n", id + 1, LabelOf(before.value));
      if (before.value == cause) cause = kNoLabel;
      if (before.value == previous) previous = kNoLabel;
    }
    if (cause != kNoLabel) out_.Put("l{} requires l{}\n", id + 1, LabelOf(cause));
    if (previous != kNoLabel) out_.Put("l{} irequires l{}\n", id + 1, previous + 1);
  }

  const Plan& plan_;
  TextWriter out_;
  std::span<const Op> ops_;                // of the program at hand
  std::vector<uint32_t> sent_, received_;  // channel -> ops of it so far
};

}  // namespace

void WriteGoal(const Plan& plan, std::ostream& out) { GoalWriter(plan, out).Run(); }

std::string GoalLosses(const Plan& plan) {
  const PlanHeader& header = plan.header();
  if (header.nodes == 1) return "GOAL has nothing of one node, not even the size of its message";
  const Ready& ready = header.ready;
  std::string text = "GOAL has no rounds and no windows";
  if (ready.mode == ReadyMode::kBarrier)
    text += ", no barrier (a recv that comes late is waited for)";
  if (ready.mode == ReadyMode::kRetry)
    text += ", no retries (a recv that comes late is waited for)";
  if (ready.has_credits()) {
    text += fmt::format(", credits become messages of {} byte (tags from {} up)", kGoalCreditBytes,
                        kGoalCreditTag);
  }
  if (header.collective.kind != CollectiveKind::kMulticast) {
    if (!header.combine.is_none()) {
      text += fmt::format(", no values: a combine is a recv and a calc of 1 ns for {} bytes",
                          kGoalCombineBytes);
    }
    if (header.payload.is_uneven())
      return text + ", no collective (import takes none whose parts have sizes of their own)";
    text +=
        fmt::format(", no collective (import takes --collective {}", Name(header.collective.kind));
    if (!header.combine.is_none() && header.collective.kind != CollectiveKind::kBarrier)
      text += fmt::format(" --combine {}", ToString(header.combine));
    return text + fmt::format(" --message-bytes {} --block-bytes {})", header.payload.bytes,
                              header.payload.block_bytes);
  }
  if (header.payload.blocks == 1 && header.payload.bytes < header.payload.block_bytes) {
    text += fmt::format(", no size of a full block (import takes --block-bytes {})",
                        header.payload.block_bytes);
  }
  return text;
}

}  // namespace prepost
