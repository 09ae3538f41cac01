// SPDX-License-Identifier: Apache-2.0
#include "ir/op_stream.h"

#include <unordered_map>

namespace prepost {
namespace {

size_t CountAfters(std::span<const Op> ops) {
  size_t count = 0;
  for (const Op& op : ops) count += op.after_count;
  return count;
}

}  // namespace

FlatOpStream::FlatOpStream(const Plan& plan, const Program& program)
    : OpStream(plan.ops(program).size(), CountAfters(plan.ops(program))),
      plan_(plan),
      ops_(plan.ops(program)) {}

bool FlatOpStream::Next() {
  if (next_ == ops_.size()) return false;
  op_ = ops_[next_++];
  after_ = plan_.after(op_);
  return true;
}

std::vector<ChannelOps> ChannelOpsOf(const Plan& plan, const Program& program) {
  std::vector<ChannelOps> all;
  std::unordered_map<ChannelId, size_t> index_of;
  for (const Op& op : plan.ops(program)) {
    const auto [found, is_new] = index_of.try_emplace(op.channel, all.size());
    if (is_new) all.push_back({.channel = op.channel, .outgoing = op.is_send()});
    ++all[found->second].ops;
  }
  return all;
}

}  // namespace prepost
