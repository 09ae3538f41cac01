// SPDX-License-Identifier: Apache-2.0
//
// Kinds of harmless change, in the order of the table at the end. What each keeps is said at it.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/mutation/mutator.h"

namespace prepost::test {
namespace {

std::vector<uint32_t> Permutation(size_t size, Random& random) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  random.Shuffle(order);
  return order;
}

/// What must stay before `op` when ids change: `after`, and the op before it on its channel.
std::set<uint32_t> Predecessors(const DraftProgram& program, uint32_t id, bool keep_sends) {
  const DraftOp& op = program.ops[id];
  std::set<uint32_t> before(op.after.begin(), op.after.end());
  for (uint32_t other = 0; other < id; ++other) {
    const Op& it = program.ops[other].op;
    const bool is_same_kind = it.kind == op.op.kind;
    if (is_same_kind && (it.channel == op.op.channel || (keep_sends && it.is_send()))) {
      before.insert(other);
    }
  }
  return before;
}

/// A random order of ids at every node that keeps `after` and channels; with `keep_sends`, also the
/// order of all sends, which rule `order`, the windows and the credits count by.
bool Renumber(Draft& draft, Random& random, bool keep_sends) {
  for (DraftProgram& program : draft.programs) {
    std::vector<uint32_t> order;
    std::set<uint32_t> placed;
    while (order.size() < program.ops.size()) {
      std::vector<uint32_t> free;
      for (uint32_t id = 0; id < program.ops.size(); ++id) {
        if (!placed.contains(id) &&
            std::ranges::includes(placed, Predecessors(program, id, keep_sends))) {
          free.push_back(id);
        }
      }
      order.push_back(random.Pick(free));
      placed.insert(order.back());
    }
    program.Reorder(order);
  }
  return true;
}
bool RenumberOps(Draft& draft, Random& random) { return Renumber(draft, random, false); }
bool RenumberReceives(Draft& draft, Random& random) { return Renumber(draft, random, true); }

bool PermuteChannels(Draft& draft, Random& random) {
  const std::vector<uint32_t> new_of_old = Permutation(draft.channels.size(), random);
  std::vector<Channel> channels(draft.channels.size());
  for (size_t old = 0; old < channels.size(); ++old) {
    channels[new_of_old[old]] = draft.channels[old];
  }
  draft.channels = std::move(channels);
  for (DraftProgram& program : draft.programs) {
    for (DraftOp& op : program.ops) op.op.channel = ChannelId(new_of_old[op.op.channel.index()]);
  }
  return true;
}

bool PermutePrograms(Draft& draft, Random& random) {
  random.Shuffle(draft.programs);
  return true;
}

bool RenameNodes(Draft& draft, Random& random) {
  const std::vector<uint32_t> renamed = Permutation(draft.header.nodes, random);
  const auto rename = [&](NodeId& node) { node = NodeId(renamed[node.index()]); };
  rename(draft.header.collective.root);
  for (Channel& channel : draft.channels) {
    rename(channel.from);
    rename(channel.to);
  }
  for (DraftProgram& program : draft.programs) rename(program.node);
  return true;
}

bool RenameBlocks(Draft& draft, Random& random) {
  const std::vector<uint32_t> renamed = Permutation(draft.header.payload.blocks, random);
  for (DraftProgram& program : draft.programs) {
    for (DraftOp& op : program.ops) {
      if (!op.op.is_credit()) op.op.block = renamed[op.op.block];
    }
  }
  return true;
}

/// The ops that complete before op `id` starts because of `after` alone, through other sends.
std::set<uint32_t> Implied(const DraftProgram& program, uint32_t id) {
  std::set<uint32_t> implied;
  std::vector<uint32_t> open = program.ops[id].after;
  while (!open.empty()) {
    const uint32_t before = open.back();
    open.pop_back();
    if (!implied.insert(before).second) continue;
    const std::vector<uint32_t>& further = program.ops[before].after;
    open.insert(open.end(), further.begin(), further.end());
  }
  return implied;
}

/// Every `after` names all that it implies.
bool AddImpliedEdges(Draft& draft, Random&) {
  for (DraftProgram& program : draft.programs) {
    for (uint32_t id = 0; id < program.ops.size(); ++id) {
      const std::set<uint32_t> implied = Implied(program, id);
      program.ops[id].after.assign(implied.begin(), implied.end());
    }
  }
  return true;
}

/// `after` loses a member that another member implies.
bool RemoveImpliedEdges(Draft& draft, Random&) {
  for (DraftProgram& program : draft.programs) {
    for (DraftOp& op : program.ops) {
      std::set<uint32_t> implied;
      for (uint32_t before : op.after) implied.merge(Implied(program, before));
      std::erase_if(op.after, [&](uint32_t before) { return implied.contains(before); });
    }
  }
  return true;
}

/// A credit's rounds and a block's are only for bounds and drawings.
template <typename Change>
bool ChangeRounds(Draft& draft, Change change) {
  uint32_t rounds = 0;
  for (DraftProgram& program : draft.programs) {
    for (DraftOp& op : program.ops) {
      op.op.round = change(op.op.round);
      rounds = std::max(rounds, op.op.round + 1);
    }
  }
  draft.header.rounds = rounds;
  return rounds > 0;
}
bool ShiftRounds(Draft& draft, Random& random) {
  const uint32_t shift = random.Between(1, 9);
  return ChangeRounds(draft, [&](uint32_t round) { return round + shift; });
}
bool StretchRounds(Draft& draft, Random& random) {
  const uint32_t factor = random.Between(2, 5);
  return ChangeRounds(draft, [&](uint32_t round) { return round * factor; });
}

bool AddUnusedChannel(Draft& draft, Random& random) {
  const uint32_t nodes = draft.header.nodes;
  const Channel channel{.from = NodeId(random.Below(nodes)),
                        .to = NodeId(random.Below(nodes)),
                        .lane = random.Coin() ? Lane::kBlocks : Lane::kCredits};
  if (channel.from == channel.to || draft.Find(channel)) return false;
  draft.channels.push_back(channel);
  return true;
}

bool RaisePorts(Draft& draft, Random& random) {
  draft.header.ports += random.Between(1, 3);
  return true;
}

bool RelaxSendWindow(Draft& draft, Random& random) {
  if (!draft.header.send_window) return false;
  if (random.Coin()) {
    draft.header.send_window.reset();
  } else {
    ++*draft.header.send_window;
  }
  return true;
}

bool WidenReadyWindow(Draft& draft, Random&) {
  if (draft.header.ready.mode != ReadyMode::kWindow) return false;
  ++draft.header.ready.window;
  return true;
}

/// Another number of bytes that makes as many blocks.
bool ResizeMessage(Draft& draft, Random& random) {
  Payload& message = draft.header.payload;
  const uint64_t whole = (message.blocks - 1) * message.block_bytes;
  message.bytes = whole + 1 + random.Below(message.block_bytes);
  return true;
}

bool RenameAlgorithm(Draft& draft, Random&) {
  draft.header.algorithm += "-variant";
  draft.header.generator += " with changes";
  return true;
}

constexpr Mutator kHarmlessChanges[] = {
    {"renumber ops", RenumberOps},
    {"renumber receives", RenumberReceives},
    {"permute channels", PermuteChannels},
    {"permute programs", PermutePrograms},
    {"rename nodes", RenameNodes},
    {"rename blocks", RenameBlocks},
    {"add implied edges", AddImpliedEdges},
    {"remove implied edges", RemoveImpliedEdges},
    {"shift rounds", ShiftRounds},
    {"stretch rounds", StretchRounds},
    {"add an unused channel", AddUnusedChannel},
    {"raise ports", RaisePorts},
    {"relax the send window", RelaxSendWindow},
    {"widen the ready window", WidenReadyWindow},
    {"resize the message", ResizeMessage},
    {"rename the algorithm", RenameAlgorithm},
};

}  // namespace

std::span<const Mutator> HarmlessChanges() { return kHarmlessChanges; }

}  // namespace prepost::test
