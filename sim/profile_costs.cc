// SPDX-License-Identifier: Apache-2.0
#include "sim/profile_costs.h"

namespace prepost::sim {
NicCosts NicCostsOf(const NicProfile& profile) {
  return {.wqe = FromSeconds(profile.wqe),
          .wait = FromSeconds(profile.wait),
          .cqe = FromSeconds(profile.cqe),
          .doorbell = FromSeconds(profile.doorbell),
          .doorbell_interval = FromSeconds(profile.doorbell_interval),
          .message_overhead_bytes = profile.message_overhead_bytes,
          .port_sharing = profile.port_sharing};
}

HostCosts HostCostsOf(const Profile& profile) {
  const HostProfile& host = profile.host;
  HostCosts costs{.cores = host.cores,
                  .post_send = FromSeconds(host.post_send),
                  .post_receive = FromSeconds(host.post_receive),
                  .poll = FromSeconds(host.poll),
                  .completion = FromSeconds(host.completion),
                  .credit = FromSeconds(host.credit),
                  .interrupt = FromSeconds(host.interrupt),
                  .hybrid_polling = FromSeconds(host.hybrid_polling),
                  .message_start = FromSeconds(host.message_start),
                  .message_setup = FromSeconds(host.message_setup)};
  if (profile.tcp) {
    costs.system_call = FromSeconds(profile.tcp->system_call);
    costs.system_copy_rate = profile.tcp->copy_rate;
    costs.segment_bytes = profile.tcp->segment_bytes;
    costs.segment_calls = FromSeconds(profile.tcp->segment_calls);
  }
  if (host.preemption) {
    costs.preemptions_per_second = host.preemption->rate;
    costs.preemption_length = FromSeconds(host.preemption->length);
    costs.preemption_lengths_vary =
        host.preemption->lengths == PreemptionProfile::Lengths::kExponential;
  }
  if (host.neighbours) {
    costs.neighbours = host.neighbours->count;
    costs.slice = FromSeconds(host.neighbours->slice);
  }
  return costs;
}

}  // namespace prepost::sim
