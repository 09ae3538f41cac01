// SPDX-License-Identifier: Apache-2.0
//
// Virtual time at the limits of what profiles may say: whatever the numbers, a run ends, and either
// has a time that the clock can show or says what is beyond it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "sim/cluster/profile.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/preposted.h"
#include "tests/support/plans.h"
#include "tests/support/preposted_alone.h"
#include "tests/support/random.h"

namespace prepost::sim::limits_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr uint64_t kBlockBytes = 1000;

/// All in between what the schema allows, most of it at its ends.
class RandomProfiles {
 public:
  explicit RandomProfiles(uint64_t seed) : random_(seed) {}

  test::Random& random() { return random_; }
  Profile Next() {
    Profile profile;
    Network& network = profile.network;
    // Some with a few values at their ends, some with many.
    share_ = std::array{1u, 3u, 100u}[random_.Below(3)];
    profile.SetHostRate(Rate());
    network.rack_latency = Seconds(1e-6);
    if (random_.Coin()) {
      profile.rack_hosts = 1 + random_.Below(3);
      network.core_latency = Seconds(2e-6);
      network.racks[0].up_rate = Rate();
      network.racks[0].down_rate = Rate();
      if (random_.Coin()) network.core_rate = Rate();
    }
    profile.nic = {.wqe = Time(5e-8),
                   .wait = Time(2e-7),
                   .cqe = Time(5e-8),
                   .doorbell = Time(4e-7),
                   .message_overhead_bytes = IsExtreme() ? kMessageOverheadBytesMax : 30};
    profile.host = {.cores = IsExtreme() ? kProfileCoresMax : 1,
                    .post_send = Time(1e-7),
                    .post_receive = Time(1e-7),
                    .poll = Time(1e-7),
                    .completion = Time(1e-7),
                    .credit = Time(1e-7),
                    .interrupt = Time(1e-5),
                    .hybrid_polling = Time(5e-2),
                    .message_start = Time(7e-6),
                    .message_setup = Time(4e-6),
                    .copy_rate = Rate(),
                    .combine = Time(1e-7),
                    .combine_rate = Rate()};
    if (random_.Coin()) {
      const double rate = IsExtreme() ? kPreemptionRateMin : IsExtreme() ? kPreemptionRateMax : 1e4;
      // Not away more than CheckCosts() allows, too often.
      const double length = IsExtreme() ? 100 / rate : 1e-5;
      profile.host.preemptions_per_second = rate;
      profile.host.preemption_length = FromSeconds(std::min(length, kProfileSecondsMax));
      profile.host.preemption_lengths_vary = random_.Coin();
    }
    if (random_.Below(3) == 0) {
      profile.is_tcp = true;
      profile.host.system_call = Time(1e-6);
      profile.host.system_copy_rate = Rate();
    }
    return profile;
  }

 private:
  bool IsExtreme() { return random_.Below(100) < share_; }
  double Seconds(double usual) {
    if (!IsExtreme()) return usual;
    return std::array{0.0, 1e-12, kProfileSecondsMax}[random_.Below(3)];
  }
  Picoseconds Time(double usual) { return FromSeconds(Seconds(usual)); }
  double Rate() {
    if (!IsExtreme()) return 12.5e9;
    return std::array{kProfileRateMin, 1e3, kHostRateMax}[random_.Below(3)];
  }

  test::Random random_;
  uint32_t share_ = 0;  // of values that are extreme, percent
};

const auto kKnownErrors =
    AnyOf(HasSubstr("the last that the clock can show"), HasSubstr("too far apart to be modelled"),
          HasSubstr("can be modelled"), HasSubstr("cores are away"));

TEST(LimitsTest, EveryProfileEndsWithATimeOrAReason) {
  const uint64_t seed = test::TestSeed();
  RandomProfiles profiles(seed);
  test::Random& random = profiles.random();
  int runs = 0, beyond = 0;
  for (int i = 0; i < 600; ++i) {
    const Profile profile = profiles.Next();
    const Spec spec = test::RandomSpec(random, {.nodes_max = 7, .blocks_max = 9});
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const uint32_t nodes = plan.header().nodes;
    const Network network = profile.NetworkOf(nodes);
    const NicCosts nic = profile.nic;
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    const auto look = [&](const Status& status, Picoseconds completion) {
      if (!status.ok()) {
        EXPECT_THAT(status.ToString(), kKnownErrors);
        beyond += status.ToString().find("the last that the clock") != std::string::npos;
        return;
      }
      ++runs;
      EXPECT_GE(completion, 0);
      EXPECT_LT(completion, kNever);
      // A lower limit that everything has: the block's bytes out of the root.
      if (nodes == 1) return;
      const double least = static_cast<double>(plan.header().payload.bytes) / profile.host_rate() *
                           1e12 * (1 - 1e-9);
      EXPECT_GE(static_cast<double>(completion), least - 1);
    };
    const auto offload = RunPrepostedAlone(plan, network, {.costs = nic});
    look(offload.status(), offload.ok() ? offload->completion : 0);
    const Group group{.plan = &plan};
    const auto hosts = RunCpuDriven(
        {&group, 1}, network,
        {.nic = nic,
         .host = profile.host,
         .wait = static_cast<WaitMode>(random.Below(3)),
         .delays = {{NodeId(random.Below(nodes)), random.Below(1000), kNever - random.Below(5)}},
         .ring_wqes_max = random.Coin() ? 4u : 32768u});
    look(hosts.status(), hosts.ok() ? hosts->groups[0].completion : 0);
  }
  // Not all of one kind.
  EXPECT_GT(runs, 200);
  EXPECT_GT(beyond, 50);
}

class Limits : public testing::Test {
 protected:
  static Network OneRack(uint32_t nodes, double latency) {
    Network network = Network::Uniform(nodes);
    for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1e9;
    network.rack_latency = network.core_latency = latency;
    return network;
  }
  static VerifiedPlan PlanFor(uint32_t nodes, uint32_t blocks, const char* ready = "window=1") {
    return test::CompileOrDie({.nodes = nodes,
                               .message_bytes = blocks * kBlockBytes,
                               .block_bytes = kBlockBytes,
                               .algorithm = "chain",
                               .ready = *ParseReady(ready)});
  }
  static Result<CpuDrivenResult> RunHosts(const VerifiedPlan& plan,
                                          const CpuDrivenOptions& options) {
    const Group group{.plan = &plan};
    return RunCpuDriven({&group, 1}, OneRack(plan.header().nodes, 0), options);
  }
};

// An hour per WQE: a few of them have a time, to the picosecond; many are beyond the clock.
TEST_F(Limits, LongStepsAddUpOrAreRefused) {
  constexpr Picoseconds kHour = kStepMax;
  const VerifiedPlan few = PlanFor(2, 1, "barrier");
  const auto run = RunPrepostedAlone(few, OneRack(2, 0), {.costs = {.wqe = kHour}});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  // The SEND, and the NOP behind the WAIT for its receive.
  EXPECT_EQ(run->nodes[1].completion, 2 * kHour + kBlockBytes * 1000);
  const VerifiedPlan many = PlanFor(2, 3000, "barrier");
  EXPECT_EQ(RunPrepostedAlone(many, OneRack(2, 0), {.costs = {.wqe = kHour}}).status().ToString(),
            "it goes on beyond 9223372 s, the last that the clock can show: what is modelled takes "
            "too long");
}

TEST_F(Limits, LongLatenciesAddUpOrAreRefused) {
  const VerifiedPlan plan = PlanFor(20, 1, "barrier");
  const auto run = RunPrepostedAlone(PlanFor(4, 1, "barrier"), OneRack(4, 999'999));
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(run->nodes[3].completion, 3 * (999'999 * kPicosecondsPerSecond + 1'000'000));
  EXPECT_THAT(RunPrepostedAlone(plan, OneRack(20, 999'999)).status().ToString(), kKnownErrors);
  const Group group{.plan = &plan};
  EXPECT_THAT(RunCpuDriven({&group, 1}, OneRack(20, 999'999)).status().ToString(), kKnownErrors);
}

// While a host is away for a day its peer tries again all the time, and goes on when it is back.
// Its host has fewer receives in the ring than there are blocks.
TEST_F(Limits, RetriesForALongTimeAreOnlyCounted) {
  const Picoseconds day = 24 * kStepMax;
  const VerifiedPlan plan = PlanFor(2, 12, "retry");
  CpuDrivenOptions options{.delays = {{NodeId(1), 0, day}}, .ring_wqes_max = 2};
  auto run = RunHosts(plan, options);
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  // Two blocks came before; the third was tried every 10 us from then on, until the host was back.
  const Picoseconds block = kBlockBytes * 1000;
  const auto tries = [&] {
    return static_cast<uint64_t>((day - 1 - 2 * block) / options.nic.rnr_timer + 1);
  };
  EXPECT_EQ(run->groups[0].completion, day + 12 * block);
  EXPECT_EQ(run->counters.rnr_retries, tries());
  options.nic.rnr_timer = 7'000'001;
  run = RunHosts(plan, options);
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(run->counters.rnr_retries, tries());
}

TEST_F(Limits, SlowCopiesAreBeyondTheClock) {
  const VerifiedPlan plan = test::CompileOrDie(
      {.nodes = 2, .message_bytes = 20'000'000, .block_bytes = 20'000'000, .algorithm = "chain"});
  EXPECT_THAT(RunHosts(plan, {.host = {.system_copy_rate = 1}}).status().ToString(), kKnownErrors);
  const auto run = RunHosts(plan, {.host = {.system_copy_rate = 1000}});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_GE(run->groups[0].completion, 40'000 * kPicosecondsPerSecond);
}

}  // namespace
}  // namespace prepost::sim::limits_test
