// SPDX-License-Identifier: Apache-2.0
//
// Engines: whatever plays all nodes of a plan in one process: transports, NICs in software, devices
// of libraries. A new one is one row of the table in engines.cc, and is then in every test that
// goes over Engines() or Ways(): plans of all schedules against the oracle, collectives, groups
// some of whose nodes are preposted, and what groups and sessions rely on of a device.
#ifndef PREPOST_TESTS_SUPPORT_ENGINES_H_
#define PREPOST_TESTS_SUPPORT_ENGINES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "backends/emulated/engine.h"
#include "backends/local/armed_group.h"
#include "backends/nic/nic_model.h"
#include "backends/nic/program/lower.h"
#include "ir/verify/verify.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/trace/report.h"
#include "runtime/transport/local_transport.h"
#include "tests/support/local_nodes.h"
#include "tests/support/plans.h"

namespace prepost::test {

/// How a plan is played.
struct PlayOptions {
  /// By node: all of it is given ahead, otherwise its CPU drives it. Empty: all are driven.
  std::vector<bool> preposted = {};
  // What these five say is for NICs in software.
  nic::LowerOptions lower = {};  ///< of preposted nodes
  emulated::SchedulerMode scheduler = emulated::SchedulerMode::kRoundRobin;
  uint64_t seed = 1;
  local::FirstNumbers first = {};              ///< where all nodes are preposted
  uint32_t ring_wqes_max = 32768;              ///< where all are driven
  WaitMode wait = WaitMode::kInterrupt;        ///< the same, and of transports
  OpObserver observer = {};                    ///< of all nodes, if Engine::IsObserved()
  std::function<void()> before_start = [] {};  ///< where each node has a device: when all are ready
};

struct Engine {
  std::string name;  ///< of test instances
  // What it is, one of three: a transport; NICs in software, and what stands in front of them
  // (empty: their own device); a library's device.
  std::optional<TransportKind> transport = {};
  uint16_t streams = 1;
  SealCipher seal = SealCipher::kNone;
  bool shares_memory = false;  ///< its connections go through memory
  std::optional<nic::DeviceFactory> nics = {};
  std::string device = {};  ///< of the registry; empty: none of its
  /// Of a device of the registry: what is more than it can be given ahead. None: it can be given
  /// nothing.
  std::optional<Spec> too_large = {};
  /// Why a peer that goes before anything has come to it is not missed. Empty: it is.
  std::string connects_late = {};
  /// More than one piece or packet.
  uint64_t large_block_bytes = 300'000;
  /// How much dearer a play is than those of others: SampleDivisor().
  uint32_t fewer = 1;
  SpecLimits limits = {};  ///< of small plans

  bool is_library() const { return !transport && !nics; }
  bool can_prepost() const { return nics || too_large; }
  /// In listings: `device` without what is asked of it.
  std::string listed_name() const { return device.substr(0, device.find(',')); }
  /// The first reason, if it is not there: not built, not found, or nothing for a sanitizer.
  std::optional<std::string> WhySkipped() const;
  /// Whether all ops of such a play are told to an observer.
  bool IsObserved(const PlayOptions& options) const;
  /// From and to `memory`, by node; of collectives with `staging`. What hosts may do meanwhile is
  /// expected of them. Errors: what any node fails with.
  Result<RunReport> Play(const VerifiedPlan& plan, std::span<const NodeMemory> memory,
                         const PlayOptions& options = {}) const;
};
const std::vector<Engine>& Engines();
/// The row of this name, which must be there.
const Engine& EngineOf(const std::string& name);
/// By name, for parameters of tests.
std::vector<std::string> EnginesWhere(const std::function<bool(const Engine&)>& takes);

/// An engine with all nodes driven or all preposted, and how queues of NICs are made then.
struct Way {
  const Engine* engine = nullptr;
  bool is_preposted = false;
  nic::LoweringMode mode = nic::LoweringMode::kInline;

  /// "tcp", "emulated_driven", "emulated_managed", "fabric_sockets_preposted".
  std::string name() const;
  PlayOptions Options(const VerifiedPlan& plan) const;
  friend void PrintTo(const Way& it, std::ostream* out) { *out << it.name(); }
};
std::vector<Way> Ways(const std::function<bool(const Way&)>& takes = [](const Way&) {
  return true;
});

/// Every node ends with the oracle's bytes, in an order that the plan allows.
void ExpectDelivers(const Engine& engine, const VerifiedPlan& plan, PlayOptions options);

/// The CPU executors of `plan` over `nodes`, a thread each. Errors: what any of them fails with.
Result<RunReport> PlayLocal(Playable plan, LocalNodes& nodes, const OpObserver& observer = {},
                            WaitMode wait = WaitMode::kInterrupt);

}  // namespace prepost::test

/// At the beginning of a test over an engine.
#define PREPOST_SKIP_IF_NOT_THERE(engine) \
  if (const auto why = (engine).WhySkipped()) GTEST_SKIP() << *why

#endif  // PREPOST_TESTS_SUPPORT_ENGINES_H_
