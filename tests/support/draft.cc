// SPDX-License-Identifier: Apache-2.0
#include "tests/support/draft.h"

#include <algorithm>
#include <numeric>

namespace prepost::test {

void DraftProgram::Insert(size_t position, DraftOp op) {
  for (DraftOp& other : ops) {
    for (uint32_t& before : other.after) {
      if (before >= position) ++before;
    }
  }
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(position), std::move(op));
}

void DraftProgram::Remove(size_t position) {
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(position));
  for (DraftOp& other : ops) {
    std::erase(other.after, position);
    for (uint32_t& before : other.after) {
      if (before > position) --before;
    }
  }
}

void DraftProgram::Reorder(std::span<const uint32_t> old_of_new) {
  PREPOST_CHECK(old_of_new.size() == ops.size());
  std::vector<uint32_t> new_of_old(ops.size());
  std::vector<DraftOp> reordered;
  for (uint32_t id = 0; id < ops.size(); ++id) {
    new_of_old[old_of_new[id]] = id;
    reordered.push_back(ops[old_of_new[id]]);
  }
  for (DraftOp& op : reordered) {
    for (uint32_t& before : op.after) {
      if (before < new_of_old.size()) before = new_of_old[before];
    }
    std::ranges::sort(op.after);
  }
  ops = std::move(reordered);
}

void DraftProgram::Move(size_t from, size_t to) {
  std::vector<uint32_t> order(ops.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto at = [&](size_t index) { return order.begin() + static_cast<std::ptrdiff_t>(index); };
  if (from < to) {
    std::rotate(at(from), at(from + 1), at(to + 1));
  } else {
    std::rotate(at(to), at(from), at(from + 1));
  }
  Reorder(order);
}

Draft::Draft(const Plan& plan)
    : header(plan.header()), channels(plan.channels().begin(), plan.channels().end()) {
  for (const Program& program : plan.programs()) {
    DraftProgram& copy = programs.emplace_back();
    copy.node = program.node;
    for (const Op& op : plan.ops(program)) {
      DraftOp& draft_op = copy.ops.emplace_back();
      draft_op.op = op;
      for (OpId before : plan.after(op)) draft_op.after.push_back(before.value);
    }
  }
}

Plan Draft::Build() const {
  PlanBuilder builder(header);
  for (const Channel& channel : channels) builder.AddChannel(channel);
  for (const DraftProgram& program : programs) {
    builder.BeginProgram(program.node);
    for (const DraftOp& op : program.ops) {
      std::vector<OpId> after;
      for (uint32_t before : op.after) after.push_back(OpId(before));
      builder.AddOp(op.op, after);
    }
  }
  return std::move(builder).Build();
}

std::vector<DraftSite> Draft::Where(const std::function<bool(const DraftOp&)>& wanted) const {
  std::vector<DraftSite> sites;
  for (size_t program = 0; program < programs.size(); ++program) {
    for (size_t position = 0; position < programs[program].ops.size(); ++position) {
      const DraftSite site{program, position};
      if (wanted(at(site))) sites.push_back(site);
    }
  }
  return sites;
}

std::vector<DraftSite> Draft::On(ChannelId channel, OpKind kind) const {
  const bool is_send = kind == OpKind::kSend;
  return Where(
      [&](const DraftOp& op) { return op.op.channel == channel && op.op.is_send() == is_send; });
}

std::optional<DraftSite> Draft::Partner(DraftSite site) const {
  const Op& op = at(site).op;
  const std::vector<DraftSite> own = On(op.channel, op.kind);
  const std::vector<DraftSite> other = On(op.channel, op.is_send() ? OpKind::kRecv : OpKind::kSend);
  const auto same = [&](DraftSite it) {
    return it.program == site.program && it.position == site.position;
  };
  const auto index = static_cast<size_t>(std::ranges::find_if(own, same) - own.begin());
  if (index >= other.size()) return std::nullopt;
  return other[index];
}

std::optional<ChannelId> Draft::Find(Channel channel) const {
  const auto found = std::ranges::find(channels, channel);
  if (found == channels.end()) return std::nullopt;
  return ChannelId::FromIndex(static_cast<size_t>(found - channels.begin()));
}

size_t Draft::ProgramOf(NodeId node) const {
  const auto found = std::ranges::find(programs, node, &DraftProgram::node);
  PREPOST_CHECK(found != programs.end());
  return static_cast<size_t>(found - programs.begin());
}

}  // namespace prepost::test
