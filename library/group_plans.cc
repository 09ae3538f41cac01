// SPDX-License-Identifier: Apache-2.0
#include "library/group_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/choice/preposted_choice.h"
#include "compiler/choice/stream_cost.h"
#include "compiler/compile.h"
#include "compiler/roll.h"
#include "compiler/schedules/schedule.h"
#include "compiler/spec.h"
#include "compiler/topology/topology.h"
#include "compiler/verify_rolled.h"
#include "ir/analysis/site_entries.h"
#include "ir/rolled/rolled_play.h"
#include "library/group_plan_file.h"
#include "runtime/session/eager_lane.h"
#include "runtime/transport/shm/block_stage.h"

namespace prepost {
namespace {

/// In larger groups the root's connections to all members are too many.
constexpr uint32_t kDirectNodesMax = 32;
/// Where members copy from each other's memory the fewest hand-overs are best; see docs/library.md.
/// Each block to one member after the other, so that it is in the cache for all of them.
std::string DirectAlgorithm(uint32_t nodes) { return fmt::format("kary_tree={}", nodes - 1); }
constexpr uint64_t kDirectBlockBytes = BlockStage::kBlockBytesMax;
/// Over TCP on one machine no port is kept busy by many blocks, and larger ones cost less processor
/// time; in a chain, the first candidate, a node passes a block on while it is in the cache.
constexpr uint64_t kMachineBlockBytes = kStreamBlockMax;
/// Over the nodes of one site after the other, so that each block enters each site once.
constexpr const char* kSitesAlgorithm = "chain";
/// Flat plans that are kept, of the last numbers of blocks.
constexpr size_t kFlatPlansMax = 16;

void AddConnections(NodeId a, NodeId b, std::set<TcpConnection>* all) {
  const auto [low, high] = std::minmax(a, b);
  all->insert({.low = low, .high = high, .lane = Lane::kBlocks});
  all->insert({.low = low, .high = high, .lane = Lane::kCredits});
}

/// Plans of one schedule, for blocks of any size.
class SchedulePlans {
 public:
  SchedulePlans(const GroupPlanSpec& group, std::string algorithm)
      : group_(group), algorithm_(std::move(algorithm)) {}
  virtual ~SchedulePlans() = default;

  /// Finds connections and hash. Before all else.
  virtual Status Prepare() = 0;
  const std::vector<TcpConnection>& connections() const { return connections_; }
  virtual PlanHash Hash() const = 0;
  /// Whether there can be a plan. Errors (kRejected).
  virtual Status CheckSize(uint64_t bytes, uint64_t block_bytes) const {
    return MakePayload(bytes, block_bytes).status();
  }
  virtual Result<Playable> For(uint64_t bytes, uint64_t block_bytes) = 0;
  virtual Result<std::shared_ptr<const VerifiedPlan>> FlatFor(uint64_t /*bytes*/,
                                                              uint64_t /*block_bytes*/) {
    return Rejected("a rolled plan of one node is no flat plan");
  }

 protected:
  Spec SpecOf(uint64_t block_bytes) const {
    Spec spec;
    spec.nodes = group_.nodes;
    spec.root = group_.root;
    spec.algorithm = algorithm_;
    spec.block_bytes = block_bytes;
    spec.ready = {.automatic = false, .ready = {.mode = ReadyMode::kBarrier}};
    spec.send_window = {.automatic = false, .window = {}};
    if (!group_.sites.empty()) spec.topology = Network::OfSites(group_.sites);
    return spec;
  }

  const GroupPlanSpec group_;
  const std::string algorithm_;
  std::vector<TcpConnection> connections_;
};

class RolledPlans final : public SchedulePlans {
 public:
  using SchedulePlans::SchedulePlans;

  Status Prepare() override {
    const Result<const RolledPlan*> plan = PlanFor(kStreamBlockMin);
    if (!plan.ok()) return plan.status();
    connections_ = RolledConnections(**plan);
    return {};
  }

  PlanHash Hash() const override { return HashRolledPlan(plans_.at(kStreamBlockMin)); }

  Result<Playable> For(uint64_t bytes, uint64_t block_bytes) override {
    const Result<const RolledPlan*> plan = PlanFor(block_bytes);
    if (!plan.ok()) return plan.status();
    if (play_ && &play_->plan() == *plan && play_->outline().header().payload.bytes == bytes)
      return Playable(*play_);
    Result<RolledPlay> play = RolledPlay::Make(**plan, bytes);
    if (!play.ok()) return play.status();
    play_.emplace(*std::move(play));
    return Playable(*play_);
  }

 private:
  Result<const RolledPlan*> PlanFor(uint64_t block_bytes) {
    const auto found = plans_.find(block_bytes);
    if (found != plans_.end()) return &found->second;
    Result<RolledPlan> plan = Roll(SpecOf(block_bytes), group_.self);
    if (!plan.ok()) return plan.status();
    // Block sizes change nothing that this checks.
    if (plans_.empty()) PREPOST_RETURN_IF_ERROR(VerifyRolledPrograms(*plan).status());
    return &plans_.emplace(block_bytes, *std::move(plan)).first->second;
  }

  std::map<uint64_t, RolledPlan> plans_;  ///< by block size
  std::optional<RolledPlay> play_;        ///< of the last message
};

class FlatPlans final : public SchedulePlans {
 public:
  using SchedulePlans::SchedulePlans;

  /// Connections by the numbers of blocks around which schedules change.
  Status Prepare() override {
    std::set<TcpConnection> all;
    std::set<uint32_t> blocks = {group_.nodes, group_.nodes + 1, 2 * group_.nodes};
    for (uint32_t k = 1; k <= 16; ++k) blocks.insert(k);
    if (group_.nodes > 1) blocks.insert(group_.nodes - 1);
    for (const uint32_t k : blocks) {
      const Result<VerifiedPlan> plan = Make(k, 1);
      if (!plan.ok()) return plan.status();
      if (k == 1) hash_ = HashPlan(*plan);
      for (const Channel& channel : plan->channels())
        AddConnections(channel.from, channel.to, &all);
    }
    connections_.assign(all.begin(), all.end());
    return {};
  }

  PlanHash Hash() const override { return hash_; }

  Status CheckSize(uint64_t bytes, uint64_t block_bytes) const override {
    const Result<Payload> payload = MakePayload(bytes, block_bytes);
    if (!payload.ok()) return payload.status();
    return CheckTransfers(group_.nodes, payload->blocks);
  }

  Result<Playable> For(uint64_t bytes, uint64_t block_bytes) override {
    const Result<std::shared_ptr<const VerifiedPlan>> plan = FlatFor(bytes, block_bytes);
    if (!plan.ok()) return plan.status();
    return Playable(**plan);
  }

  Result<std::shared_ptr<const VerifiedPlan>> FlatFor(uint64_t bytes,
                                                      uint64_t block_bytes) override {
    const Result<Payload> payload = MakePayload(bytes, block_bytes);
    if (!payload.ok()) return payload.status();
    const auto found = std::ranges::find_if(
        plans_, [&](const auto& plan) { return plan->header().payload.blocks == payload->blocks; });
    if (found != plans_.end()) {
      std::rotate(plans_.begin(), found, found + 1);
      std::shared_ptr<const VerifiedPlan>& plan = plans_.front();
      if (plan->header().payload != *payload)
        plan = std::make_shared<const VerifiedPlan>(plan->WithPayload(*payload));
      return plan;
    }
    Result<VerifiedPlan> plan = Make(bytes, block_bytes);
    if (!plan.ok()) return plan.status();
    for (const TcpConnection& connection : TcpConnections(*plan)) {
      if (std::ranges::binary_search(connections_, connection)) continue;
      return Rejected(fmt::format(
          "algorithm {} has connections for a message of {} bytes that it lacks for small ones",
          algorithm_, bytes));
    }
    if (plans_.size() == kFlatPlansMax) plans_.pop_back();
    plans_.insert(plans_.begin(), std::make_shared<const VerifiedPlan>(*std::move(plan)));
    return plans_.front();
  }

 private:
  Result<VerifiedPlan> Make(uint64_t bytes, uint64_t block_bytes) const {
    Spec spec = SpecOf(block_bytes);
    spec.message_bytes = bytes;
    return Compile(spec);
  }

  std::vector<std::shared_ptr<const VerifiedPlan>> plans_;  ///< the last used first
  PlanHash hash_ = {};
};

/// Of one schedule, or of those that auto chooses among. A variant is the place of the schedule,
/// times 256, and the binary logarithm of the block size, or 0 where that is fixed.
class CompiledPlans final : public GroupPlans {
 public:
  static Result<std::unique_ptr<CompiledPlans>> Make(const GroupPlanSpec& spec) {
    std::vector<std::string> algorithms = {spec.algorithm};
    if (spec.algorithm == kAutoAlgorithm) {
      algorithms =
          spec.is_flat ? std::vector{PrepostedAlgorithm(spec.nodes)} : StreamAlgorithms(spec.nodes);
      if (!spec.sites.empty()) algorithms = {kSitesAlgorithm};
      if (!spec.is_flat && spec.sites.empty() && spec.nodes > 2 && spec.nodes <= kDirectNodesMax)
        algorithms.push_back(DirectAlgorithm(spec.nodes));
    }
    std::unique_ptr<CompiledPlans> plans(new CompiledPlans(spec));
    std::set<TcpConnection> connections;
    for (const std::string& algorithm : algorithms) {
      Result<StreamCandidate> candidate = MakeStreamCandidate(algorithm, spec.nodes);
      if (!candidate.ok()) return UsageError(candidate.status().ToString());
      const bool is_direct = algorithm == "sequential" || algorithm == DirectAlgorithm(spec.nodes);
      if (algorithms.size() == 1 || !is_direct) plans->candidates_.push_back(*std::move(candidate));
      plans->is_direct_.push_back(spec.nodes == 2 || is_direct);
      plans->is_in_step_.push_back(spec.nodes == 2 || algorithm == DirectAlgorithm(spec.nodes));
      std::unique_ptr<SchedulePlans> made = std::make_unique<RolledPlans>(spec, algorithm);
      if (spec.is_flat || !made->Prepare().ok()) {
        made = std::make_unique<FlatPlans>(spec, algorithm);
        const Status status = made->Prepare();
        if (!status.ok()) return UsageError(status.ToString());
      }
      connections.insert(made->connections().begin(), made->connections().end());
      plans->schedules_.push_back(std::move(made));
    }
    plans->connections_.assign(connections.begin(), connections.end());
    if (!spec.sites.empty()) plans->NoteEntries(algorithms.front());
    return plans;
  }

  const std::vector<TcpConnection>& connections() const override { return connections_; }
  /// Which algorithms there are follows from the group's options, which members compare, too.
  PlanHash Hash() const override { return schedules_.front()->Hash(); }

  Status CheckSize(uint64_t bytes) const override {
    const uint64_t block_bytes = spec_.block_bytes != 0 ? spec_.block_bytes
                                 : spec_.is_flat        ? PrepostedBlockBytes(bytes)
                                                        : kStreamBlockMax;
    for (const auto& schedule : schedules_) {
      const Status status = schedule->CheckSize(bytes, block_bytes);
      if (!status.ok()) return UsageError(status.message());
    }
    return {};
  }

  std::vector<std::string> Notes() const override { return notes_; }

  /// Needs a size that CheckSize() lets pass.
  uint16_t Choose(uint64_t bytes, double rate, GroupReach reach) override {
    if (spec_.block_bytes != 0 && schedules_.size() == 1) return 0;
    auto [place, block_bytes] = Best(bytes, rate, reach);
    // Where the best blocks are too many, larger ones.
    const SchedulePlans& schedule = *schedules_[place];
    while (spec_.block_bytes == 0 && block_bytes < kStreamBlockMax &&
           !schedule.CheckSize(bytes, block_bytes).ok()) {
      block_bytes *= 2;
    }
    return VariantOf(place, block_bytes);
  }

  bool HasEager() const override {
    return spec_.algorithm == kAutoAlgorithm && spec_.block_bytes == 0 && !spec_.is_flat;
  }

  uint64_t EagerBytesMax(double rate, GroupReach reach) override {
    // On one machine the measured rate is that of busy cores, not of a port.
    if (reach != GroupReach::kNetwork) return kEagerBytesMax;
    if (rate != eager_rate_) {
      eager_rate_ = rate;
      StreamParameters parameters;
      if (rate > 0) parameters.rate = rate;
      eager_max_ = EagerMax(candidates_, spec_.nodes, kEagerBytesMax, parameters);
    }
    return eager_max_;
  }

  bool IsDirect(uint16_t variant) const override {
    const size_t place = variant >> kPlaceShift;
    return place < is_direct_.size() && is_direct_[place];
  }

  bool IsInStep(uint16_t variant) const override {
    const size_t place = variant >> kPlaceShift;
    return place < is_in_step_.size() && is_in_step_[place];
  }

  Result<Playable> For(uint64_t bytes, uint16_t variant) override {
    const Result<Variant> chosen = Find(variant);
    if (!chosen.ok()) return chosen.status();
    return chosen->schedule->For(bytes, chosen->block_bytes);
  }

  Result<std::shared_ptr<const VerifiedPlan>> FlatFor(uint64_t bytes) override {
    const uint64_t block_bytes =
        spec_.block_bytes != 0 ? spec_.block_bytes : PrepostedBlockBytes(bytes);
    return schedules_.front()->FlatFor(bytes, block_bytes);
  }

 private:
  static constexpr int kPlaceShift = 8;
  struct Variant {
    SchedulePlans* schedule = nullptr;
    uint64_t block_bytes = 0;
  };

  explicit CompiledPlans(GroupPlanSpec spec) : spec_(std::move(spec)) {}

  /// Schedule and size of blocks.
  std::pair<size_t, uint64_t> Best(uint64_t bytes, double rate, GroupReach reach) const {
    const bool has_direct = spec_.nodes == 2 || schedules_.size() > candidates_.size();
    if (reach == GroupReach::kMemory && has_direct)
      return {schedules_.size() - 1, kDirectBlockBytes};
    if (reach == GroupReach::kMachine && HasEager() && bytes >= kMachineBlockBytes)
      return {0, kMachineBlockBytes};
    StreamParameters parameters;
    if (rate > 0) parameters.rate = rate;
    const StreamChoice choice =
        ChooseStream(candidates_, spec_.nodes, bytes, spec_.block_bytes, parameters);
    return {choice.candidate, choice.block_bytes};
  }

  /// How often blocks cross between sites: more than once by some that somebody may choose.
  void NoteEntries(const std::string& algorithm) {
    constexpr uint32_t kBlocks = 16;  // the same of more, or nearly
    Spec spec;
    spec.nodes = spec_.nodes;
    spec.root = spec_.root;
    spec.algorithm = algorithm;
    spec.topology = Network::OfSites(spec_.sites);
    spec.message_bytes = kBlocks;
    spec.block_bytes = 1;
    const Result<VerifiedPlan> plan = Compile(spec);
    if (!plan.ok()) return;
    const std::vector<double> entries = SiteEntries(*plan, spec_.sites);
    const bool is_least = std::ranges::all_of(entries, [](double it) { return it <= 1 + 1e-6; });
    const std::string found = DescribeEntries(entries, spec_.site_names);
    notes_.push_back(is_least ? found
                              : fmt::format("with algorithm {} {}; with {} once", algorithm, found,
                                            kSitesAlgorithm));
  }

  uint16_t VariantOf(size_t place, uint64_t block_bytes) const {
    const int exponent = spec_.block_bytes != 0 ? 0 : std::countr_zero(block_bytes);
    return static_cast<uint16_t>(place << kPlaceShift | static_cast<size_t>(exponent));
  }

  Result<Variant> Find(uint16_t variant) const {
    const size_t place = variant >> kPlaceShift;
    const uint32_t exponent = variant & ((1u << kPlaceShift) - 1);
    const uint64_t block_bytes =
        spec_.block_bytes != 0 ? spec_.block_bytes : uint64_t{1} << std::min(exponent, 63u);
    const bool is_known =
        place < schedules_.size() &&
        (spec_.block_bytes != 0 ? exponent == 0
                                : block_bytes >= kStreamBlockMin && block_bytes <= kStreamBlockMax);
    if (!is_known)
      return Rejected(fmt::format("the root has chosen plan {:x}, which is none", variant));
    return Variant{.schedule = schedules_[place].get(), .block_bytes = block_bytes};
  }

  const GroupPlanSpec spec_;
  std::vector<StreamCandidate> candidates_;
  /// As candidates_ and, last, that for members which copy from each other.
  std::vector<std::unique_ptr<SchedulePlans>> schedules_;
  std::vector<bool> is_direct_;   ///< as schedules_
  std::vector<bool> is_in_step_;  ///< likewise
  std::vector<TcpConnection> connections_;
  std::vector<std::string> notes_;
  double eager_rate_ = -1;  ///< that eager_max_ is for
  uint64_t eager_max_ = 0;
};

}  // namespace

std::vector<TcpConnection> RolledConnections(const RolledPlan& plan) {
  // Whatever the number of blocks: every peer that the programs name.
  std::set<TcpConnection> all;
  for (const RolledProgram& program : plan.programs) {
    for (const Segment& segment : program.segments) {
      for (const RolledSlot& slot : segment.slots) {
        if (slot.send) AddConnections(program.node, slot.send->peer, &all);
        if (slot.recv) AddConnections(program.node, slot.recv->peer, &all);
      }
    }
  }
  return {all.begin(), all.end()};
}

Result<std::unique_ptr<GroupPlans>> MakeGroupPlans(const GroupPlanSpec& spec) {
  if (!spec.plan_path.empty()) return ReadGroupPlans(spec);
  auto plans = CompiledPlans::Make(spec);
  if (!plans.ok()) return plans.status();
  return std::unique_ptr<GroupPlans>(*std::move(plans));
}

}  // namespace prepost
