// SPDX-License-Identifier: Apache-2.0
//
// Draft: a plan that tests can edit freely, right or wrong, and turn back into a Plan. Editing
// keeps `after` lists pointing at the ops they named (operations below), or not at all (plain
// assignment), as the test wants.
#ifndef PREPOST_TESTS_SUPPORT_DRAFT_H_
#define PREPOST_TESTS_SUPPORT_DRAFT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost::test {

struct DraftOp {
  Op op;  ///< after_begin and after_count mean nothing here
  std::vector<uint32_t> after;
};

struct DraftProgram {
  NodeId node;
  std::vector<DraftOp> ops;

  /// Puts `op` at `position`; the ids from there on move up, and `after` lists follow them.
  /// `op.after` is taken as it is.
  void Insert(size_t position, DraftOp op);
  /// Takes the op at `position` out; `after` lists lose it and follow the ids that move down.
  void Remove(size_t position);
  /// Reorders: the new op i is the old op `old_of_new[i]`. `after` lists follow.
  void Reorder(std::span<const uint32_t> old_of_new);
  /// Moves one op from one position to another; those between move by one. `after` lists follow.
  void Move(size_t from, size_t to);
};

/// An op of a draft: program and position, both indices.
struct DraftSite {
  size_t program = 0;
  size_t position = 0;
};

class Draft {
 public:
  explicit Draft(const Plan& plan);
  explicit Draft(PlanHeader plan_header) : header(std::move(plan_header)) {}
  Plan Build() const;

  PlanHeader header;
  std::vector<Channel> channels;
  std::vector<DraftProgram> programs;

  DraftOp& at(DraftSite site) { return programs[site.program].ops[site.position]; }
  const DraftOp& at(DraftSite site) const { return programs[site.program].ops[site.position]; }

  /// All ops for which `wanted` holds, program after program.
  std::vector<DraftSite> Where(const std::function<bool(const DraftOp&)>& wanted) const;
  /// The sends, or receives (combines among them), of a channel in id order.
  std::vector<DraftSite> On(ChannelId channel, OpKind kind) const;
  /// The op at the other end of the message of `site`, if there is one.
  std::optional<DraftSite> Partner(DraftSite site) const;
  /// The channel (from, to, lane), if the draft has it.
  std::optional<ChannelId> Find(Channel channel) const;
  /// The program of `node`; the draft must have one.
  size_t ProgramOf(NodeId node) const;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_DRAFT_H_
