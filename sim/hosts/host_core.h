// SPDX-License-Identifier: Apache-2.0
//
// HostCore: a core of a host and the threads that use it, either way: how long it is at work, and
// whether anybody keeps it awake.
#ifndef PREPOST_SIM_HOSTS_HOST_CORE_H_
#define PREPOST_SIM_HOSTS_HOST_CORE_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/executor/wait_policy.h"
#include "sim/hosts/cpu_core.h"
#include "sim/hosts/host_costs.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// How long a host polls after it has last found something before it sleeps; kNever: it never does.
inline Picoseconds PollingTime(WaitMode wait, const HostCosts& costs) {
  switch (wait) {
    case WaitMode::kPolling:
      return kNever;
    case WaitMode::kHybrid:
      return costs.hybrid_polling;
    case WaitMode::kInterrupt:
      break;
  }
  return 0;
}

struct HostCore {
  explicit HostCore(CpuCore cpu_in) : cpu(std::move(cpu_in)) {}

  /// When a thread that wants the core now can have it: now, or when whoever has it is through, or
  /// when it is back.
  Picoseconds FreeAt(Picoseconds now) {
    WakeIfAsleep(now);
    if (busy_until > now) return busy_until;
    busy_until = cpu.WhenBack(now);
    if (busy_until != now) {
      away_from = now;
      away_until = busy_until;
    }
    return busy_until;
  }
  void WakeIfAsleep(Picoseconds now) {
    if (pollers == 0 && awake_until < now) cpu.Wake(now);
  }
  void StayAwake(Picoseconds until) { awake_until = std::max(awake_until, until); }

  Picoseconds busy_until = 0;
  Picoseconds awake_until = -1;  ///< a thread is at work or polls
  uint32_t pollers = 0;          ///< threads that poll until they are done
  CpuCore cpu;
  Picoseconds away_from = 0;  ///< a thread wanted the core then, and it was back only
  Picoseconds away_until = -1;
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_HOSTS_HOST_CORE_H_
