// SPDX-License-Identifier: Apache-2.0
//
// shape: every value of the plan is one that it can have at all: ids in range, one program per
// node, credits on their lane, `after` rising and backward, sizes that add up.
#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>

#include "ir/base/count.h"
#include "ir/verify/rules.h"

namespace prepost {
namespace {

class ShapeRule {
 public:
  ShapeRule(const Plan& plan, Findings* findings)
      : plan_(plan), header_(plan.header()), findings_(findings) {}

  void Run() {
    CheckHeader();
    CheckPrograms();
    CheckChannels();
    if (findings_->count() != 0) return;
    const Roles roles = header_.roles();
    roles_ = &roles;
    CheckOps();
  }

 private:
  template <typename... Arguments>
  void Shape(const Place& place, fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
    findings_->Add(place, Rule::kShape,
                   [&] { return fmt::format(format, std::forward<Arguments>(arguments)...); });
  }

  void CheckHeader() {
    if (header_.nodes == 0 || header_.nodes > kNodesMax) {
      Shape(Place::Header("nodes"), "{} nodes, expected 1 to {}", header_.nodes, kNodesMax);
    }
    if (header_.collective.root.value >= header_.nodes) {
      Shape(Place::Header("root"), "root {} is out of range, the nodes are 0 to {}",
            header_.collective.root.value, int64_t{header_.nodes} - 1);
    }
    if (header_.nodes != 0 && header_.collective.helpers >= header_.nodes) {
      Shape(Place::Header("helpers"), "{} of {}, expected at least 1 node that is none",
            Count(header_.collective.helpers, "helper"), Count(header_.nodes, "node"));
      return;
    }
    if (header_.collective.root.value >= header_.nodes - header_.collective.helpers &&
        header_.collective.root.value < header_.nodes) {
      Shape(Place::Header("root"), "root {} is a helper", header_.collective.root.value);
    }
    CheckCombines();
    if (header_.scratch > kNoScratch) {
      Shape(Place::Header("scratch"), "{}, the limit is {}",
            Count(header_.scratch, "scratch buffer"), kNoScratch);
    }
    const uint64_t parts =
        PartsOf(header_.collective.kind, header_.nodes - header_.collective.helpers);
    if (header_.payload.parts != parts) {
      Shape(Place::Header("message/parts"), "expected {} for {} between {}, found {}",
            Count(parts, "part"), Name(header_.collective.kind),
            Count(header_.nodes - header_.collective.helpers, "member"), header_.payload.parts);
      return;
    }
    const Result<Payload> payload =
        MakePayload(header_.payload.bytes, header_.payload.block_bytes, parts);
    if (!payload.ok()) {
      const bool is_bytes = payload.status().where() == "/bytes";
      Shape(Place::Header(is_bytes ? "message/bytes" : "message/block_bytes"), "{}",
            payload.status().message());
    } else if (header_.payload.blocks != payload->blocks) {
      Shape(Place::Header("message/blocks"), "expected {} for {} in blocks of {}, found {}",
            Count(payload->blocks, "block"), Count(header_.payload.bytes, "byte"),
            header_.payload.block_bytes, header_.payload.blocks);
    } else if (const Status status =
                   CheckMemory(header_.collective, header_.nodes, *payload, header_.scratch);
               !status.ok()) {
      Shape(Place::Header(status.where() == "/bytes" ? "message/bytes" : "scratch"), "{}",
            status.message());
    }
    CheckPartBytes();
    const bool is_window = header_.ready.mode == ReadyMode::kWindow;
    if (is_window != (header_.ready.window != 0)) {
      Shape(Place::Header("ready/window"), "window {} with ready mode {}, expected {}",
            header_.ready.window, Name(header_.ready.mode), is_window ? "at least 1" : "none");
    }
    if (header_.send_window == 0u)
      Shape(Place::Header("send_window"), "send window 0, expected null or at least 1");
    if (header_.ports == 0) Shape(Place::Header("ports"), "0 ports, expected at least 1");
  }

  /// Parts of sizes of their own.
  void CheckPartBytes() {
    const Payload& payload = header_.payload;
    if (!payload.is_uneven()) return;
    const Place place = Place::Header("message/part_bytes");
    if (payload.part_bytes.size() != payload.parts) {
      Shape(place, "{}, expected one for each of {}", Count(payload.part_bytes.size(), "size"),
            Count(payload.parts, "part"));
      return;
    }
    const uint64_t most = *std::ranges::max_element(payload.part_bytes);
    if (most != payload.bytes) {
      Shape(Place::Header("message/bytes"), "{} bytes, expected {}, those of the largest part",
            payload.bytes, most);
    } else if (std::ranges::count(payload.part_bytes, most) == std::ssize(payload.part_bytes)) {
      Shape(place, "all parts have {} bytes, expected no sizes of their own", most);
    }
    const uint64_t element = SizeOf(header_.combine.type);
    for (size_t i = 0; element != 0 && i < payload.part_bytes.size(); ++i) {
      if (payload.part_bytes[i] % element == 0) continue;
      Shape(place, "{} bytes of part {} are not a whole number of {} ({} bytes each)",
            payload.part_bytes[i], i, Name(header_.combine.type), element);
      return;
    }
  }

  /// What there is to combine, and with what.
  void CheckCombines() {
    const Combine& combine = header_.combine;
    const CollectiveKind kind = header_.collective.kind;
    if (Combines(kind) == combine.is_none()) {
      Shape(Place::Header("combine"), "{} {}", Name(kind),
            combine.is_none() ? "without an operation and a type"
                              : "combines nothing, expected no operation");
    } else if (const Status status = CheckCombine(combine); !status.ok()) {
      Shape(Place::Header(status.where() == "/op" ? "combine/op" : "combine/type"), "{}",
            status.message());
    }
    const uint64_t size = SizeOf(combine.type);
    if (size == 0) return;
    if (header_.payload.bytes % size != 0) {
      Shape(Place::Header("message/bytes"), "{} bytes are not a whole number of {} ({} bytes each)",
            header_.payload.bytes, Name(combine.type), size);
    }
    if (header_.payload.bytes > header_.payload.block_bytes &&
        header_.payload.block_bytes % size != 0) {
      Shape(Place::Header("message/block_bytes"),
            "{} bytes are not a whole number of {} ({} bytes each)", header_.payload.block_bytes,
            Name(combine.type), size);
    }
  }

  void CheckPrograms() {
    if (plan_.programs().size() != header_.nodes) {
      Shape(Place::Header("programs"), "{}, expected one for each of {}",
            Count(plan_.programs().size(), "program"), Count(header_.nodes, "node"));
    }
    llvm::DenseMap<uint32_t, uint32_t> program_of;
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) {
      const uint32_t node = plan_.programs()[p].node.value;
      if (node >= header_.nodes) {
        Shape(Place::ProgramAt(p, "node"), "node {} is out of range, the nodes are 0 to {}", node,
              int64_t{header_.nodes} - 1);
        continue;
      }
      const auto [first, is_new] = program_of.try_emplace(node, p);
      if (!is_new)
        Shape(Place::ProgramAt(p, "node"), "node {} has a program already, /programs/{}", node,
              first->second);
    }
  }

  void CheckChannels() {
    // By from, to and lane. LLVM's hash of one 64-bit key would be that of its lower half.
    llvm::DenseMap<std::pair<std::pair<uint32_t, uint32_t>, uint32_t>, uint32_t> channel_of;
    for (uint32_t c = 0; c < plan_.channels().size(); ++c) {
      const Channel& channel = plan_.channels()[c];
      for (const auto& [node, key] :
           {std::pair(channel.from, "from"), std::pair(channel.to, "to")}) {
        if (node.value >= header_.nodes) {
          Shape(Place::ChannelAt(c, key), "node {} is out of range, the nodes are 0 to {}",
                node.value, int64_t{header_.nodes} - 1);
        }
      }
      if (channel.from == channel.to) {
        Shape(Place::ChannelAt(c), "channel from node {} to itself", channel.from.value);
      }
      const auto [first, is_new] = channel_of.try_emplace(
          {{channel.from.value, channel.to.value}, NumberOf(channel.lane)}, c);
      if (!is_new) {
        Shape(Place::ChannelAt(c), "{}>{} lane {} is the same as /channels/{}", channel.from.value,
              channel.to.value, NumberOf(channel.lane), first->second);
      }
    }
  }

  void CheckOps() {
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) {
      const Program& program = plan_.programs()[p];
      for (uint32_t i = 0; i < program.op_count; ++i) {
        const Op& op = plan_.ops(program)[i];
        CheckOp(p, i, op);
        CheckAfter(p, i, op);
      }
    }
  }

  void CheckOp(uint32_t p, uint32_t i, const Op& op) {
    if (op.channel.index() >= plan_.channels().size()) {
      Shape(Place::OpAt(p, i, "channel"), "channel {} is out of range, there are {}",
            op.channel.value, plan_.channels().size());
      return;
    }
    const Channel& channel = plan_.channels()[op.channel.index()];
    const NodeId node = plan_.programs()[p].node;
    if ((op.is_send() ? channel.from : channel.to) != node) {
      Shape(Place::OpAt(p, i, "channel"), "{} at node {} on channel {}>{}", Name(op.kind),
            node.value, channel.from.value, channel.to.value);
    }
    if (!op.is_credit() && op.block >= header_.payload.blocks) {
      Shape(Place::OpAt(p, i, "block"), "block {} is out of range, the blocks are 0 to {}",
            op.block, header_.payload.blocks - 1);
    } else {
      CheckRange(p, i, op);
    }
    if (op.is_combine() && header_.combine.is_none()) {
      Shape(Place::OpAt(p, i, "op"), "combine in a plan of {}, which combines nothing",
            Name(header_.collective.kind));
    } else if (op.is_combine() && op.is_credit()) {
      Shape(Place::OpAt(p, i, "op"), "combine of a credit, which has no values");
    }
    if (op.is_credit() != channel.carries_credits()) {
      Shape(Place::OpAt(p, i, "block"), "{} on lane {}, lane {} is for credits and only for them",
            op.is_credit() ? "credit" : "block", NumberOf(channel.lane), NumberOf(Lane::kCredits));
    }
    const bool may_grant = op.is_credit() && op.is_send();
    if (may_grant != (op.grants != 0)) {
      Shape(Place::OpAt(p, i, "grants"), "grants {}, expected {}", op.grants,
            may_grant ? "at least 1 on a credit's send" : "none but on a credit's send");
    }
  }

  /// The blocks that an op carries, and the buffers that it fills.
  void CheckRange(uint32_t p, uint32_t i, const Op& op) {
    if (is_plain_ && op.count == 1 && op.scratch == kNoScratch) return;
    const uint32_t most = op.is_credit() ? 1 : header_.payload.blocks - op.block;
    if (op.count == 0 || op.count > most) {
      Shape(Place::OpAt(p, i, "count"), "{}, expected 1{}", Count(op.count, "block"),
            most == 1 ? "" : fmt::format(" to {}", most));
      return;
    }
    const uint64_t carried_before = carried_;
    carried_ += op.count - 1;
    if (carried_ > kCarriedMax) {
      if (carried_before <= kCarriedMax)
        Shape(Place::OpAt(p, i, "count"), "ranges carry more than {} blocks in all", kCarriedMax);
      return;
    }
    const bool may_fill = !op.is_send() && !op.is_credit() && NeedsScratch(p, op);
    if (op.scratch == kNoScratch) {
      if (may_fill && header_.payload.bytes != 0) {
        Shape(Place::OpAt(p, i, "scratch"), "{} of what node {} {} needs a scratch buffer",
              Name(op.kind), plan_.programs()[p].node.value,
              op.is_combine() ? "has" : "does not want");
      }
    } else if (!may_fill) {
      Shape(Place::OpAt(p, i, "scratch"), "scratch buffer {}, expected none on {}", op.scratch,
            op.is_send() ? "a send" : "a receive that has its place");
    } else if (op.scratch >= header_.scratch || op.count > header_.scratch - op.scratch) {
      Shape(Place::OpAt(p, i, "scratch"), "{} from {} on are out of range, there are {}",
            Count(op.count, "buffer"), op.scratch, header_.scratch);
    }
  }

  /// Whether what a receive brings has no place but a buffer: it is to be combined, or not wanted.
  bool NeedsScratch(uint32_t p, const Op& op) const {
    if (op.is_combine()) return true;
    for (uint32_t block = op.block; block < op.block + op.count; ++block) {
      if (!roles_->Wants(plan_.programs()[p].node, block)) return true;
    }
    return false;
  }

  void CheckAfter(uint32_t p, uint32_t i, const Op& op) {
    const std::span<const OpId> after = plan_.after(op);
    if (!op.may_wait() && !after.empty()) {
      Shape(Place::OpAt(p, i, "after"), "a recv waits for nothing, found {} entries", after.size());
    }
    for (uint32_t j = 0; j < after.size(); ++j) {
      if (after[j].value >= i) {
        Shape(Place::OpAt(p, i, "after", j), "op {} is not before op {}", after[j].value, i);
      } else if (j > 0 && after[j] <= after[j - 1]) {
        Shape(Place::OpAt(p, i, "after", j), "op {} does not stand above op {}", after[j].value,
              after[j - 1].value);
      }
    }
  }

  const Plan& plan_;
  /// Blocks of all ops together, beside the first of each: rules go through them one by one.
  static constexpr uint64_t kCarriedMax = uint64_t{1} << 26;

  const PlanHeader& header_;
  Findings* findings_;
  const Roles* roles_ = nullptr;  // while ops are checked
  uint64_t carried_ = 0;
  const bool is_plain_ = IsPlainMulticast(header_);
};

}  // namespace

void CheckShape(const Plan& plan, Findings* findings) { ShapeRule(plan, findings).Run(); }

}  // namespace prepost
