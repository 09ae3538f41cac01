// SPDX-License-Identifier: Apache-2.0
//
// Two plans say the same when they have the same messages and the same order at every node. A
// message of a block is its route and block, 2>5:1; a credit is its route and its place on its
// channel. Messages of both plans are paired by that; ops of paired messages are the same op in
// either numbering.
//
// The order at a node is a partial one (local_order.h), which many `after` lists describe. So lists
// are not compared: for each entry of one plan's lists it is asked whether the other plan's order
// has it too, in whatever way (UnmetOrders()), and the same with the plans exchanged. Since the
// entries and the channels' own order generate the whole order, and the channels' are compared by
// themselves, nothing is missed, and a reduced plan is the same as the one it was reduced from.
//
// Example: "4: send 1>3:2 after recv 0>1:2" in a, where b has the send after another send only that
// itself comes after that receive: no difference.
#include "ir/analysis/plan_diff.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "ir/base/count.h"
#include "ir/messages.h"
#include "ir/plan_fields.h"
#include "ir/wanted_order.h"

namespace prepost {
namespace {

constexpr uint32_t kUnmatched = 0xffffffff;

/// What a message is in any plan. Sorts by route, so that what differs is listed node by node.
struct MessageKey {
  Channel channel;
  uint32_t what = 0;  ///< the block; for a credit its place on the channel

  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

/// A plan with its messages by key.
struct Side {
  explicit Side(const Plan& p) : plan(p), messages(p), twin(messages.size(), kUnmatched) {
    for (uint32_t c = 0; c < plan.channels().size(); ++c) {
      const uint32_t begin = messages.ChannelBegin(ChannelId(c));
      for (uint32_t m = begin; m < messages.ChannelEnd(ChannelId(c)); ++m) {
        const Op& send = plan.ops()[messages.send(m)];
        keys.push_back(
            {{.channel = plan.channels()[c], .what = send.is_credit() ? m - begin : send.block},
             m});
        if (!send.is_credit()) ++blocks;
      }
    }
    std::ranges::sort(keys);
    for (const Program& program : plan.programs()) {
      program_of[program.node.value] = &program;
    }
  }

  const Plan& plan;
  const MessageTable messages;
  std::vector<std::pair<MessageKey, uint32_t>> keys;  // sorted; message of each
  std::vector<uint32_t> twin;  // message -> the other side's message, or kUnmatched
  uint64_t blocks = 0;         // messages that carry one
  std::map<uint32_t, const Program*> program_of;
};

bool IsCredit(const MessageKey& key) { return key.channel.carries_credits(); }

std::string Text(const MessageKey& key) {
  const Channel& channel = key.channel;
  if (IsCredit(key))
    return fmt::format("credit {} of {}>{}", key.what, channel.from.value, channel.to.value);
  return fmt::format("{}>{}:{}", channel.from.value, channel.to.value, key.what);
}

class Differ {
 public:
  Differ(const Plan& a, const Plan& b, uint32_t shown_max) : a_(a), b_(b), shown_max_(shown_max) {}

  PlanDiff Run() {
    CompareHeaders();
    CompareChannels();
    PairMessages();
    CompareChannelOrders();
    CompareLocalOrders(a_, b_, "a", "b");
    CompareLocalOrders(b_, a_, "b", "a");
    CompareRoundsAndGrants();
    PlanDiff diff;
    diff.verdict = Verdict();
    for (DiffSection* section : {&header_, &only_a_, &only_b_, &order_, &credits_, &rounds_}) {
      if (section->count != 0) diff.sections.push_back(std::move(*section));
    }
    return diff;
  }

 private:
  template <typename... Arguments>
  void Add(DiffSection& section, fmt::format_string<Arguments...> format,
           Arguments&&... arguments) {
    if (section.count++ < shown_max_)
      section.differences.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  void Field(const char* name, const std::string& in_a, const std::string& in_b) {
    if (in_a != in_b) Add(header_, "{}: {}, {}", name, in_a, in_b);
  }

  void CompareHeaders() {
    const auto texts_of = [](const PlanHeader& header) {
      std::vector<std::pair<const char*, std::string>> texts;
      VisitContent(header, [&](const PlanField& field, const auto& value) {
        texts.emplace_back(field.name, PlainText(field, value).value_or("none"));
      });
      return texts;
    };
    const auto a = texts_of(a_.plan.header());
    const auto b = texts_of(b_.plan.header());
    for (size_t i = 0; i < a.size(); ++i) Field(a[i].first, a[i].second, b[i].second);
  }

  /// What channels of one name have behind it.
  void CompareChannels() {
    const std::set<Channel> in_b(b_.plan.channels().begin(), b_.plan.channels().end());
    for (const Channel& a : a_.plan.channels()) {
      const auto b = in_b.find(a);
      if (b == in_b.end()) continue;
      ListFields(std::type_identity<Channel>(), [&](const PlanField& field, auto get) {
        if (get(a) != get(*b))
          Add(header_, "{}>{} {}: {} {}, {}", a.from.value, a.to.value, Name(a.lane), field.name,
              NumberOf(get(a)), NumberOf(get(*b)));
      });
    }
  }

  /// Merges the sorted keys of both sides.
  void PairMessages() {
    auto in_a = a_.keys.begin();
    auto in_b = b_.keys.begin();
    while (in_a != a_.keys.end() || in_b != b_.keys.end()) {
      const bool has_a = in_a != a_.keys.end();
      const bool has_b = in_b != b_.keys.end();
      if (has_a && (!has_b || in_a->first < in_b->first)) {
        AddOnly(in_a++->first, only_a_, "a");
      } else if (has_b && (!has_a || in_b->first < in_a->first)) {
        AddOnly(in_b++->first, only_b_, "b");
      } else {
        a_.twin[in_a->second] = in_b->second;
        b_.twin[in_b++->second] = in_a++->second;
      }
    }
  }

  void AddOnly(const MessageKey& key, DiffSection& only, const char* side) {
    if (IsCredit(key)) {
      Add(credits_, "{}: only in {}", Text(key), side);
    } else {
      Add(only, "{}", Text(key));
    }
  }

  /// Blocks that both plans carry over a channel, in another order.
  void CompareChannelOrders() {
    for (uint32_t c = 0; c < a_.plan.channels().size(); ++c) {
      uint32_t before = kUnmatched;
      const ChannelId channel(c);
      for (uint32_t m = a_.messages.ChannelBegin(channel); m < a_.messages.ChannelEnd(channel);
           ++m) {
        if (a_.twin[m] == kUnmatched) continue;
        if (before != kUnmatched && a_.twin[m] < a_.twin[before])
          Add(order_, "{} after {} in a, before it in b", Text(KeyOf(a_, m)),
              Text(KeyOf(a_, before)));
        before = m;
      }
    }
  }

  /// Entries of `after` in `mine` that the order of `other` does not have.
  void CompareLocalOrders(const Side& mine, const Side& other, const char* my_name,
                          const char* other_name) {
    for (const Program& program : mine.plan.programs()) {
      const auto there = other.program_of.find(program.node.value);
      if (there == other.program_of.end()) continue;
      const Program& other_program = *there->second;
      std::vector<WantedOrder> wanted;
      for (const Op& op : mine.plan.ops(program)) {
        const std::optional<OpId> later = TwinOf(mine, other, other_program, op);
        for (OpId before : mine.plan.after(op)) {
          const Op& earlier_op = mine.plan.ops(program)[before.index()];
          const std::optional<OpId> earlier = TwinOf(mine, other, other_program, earlier_op);
          if (later && earlier) wanted.push_back({.earlier = *earlier, .later = *later});
        }
      }
      for (const WantedOrder& order : UnmetOrders(other.plan, other_program, std::move(wanted))) {
        Add(order_, "node {}: {} waits for {} in {}, not in {}", program.node.value,
            OpText(other, other_program, order.later), OpText(other, other_program, order.earlier),
            my_name, other_name);
      }
    }
  }

  /// The same op in the other plan, if it has it.
  static std::optional<OpId> TwinOf(const Side& mine, const Side& other,
                                    const Program& other_program, const Op& op) {
    const auto index = static_cast<uint32_t>(&op - mine.plan.ops().data());
    const uint32_t twin = mine.twin[mine.messages.MessageOf(index)];
    if (twin == kUnmatched) return std::nullopt;
    const uint32_t there = op.is_send() ? other.messages.send(twin) : other.messages.recv(twin);
    return OpId(there - other_program.op_begin);
  }

  static std::string OpText(const Side& side, const Program& program, OpId op) {
    const uint32_t index = program.op_begin + op.value;
    return fmt::format("{} {}", Name(side.plan.ops()[index].kind),
                       Text(KeyOf(side, side.messages.MessageOf(index))));
  }

  static MessageKey KeyOf(const Side& side, uint32_t message) {
    const Op& send = side.plan.ops()[side.messages.send(message)];
    return {
        .channel = side.plan.channels()[send.channel.index()],
        .what = send.is_credit() ? message - side.messages.ChannelBegin(send.channel) : send.block};
  }

  void CompareRoundsAndGrants() {
    for (const auto& [key, m] : a_.keys) {
      const uint32_t twin = a_.twin[m];
      if (twin == kUnmatched) continue;
      const Op& in_a = a_.plan.ops()[a_.messages.send(m)];
      const Op& in_b = b_.plan.ops()[b_.messages.send(twin)];
      ListColumns(std::type_identity<Op>(), [&](const PlanField& field, auto get) {
        if (field.null_value || get(in_a) == get(in_b)) return;  // the block is the same
        if constexpr (!std::is_same_v<decltype(get(in_a)), const ChannelId&>)
          Add(field.if_absent ? credits_ : rounds_, "{}: {} {}, {}", Text(key), field.name,
              NumberOf(get(in_a)), NumberOf(get(in_b)));
      });
    }
  }

  std::string Verdict() const {
    const PlanHeader& a = a_.plan.header();
    const PlanHeader& b = b_.plan.header();
    if (a.nodes != b.nodes || a.payload != b.payload) {
      const auto size = [](const PlanHeader& h) {
        return fmt::format("{} and {} in {}", Count(h.nodes, "node"),
                           Count(h.payload.bytes, "byte"), Count(h.payload.blocks, "block"));
      };
      if (size(a) != size(b)) return fmt::format("different sizes: {}; {}", size(a), size(b));
      if (a.payload.block_bytes == b.payload.block_bytes) return "different sizes of parts";
      return fmt::format("different sizes: blocks of {}, {} bytes", a.payload.block_bytes,
                         b.payload.block_bytes);
    }
    if (a.collective.root != b.collective.root)
      return fmt::format("different roots: {}, {}", a.collective.root.value,
                         b.collective.root.value);
    if (only_a_.count != 0 || only_b_.count != 0)
      return fmt::format("different routes: {} of {}", only_a_.count, Count(a_.blocks, "message"));
    if (order_.count != 0)
      return fmt::format("same messages, different order: {}", Count(order_.count, "difference"));
    if (credits_.count != 0)
      return fmt::format("same messages and order, different credits: {}",
                         Count(credits_.count, "difference"));
    if (rounds_.count != 0)
      return fmt::format("same messages and order, different rounds: {}",
                         Count(rounds_.count, "message"));
    return header_.count != 0 ? "same messages and order, different header" : "same";
  }

  Side a_, b_;
  const uint32_t shown_max_;
  DiffSection header_{.name = "header"}, only_a_{.name = "only in a"}, only_b_{.name = "only in b"},
      order_{.name = "order"}, credits_{.name = "credits"}, rounds_{.name = "rounds"};
};

}  // namespace

PlanDiff DiffPlans(const Plan& a, const Plan& b, uint32_t shown_max) {
  return Differ(a, b, shown_max).Run();
}

}  // namespace prepost
