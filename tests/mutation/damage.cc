// SPDX-License-Identifier: Apache-2.0
//
// Kinds of damage, in the order of the table at the end: to ops, to `after` edges, to credits, and
// to blocks, channels, rounds and the header. Each picks its victim at random.
#include <algorithm>
#include <vector>

#include "tests/mutation/mutator.h"

namespace prepost::test {
namespace {

bool IsBlockSend(const DraftOp& op) { return op.op.is_send() && !op.op.is_credit(); }
bool IsBlockRecv(const DraftOp& op) { return !op.op.is_send() && !op.op.is_credit(); }
bool IsCreditSend(const DraftOp& op) { return op.op.is_send() && op.op.is_credit(); }
bool IsSend(const DraftOp& op) { return op.op.is_send(); }
bool HasAfter(const DraftOp& op) { return !op.after.empty(); }
bool IsAny(const DraftOp&) { return true; }

void Remove(Draft& draft, DraftSite site) { draft.programs[site.program].Remove(site.position); }
void Double(Draft& draft, DraftSite site) {
  draft.programs[site.program].Insert(site.position + 1, DraftOp(draft.at(site)));
}
void AddAfter(DraftOp& op, uint32_t before) {
  const auto place = std::ranges::lower_bound(op.after, before);
  if (place == op.after.end() || *place != before) op.after.insert(place, before);
}

/// Applies `change` to a random op for which `wanted` holds, and to its partner if `both`.
template <typename Change>
bool ChangeOps(Draft& draft, Random& random, bool (*wanted)(const DraftOp&), bool both,
               Change change) {
  const auto site = PickOp(draft, random, wanted);
  if (!site) return false;
  if (both) change(draft, *draft.Partner(*site));
  change(draft, *site);
  return true;
}

bool LoseSend(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsBlockSend, false, Remove);
}
bool LoseRecv(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsBlockRecv, false, Remove);
}
bool LoseMessage(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsBlockSend, true, Remove);
}
bool DoubleSend(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsBlockSend, false, Double);
}
bool DoubleRecv(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsBlockRecv, false, Double);
}
bool DoubleMessage(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsBlockSend, true, Double);
}

bool LoseProgram(Draft& draft, Random& random) {
  draft.programs.erase(draft.programs.begin() + random.Below(draft.programs.size()));
  return true;
}
bool DoubleProgram(Draft& draft, Random& random) {
  draft.programs.push_back(random.Pick(draft.programs));
  return true;
}

/// Two ops of one kind at one node change places, with their `after` lists.
bool SwapOps(Draft& draft, Random& random, bool (*wanted)(const DraftOp&)) {
  const auto first = PickOp(draft, random, wanted);
  if (!first) return false;
  std::vector<DraftSite> others = draft.Where(wanted);
  std::erase_if(others, [&](DraftSite it) {
    return it.program != first->program || it.position == first->position;
  });
  if (others.empty()) return false;
  std::swap(draft.at(*first), draft.at(random.Pick(others)));
  return true;
}
bool SwapSends(Draft& draft, Random& random) { return SwapOps(draft, random, IsBlockSend); }
bool SwapRecvs(Draft& draft, Random& random) { return SwapOps(draft, random, IsBlockRecv); }
bool SwapCredits(Draft& draft, Random& random) { return SwapOps(draft, random, IsCreditSend); }

/// Two consecutive messages of a channel change places at both ends: their blocks and rounds do.
bool SwapMessages(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsBlockSend);
  if (!site) return false;
  const ChannelId channel = draft.at(*site).op.channel;
  const std::vector<DraftSite> sends = draft.On(channel, OpKind::kSend);
  const std::vector<DraftSite> recvs = draft.On(channel, OpKind::kRecv);
  if (sends.size() < 2) return false;
  const size_t first = random.Below(sends.size() - 1);
  for (const auto& ends : {sends, recvs}) {
    std::swap(draft.at(ends[first]).op.block, draft.at(ends[first + 1]).op.block);
  }
  return true;
}

/// The op goes to another channel of blocks on which its node has the same end.
bool Retarget(Draft& draft, Random& random, bool (*wanted)(const DraftOp&)) {
  const auto site = PickOp(draft, random, wanted);
  if (!site) return false;
  Op& op = draft.at(*site).op;
  const Channel old = draft.channels[op.channel.index()];
  std::vector<ChannelId> others;
  for (size_t channel = 0; channel < draft.channels.size(); ++channel) {
    const Channel& it = draft.channels[channel];
    const bool is_same_end = op.is_send() ? it.from == old.from : it.to == old.to;
    if (is_same_end && it.lane == old.lane && it != old) {
      others.push_back(ChannelId::FromIndex(channel));
    }
  }
  if (others.empty()) return false;
  op.channel = random.Pick(others);
  return true;
}
bool RetargetSend(Draft& draft, Random& random) { return Retarget(draft, random, IsBlockSend); }
bool RetargetRecv(Draft& draft, Random& random) { return Retarget(draft, random, IsBlockRecv); }

bool FlipKind(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsAny, false, [](Draft& it, DraftSite site) {
    Op& op = it.at(site).op;
    op.kind = op.is_send() ? OpKind::kRecv : OpKind::kSend;
  });
}

bool LoseEdge(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, HasAfter);
  if (!site) return false;
  std::vector<uint32_t>& after = draft.at(*site).after;
  after.erase(after.begin() + random.Below(after.size()));
  return true;
}

bool LoseAllEdges(Draft& draft, Random& random) {
  return ChangeOps(draft, random, HasAfter, false,
                   [](Draft& it, DraftSite site) { it.at(site).after.clear(); });
}

/// y after x becomes x after y, ids as they were.
bool ReverseEdge(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, HasAfter);
  if (!site) return false;
  DraftProgram& program = draft.programs[site->program];
  DraftOp& op = program.ops[site->position];
  const uint32_t before = random.Pick(op.after);
  std::erase(op.after, before);
  AddAfter(program.ops[before], static_cast<uint32_t>(site->position));
  return true;
}

/// y after send x becomes x after y, and x moves behind y so that ids still fit.
bool ReverseEdgeAndMove(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, HasAfter);
  if (!site) return false;
  DraftProgram& program = draft.programs[site->program];
  const uint32_t before = random.Pick(program.ops[site->position].after);
  if (!program.ops[before].op.is_send()) return false;
  std::erase(program.ops[site->position].after, before);
  program.Move(before, site->position);
  AddAfter(program.ops[site->position], static_cast<uint32_t>(site->position) - 1);
  return true;
}

/// A send waits for one more op before it.
bool AddEdge(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsSend);
  if (!site || site->position == 0) return false;
  AddAfter(draft.at(*site), random.Below(site->position));
  return true;
}

/// A send waits for an op of a later id, which moves before it.
bool AddEdgeFromLater(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsSend);
  if (!site) return false;
  DraftProgram& program = draft.programs[site->program];
  const auto later = static_cast<uint32_t>(program.ops.size() - site->position - 1);
  if (later == 0) return false;
  const size_t from = site->position + random.Between(1, later);
  program.Move(from, site->position);
  AddAfter(program.ops[site->position + 1], static_cast<uint32_t>(site->position));
  return true;
}

bool AddForwardEdge(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsSend);
  if (!site) return false;
  const size_t size = draft.programs[site->program].ops.size();
  AddAfter(draft.at(*site),
           random.Between(static_cast<uint32_t>(site->position), static_cast<uint32_t>(size)));
  return true;
}

bool AddEdgeToRecv(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsBlockRecv);
  if (!site || site->position == 0) return false;
  AddAfter(draft.at(*site), random.Below(site->position));
  return true;
}

bool DoubleEdge(Draft& draft, Random& random) {
  return ChangeOps(draft, random, HasAfter, false, [](Draft& it, DraftSite site) {
    it.at(site).after.push_back(it.at(site).after.back());
  });
}

/// A send waits for another receive than it should.
bool MoveEdge(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, HasAfter);
  if (!site) return false;
  std::vector<uint32_t>& after = draft.at(*site).after;
  const uint32_t lost = random.Pick(after);
  std::erase(after, lost);
  const uint32_t other = random.Below(site->position);
  AddAfter(draft.at(*site), other);
  return other != lost;
}

bool LoseCredit(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsCreditSend, true, Remove);
}
bool LoseCreditSend(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsCreditSend, false, Remove);
}
bool DoubleCredit(Draft& draft, Random& random) {
  return ChangeOps(draft, random, IsCreditSend, true, Double);
}

bool WrongGrants(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsCreditSend);
  if (!site) return false;
  uint32_t& grants = draft.at(*site).op.grants;
  grants = random.Coin() ? grants + 1 : grants - 1;
  return true;
}

/// One credit grants a receive of the next one on its channel.
bool MoveGrant(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsCreditSend);
  if (!site) return false;
  const std::vector<DraftSite> credits = draft.On(draft.at(*site).op.channel, OpKind::kSend);
  if (credits.size() < 2) return false;
  const size_t first = random.Below(credits.size() - 1);
  ++draft.at(credits[first]).op.grants;
  --draft.at(credits[first + 1]).op.grants;
  return true;
}

/// One credit grants all that it and the next one did, and the next one goes.
bool MergeCredits(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsCreditSend);
  if (!site) return false;
  const std::vector<DraftSite> credits = draft.On(draft.at(*site).op.channel, OpKind::kSend);
  if (credits.size() < 2) return false;
  const size_t first = random.Below(credits.size() - 1);
  draft.at(credits[first]).op.grants += draft.at(credits[first + 1]).op.grants;
  Remove(draft, *draft.Partner(credits[first + 1]));
  Remove(draft, credits[first + 1]);
  return true;
}

/// A credit stops waiting: the window is wider than it says.
bool EarlyCredit(Draft& draft, Random& random) {
  const auto site =
      PickOp(draft, random, [](const DraftOp& op) { return IsCreditSend(op) && HasAfter(op); });
  if (!site) return false;
  draft.at(*site).after.clear();
  return true;
}

/// A send stops waiting for its credit.
bool IgnoreCredit(Draft& draft, Random& random) {
  const auto site =
      PickOp(draft, random, [](const DraftOp& op) { return IsBlockSend(op) && HasAfter(op); });
  if (!site) return false;
  const std::vector<DraftOp>& ops = draft.programs[site->program].ops;
  return std::erase_if(draft.at(*site).after, [&](uint32_t id) { return ops[id].op.is_credit(); }) >
         0;
}

uint32_t OtherBlock(const Draft& draft, Random& random, uint32_t block) {
  return (block + 1 + random.Below(draft.header.payload.blocks)) %
         (draft.header.payload.blocks + 1);
}
bool WrongBlock(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, random.Coin() ? IsBlockSend : IsBlockRecv);
  if (!site) return false;
  uint32_t& block = draft.at(*site).op.block;
  block = OtherBlock(draft, random, block);
  return true;
}
bool WrongBlockAtBothEnds(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsBlockSend);
  if (!site) return false;
  const uint32_t block = OtherBlock(draft, random, draft.at(*site).op.block);
  draft.at(*draft.Partner(*site)).op.block = block;
  draft.at(*site).op.block = block;
  return true;
}

bool WrongChannelNode(Draft& draft, Random& random) {
  if (draft.channels.empty()) return false;
  Channel& channel = draft.channels[random.Below(draft.channels.size())];
  (random.Coin() ? channel.from : channel.to) = NodeId(random.Below(draft.header.nodes + 1));
  return true;
}
bool WrongChannelLane(Draft& draft, Random& random) {
  if (draft.channels.empty()) return false;
  Lane& lane = draft.channels[random.Below(draft.channels.size())].lane;
  lane = lane == Lane::kBlocks ? Lane::kCredits : Lane::kBlocks;
  return true;
}
bool ReverseChannel(Draft& draft, Random& random) {
  if (draft.channels.empty()) return false;
  Channel& channel = draft.channels[random.Below(draft.channels.size())];
  std::swap(channel.from, channel.to);
  return true;
}
bool DoubleChannel(Draft& draft, Random& random) {
  if (draft.channels.empty()) return false;
  draft.channels.push_back(random.Pick(draft.channels));
  return true;
}

void ChangeRound(uint32_t& round, Random& random) {
  round = round == 0 || random.Coin() ? round + 1 : round - 1;
}
bool WrongRound(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsAny);
  if (!site) return false;
  ChangeRound(draft.at(*site).op.round, random);
  return true;
}
bool WrongRoundAtBothEnds(Draft& draft, Random& random) {
  const auto site = PickOp(draft, random, IsAny);
  if (!site) return false;
  ChangeRound(draft.at(*site).op.round, random);
  draft.at(*draft.Partner(*site)).op.round = draft.at(*site).op.round;
  return true;
}
bool WrongRoundsOfHeader(Draft& draft, Random& random) {
  ChangeRound(draft.header.rounds, random);
  return true;
}

bool WrongBlockBytes(Draft& draft, Random& random) {
  const uint64_t bytes = draft.header.payload.block_bytes;
  const uint64_t others[] = {0, 1, bytes / 2, bytes - 1, bytes + 1, 2 * bytes, ~uint64_t{0}};
  draft.header.payload.block_bytes = random.Pick(others);
  return true;
}
bool WrongBlocks(Draft& draft, Random& random) {
  draft.header.payload.blocks += random.Coin() ? 1 : ~0u;
  return true;
}
bool WrongBytes(Draft& draft, Random& random) {
  Payload& message = draft.header.payload;
  message.bytes = random.Below(message.bytes + 2 * message.block_bytes);
  return true;
}
bool WrongRoot(Draft& draft, Random& random) {
  draft.header.collective.root = NodeId(random.Below(draft.header.nodes + 1));
  return true;
}
bool WrongNodes(Draft& draft, Random& random) {
  draft.header.nodes += random.Coin() ? 1 : ~0u;
  return true;
}
bool WrongReady(Draft& draft, Random& random) {
  const Ready others[] = {{ReadyMode::kBarrier, 0}, {ReadyMode::kChannel, 0},
                          {ReadyMode::kRetry, 0},   {ReadyMode::kWindow, 1},
                          {ReadyMode::kWindow, 0},  {ReadyMode::kBarrier, 2}};
  draft.header.ready = random.Pick(others);
  return true;
}
bool WrongSendWindow(Draft& draft, Random& random) {
  draft.header.send_window = random.Below(3);
  return true;
}
bool WrongPorts(Draft& draft, Random&) {
  draft.header.ports = 0;
  return true;
}

constexpr Mutator kDamages[] = {
    {"lose a send", LoseSend},
    {"lose a receive", LoseRecv},
    {"lose a message", LoseMessage},
    {"double a send", DoubleSend},
    {"double a receive", DoubleRecv},
    {"double a message", DoubleMessage},
    {"lose a program", LoseProgram},
    {"double a program", DoubleProgram},
    {"swap two sends", SwapSends},
    {"swap two receives", SwapRecvs},
    {"swap two credits", SwapCredits},
    {"swap two messages", SwapMessages},
    {"re-target a send", RetargetSend},
    {"re-target a receive", RetargetRecv},
    {"turn a send or receive round", FlipKind},
    {"lose an edge", LoseEdge},
    {"lose all edges of an op", LoseAllEdges},
    {"reverse an edge", ReverseEdge},
    {"reverse an edge, move the op", ReverseEdgeAndMove},
    {"add an edge", AddEdge},
    {"add an edge from a later op", AddEdgeFromLater},
    {"add a forward edge", AddForwardEdge},
    {"add an edge to a receive", AddEdgeToRecv},
    {"double an edge", DoubleEdge},
    {"move an edge", MoveEdge},
    {"lose a credit", LoseCredit},
    {"lose a credit's send", LoseCreditSend},
    {"double a credit", DoubleCredit},
    {"wrong grants", WrongGrants},
    {"grant to the next credit", MoveGrant},
    {"merge two credits", MergeCredits},
    {"credit without its edges", EarlyCredit},
    {"send without its credit", IgnoreCredit},
    {"wrong block", WrongBlock},
    {"wrong block at both ends", WrongBlockAtBothEnds},
    {"wrong node of a channel", WrongChannelNode},
    {"wrong lane of a channel", WrongChannelLane},
    {"reverse a channel", ReverseChannel},
    {"double a channel", DoubleChannel},
    {"wrong round", WrongRound},
    {"wrong round at both ends", WrongRoundAtBothEnds},
    {"wrong rounds of the header", WrongRoundsOfHeader},
    {"wrong block size", WrongBlockBytes},
    {"wrong number of blocks", WrongBlocks},
    {"wrong message size", WrongBytes},
    {"wrong root", WrongRoot},
    {"wrong number of nodes", WrongNodes},
    {"wrong ready mode", WrongReady},
    {"wrong send window", WrongSendWindow},
    {"wrong ports", WrongPorts},
};

}  // namespace

std::span<const Mutator> Damages() { return kDamages; }

}  // namespace prepost::test
