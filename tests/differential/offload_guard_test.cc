// SPDX-License-Identifier: Apache-2.0
//
// The guard against stale bytes. A QP that breaks is flushed, flushed WQEs complete, and every WAIT
// behind them passes: nodes forward what they do not have and get their final completions. Here one
// QP, or all of a NIC, fails in each of six ways in the middle of a transfer, under many orders of
// the NICs, with a host that polls its final completion only and with hosts that wake for
// errors; behind every device in front of NICs in software.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "backends/local/armed_group.h"
#include "backends/local/offload_run.h"
#include "backends/nic/program/lower.h"
#include "runtime/base/interrupt.h"
#include "tests/support/engines.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"
#include "tests/support/transfer.h"

namespace prepost::offload_guard_test {
namespace {

using emulated::EngineOptions;
using emulated::Fabric;
using emulated::NicEvent;
using emulated::QpFault;
using emulated::SchedulerMode;
using local::ArmedGroup;
using local::MessageBuffers;
using local::RunQueueProgram;
using nic::ArmedNode;
using nic::CompletionQueue;
using nic::CqId;
using nic::Failure;
using nic::FailureKind;
using nic::LoweringMode;
using nic::QpId;
using nic::QueueProgram;
using test::Transfer;
using testing::MatchesRegex;

constexpr uint32_t kBlockBytes = 100;
/// Between two polls of hosts; NICs stop earlier, where an event comes.
constexpr uint64_t kStepsMax = 20000;
/// From a QP that vanishes, which no NIC reports, to the end of its peer's retries: 626 at most
/// under these seeds. Everything else is reported in the step in which it happens.
constexpr uint64_t kRetryStepsMax = 700;

enum class FaultKind : uint8_t { kFatal, kFlush, kGone, kNoReceives, kDeviceFatal, kPortDown };
/// After which something is flushed, or retries end, while the others go on.
constexpr FaultKind kQpFaultKinds[] = {FaultKind::kFatal, FaultKind::kFlush, FaultKind::kGone,
                                       FaultKind::kNoReceives};
/// The faults that a NIC is given (EngineFaults()).
constexpr FaultKind kNicFaultKinds[] = {FaultKind::kFatal, FaultKind::kFlush, FaultKind::kGone,
                                        FaultKind::kDeviceFatal, FaultKind::kPortDown};
constexpr FaultKind kFaultKinds[] = {FaultKind::kFatal,       FaultKind::kFlush,
                                     FaultKind::kGone,        FaultKind::kNoReceives,
                                     FaultKind::kDeviceFatal, FaultKind::kPortDown};

struct Fault {
  FaultKind kind = FaultKind::kFatal;
  NodeId node;  ///< whose QP towards `peer` fails
  NodeId peer;
  uint32_t after = 0;  ///< receives
};

std::string Label(const Fault& fault, uint64_t seed) {
  return fmt::format("fault {} at QP {}<>{} after {} receives, seed {}",
                     static_cast<int>(fault.kind), fault.node.value, fault.peer.value, fault.after,
                     seed);
}

std::vector<QpFault> EngineFaults(const Fault& fault) {
  const auto of = [&](QpFault::Kind kind) {
    return std::vector<QpFault>{{fault.node, fault.peer, fault.after, kind}};
  };
  switch (fault.kind) {
    case FaultKind::kFatal:
      return of(QpFault::Kind::kFatal);
    case FaultKind::kFlush:
      return of(QpFault::Kind::kFlush);
    case FaultKind::kGone:
      return of(QpFault::Kind::kGone);
    case FaultKind::kNoReceives:
      return {};  // see FaultyRun::Arm
    case FaultKind::kDeviceFatal:
      return of(QpFault::Kind::kDeviceFatal);
    case FaultKind::kPortDown:
      return of(QpFault::Kind::kPortDown);
  }
  return {};
}

/// The message of the end. What the NICs report takes one line; of a QP that is gone there may be
/// nothing but who waits for it.
auto NamesCause(const Fault& fault) {
  const std::string node = fmt::format("node {}: ", fault.node.value);
  const std::string own = fmt::format("QP {}<>{} ", fault.node.value, fault.peer.value);
  const std::string out = fmt::format("{}>{} ", fault.node.value, fault.peer.value);
  const std::string in = fmt::format("{}>{} ", fault.peer.value, fault.node.value);
  switch (fault.kind) {
    case FaultKind::kFatal:
      return MatchesRegex(node + own + "(blocks|credits): QP fatal error");
    case FaultKind::kFlush:
    case FaultKind::kGone:
      return MatchesRegex("(.|\n)*(" + own + "|sends " + out + "|receives " + in + ")(.|\n)*");
    case FaultKind::kNoReceives:
      return MatchesRegex(".*sends " + in + ".*RNR retry exceeded.*");
    case FaultKind::kDeviceFatal:
      return MatchesRegex(node + "device fatal error");
    case FaultKind::kPortDown:
      return MatchesRegex(node + "port error");
  }
  return MatchesRegex("");
}

/// A transfer on NICs that the test steps, so that what its hosts do between two steps is exact.
class FaultyRun {
 public:
  FaultyRun(const VerifiedPlan& plan, QueueProgram program, const Fault& fault, uint64_t seed,
            const nic::DeviceFactory& make_device)
      : plan_(plan),
        program_(std::move(program)),
        fault_(fault),
        transfer_(plan.header()),
        fabric_(plan.header().nodes,
                EngineOptions{.scheduler = seed % 2 == 0 ? SchedulerMode::kRandom
                                                         : SchedulerMode::kAdversarial,
                              .seed = seed,
                              .log = true,
                              .faults = EngineFaults(fault)}) {
    if (fault.kind == FaultKind::kNoReceives) program_.rnr_retry = 2;
    if (make_device) {
      EXPECT_TRUE(fabric_.MakeDevices(make_device).ok());
    }
    Arm();
  }

  /// Hosts poll nothing but final completions.
  void RunUnguarded() {
    for (ArmedNode& node : group_->nodes()) node.Start();
    fabric_.RunUntilIdle();
  }

  /// Hosts sleep until an event, and act `delay_steps` after it. The verdict, which is an error.
  Status RunGuarded(uint64_t delay_steps) {
    for (ArmedNode& node : group_->nodes()) node.Start();
    bool busy = true;
    while (busy) {
      busy = fabric_.RunSome(kStepsMax);
      for (ArmedNode& node : group_->nodes()) {
        if (!IsInterrupted(*Device(node).EventFile())) continue;
        for (uint64_t i = 0; i < delay_steps; ++i) fabric_.RunSome(1);
        const Result<bool> done = node.TakeEvents();
        if (done.ok()) continue;
        verdict_step_ = fabric_.engine().steps();
        return group_->Fail();
      }
    }
    verdict_step_ = fabric_.engine().steps();
    return group_->Stuck();
  }

  /// Hosts poll, and never sleep, each time that no NIC can go on. What the first that sees
  /// something wrong makes of it; none: nobody does.
  std::optional<Failure> RunPolled() {
    for (ArmedNode& node : group_->nodes()) node.Start();
    for (int polls = 0; polls < 1000; ++polls) {
      fabric_.RunUntilIdle();
      for (ArmedNode& node : group_->nodes()) {
        if (!node.Poll(std::chrono::milliseconds(0), -1).ok()) return node.failure();
      }
    }
    return std::nullopt;
  }

  /// What a host learns that polls and never sleeps.
  Status PollAtTheFault() {
    Result<bool> done = false;
    for (int polls = 0; done.ok() && polls < 1000; ++polls) {
      done = group_->nodes()[fault_.node.index()].Poll(std::chrono::milliseconds(0), -1);
    }
    return done.status();
  }

  /// From the first QP that broke, or the first event of a device that failed; none: there was
  /// none.
  std::optional<uint64_t> StepsFromFaultToVerdict() const {
    for (const NicEvent& event : fabric_.engine().log()) {
      if (event.kind == NicEvent::Kind::kError) return verdict_step_ - event.step;
    }
    return std::nullopt;
  }

  /// True when all CQEs of all nodes are as planned: what makes anybody's buffer complete.
  bool IsComplete() { return group_->Check().ok(); }

  /// The final CQE has come, and is none of an error: what an unguarded host takes for success.
  bool HasFinalCompletion(const ArmedNode& node) const {
    const CqId id = node.program().final_cq;
    nic::CqeReader reader(node.cq(id));
    std::optional<nic::Cqe> last;
    uint32_t count = 0;
    while (const std::optional<nic::Cqe> cqe = reader.Next()) {
      last = cqe;
      ++count;
    }
    return count == node.program().cqs[id.index()].completions && !last->is_error();
  }

  /// Nodes that have forwarded bytes that they did not have and have their final completion.
  size_t StaleForwardersThatEnd() const {
    std::vector<bool> stale(plan_.header().nodes);
    for (const ArmedNode& node : group_->nodes()) {
      for (size_t i = 0; i < node.program().cqs.size(); ++i) {
        const CompletionQueue& cq = node.program().cqs[i];
        if (cq.role != CompletionQueue::Role::kReceives) continue;
        const nic::QueuePair& qp = node.program().qps[cq.qp.index()];
        if (HasStaleReceive(node, CqId::FromIndex(i), qp)) stale[qp.peer.index()] = true;
      }
    }
    size_t count = 0;
    for (const ArmedNode& node : group_->nodes()) {
      if (stale[node.program().node.index()] && HasFinalCompletion(node)) ++count;
    }
    return count;
  }

  bool HasStaleReceives() const {
    return std::ranges::any_of(group_->nodes(), [&](const ArmedNode& node) {
      for (size_t i = 0; i < node.program().cqs.size(); ++i) {
        const CompletionQueue& cq = node.program().cqs[i];
        if (cq.role == CompletionQueue::Role::kReceives &&
            HasStaleReceive(node, CqId::FromIndex(i), node.program().qps[cq.qp.index()])) {
          return true;
        }
      }
      return false;
    });
  }

  Fabric& fabric() { return fabric_; }
  std::span<const ArmedNode> nodes() const { return group_->nodes(); }

 private:
  void Arm() {
    const std::array messages = {MessageBuffers{transfer_.message(), transfer_.buffers()}};
    Result<ArmedGroup> group = ArmedGroup::Make(fabric_, plan_, program_, messages, {.epoch = 3});
    ASSERT_TRUE(group.ok()) << group.status().ToString();
    group_.emplace(*std::move(group));
    for (ArmedNode& node : group_->nodes()) {
      ASSERT_TRUE(Device(node).EventFile().ok());
      ASSERT_TRUE(node.Arm().ok());
      ASSERT_TRUE(node.RequestEvents().ok());
    }
    if (fault_.kind != FaultKind::kNoReceives) return;
    const ArmedNode& node = group_->nodes()[fault_.node.index()];
    const Result<QpId> qp = FindQp(node.program(), fault_.peer, Lane::kBlocks);
    ASSERT_TRUE(qp.ok());
    nic::PostReceives(node.qp(*qp), static_cast<uint16_t>(fault_.after));
  }

  nic::Device& Device(const ArmedNode& node) { return fabric_.device(node.program().node); }

  /// True when a receive has completed whose bytes are not the message's.
  bool HasStaleReceive(const ArmedNode& node, CqId id, const nic::QueuePair& qp) const {
    nic::CqeReader reader(node.cq(id));
    const std::span<const std::byte> buffer = transfer_.buffers()[node.program().node.index()];
    for (const nic::ReceiveEntry& receive : qp.receives) {
      const std::optional<nic::Cqe> cqe = reader.Next();
      if (!cqe || cqe->is_error()) return false;
      const auto got = buffer.subspan(receive.offset, receive.bytes);
      if (!std::ranges::equal(got, transfer_.message().subspan(receive.offset, receive.bytes))) {
        return true;
      }
    }
    return false;
  }

  const VerifiedPlan& plan_;
  QueueProgram program_;
  Fault fault_;
  Transfer transfer_;
  Fabric fabric_;
  std::optional<ArmedGroup> group_;
  uint64_t verdict_step_ = 0;
};

struct Shape {
  const char* name;
  LoweringMode mode;
  const char* algorithm;
  uint32_t nodes;
  uint32_t blocks;
  const char* ready;
  uint32_t ring;  ///< of every queue, 0: as large as needed
  const test::Engine* engine = nullptr;
};

class OffloadGuardTest : public testing::TestWithParam<Shape> {
 protected:
  static VerifiedPlan MakePlan() {
    const Shape& shape = GetParam();
    return test::CompileOrDie({.nodes = shape.nodes,
                               .message_bytes = uint64_t{shape.blocks} * kBlockBytes,
                               .block_bytes = kBlockBytes,
                               .algorithm = shape.algorithm,
                               .ready = *ParseReady(shape.ready)});
  }
  QueueProgram MakeProgram() const {
    nic::LowerOptions options{.mode = GetParam().mode};
    if (GetParam().ring != 0) {
      options.profile.sq_wqebbs = options.profile.rq_wqes = GetParam().ring;
    }
    const Result<QueueProgram> program = nic::Lower(plan_, options);
    EXPECT_TRUE(program.ok()) << program.status().ToString();
    return *program;
  }

  static const nic::DeviceFactory& MakeDevice() { return *GetParam().engine->nics; }
  /// The emulated device is asked under more seeds: it is the same NIC behind all.
  static uint64_t Seeds() {
    if (MakeDevice()) return 8;
    return test::kIsSanitized && !test::IsLongRun() ? 15 : 60;
  }

  /// A QP that blocks come to, before its last.
  Fault Draw(FaultKind kind, uint64_t seed) const {
    test::Random random(seed);
    std::vector<Fault> faults;
    for (const nic::NodeProgram& node : program_.nodes) {
      for (const nic::QueuePair& qp : node.qps) {
        if (qp.receives.empty() || qp.lane != Lane::kBlocks) continue;
        const auto after = static_cast<uint32_t>(random.Below(qp.receives.size()));
        faults.push_back({kind, node.node, qp.peer, after});
      }
    }
    return faults[random.Below(faults.size())];
  }

  /// Receives that are missing are posted after all where rings are re-armed.
  static std::span<const FaultKind> FaultKinds() {
    if (GetParam().ring != 0) return kNicFaultKinds;
    return kFaultKinds;
  }

  /// Calls `test` with a fault of each kind, drawn from each seed, and that; until it has failed
  /// where it cannot go on.
  template <typename Test>
  void ForEachFault(std::span<const FaultKind> kinds, uint64_t seeds, Test&& test) const {
    for (const FaultKind kind : kinds) {
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const Fault fault = Draw(kind, seed);
        SCOPED_TRACE(Label(fault, seed));
        test(fault, seed);
        if (HasFatalFailure()) return;
      }
    }
  }

  VerifiedPlan plan_ = MakePlan();
  QueueProgram program_ = MakeProgram();
};

/// Queues that fit their rings: hosts have nothing to do on the way.
class UnguardedOffloadTest : public OffloadGuardTest {};

// The danger is real: without it, the next tests would show nothing. Credits hold some of it back.
TEST_P(UnguardedOffloadTest, StaleForwardersGetTheirFinalCompletion) {
  const bool has_credits = std::string_view(GetParam().ready) != "barrier";
  size_t all = 0;
  for (const FaultKind kind : kQpFaultKinds) {
    size_t stale = 0;
    ForEachFault({&kind, 1}, Seeds(), [&](const Fault& fault, uint64_t seed) {
      FaultyRun run(plan_, program_, fault, seed, MakeDevice());
      run.RunUnguarded();
      stale += run.StaleForwardersThatEnd();
    });
    if (!has_credits) {
      EXPECT_GT(stale, 0u) << "fault " << static_cast<int>(kind);
    }
    all += stale;
  }
  EXPECT_GT(all, 0u);
}

// A failed device makes no CQE: a host that polls would go on for ever.
TEST_P(UnguardedOffloadTest, HostThatPollsIsToldOfAFailedDevice) {
  const Fault fault = Draw(FaultKind::kDeviceFatal, /*seed=*/1);
  FaultyRun run(plan_, program_, fault, /*seed=*/1, MakeDevice());
  run.RunUnguarded();
  EXPECT_THAT(run.PollAtTheFault().message(), NamesCause(fault));
}

// Hosts that act at once: no stale byte is sent, the first cause is named, and no node is complete.
TEST_P(OffloadGuardTest, FirstErrorStopsStaleBytesAndNamesTheCause) {
  ForEachFault(FaultKinds(), Seeds(), [&](const Fault& fault, uint64_t seed) {
    FaultyRun run(plan_, program_, fault, seed, MakeDevice());
    const Status verdict = run.RunGuarded(/*delay_steps=*/0);
    ASSERT_EQ(verdict.code(), StatusCode::kRejected);
    const std::optional<uint64_t> steps = run.StepsFromFaultToVerdict();
    ASSERT_TRUE(steps.has_value()) << "no NIC told of an error";
    EXPECT_LE(*steps, fault.kind == FaultKind::kGone ? kRetryStepsMax : 0);
    EXPECT_THAT(verdict.message(), NamesCause(fault));
    EXPECT_FALSE(run.HasStaleReceives());
    EXPECT_FALSE(run.IsComplete());
  });
}

// Hosts that act late: bytes that are stale may be on the way already, but no buffer is called
// complete, and from the verdict on nothing is delivered any more.
TEST_P(OffloadGuardTest, NothingIsForwardedAfterTheVerdict) {
  ForEachFault(FaultKinds(), Seeds(), [&](const Fault& fault, uint64_t seed) {
    FaultyRun run(plan_, program_, fault, seed, MakeDevice());
    const Status verdict = run.RunGuarded(/*delay_steps=*/test::Random(seed).Below(50));
    ASSERT_EQ(verdict.code(), StatusCode::kRejected);
    const uint64_t delivered = run.fabric().engine().counters().messages;
    run.fabric().RunUntilIdle();
    EXPECT_EQ(run.fabric().engine().counters().messages, delivered);
    EXPECT_FALSE(run.IsComplete());
  });
}

// Hosts that come so late that whatever follows from the fault has happened by then: the peer's
// retries have ended, and its QPs are flushed, too.
TEST_P(OffloadGuardTest, LateHostsNameTheCause) {
  ForEachFault(FaultKinds(), Seeds(), [&](const Fault& fault, uint64_t seed) {
    FaultyRun run(plan_, program_, fault, seed, MakeDevice());
    const Status verdict = run.RunGuarded(/*delay_steps=*/2 * kRetryStepsMax);
    ASSERT_EQ(verdict.code(), StatusCode::kRejected);
    EXPECT_THAT(verdict.message(), NamesCause(fault));
  });
}

// When a QP is gone its peer's is flushed, and for want of an answer only. A host that polls reads
// some of its CQs, and may come by a flush before what it follows from.
TEST_P(OffloadGuardTest, HostsThatPollFindTheCauseOfAFlush) {
  size_t found = 0;
  constexpr FaultKind kGone[] = {FaultKind::kGone};
  ForEachFault(kGone, Seeds(), [&](const Fault& fault, uint64_t seed) {
    FaultyRun run(plan_, program_, fault, seed, MakeDevice());
    const std::optional<Failure> failure = run.RunPolled();
    if (!failure) return;  // its peer had nothing to send any more
    EXPECT_EQ(failure->kind, FailureKind::kNoAnswer) << failure->message;
    ++found;
  });
  EXPECT_GT(found, 0u);
}

// The executor, with NICs that run on a thread of their own: one error, always.
TEST_P(OffloadGuardTest, ExecutorEndsInOneError) {
  ForEachFault(kNicFaultKinds, Seeds() / 3, [&](const Fault& fault, uint64_t seed) {
    Transfer transfer(plan_.header());
    const Status status = RunQueueProgram(plan_, program_, transfer.message(), transfer.buffers(),
                                          {.make_device = MakeDevice(),
                                           .scheduler = SchedulerMode::kRandom,
                                           .seed = seed,
                                           .faults = EngineFaults(fault)})
                              .status();
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_THAT(status.message(), NamesCause(fault));
  });
}

constexpr Shape kShapes[] = {
    {"inline_barrier", LoweringMode::kInline, "binomial_pipeline", 8, 6, "barrier", 0},
    {"managed_barrier", LoweringMode::kManaged, "binomial_pipeline", 8, 6, "barrier", 0},
    {"inline_credits", LoweringMode::kInline, "binomial_pipeline", 8, 6, "window=1", 0},
    {"managed_credits", LoweringMode::kManaged, "binomial_pipeline", 8, 6, "window=1", 0},
    {"inline_rearmed", LoweringMode::kInline, "binomial_pipeline", 4, 24, "window=1", 16},
    {"managed_rearmed", LoweringMode::kManaged, "binomial_pipeline", 4, 24, "window=1", 16}};

/// Every shape on every device; those that fit their rings only, or all.
std::vector<Shape> Shapes(bool fitting) {
  std::vector<Shape> shapes;
  for (Shape shape : kShapes) {
    if (fitting && shape.ring != 0) continue;
    for (const test::Engine& engine : test::Engines()) {
      shape.engine = &engine;
      if (engine.nics) shapes.push_back(shape);
    }
  }
  return shapes;
}

std::string NameOf(const testing::TestParamInfo<Shape>& shape) {
  return fmt::format("{}_{}", shape.param.name, shape.param.engine->name);
}

INSTANTIATE_TEST_SUITE_P(Shapes, OffloadGuardTest, testing::ValuesIn(Shapes(/*fitting=*/false)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Shapes, UnguardedOffloadTest, testing::ValuesIn(Shapes(/*fitting=*/true)),
                         NameOf);

}  // namespace
}  // namespace prepost::offload_guard_test
