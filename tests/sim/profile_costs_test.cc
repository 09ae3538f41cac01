// SPDX-License-Identifier: Apache-2.0
#include "sim/profile_costs.h"

#include <gtest/gtest.h>

namespace prepost::sim::profile_costs_test {
namespace {

// A value that comes into another one's place, or a wrong power of ten.
TEST(ProfileCostsTest, TakesEveryValue) {
  const Profile profile = {
      .nic = {.wqe = 1e-9,
              .wait = 2e-9,
              .cqe = 3e-9,
              .doorbell = 4e-9,
              .doorbell_interval = 6e-9,
              .message_overhead_bytes = 5,
              .port_sharing = PortSharing::kFifo},
      .host = {.cores = 6,
               .post_send = 7e-9,
               .post_receive = 8e-9,
               .poll = 9e-9,
               .completion = 10e-9,
               .credit = 11e-9,
               .interrupt = 12e-9,
               .hybrid_polling = 13e-3,
               .message_start = 14e-9,
               .message_setup = 15e-9,
               .copy_rate = 16,
               .preemption = PreemptionProfile{17, 18e-12, PreemptionProfile::Lengths::kFixed}},
      .tcp = TcpProfile{19e-9, 20, 21, 22e-9}};
  const NicCosts nic = {.wqe = 1000,
                        .wait = 2000,
                        .cqe = 3000,
                        .doorbell = 4000,
                        .doorbell_interval = 6000,
                        .message_overhead_bytes = 5,
                        .port_sharing = PortSharing::kFifo};
  EXPECT_EQ(NicCostsOf(profile.nic), nic);
  HostCosts host = {.cores = 6,
                    .post_send = 7000,
                    .post_receive = 8000,
                    .poll = 9000,
                    .completion = 10000,
                    .credit = 11000,
                    .interrupt = 12000,
                    .hybrid_polling = 13'000'000'000,
                    .message_start = 14000,
                    .message_setup = 15000,
                    .system_call = 19000,
                    .system_copy_rate = 20,
                    .segment_bytes = 21,
                    .segment_calls = 22000,
                    .preemptions_per_second = 17,
                    .preemption_length = 18,
                    .preemption_lengths_vary = false};
  EXPECT_EQ(HostCostsOf(profile), host);
  Profile other = profile;
  other.host.preemption->lengths = PreemptionProfile::Lengths::kExponential;
  other.tcp.reset();
  host.preemption_lengths_vary = true;
  host.system_call = 0;
  host.system_copy_rate = 0;
  host.segment_bytes = 0;
  host.segment_calls = 0;
  EXPECT_EQ(HostCostsOf(other), host);
}

}  // namespace
}  // namespace prepost::sim::profile_costs_test
