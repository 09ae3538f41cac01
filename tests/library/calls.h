// SPDX-License-Identifier: Apache-2.0
//
// Calls of collectives as tests make them: all members' inputs, and what plain loops make of them.
#ifndef PREPOST_TESTS_LIBRARY_CALLS_H_
#define PREPOST_TESTS_LIBRARY_CALLS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <vector>

#include "prepost/prepost.h"
#include "tests/support/random.h"
#include "tests/support/sessions.h"

namespace prepost::calls_test {

using std::chrono::milliseconds;
using test::GroupLog;
using test::Members;
using test::Patient;
using test::Sessions;

using Values = std::vector<int32_t>;
inline constexpr uint64_t kGroup = 3;
inline const GroupOptions kCalls = {.calls = true};

/// One call as all members make it: inputs by place in the group, and what outputs must be; empty:
/// not looked at.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  uint32_t root = 0;  ///< place in the group
  uint64_t count = 0;
  CombineOp op = CombineOp::kSum;
  std::vector<Values> inputs, expected;
};

inline int32_t Combined(CombineOp op, int32_t a, int32_t b) {
  switch (op) {
    case CombineOp::kMax:
      return std::max(a, b);
    case CombineOp::kXor:
      return a ^ b;
    default:
      return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
}

inline Collective MakeCollective(CollectiveKind kind, uint32_t members, uint32_t root,
                                 uint64_t count, CombineOp op, test::Random& random) {
  Collective it{.kind = kind, .root = root, .count = count, .op = op, .inputs = {}, .expected = {}};
  const uint64_t all = count * members;
  const bool takes_all =
      kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAlltoall;
  for (uint32_t m = 0; m < members; ++m) {
    uint64_t values = takes_all ? all : count;
    if (kind == CollectiveKind::kScatter) values = m == root ? all : 0;
    if (kind == CollectiveKind::kMulticast && m != root) values = 0;
    if (kind == CollectiveKind::kBarrier) values = 0;
    Values& input = it.inputs.emplace_back(values);
    for (int32_t& value : input) value = static_cast<int32_t>(random.Below(1u << 31));
  }
  Values sum;
  for (const Values& input : it.inputs) {
    if (sum.empty()) sum = input;
    if (&input == &it.inputs.front()) continue;
    for (size_t i = 0; i < std::min(sum.size(), input.size()); ++i)
      sum[i] = Combined(op, sum[i], input[i]);
  }
  const auto part = [&](const Values& values, uint64_t i) {
    const auto begin = values.begin() + static_cast<ptrdiff_t>(i * count);
    return Values(begin, begin + static_cast<ptrdiff_t>(count));
  };
  for (uint32_t m = 0; m < members; ++m) {
    Values& out = it.expected.emplace_back();
    switch (kind) {
      case CollectiveKind::kMulticast:
        if (m != root) out = it.inputs[root];
        break;
      case CollectiveKind::kReduce:
        if (m == root) out = sum;
        break;
      case CollectiveKind::kAllreduce:
        out = sum;
        break;
      case CollectiveKind::kReduceScatter:
        out = part(sum, m);
        break;
      case CollectiveKind::kAllgather:
      case CollectiveKind::kGather:
        if (kind == CollectiveKind::kGather && m != root) break;
        for (const Values& input : it.inputs) out.insert(out.end(), input.begin(), input.end());
        break;
      case CollectiveKind::kScatter:
        out = part(it.inputs[root], m);
        break;
      case CollectiveKind::kAlltoall:
        for (const Values& input : it.inputs) {
          const Values from = part(input, m);
          out.insert(out.end(), from.begin(), from.end());
        }
        break;
      case CollectiveKind::kBarrier:
        break;
    }
  }
  return it;
}

/// Makes the call at all members, all of `collectives` before any has ended.
inline void ExpectAll(Sessions& sessions, const std::vector<uint32_t>& members,
                      std::vector<Collective>& collectives, bool is_in_place) {
  std::vector<std::vector<Values>> outputs(collectives.size());
  std::vector<std::vector<std::future<Status>>> futures(members.size());
  for (size_t c = 0; c < collectives.size(); ++c) {
    Collective& it = collectives[c];
    outputs[c].resize(members.size());
    for (size_t m = 0; m < members.size(); ++m) {
      Values& output = outputs[c][m];
      output.assign(it.expected[m].size(), -1);
      const void* input = it.inputs[m].data();
      void* out = output.data();
      if (is_in_place) {
        const ptrdiff_t own = static_cast<ptrdiff_t>(m * it.count);
        switch (it.kind) {
          case CollectiveKind::kReduce:
          case CollectiveKind::kAllreduce:
            if (!output.empty()) out = it.inputs[m].data();
            break;
          case CollectiveKind::kAllgather:
          case CollectiveKind::kGather:
            if (output.empty()) break;
            std::ranges::copy(it.inputs[m], output.begin() + own);
            input = output.data() + own;
            break;
          case CollectiveKind::kReduceScatter:
            out = it.inputs[m].data() + own;
            break;
          case CollectiveKind::kScatter:
            if (m == it.root) out = it.inputs[m].data() + own;
            break;
          default:
            break;
        }
      }
      const bool is_root = it.kind == CollectiveKind::kMulticast && m == it.root;
      futures[m].push_back(sessions[members[m]].Await(kGroup, {.kind = it.kind,
                                                               .root = members[it.root],
                                                               .input = input,
                                                               .output = is_root ? nullptr : out,
                                                               .count = it.count,
                                                               .type = ElementType::kInt32,
                                                               .op = it.op}));
    }
  }
  for (size_t c = 0; c < collectives.size(); ++c) {
    const Collective& it = collectives[c];
    for (size_t m = 0; m < members.size(); ++m) {
      const Status status = futures[m][c].get();
      ASSERT_TRUE(status.ok()) << status.ToString();
      const Values* found = &outputs[c][m];
      Values in_place;
      if (is_in_place && !it.expected[m].empty()) {
        const ptrdiff_t own = static_cast<ptrdiff_t>(m * it.count);
        const bool is_part = it.kind == CollectiveKind::kReduceScatter ||
                             (it.kind == CollectiveKind::kScatter && m == it.root);
        const bool is_input =
            it.kind == CollectiveKind::kReduce || it.kind == CollectiveKind::kAllreduce;
        if (is_part || is_input) {
          const auto begin = it.inputs[m].begin() + (is_part ? own : 0);
          in_place.assign(begin, begin + static_cast<ptrdiff_t>(it.count));
          found = &in_place;
        }
      }
      EXPECT_EQ(*found, it.expected[m]) << "call " << c << " at " << m;
    }
  }
}

inline constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kMulticast,     CollectiveKind::kReduce,    CollectiveKind::kAllreduce,
    CollectiveKind::kReduceScatter, CollectiveKind::kAllgather, CollectiveKind::kGather,
    CollectiveKind::kScatter,       CollectiveKind::kAlltoall,  CollectiveKind::kBarrier};

inline SessionOptions Quick() {
  SessionOptions options;
  options.failure_max = milliseconds(1000);
  return options;
}

}  // namespace prepost::calls_test

#endif  // PREPOST_TESTS_LIBRARY_CALLS_H_
