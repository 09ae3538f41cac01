// SPDX-License-Identifier: Apache-2.0
//
// Each rule is one or a few functions of Verifier; docs/plan.md tells them in words. Order of work:
// `shape` first, since all others index by what it checks; then `match`, which makes messages of
// ops; then the rest, each on its own.
#include "prepost/ir/verify.h"

#include <fmt/format.h>
#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>

#include <algorithm>

#include "prepost/ir/findings.h"
#include "prepost/ir/messages.h"
#include "prepost/ir/plan_graph.h"
#include "prepost/ir/wanted_order.h"

namespace prepost {
namespace {

constexpr uint32_t kNone = MessageTable::kNone;

class Verifier {
 public:
  Verifier(const Plan& plan, const VerifyOptions& options)
      : plan_(plan),
        header_(plan.header()),
        options_(options),
        findings_(options.diagnostics_max) {}

  Verdict Run() {
    CheckHeader();
    CheckPrograms();
    CheckChannels();
    if (findings_.count() == 0) CheckOps();
    if (findings_.count() != 0) return std::move(findings_).Take();

    const MessageTable messages(plan_);
    const bool is_matched = CheckMatch(messages);
    CheckOnce();
    if (is_matched) {
      IndexCredits(messages);
      CheckReady(messages);
      CheckRounds(messages);
      CheckGraph(messages);
    }
    for (uint32_t p = 0; p < plan_.programs().size(); ++p)
      CheckLocalOrders(p, is_matched, messages);
    return std::move(findings_).Take();
  }

 private:
  // ---- shape
  // ----------------------------------------------------------------------------------------------------

  template <typename... Arguments>
  void Shape(const Place& place, fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
    findings_.Add(place, Rule::kShape,
                  [&] { return fmt::format(format, std::forward<Arguments>(arguments)...); });
  }

  void CheckHeader() {
    if (header_.collective != "multicast")
      Shape(Place::Header("collective"), "expected \"multicast\", found \"{}\"",
            header_.collective);
    if (header_.nodes == 0 || header_.nodes > kNodesMax) {
      Shape(Place::Header("nodes"), "{} nodes, expected 1 to {}", header_.nodes, kNodesMax);
    }
    if (header_.root.value >= header_.nodes) {
      Shape(Place::Header("root"), "root {} is out of range, the nodes are 0 to {}",
            header_.root.value, int64_t{header_.nodes} - 1);
    }
    const Result<Message> message = MakeMessage(header_.message.bytes, header_.message.block_bytes);
    if (!message.ok()) {
      Shape(Place::Header("message"), "{}", message.status().message());
    } else if (header_.message.blocks != message->blocks) {
      Shape(Place::Header("message/blocks"), "{} bytes in blocks of {} are {} blocks, found {}",
            header_.message.bytes, header_.message.block_bytes, message->blocks,
            header_.message.blocks);
    }
    const bool is_window = header_.ready.mode == ReadyMode::kWindow;
    if (is_window != (header_.ready.window != 0)) {
      Shape(Place::Header("ready/window"), "window {} with ready mode {}, expected {}",
            header_.ready.window, Name(header_.ready.mode), is_window ? "at least 1" : "none");
    }
    if (header_.send_window == 0u)
      Shape(Place::Header("send_window"), "send window 0, expected null or at least 1");
    if (header_.ports == 0) Shape(Place::Header("ports"), "0 ports, expected at least 1");
  }

  void CheckPrograms() {
    if (plan_.programs().size() != header_.nodes) {
      Shape(Place::Header("programs"), "{} programs, expected one for each of {} nodes",
            plan_.programs().size(), header_.nodes);
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
    llvm::DenseMap<std::pair<uint64_t, uint32_t>, uint32_t> channel_of;
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
      const uint64_t pair = uint64_t{channel.from.value} << 32 | channel.to.value;
      const auto [first, is_new] = channel_of.try_emplace({pair, channel.lane}, c);
      if (!is_new) {
        Shape(Place::ChannelAt(c), "{}>{} lane {} is the same as /channels/{}", channel.from.value,
              channel.to.value, channel.lane, first->second);
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
    if (!op.is_credit() && op.block >= header_.message.blocks) {
      Shape(Place::OpAt(p, i, "block"), "block {} is out of range, the blocks are 0 to {}",
            op.block, header_.message.blocks - 1);
    }
    if (op.is_credit() != (channel.lane == kCreditLane)) {
      Shape(Place::OpAt(p, i, "block"), "{} on lane {}, lane {} is for credits and only for them",
            op.is_credit() ? "credit" : "block", channel.lane, kCreditLane);
    }
    const bool may_grant = op.is_credit() && op.is_send();
    if (may_grant != (op.grants != 0)) {
      Shape(Place::OpAt(p, i, "grants"), "grants {}, expected {}", op.grants,
            may_grant ? "at least 1 on a credit's send" : "none but on a credit's send");
    }
  }

  void CheckAfter(uint32_t p, uint32_t i, const Op& op) {
    const std::span<const OpId> after = plan_.after(op);
    if (!op.is_send() && !after.empty()) {
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

  // ---- match, once
  // ----------------------------------------------------------------------------------------------

  /// Place of a global op index.
  Place PlaceOf(uint32_t op, const char* leaf = "") const {
    const auto programs = plan_.programs();
    auto program = std::ranges::upper_bound(programs, op, {}, &Program::op_begin) - 1;
    while (program->op_count == 0) --program;
    return Place::OpAt(static_cast<uint32_t>(program - programs.begin()), op - program->op_begin,
                       leaf);
  }

  bool CheckMatch(const MessageTable& messages) {
    const uint64_t before = findings_.count();
    for (uint32_t m = 0; m < messages.size(); ++m) {
      const uint32_t send = messages.send(m);
      const uint32_t recv = messages.recv(m);
      if (send == kNone || recv == kNone) {
        const Op& op = plan_.ops()[send == kNone ? recv : send];
        const Channel& channel = plan_.channels()[op.channel.index()];
        findings_.Add(PlaceOf(send == kNone ? recv : send), Rule::kMatch, [&] {
          return fmt::format("{} number {} on {}>{} lane {} has no {}", Name(op.kind),
                             m - messages.ChannelBegin(op.channel), channel.from.value,
                             channel.to.value, channel.lane, send == kNone ? "send" : "recv");
        });
      } else if (plan_.ops()[send].block != plan_.ops()[recv].block) {
        findings_.Add(PlaceOf(recv, "block"), Rule::kMatch, [&] {
          return fmt::format("receives block {}, but its send {} sends block {}",
                             plan_.ops()[recv].block, PlaceOf(send).Pointer(),
                             plan_.ops()[send].block);
        });
      }
    }
    return findings_.count() == before;
  }

  void CheckOnce() {
    std::vector<uint32_t> seen_in(header_.message.blocks,
                                  kNone);  // block -> program that received it last
    std::vector<uint32_t> seen_at(header_.message.blocks);  // and its op there
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) {
      const Program& program = plan_.programs()[p];
      uint32_t received = 0;
      for (uint32_t i = 0; i < program.op_count; ++i) {
        const Op& op = plan_.ops(program)[i];
        if (op.is_send() || op.is_credit()) continue;
        if (program.node == header_.root) {
          findings_.Add(Place::OpAt(p, i), Rule::kOnce, [&] {
            return fmt::format("the root receives block {}, which it has", op.block);
          });
        } else if (seen_in[op.block] == p) {
          findings_.Add(Place::OpAt(p, i, "block"), Rule::kOnce, [&] {
            return fmt::format("block {} is received a second time, first by op {}", op.block,
                               seen_at[op.block]);
          });
        } else {
          ++received;
          seen_in[op.block] = p;
          seen_at[op.block] = i;
        }
      }
      if (program.node != header_.root && received != header_.message.blocks) {
        findings_.Add(Place::ProgramAt(p), Rule::kOnce, [&] {
          const auto missing =
              std::ranges::find_if(seen_in, [&](uint32_t seen) { return seen != p; });
          return fmt::format("node {} receives {} of {} blocks, block {} is missing",
                             program.node.value, received, header_.message.blocks,
                             missing - seen_in.begin());
        });
      }
    }
  }

  // ---- ready
  // ----------------------------------------------------------------------------------------------------

  bool has_credits() const {
    return header_.ready.mode == ReadyMode::kChannel || header_.ready.mode == ReadyMode::kWindow;
  }

  /// Finds the credit channel of every block channel, the block channel of every credit channel,
  /// and for every credit message how many receives it and those before it on its channel grant.
  void IndexCredits(const MessageTable& messages) {
    partner_.assign(plan_.channels().size(), kNone);
    llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> credit_channels;  // (from, to)
    for (uint32_t c = 0; c < plan_.channels().size(); ++c) {
      const Channel& channel = plan_.channels()[c];
      if (channel.lane == kCreditLane) credit_channels[{channel.from.value, channel.to.value}] = c;
    }
    for (uint32_t c = 0; c < plan_.channels().size(); ++c) {
      const Channel& channel = plan_.channels()[c];
      if (channel.lane != kBlockLane) continue;
      const auto credits = credit_channels.find({channel.to.value, channel.from.value});
      if (credits == credit_channels.end()) continue;
      partner_[c] = credits->second;
      partner_[credits->second] = c;
    }
    granted_.assign(messages.size(), 0);
    for (uint32_t c = 0; c < plan_.channels().size(); ++c) {
      if (plan_.channels()[c].lane != kCreditLane) continue;
      uint64_t total = 0;
      for (uint32_t m = messages.ChannelBegin(ChannelId(c)); m < messages.ChannelEnd(ChannelId(c));
           ++m) {
        total += plan_.ops()[messages.send(m)].grants;
        granted_[m] = total;
      }
    }
  }

  template <typename... Arguments>
  void ReadyFinding(const Place& place, fmt::format_string<Arguments...> format,
                    Arguments&&... arguments) {
    findings_.Add(place, Rule::kReady,
                  [&] { return fmt::format(format, std::forward<Arguments>(arguments)...); });
  }

  void CheckReady(const MessageTable& messages) {
    for (uint32_t c = 0; c < plan_.channels().size(); ++c) {
      const Channel& channel = plan_.channels()[c];
      const uint32_t begin = messages.ChannelBegin(ChannelId(c));
      const uint32_t count = messages.ChannelEnd(ChannelId(c)) - begin;
      if (count == 0) continue;
      if (!has_credits()) {
        if (channel.lane == kCreditLane) {
          ReadyFinding(Place::ChannelAt(c), "{} credits in ready mode {}, which has none", count,
                       Name(header_.ready.mode));
        }
        if (header_.ready.mode == ReadyMode::kBarrier && options_.recv_depth &&
            count > *options_.recv_depth) {
          ReadyFinding(Place::ChannelAt(c),
                       "{} receives cannot all be posted before the start, the depth is {}", count,
                       *options_.recv_depth);
        }
      } else if (channel.lane == kBlockLane) {
        CheckGrants(c, count, messages);
      } else if (channel.lane == kCreditLane) {
        if (partner_[c] == kNone) {
          ReadyFinding(Place::ChannelAt(c),
                       "{} credits, but no channel {}>{} lane {} that they could grant", count,
                       channel.to.value, channel.from.value, kBlockLane);
        } else if (messages.ChannelBegin(ChannelId(partner_[c])) ==
                   messages.ChannelEnd(ChannelId(partner_[c]))) {
          ReadyFinding(Place::ChannelAt(c),
                       "{} credits, but nothing is sent on the channel that they grant", count);
        }
        CheckCredits(c, messages);
      } else {
        ReadyFinding(Place::ChannelAt(c),
                     "blocks on lane {} in ready mode {}: credits grant lane {} only", channel.lane,
                     Name(header_.ready.mode), kBlockLane);
      }
    }
  }

  /// All receives of block channel c are granted, no more and no fewer.
  void CheckGrants(uint32_t c, uint32_t count, const MessageTable& messages) {
    const uint32_t credits = partner_[c];
    uint64_t granted = 0;
    uint32_t credit_count = 0;
    if (credits != kNone) {
      const uint32_t end = messages.ChannelEnd(ChannelId(credits));
      credit_count = end - messages.ChannelBegin(ChannelId(credits));
      if (credit_count != 0) granted = granted_[end - 1];
    }
    if (granted != count) {
      ReadyFinding(Place::ChannelAt(c), "credits grant {} receives, there are {}", granted, count);
    }
    if (header_.ready.mode == ReadyMode::kChannel && credit_count != 1) {
      ReadyFinding(Place::ChannelAt(c), "{} credits in ready mode channel, expected 1",
                   credit_count);
    }
  }

  /// What the mode says of each credit on credit channel c.
  void CheckCredits(uint32_t c, const MessageTable& messages) {
    for (uint32_t m = messages.ChannelBegin(ChannelId(c)); m < messages.ChannelEnd(ChannelId(c));
         ++m) {
      const Op& send = plan_.ops()[messages.send(m)];
      if (header_.ready.mode == ReadyMode::kWindow && send.grants != 1) {
        ReadyFinding(PlaceOf(messages.send(m), "grants"),
                     "grants {} in ready mode window, expected 1", send.grants);
      }
      if (header_.ready.mode == ReadyMode::kChannel && send.after_count != 0) {
        ReadyFinding(PlaceOf(messages.send(m), "after"),
                     "waits for {} ops in ready mode channel, expected none", send.after_count);
      }
    }
  }

  // ---- causal, window and the local part of ready
  // -----------------------------------------------------------------

  void CheckLocalOrders(uint32_t p, bool is_matched, const MessageTable& messages) {
    const Program& program = plan_.programs()[p];
    std::vector<WantedOrder> wanted;
    WantCausal(p, &wanted);
    WantWindow(program, &wanted);
    if (is_matched && has_credits()) WantReady(program, messages, &wanted);
    for (const WantedOrder& order : UnmetOrders(plan_, program, std::move(wanted))) {
      findings_.Add(Place::OpAt(p, order.later.value, "after"), order.rule, [&] {
        return fmt::format("{} does not wait for {}", Describe(plan_, program, order.later),
                           Describe(plan_, program, order.earlier));
      });
    }
  }

  /// A node forwards a block only after its own receive of it.
  void WantCausal(uint32_t p, std::vector<WantedOrder>* wanted) {
    const Program& program = plan_.programs()[p];
    if (program.node == header_.root) return;
    llvm::DenseMap<uint32_t, uint32_t> received;  // block -> its first receive
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (!op.is_send() && !op.is_credit()) received.try_emplace(op.block, i);
    }
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (!op.is_send() || op.is_credit()) continue;
      const auto recv = received.find(op.block);
      if (recv == received.end()) {
        findings_.Add(Place::OpAt(p, i, "block"), Rule::kCausal, [&] {
          return fmt::format("node {} sends block {}, which it never receives", program.node.value,
                             op.block);
        });
      } else {
        wanted->push_back({OpId(recv->second), OpId(i), Rule::kCausal});
      }
    }
  }

  /// With send window W the j-th block send comes after the (j - W)-th.
  void WantWindow(const Program& program, std::vector<WantedOrder>* wanted) {
    if (!header_.send_window) return;
    std::vector<uint32_t> sends;
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (!op.is_send() || op.is_credit()) continue;
      if (sends.size() >= *header_.send_window) {
        wanted->push_back(
            {OpId(sends[sends.size() - *header_.send_window]), OpId(i), Rule::kWindow});
      }
      sends.push_back(i);
    }
  }

  /// A block's send waits for the credit that grants its receive; in window mode the node's i-th
  /// credit waits for the receive that its (i - W)-th one grants.
  void WantReady(const Program& program, const MessageTable& messages,
                 std::vector<WantedOrder>* wanted) {
    const auto local = [&](uint32_t op) { return OpId(op - program.op_begin); };
    std::vector<uint32_t>
        granted_recvs;  // what the node's credits grant, one each, in id order; kNone: nothing
    for (uint32_t i = program.op_begin; i < program.op_begin + program.op_count; ++i) {
      const Op& op = plan_.ops()[i];
      if (!op.is_send() || partner_[op.channel.index()] == kNone) continue;
      const ChannelId partner(partner_[op.channel.index()]);
      const uint32_t message = messages.MessageOf(i);
      if (!op.is_credit()) {
        const uint32_t position = message - messages.ChannelBegin(op.channel);
        const auto begin = granted_.begin() + messages.ChannelBegin(partner);
        const auto end = granted_.begin() + messages.ChannelEnd(partner);
        const auto credit = std::upper_bound(begin, end, position);
        if (credit == end) continue;  // too few grants: CheckGrants says so
        const uint32_t recv = messages.recv(static_cast<uint32_t>(credit - granted_.begin()));
        wanted->push_back({local(recv), local(i), Rule::kReady});
      } else if (header_.ready.mode == ReadyMode::kWindow) {
        const uint32_t window = header_.ready.window;
        if (granted_recvs.size() >= window &&
            granted_recvs[granted_recvs.size() - window] != kNone) {
          wanted->push_back(
              {local(granted_recvs[granted_recvs.size() - window]), local(i), Rule::kReady});
        }
        const uint64_t position = granted_[message] - op.grants;
        const uint32_t begin = messages.ChannelBegin(partner);
        const bool is_there = position < messages.ChannelEnd(partner) - begin;
        granted_recvs.push_back(is_there ? messages.recv(begin + static_cast<uint32_t>(position))
                                         : kNone);
      }
    }
  }

  // ---- rounds
  // -----------------------------------------------------------------------------------------------------

  template <typename... Arguments>
  void RoundsFinding(const Place& place, fmt::format_string<Arguments...> format,
                     Arguments&&... arguments) {
    findings_.Add(place, Rule::kRounds,
                  [&] { return fmt::format(format, std::forward<Arguments>(arguments)...); });
  }

  void CheckRounds(const MessageTable& messages) {
    uint64_t rounds = 0;
    for (const Op& op : plan_.ops()) rounds = std::max(rounds, uint64_t{op.round} + 1);
    if (header_.rounds != rounds) {
      RoundsFinding(Place::Header("rounds"), "{} rounds, but the last op is in round {}",
                    header_.rounds, static_cast<int64_t>(rounds) - 1);
    }
    for (uint32_t c = 0; c < plan_.channels().size(); ++c)
      CheckChannelRounds(ChannelId(c), messages);
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) {
      CheckForwardRounds(p);
      CheckPorts(p, OpKind::kSend);
      CheckPorts(p, OpKind::kRecv);
    }
  }

  void CheckChannelRounds(ChannelId channel, const MessageTable& messages) {
    const uint32_t begin = messages.ChannelBegin(channel);
    for (uint32_t m = begin; m < messages.ChannelEnd(channel); ++m) {
      const uint32_t send_round = plan_.ops()[messages.send(m)].round;
      const uint32_t recv_round = plan_.ops()[messages.recv(m)].round;
      if (send_round != recv_round) {
        RoundsFinding(PlaceOf(messages.recv(m), "round"),
                      "round {}, but its send {} is in round {}", recv_round,
                      PlaceOf(messages.send(m)).Pointer(), send_round);
      }
      for (const auto& [op, before] :
           {std::pair(messages.send(m), m == begin ? kNone : messages.send(m - 1)),
            std::pair(messages.recv(m), m == begin ? kNone : messages.recv(m - 1))}) {
        if (before == kNone || plan_.ops()[before].round <= plan_.ops()[op].round) continue;
        RoundsFinding(PlaceOf(op, "round"), "round {} after round {} on the same channel",
                      plan_.ops()[op].round, plan_.ops()[before].round);
      }
      CheckCreditRound(channel, m, messages);
    }
  }

  /// A credit has the round of the first receive that it grants.
  void CheckCreditRound(ChannelId channel, uint32_t m, const MessageTable& messages) {
    const Op& send = plan_.ops()[messages.send(m)];
    if (!send.is_credit() || partner_[channel.index()] == kNone) return;
    const ChannelId blocks(partner_[channel.index()]);
    const uint64_t first = granted_[m] - send.grants;
    if (first >= messages.ChannelEnd(blocks) - messages.ChannelBegin(blocks)) return;
    const uint32_t recv =
        messages.recv(messages.ChannelBegin(blocks) + static_cast<uint32_t>(first));
    if (plan_.ops()[recv].round != send.round) {
      RoundsFinding(PlaceOf(messages.send(m), "round"),
                    "credit in round {}, but the receive {} that it grants is in {}", send.round,
                    PlaceOf(recv).Pointer(), plan_.ops()[recv].round);
    }
  }

  /// A block leaves a node in a later round than it came.
  void CheckForwardRounds(uint32_t p) {
    const Program& program = plan_.programs()[p];
    if (program.node == header_.root) return;
    llvm::DenseMap<uint32_t, uint32_t> received;  // block -> round
    for (const Op& op : plan_.ops(program)) {
      if (!op.is_send() && !op.is_credit()) received.try_emplace(op.block, op.round);
    }
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (!op.is_send() || op.is_credit()) continue;
      const auto round = received.find(op.block);
      if (round != received.end() && op.round <= round->second) {
        RoundsFinding(Place::OpAt(p, i, "round"),
                      "sends block {} in round {}, but receives it in round {}", op.block, op.round,
                      round->second);
      }
    }
  }

  /// No more than `ports` block sends (or receives) of a node in one round.
  void CheckPorts(uint32_t p, OpKind kind) {
    const Program& program = plan_.programs()[p];
    std::vector<std::pair<uint32_t, uint32_t>> by_round;  // (round, op)
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (op.kind == kind && !op.is_credit()) by_round.emplace_back(op.round, i);
    }
    if (!std::ranges::is_sorted(by_round)) std::ranges::sort(by_round);
    for (size_t j = header_.ports; j < by_round.size(); ++j) {
      const auto [round, op] = by_round[j];
      if (by_round[j - header_.ports].first != round) continue;
      RoundsFinding(Place::OpAt(p, op, "round"), "more than {} block {}s of node {} in round {}",
                    header_.ports, Name(kind), program.node.value, round);
    }
  }

  // ---- acyclic, order
  // ---------------------------------------------------------------------------------------------

  void CheckGraph(const MessageTable& messages) {
    PlanGraphOptions options{
        .send_depth = options_.send_depth, .recv_depth = options_.recv_depth, .chain_sends = true};
    const PlanGraph chained(plan_, messages, options);
    const std::vector<PlanGraph::Vertex> chained_cycle = chained.FindCycle();
    if (chained_cycle.empty()) return;  // nor is there one with fewer edges
    options.chain_sends = false;
    const PlanGraph plain(plan_, messages, options);
    const std::vector<PlanGraph::Vertex> cycle = plain.FindCycle();
    if (!cycle.empty()) {
      ReportCycle(plain, cycle, Rule::kAcyclic, "deadlock");
    } else {
      ReportCycle(chained, chained_cycle, Rule::kOrder,
                  "deadlock if each node's sends start in id order");
    }
  }

  void ReportCycle(const PlanGraph& graph, const std::vector<PlanGraph::Vertex>& cycle, Rule rule,
                   const char* what) {
    uint32_t first = kNone;
    for (PlanGraph::Vertex v : cycle) first = std::min(first, graph.OpOf(v));
    findings_.AddWithNotes(PlaceOf(first), rule, [&] {
      std::vector<std::string> notes;
      for (size_t i = 0; i < cycle.size(); ++i) {
        notes.push_back(fmt::format("{} waits for {}",
                                    graph.Describe(cycle[(i + 1) % cycle.size()]),
                                    graph.Describe(cycle[i])));
      }
      return std::pair(
          fmt::format("{}: {} events wait for each other in a circle", what, cycle.size()), notes);
    });
  }

  const Plan& plan_;
  const PlanHeader& header_;
  const VerifyOptions& options_;
  Findings findings_;
  std::vector<uint32_t> partner_;  // block channel -> its credit channel, and back; or kNone
  std::vector<uint64_t> granted_;  // credit message -> receives granted up to and with it
};

}  // namespace

bool Verdict::Has(Rule rule) const {
  return std::ranges::any_of(diagnostics,
                             [&](const Diagnostic& diagnostic) { return diagnostic.rule == rule; });
}

std::string Verdict::ToString() const {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += diagnostic.ToString() + "\n";
  if (findings > diagnostics.size())
    text += fmt::format("and {} more\n", findings - diagnostics.size());
  return text;
}

Verdict Verify(const Plan& plan, const VerifyOptions& options) {
  return Verifier(plan, options).Run();
}

Status VerifyStatus(const Plan& plan, const VerifyOptions& options) {
  const Verdict verdict = Verify(plan, options);
  if (verdict.ok()) return {};
  std::string text = verdict.ToString();
  text.pop_back();  // the last newline
  return Rejected(std::move(text));
}

}  // namespace prepost
