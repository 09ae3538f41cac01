// SPDX-License-Identifier: Apache-2.0
//
// Hosts of virtual time over TCP: system calls, and copies beside the wire.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/runs/cpu_driven.h"
#include "tests/support/host_run_fixture.h"

namespace prepost::sim::tcp_test {
namespace {

constexpr Picoseconds kNs = kPicosecondsPerNanosecond;

class TcpTest : public HostRunTest {};

TEST_F(TcpTest, AddsSystemCallsAndCopies) {
  HostCosts costs = {.system_call = 300 * kNs, .system_copy_rate = 4e9};
  const VerifiedPlan plan = PlanFor("chain", 2, 10);
  // Per block: send and receive it, and its credit.
  EXPECT_EQ(TimeOfRun(plan, {.host = costs}),
            10 * (kBlockTime + 4 * costs.system_call + 2 * kBlockTime / 4));
}

// A block is copied a segment at a time while it is on the wire: between two nodes it takes what
// the slower one takes, wire or copy, and one segment at each end.
TEST_F(TcpTest, CopiesOverlapWithTheWire) {
  const VerifiedPlan plan = PlanFor("chain", 2, 10);
  for (const uint32_t segment : {10u, 100u, 250u, 1000u, 5000u}) {
    for (const double copies_per_block_time : {0.5, 1.0, 2.0, 4.0, 100.0}) {
      SCOPED_TRACE(fmt::format("{} {}", segment, copies_per_block_time));
      const HostCosts costs = {.system_copy_rate = copies_per_block_time * 1e9,
                               .segment_bytes = segment};
      const Picoseconds copy = TimeOf(kBlockBytes, costs.system_copy_rate);
      const uint64_t bytes = std::min<uint64_t>(segment, kBlockBytes);
      const Picoseconds c = TimeOf(bytes, costs.system_copy_rate);
      const Picoseconds w = TimeOf(bytes, 1e9);
      const Picoseconds block = copy <= kBlockTime ? c + kBlockTime + c : copy + w + c;
      const CpuDrivenResult run = RunPlan(plan, {.host = costs});
      EXPECT_EQ(run.groups[0].completion, 10 * block);
      for (const CpuDrivenResult::Node& node : run.groups[0].nodes)
        EXPECT_EQ(node.work.busy, 10 * copy) << "all is copied";
    }
  }
}

// For each segment that comes before a block's last the receiver makes its calls, while the wire is
// busy: that takes its core, and no time, as long as it keeps up. Where it does not, what is left
// when the block is there takes one call: copying goes on without those for segments.
TEST_F(TcpTest, SegmentsTakeCalls) {
  const VerifiedPlan plan = PlanFor("chain", 2, 10);
  constexpr Picoseconds kSegments = 10;
  for (const double copies_per_block_time : {1.0, 2.0, 4.0}) {
    for (const Picoseconds calls : {10 * kNs, 40 * kNs, 90 * kNs, 400 * kNs}) {
      SCOPED_TRACE(fmt::format("{} {}", copies_per_block_time, calls));
      const HostCosts costs = {.system_copy_rate = copies_per_block_time * 1e9,
                               .segment_bytes = kBlockBytes / kSegments,
                               .segment_calls = calls};
      const Picoseconds copy = TimeOf(kBlockBytes, costs.system_copy_rate);
      const Picoseconds c = copy / kSegments, w = kBlockTime / kSegments;
      const Picoseconds most = copy - c + (kSegments - 1) * calls;
      const Picoseconds came = kBlockTime - w;
      const Picoseconds left =
          most <= came ? c
                       : copy - static_cast<Picoseconds>(std::llround(
                                    static_cast<double>(came) / static_cast<double>(most) *
                                    static_cast<double>(copy - c)));
      const CpuDrivenResult run = RunPlan(plan, {.host = costs});
      EXPECT_EQ(run.groups[0].completion, 10 * (c + kBlockTime + left));
      EXPECT_EQ(run.groups[0].nodes[0].work.busy, 10 * copy) << "a send is one call";
      EXPECT_EQ(run.groups[0].nodes[1].work.busy, 10 * (std::min(most, came) + left));
    }
  }
}

// A relay's core copies each block twice: no faster than that, however fast the wire is.
TEST_F(TcpTest, CopiesHaveOneCore) {
  for (const double rate : {1.25e9, 2.5e9, 10e9}) {
    SCOPED_TRACE(rate);
    const HostCosts costs = {.system_copy_rate = rate, .segment_bytes = 10};
    const Picoseconds copy = TimeOf(kBlockBytes, rate);
    const Picoseconds time = TimeOfRun(PlanFor("chain", 3, 100), {.host = costs});
    EXPECT_GE(time, 100 * std::max(kBlockTime, 2 * copy));
    EXPECT_LE(time, 103 * std::max(kBlockTime, 2 * copy) + 100 * 8 * kBlockTime / 100);
  }
}

}  // namespace
}  // namespace prepost::sim::tcp_test
