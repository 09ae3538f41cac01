// SPDX-License-Identifier: Apache-2.0
//
// LocalClosure: the order at a node by plain transitive closure, to compare the linear walk and the
// reduction with.
#ifndef PREPOST_TESTS_SUPPORT_LOCAL_CLOSURE_H_
#define PREPOST_TESTS_SUPPORT_LOCAL_CLOSURE_H_

#include <map>
#include <set>
#include <vector>

#include "ir/plan.h"

namespace prepost::test {

/// For each op of the program, the ops that have completed when it starts.
inline std::vector<std::set<uint32_t>> LocalClosure(const Plan& plan, const Program& program) {
  const auto ops = plan.ops(program);
  std::vector<std::set<uint32_t>> started_after(ops.size()), done_after(ops.size());
  std::map<ChannelId, uint32_t> last;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    const auto previous = last.find(ops[i].channel);
    if (previous != last.end() && ops[i].is_send())
      started_after[i] = started_after[previous->second];
    for (OpId before : plan.after(ops[i])) {
      started_after[i].insert(before.value);
      started_after[i].insert(done_after[before.index()].begin(), done_after[before.index()].end());
    }
    done_after[i] = started_after[i];
    if (previous != last.end()) {
      done_after[i].insert(previous->second);
      done_after[i].insert(done_after[previous->second].begin(),
                           done_after[previous->second].end());
    }
    last[ops[i].channel] = i;
  }
  return started_after;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_LOCAL_CLOSURE_H_
