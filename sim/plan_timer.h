// SPDX-License-Identifier: Apache-2.0
//
// MakePlanTimer: what Choose() (compiler/choice/choice.h) compares plans by where the cluster is
// known: the simulation, with what prepost simulate would print for them.
#ifndef PREPOST_SIM_PLAN_TIMER_H_
#define PREPOST_SIM_PLAN_TIMER_H_

#include "backends/nic/program/lower.h"
#include "compiler/choice/collective_choice.h"
#include "compiler/choice/plan_timing.h"
#include "ir/analysis/network.h"
#include "runtime/executor/wait_policy.h"
#include "sim/cluster/profile.h"

namespace prepost::sim {

struct PlanTimerOptions {
  Profile profile;
  Network network;         ///< in place of the profile's
  bool is_offload = true;  ///< preposted, else CPU-driven
  WaitMode wait = WaitMode::kHybrid;
  nic::LowerOptions lower = {};  ///< preposted: plans that do not fit are left out
};

/// What ChooseCollective() goes by on the profile's cluster: its port's rate; of a message that
/// waits for another, or does not, what its hosts and the network between two of a rack take; its
/// hosts' rate of combining, if the profile has it. Only over TCP do bytes take longer that go to
/// another member.
CollectiveParameters CollectiveParametersOf(const Profile& profile);

/// Seconds until all nodes have the message, of a plan for the first nodes of the network. May be
/// called by one thread at a time.
PlanTimer MakePlanTimer(PlanTimerOptions options);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_PLAN_TIMER_H_
