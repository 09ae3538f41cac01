// SPDX-License-Identifier: Apache-2.0
//
// Where tests get their plans: every small spec, and random ones, compiled.
#ifndef PREPOST_TESTS_SUPPORT_PLANS_H_
#define PREPOST_TESTS_SUPPORT_PLANS_H_

#include <string>
#include <vector>

#include "compiler/spec.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "tests/support/random.h"

namespace prepost::test {

struct SpecLimits {
  uint32_t nodes_max = 9;
  uint32_t blocks_max = 6;
};

/// The schedules that tests of all plans go through: all of them; with sanitizers, whose tests take
/// many times as long, a third, another with each commit: Turns(), ScheduleInTurn() what it is for
/// a test's parameter, one of ScheduleParameters().
std::vector<std::string> SchedulesToRun();
std::vector<std::string> ScheduleParameters();
std::string ScheduleInTurn(const std::string& parameter);

/// Every schedule x ready mode x send window x nodes x blocks x some roots; the last block is short
/// in some. About 10,000 with the default limits.
std::vector<Spec> AllSmallSpecs(SpecLimits limits = {},
                                const std::vector<std::string>& schedules = SchedulesToRun());

/// What executors are compared on, where each run costs processes or threads: every schedule x
/// ready mode x nodes x blocks, one root each, and the empty message.
std::vector<Spec> SpecsForExecutors(SpecLimits limits,
                                    const std::vector<std::string>& schedules = SchedulesToRun());

/// The schedules of a collective that are for so many members.
std::vector<std::string> SchedulesOf(CollectiveKind kind, uint32_t members);
/// Every collective but multicast x its schedules x ready mode x nodes x blocks of a part, and a
/// root each where there is one.
std::vector<Spec> SpecsOfCollectives(SpecLimits limits);
/// `specs` with sizes of their own drawn for the parts of about half of those that have any, none
/// among them: whole elements, at most message_bytes.
std::vector<Spec> WithUnevenParts(std::vector<Spec> specs, Random& random);
/// SpecsOfCollectives() with an operation on integers drawn for each that combines, so that what
/// comes out does not depend on the order; parts end within a block, and some have sizes of their
/// own.
std::vector<Spec> SpecsOfExactCollectives(SpecLimits limits, Random& random);
/// "allreduce=ring" for each of `specs`, for Sample.
std::vector<std::string> CollectiveLabels(const std::vector<Spec>& specs);

/// "schedule=chain" for each of `specs`, for Sample.
std::vector<std::string> ScheduleLabels(const std::vector<Spec>& specs);

/// What a plan with one port and windows of 1 takes where nothing but blocks takes time, in times
/// of a block: the longest chain of transfers that wait for each other. That is the plan's rounds,
/// which it checks, but for three schedules in which a node that could go on waits for some rounds
/// to begin.
uint64_t BlockTimesOf(const Plan& plan);

/// A spec within the limits; any schedule, ready mode, window and root, and sometimes no bytes.
Spec RandomSpec(Random& random, SpecLimits limits);

/// `spec`, with a topology where its schedule makes sense of racks: as many racks of `rack_size`
/// nodes (the last may be smaller) as its nodes fill.
Spec WithRacks(Spec spec, uint32_t rack_size);

/// The plan of a spec; a spec that does not compile is a failure of the test program.
/// `skip_passes` as in CompileOptions.
VerifiedPlan CompileOrDie(const Spec& spec, const std::vector<std::string>& skip_passes = {});

/// The plan of a message of `blocks` blocks of 10 bytes; the rest as in Spec.
VerifiedPlan PlanOf(uint32_t nodes, uint32_t blocks,
                    const std::string& algorithm = "binomial_pipeline");

/// The plan of `blocks` blocks of `block_bytes` each with windows of 1, both ways: a receiver
/// grants one block at a time (ready), and a sender has one on the way to it (send_window).
VerifiedPlan PlanWithWindowsOf1(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
                                uint64_t block_bytes);

/// "chain n=4 root=0 bytes=37 ready=barrier send_window=1", for messages.
std::string Label(const Spec& spec);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_PLANS_H_
