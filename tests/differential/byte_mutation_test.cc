// SPDX-License-Identifier: Apache-2.0
//
// Wrong bytes: programs that were lowered, linked and written into the rings of emulated NICs, of
// which one WQE is then damaged; and wrong objects: programs of which a ring, a retry count, the
// mode or the name of an op is changed before they are armed. The validator refuses each, or the
// NICs and their hosts notice, or it does no harm: then it is of a kind of which that is said here
// why, and many orders of events deliver. A damage that the validator lets pass and that shows in
// any run fails the test, unless its kind says that the validator need not see it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/local/armed_group.h"
#include "backends/nic/program/lower.h"
#include "backends/nic/program/op_labels.h"
#include "backends/nic/validate/object_table.h"
#include "compiler/schedules/schedule.h"
#include "tests/differential/byte_damages.h"
#include "tests/differential/object_damages.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"
#include "tests/support/transfer.h"

namespace prepost::byte_mutation_test {
namespace {

using test::ByteDamage;
using test::ObjectDamage;
using test::Site;

/// A program on fresh emulated NICs, whose bytes can be damaged before they start.
class Trial {
 public:
  /// `transfer` is where the message is: its addresses stand in the bytes.
  Trial(const VerifiedPlan& plan, const nic::QueueProgram& program, const test::Transfer& transfer,
        uint64_t seed)
      : plan_(plan),
        transfer_(transfer),
        random_(seed),
        buffers_{transfer_.message(), transfer_.buffers()},
        fabric_(plan.header().nodes,
                {.scheduler = emulated::SchedulerMode::kAdversarial, .seed = seed}) {
    for (const std::span<std::byte> buffer : transfer_.buffers()) {
      std::ranges::fill(buffer, std::byte{0xee});
    }
    auto group =
        local::ArmedGroup::Make(fabric_, plan, program, std::span(&buffers_, 1), {.epoch = 5});
    PREPOST_CHECK(group.ok());
    group_.emplace(*std::move(group));
    for (nic::ArmedNode& node : group_->nodes()) PREPOST_CHECK(node.Arm().ok());
  }

  /// The bytes in the rings, those of later parts, and the NICs' objects.
  std::vector<nic::QueueObjects> Objects() const {
    std::vector<nic::QueueObjects> all;
    for (const nic::ArmedNode& node : group_->nodes()) {
      all.push_back(group_->Objects(node.program().node));
    }
    return all;
  }

  /// Runs with `objects`' bytes in the rings. Hosts poll at any time. Ok when every node ends with
  /// the message and nothing was wrong on the way.
  Status Run(const std::vector<nic::QueueObjects>& objects) {
    Overwrite(objects);
    for (nic::ArmedNode& node : group_->nodes()) node.Start();
    bool is_idle = false;
    for (size_t done = 0; done != group_->nodes().size(); is_idle = !RunSome()) {
      const uint64_t written = WqesWritten();
      done = 0;
      for (nic::ArmedNode& node : group_->nodes()) {
        const Result<bool> is_done = node.Poll(std::chrono::milliseconds(0), /*wake_fd=*/-1);
        if (!is_done.ok()) return is_done.status();
        done += *is_done ? 1u : 0u;
      }
      Overwrite(objects);  // the NICs stand still meanwhile
      if (is_idle && WqesWritten() == written && done != group_->nodes().size()) {
        return group_->Stuck();
      }
    }
    fabric_.RunUntilIdle();
    PREPOST_RETURN_IF_ERROR(group_->Check());
    for (size_t node = 0; node < plan_.header().nodes; ++node) {
      if (NodeId::FromIndex(node) == plan_.header().collective.root) continue;
      if (!std::ranges::equal(transfer_.buffers()[node], transfer_.message())) {
        return Rejected(fmt::format("node {} has other bytes", node));
      }
    }
    return {};
  }

 private:
  bool RunSome() { return fabric_.RunSome(1 + random_.Below(kStepsMax)); }

  uint64_t WqesWritten() const {
    uint64_t sum = 0;
    for (const nic::ArmedNode& node : group_->nodes()) sum += node.wqes_written();
    return sum;
  }

  /// Puts `objects`' bytes wherever hosts have written by now.
  void Overwrite(const std::vector<nic::QueueObjects>& objects) {
    for (size_t node = 0; node < objects.size(); ++node) {
      const nic::ArmedNode& armed = group_->nodes()[node];
      for (size_t i = 0; i < objects[node].qps.size(); ++i) {
        const nic::QpId id = nic::QpId::FromIndex(i);
        const nic::QueueFeed::Progress progress = armed.feed().progress(id);
        const nic::QpObject& from = objects[node].qps[i];
        CopyLast(from.sq, progress.sends_written, nic::kWqebbBytes, armed.qp(id).sq);
        CopyLast(from.rq, progress.receives_written, nic::kReceiveStrideBytes, armed.qp(id).rq);
      }
    }
  }
  /// The last of the first `written` entries, as many as fit the ring. Entry 0 is at its start.
  static void CopyLast(std::span<const std::byte> entries, size_t written, size_t stride,
                       std::span<std::byte> ring) {
    const size_t slots = ring.size() / stride;
    for (size_t i = written - std::min(written, slots); i < written; ++i) {
      std::memcpy(ring.data() + i % slots * stride, entries.data() + i * stride, stride);
    }
  }

  static constexpr uint64_t kStepsMax = 100;

  const VerifiedPlan& plan_;
  const test::Transfer& transfer_;
  test::Random random_;
  local::MessageBuffers buffers_;
  emulated::Fabric fabric_;
  std::optional<local::ArmedGroup> group_;
};

nic::ValidationReport Judge(const VerifiedPlan& plan,
                            const std::vector<nic::QueueObjects>& objects) {
  nic::Validator validator(plan);
  for (const nic::QueueObjects& node : objects) validator.Add(node);
  return validator.Finish();
}

struct Tally {
  int refused = 0;           ///< by the validator
  int refused_and_seen = 0;  ///< of these, those of which one run went wrong, too
  int seen_only = 0;         ///< by NICs and hosts
  int harmless = 0;
};

/// All sites of all nodes.
std::vector<Site> SitesOf(std::vector<nic::QueueObjects>& objects, test::Random& random) {
  std::vector<Site> sites;
  for (nic::QueueObjects& node : objects) {
    for (nic::QpObject& qp : node.qps) {
      for (const bool receive : {false, true}) {
        Site site{.node = &node, .qp = &qp, .receive = receive, .random = &random};
        for (; site.index < site.count(); ++site.index) sites.push_back(site);
      }
    }
  }
  return sites;
}

class ByteMutation : public testing::Test {
 protected:
  /// Damages of every kind at some sites of the plan.
  void Mutate(const VerifiedPlan& plan, const nic::LowerOptions& options, uint64_t seed) {
    constexpr int kPerKind = 10;
    const nic::QueueProgram program = *nic::Lower(plan, options);
    const test::Transfer transfer(plan.header());
    const std::vector<nic::QueueObjects> right = Trial(plan, program, transfer, seed).Objects();
    ASSERT_TRUE(Trial(plan, program, transfer, seed).Run(right).ok());
    ASSERT_TRUE(Judge(plan, right).ok()) << Judge(plan, right).ToStatus().ToString();
    test::Random random(seed);
    for (const ByteDamage& kind : test::ByteDamages()) {
      std::vector<nic::QueueObjects> wrong = right;
      std::vector<Site> sites = SitesOf(wrong, random);
      random.Shuffle(sites);
      int made = 0;
      for (size_t i = 0; i < sites.size() && made < kPerKind; ++i) {
        if (!kind.apply(sites[i])) continue;
        ++made;
        Count(plan, program, transfer, kind, wrong, random);
        if (HasFailure()) return;
        // Put right again what was damaged.
        *sites[i].qp = right[sites[i].node->node.index()].qps[PositionOf(sites[i])];
      }
    }
  }

  /// Every kind of wrong object at some nodes.
  void MutateObjects(const VerifiedPlan& plan, const nic::LowerOptions& options, uint64_t seed) {
    constexpr int kPerKind = 4, kTries = 20;
    const nic::QueueProgram right = *nic::Lower(plan, options);
    const test::Transfer transfer(plan.header());
    test::Random random(seed);
    for (const ObjectDamage& kind : test::ObjectDamages()) {
      int made = 0;
      for (int i = 0; i < kTries && made < kPerKind; ++i) {
        nic::QueueProgram wrong = right;
        if (!kind.apply(wrong, test::PickFrom(wrong.nodes, random), random)) continue;
        ++made;
        CountObject(plan, right, wrong, transfer, kind, random);
        if (HasFailure()) return;
      }
    }
  }

  void CountObject(const VerifiedPlan& plan, const nic::QueueProgram& right,
                   nic::QueueProgram wrong, const test::Transfer& transfer,
                   const ObjectDamage& kind, test::Random& random) {
    object_kinds_of_[std::string(nic::Name(right.mode))].insert(kind.name);
    Tally& tally = tallies_[kind.name];
    const Result<nic::ValidationReport> report = nic::ValidateProgram(plan, wrong);
    if (!report.ok() || !report->ok()) {
      ++tally.refused;
      return;
    }
    ASSERT_NE(kind.harmless, nullptr) << kind.name << ": the validator lets it pass";
    if (std::string_view(kind.name).starts_with("op of")) {
      nic::LabelOps(plan, &wrong);
      ASSERT_EQ(wrong, right) << kind.name;
    }
    constexpr int kRuns = 4;
    for (int run = 0; run < kRuns; ++run) {
      Trial trial(plan, wrong, transfer, random.Below(1u << 30));
      const Status status = trial.Run(trial.Objects());
      ASSERT_TRUE(status.ok()) << kind.name
                               << ": the validator lets it pass: " << status.ToString();
    }
    ++tally.harmless;
  }

  static size_t PositionOf(const Site& site) {
    return static_cast<size_t>(site.qp - site.node->qps.data());
  }

  void Count(const VerifiedPlan& plan, const nic::QueueProgram& program,
             const test::Transfer& transfer, const ByteDamage& kind,
             const std::vector<nic::QueueObjects>& wrong, test::Random& random) {
    Tally& tally = tallies_[kind.name];
    kinds_of_[fmt::format("{} {}", plan.header().algorithm, nic::Name(program.mode))].insert(
        kind.name);
    const nic::ValidationReport report = Judge(plan, wrong);
    if (!report.ok()) {
      ++tally.refused;
      if (!Trial(plan, program, transfer, random.Below(1u << 30)).Run(wrong).ok()) {
        ++tally.refused_and_seen;
      }
      return;
    }
    ASSERT_NE(kind.harmless, nullptr) << kind.name << ": the validator lets it pass";
    constexpr int kRuns = 12;
    for (int run = 0; run < kRuns; ++run) {
      const uint64_t seed = random.Below(1u << 30);
      const Status status = Trial(plan, program, transfer, seed).Run(wrong);
      if (status.ok()) continue;
      ASSERT_NE(kind.seen_by_host, nullptr)
          << kind.name << ": the validator lets it pass, with seed " << seed << ": "
          << status.ToString();
      ++tally.seen_only;
      return;
    }
    ++tally.harmless;
  }

  /// Prints the table. A part of the grid need not have damage of every kind.
  void Report() {
    const bool is_whole = test::TakesAllCases();
    std::cout << fmt::format("{:<32} {:>8} {:>15} {:>9} {:>9}\n", "damage", "refused",
                             "and seen in run", "seen only", "harmless");
    std::vector<const char*> names;
    for (const ByteDamage& kind : test::ByteDamages()) names.push_back(kind.name);
    for (const ObjectDamage& kind : test::ObjectDamages()) names.push_back(kind.name);
    for (const char* name : names) {
      const Tally& it = tallies_[name];
      std::cout << fmt::format("{:<32} {:>8} {:>15} {:>9} {:>9}\n", name, it.refused,
                               it.refused_and_seen, it.seen_only, it.harmless);
      if (is_whole) {
        EXPECT_GT(it.refused + it.seen_only + it.harmless, 0) << name << " never occurred";
      }
    }
    if (is_whole) {
      EXPECT_EQ(object_kinds_of_.size(), 2u);
    }
    for (const auto& [mode, kinds] : object_kinds_of_) {
      if (is_whole) {
        EXPECT_EQ(kinds.size(), test::ObjectDamages().size()) << mode;
      }
    }
    if (is_whole) {
      EXPECT_EQ(kinds_of_.size(), 2 * test::SchedulesToRun().size());
    }
    for (const auto& [plans, kinds] : kinds_of_) {
      if (is_whole) {
        EXPECT_GE(kinds.size(), kKindsMin) << plans;
      }
      std::cout << fmt::format("{}: {} kinds\n", plans, kinds.size());
    }
  }

  static constexpr size_t kKindsMin = 15;
  std::map<std::string, Tally> tallies_;
  std::map<std::string, std::set<std::string>> kinds_of_;         // by schedule and mode
  std::map<std::string, std::set<std::string>> object_kinds_of_;  // by mode
};

/// Plans of one kind, each lowered both ways.
struct Shapes {
  uint32_t blocks;
  uint32_t ring;
  std::vector<const char*> ready;
};

TEST_F(ByteMutation, EveryDamageIsRefusedOrDoesNoHarm) {
  uint64_t seed = test::TestSeed();
  const Shapes whole{
      .blocks = 4, .ring = 32768, .ready = {"auto", "barrier", "channel", "window=1"}};
  const Shapes in_parts{.blocks = 30, .ring = 16, .ready = {"window=1", "retry"}};
  std::vector<std::string> labels;
  for (const Shapes& shapes : {whole, in_parts}) {
    for (const std::string& schedule : test::SchedulesToRun())
      labels.insert(labels.end(), 2 * shapes.ready.size(), "schedule=" + schedule);
  }
  test::Sample sample(labels);
  for (const Shapes& shapes : {whole, in_parts}) {
    for (const std::string& schedule : test::SchedulesToRun()) {
      for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
        for (const char* ready : shapes.ready) {
          ++seed;
          if (!sample.Takes()) continue;
          SCOPED_TRACE(fmt::format("{} {} {} seed {}", schedule, nic::Name(mode), ready, seed));
          const VerifiedPlan plan = test::CompileOrDie({.nodes = 5,
                                                        .root = NodeId(1),
                                                        .message_bytes = shapes.blocks * 1000 - 77,
                                                        .block_bytes = 1000,
                                                        .algorithm = schedule,
                                                        .ready = *ParseReady(ready)});
          const auto masters = seed % 2 == 0 ? nic::Masters::kNode : nic::Masters::kLane;
          const nic::DeviceProfile profile{.sq_wqebbs = shapes.ring, .rq_wqes = shapes.ring};
          const nic::LowerOptions options{.mode = mode, .masters = masters, .profile = profile};
          Mutate(plan, options, seed);
          if (!HasFailure()) MutateObjects(plan, options, seed);
          if (HasFailure()) return;
        }
      }
    }
  }
  std::cout << "seeds " << test::TestSeed() + 1 << " to " << seed << "\n";
  Report();
}

}  // namespace
}  // namespace prepost::byte_mutation_test
