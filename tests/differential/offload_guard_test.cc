// SPDX-License-Identifier: Apache-2.0
//
// The guard against stale bytes. A QP that breaks is flushed, flushed WQEs complete, and every WAIT
// behind them passes: nodes forward what they do not have and get their final completions. Here one
// QP fails in each of four ways in the middle of a transfer, under many orders of the NICs, with a
// host that looks at its final completion only and with hosts that wake for errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "prepost/backends/emulated/armed_group.h"
#include "prepost/backends/emulated/offload_run.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/runtime/interrupt.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/transfer.h"

namespace prepost {
namespace {

using emulated::ArmedGroup;
using emulated::EngineOptions;
using emulated::Fabric;
using emulated::MessageBuffers;
using emulated::NicEvent;
using emulated::QpFault;
using emulated::RunQueueProgram;
using emulated::SchedulerMode;
using nic::ArmedNode;
using nic::CompletionQueue;
using nic::CqId;
using nic::LoweringMode;
using nic::QpId;
using nic::QueueProgram;
using test::Transfer;
using testing::HasSubstr;

constexpr uint32_t kBlockBytes = 100;
/// From the fault to the verdict: an adversary may starve the broken QP for long.
constexpr uint64_t kStepsMax = 20000;

enum class FaultKind : uint8_t { kFatal, kFlush, kGone, kNoReceives };
constexpr FaultKind kFaultKinds[] = {FaultKind::kFatal, FaultKind::kFlush, FaultKind::kGone,
                                     FaultKind::kNoReceives};

struct Fault {
  FaultKind kind = FaultKind::kFatal;
  NodeId node;  ///< whose QP towards `peer` fails
  NodeId peer;
  uint32_t after = 0;  ///< receives
};

std::string Label(const Fault& fault, uint64_t seed) {
  return fmt::format("fault {} at QP {}>{} after {} receives, seed {}",
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
  }
  return {};
}

/// A transfer on NICs that the test steps, so that what its hosts do between two steps is exact.
class FaultyRun {
 public:
  FaultyRun(const Plan& plan, QueueProgram program, const Fault& fault, uint64_t seed)
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
    Arm();
  }

  /// Hosts look at nothing but final completions.
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

  uint64_t StepsFromFaultToVerdict() const {
    for (const NicEvent& event : fabric_.engine().log()) {
      if (event.kind == NicEvent::Kind::kError) return verdict_step_ - event.step;
    }
    return 0;
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
    const Result<QpId> qp = FindQp(node.program(), fault_.peer, kBlockLane);
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

  const Plan& plan_;
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
};

class OffloadGuardTest : public testing::TestWithParam<Shape> {
 protected:
  static Plan MakePlan() {
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

  /// A QP that blocks come to, before its last.
  Fault Draw(FaultKind kind, uint64_t seed) const {
    test::Random random(seed);
    std::vector<Fault> faults;
    for (const nic::NodeProgram& node : program_.nodes) {
      for (const nic::QueuePair& qp : node.qps) {
        if (qp.receives.empty() || qp.lane != kBlockLane) continue;
        const auto after = static_cast<uint32_t>(random.Below(qp.receives.size()));
        faults.push_back({kind, node.node, qp.peer, after});
      }
    }
    return faults[random.Below(faults.size())];
  }

  Plan plan_ = MakePlan();
  QueueProgram program_ = MakeProgram();
};

constexpr uint64_t kSeeds = 60;

/// Queues that fit their rings: hosts have nothing to do on the way.
class UnguardedOffloadTest : public OffloadGuardTest {};

// The danger is real: without it, the next tests would show nothing. Credits hold some of it back.
TEST_P(UnguardedOffloadTest, StaleForwardersGetTheirFinalCompletion) {
  const bool has_credits = std::string_view(GetParam().ready) != "barrier";
  size_t all = 0;
  for (const FaultKind kind : kFaultKinds) {
    size_t stale = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      FaultyRun run(plan_, program_, Draw(kind, seed), seed);
      run.RunUnguarded();
      stale += run.StaleForwardersThatEnd();
    }
    if (!has_credits) {
      EXPECT_GT(stale, 0u) << "fault " << static_cast<int>(kind);
    }
    all += stale;
  }
  EXPECT_GT(all, 0u);
}

// Hosts that act at once: no stale byte is sent, the first cause is named, and no node is complete.
TEST_P(OffloadGuardTest, FirstErrorStopsStaleBytesAndNamesTheCause) {
  for (const FaultKind kind : kFaultKinds) {
    if (kind == FaultKind::kNoReceives && GetParam().ring != 0) continue;  // posted by re-arming
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Fault fault = Draw(kind, seed);
      SCOPED_TRACE(Label(fault, seed));
      FaultyRun run(plan_, program_, fault, seed);
      const Status verdict = run.RunGuarded(/*delay_steps=*/0);
      ASSERT_EQ(verdict.code(), StatusCode::kRejected);
      EXPECT_LE(run.StepsFromFaultToVerdict(), kStepsMax);
      const uint32_t node = fault.node.value;
      const uint32_t peer = fault.peer.value;
      if (kind == FaultKind::kNoReceives) {
        EXPECT_THAT(verdict.message(), HasSubstr(fmt::format("sends of QP {}>{} ", peer, node)));
        EXPECT_THAT(verdict.message(), HasSubstr("RNR retry exceeded"));
      } else {
        EXPECT_THAT(verdict.message(), HasSubstr(fmt::format("QP {}>{} ", node, peer)));
      }
      if (kind == FaultKind::kFatal) {
        EXPECT_THAT(verdict.message(), HasSubstr("QP fatal error"));
      }
      EXPECT_FALSE(run.HasStaleReceives());
      EXPECT_FALSE(run.IsComplete());
    }
  }
}

// Hosts that act late: bytes that are stale may be on the way already, but no buffer is called
// complete, and from the verdict on nothing is delivered any more.
TEST_P(OffloadGuardTest, NothingIsForwardedAfterTheVerdict) {
  for (const FaultKind kind : kFaultKinds) {
    if (kind == FaultKind::kNoReceives && GetParam().ring != 0) continue;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Fault fault = Draw(kind, seed);
      SCOPED_TRACE(Label(fault, seed));
      FaultyRun run(plan_, program_, fault, seed);
      const Status verdict = run.RunGuarded(/*delay_steps=*/test::Random(seed).Below(50));
      ASSERT_EQ(verdict.code(), StatusCode::kRejected);
      const uint64_t delivered = run.fabric().engine().counters().messages;
      run.fabric().RunUntilIdle();
      EXPECT_EQ(run.fabric().engine().counters().messages, delivered);
      EXPECT_FALSE(run.IsComplete());
    }
  }
}

// The executor, with NICs that run on a thread of their own: one error, always.
TEST_P(OffloadGuardTest, ExecutorEndsInOneError) {
  for (const FaultKind kind : {FaultKind::kFatal, FaultKind::kFlush, FaultKind::kGone}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Fault fault = Draw(kind, seed);
      SCOPED_TRACE(Label(fault, seed));
      Transfer transfer(plan_.header());
      const Status status =
          RunQueueProgram(
              plan_, program_, transfer.message(), transfer.buffers(),
              {.scheduler = SchedulerMode::kRandom, .seed = seed, .faults = EngineFaults(fault)})
              .status();
      EXPECT_EQ(status.code(), StatusCode::kRejected);
      EXPECT_THAT(status.message(),
                  HasSubstr(fmt::format("QP {}>{} ", fault.node.value, fault.peer.value)));
    }
  }
}

constexpr Shape kShapes[] = {
    {"inline_barrier", LoweringMode::kInline, "binomial_pipeline", 8, 6, "barrier", 0},
    {"managed_barrier", LoweringMode::kManaged, "binomial_pipeline", 8, 6, "barrier", 0},
    {"inline_credits", LoweringMode::kInline, "binomial_pipeline", 8, 6, "window=1", 0},
    {"managed_credits", LoweringMode::kManaged, "binomial_pipeline", 8, 6, "window=1", 0},
    {"inline_rearmed", LoweringMode::kInline, "binomial_pipeline", 4, 24, "window=1", 16},
    {"managed_rearmed", LoweringMode::kManaged, "binomial_pipeline", 4, 24, "window=1", 16}};

std::string NameOf(const testing::TestParamInfo<Shape>& shape) { return shape.param.name; }

INSTANTIATE_TEST_SUITE_P(Shapes, OffloadGuardTest, testing::ValuesIn(kShapes), NameOf);
INSTANTIATE_TEST_SUITE_P(Shapes, UnguardedOffloadTest,
                         testing::ValuesIn(std::span(kShapes).first<4>().begin(),
                                           std::span(kShapes).first<4>().end()),
                         NameOf);

}  // namespace
}  // namespace prepost
