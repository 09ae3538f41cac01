// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/profile_costs.h"

#include <cmath>

namespace prepost::emulated {
namespace {

Picoseconds ToPicoseconds(double seconds) {
  return std::llround(seconds * static_cast<double>(kPicosecondsPerSecond));
}

}  // namespace

NicCosts NicCostsOf(const NicProfile& profile) {
  return {.wqe = ToPicoseconds(profile.wqe),
          .wait = ToPicoseconds(profile.wait),
          .cqe = ToPicoseconds(profile.cqe),
          .doorbell = ToPicoseconds(profile.doorbell),
          .message_overhead_bytes = profile.message_overhead_bytes};
}

HostCosts HostCostsOf(const Profile& profile) {
  const HostProfile& host = profile.host;
  HostCosts costs{.cores = host.cores,
                  .post_send = ToPicoseconds(host.post_send),
                  .post_receive = ToPicoseconds(host.post_receive),
                  .poll = ToPicoseconds(host.poll),
                  .completion = ToPicoseconds(host.completion),
                  .credit = ToPicoseconds(host.credit),
                  .interrupt = ToPicoseconds(host.interrupt),
                  .hybrid_polling = ToPicoseconds(host.hybrid_polling),
                  .message_start = ToPicoseconds(host.message_start),
                  .message_setup = ToPicoseconds(host.message_setup)};
  if (profile.tcp) {
    costs.system_call = ToPicoseconds(profile.tcp->system_call);
    costs.system_copy_rate = profile.tcp->copy_rate;
  }
  if (host.preemption) {
    costs.preemptions_per_second = host.preemption->rate;
    costs.preemption_length = ToPicoseconds(host.preemption->length);
    costs.preemption_lengths_vary =
        host.preemption->lengths == PreemptionProfile::Lengths::kExponential;
  }
  return costs;
}

}  // namespace prepost::emulated
