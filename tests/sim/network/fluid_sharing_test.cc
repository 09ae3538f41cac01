// SPDX-License-Identifier: Apache-2.0
//
// FluidNetwork to the picosecond, on networks that hundreds of messages share: against a reference
// that computes all rates anew after each event, in the integers that fluid_network.cc describes,
// over all links and flows, without components, levels or heaps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/fluid_transfers.h"

namespace prepost::test::fluid_sharing_test {
namespace {

__extension__ using Wide = __int128;

class ExactReference {
 public:
  ExactReference(const Network& network, const std::vector<TimedTransfer>& transfers) {
    double fastest = 0;
    for (const auto& it : network.nodes) fastest = std::max({fastest, it.out_rate, it.in_rate});
    const int bits = 39 - std::ilogb(fastest);
    const auto add_link = [&](Resource link) {
      const auto found = std::ranges::find(links_, link);
      if (found != links_.end()) return static_cast<size_t>(found - links_.begin());
      links_.push_back(link);
      rates_.push_back(static_cast<int64_t>(
          std::min(std::ldexp(network.RateOf(link), bits), std::ldexp(1, 62))));
      return links_.size() - 1;
    };
    for (const TimedTransfer& it : transfers) {
      Flow& flow = flows_.emplace_back();
      flow.start = it.start;
      flow.left = static_cast<Wide>(it.bytes) * 1'000'000'000'000 << bits;
      flow.links = {add_link({ResourceKind::kNodeOut, it.from.value}),
                    add_link({ResourceKind::kNodeIn, it.to.value})};
      const uint32_t up = network.nodes[it.from.index()].rack;
      const uint32_t down = network.nodes[it.to.index()].rack;
      if (up != down) {
        flow.links.push_back(add_link({ResourceKind::kRackUp, up}));
        flow.links.push_back(add_link({ResourceKind::kRackDown, down}));
        if (network.core_rate) flow.links.push_back(add_link({ResourceKind::kCore, 0}));
        if (!network.links.empty()) {
          for (const uint32_t link : network.LinksBetween(up, down))
            flow.links.push_back(add_link({ResourceKind::kLink, link}));
        }
      }
      if (const auto pair = network.PairOf(it.from, it.to)) {
        flow.links.push_back(add_link({ResourceKind::kPair, *pair}));
      }
      if (network.CountOf(ResourceKind::kNodeBoth) != 0) {
        flow.links.push_back(add_link({ResourceKind::kNodeBoth, it.from.value}));
        flow.links.push_back(add_link({ResourceKind::kNodeBoth, it.to.value}));
      }
      flow.limit = rates_[flow.links.front()];
      for (const size_t link : flow.links) flow.limit = std::min(flow.limit, rates_[link]);
    }
  }

  std::vector<Picoseconds> Run() {
    std::vector<Picoseconds> ends(flows_.size(), kNever);
    for (Picoseconds now = 0; now != kNever;) {
      ComputeRates(now);
      Picoseconds next = kNever;
      for (const Flow& flow : flows_) {
        if (flow.left > 0 && flow.start > now) next = std::min(next, flow.start);
        if (flow.rate == 0) continue;
        next = std::min(next, now + static_cast<Picoseconds>((flow.left - 1) / flow.rate + 1));
      }
      for (size_t i = 0; i < flows_.size() && next != kNever; ++i) {
        if (flows_[i].rate == 0) continue;
        flows_[i].left -= static_cast<Wide>(flows_[i].rate) * (next - now);
        if (flows_[i].left <= 0) ends[i] = next;
      }
      now = next;
    }
    return ends;
  }

 private:
  struct Flow {
    std::vector<size_t> links;
    Picoseconds start = 0;
    Wide left = 0;
    int64_t limit = 0;
    int64_t rate = 0;
  };

  void ComputeRates(Picoseconds now) {
    std::vector<int64_t> residual = rates_;
    std::vector<int64_t> open(rates_.size());
    std::vector<Flow*> unfixed;
    for (Flow& flow : flows_) {
      flow.rate = 0;
      if (flow.left <= 0 || flow.start > now) continue;
      unfixed.push_back(&flow);
      for (const size_t link : flow.links) ++open[link];
    }
    while (!unfixed.empty()) {
      std::vector<int64_t> share(rates_.size(), int64_t{1} << 62);
      for (size_t l = 0; l < share.size(); ++l) {
        if (open[l] != 0) share[l] = std::max<int64_t>(residual[l] / open[l], 1);
      }
      const int64_t least = *std::ranges::min_element(share);
      // Those that need no more are served before what is left is divided.
      const bool is_limited =
          std::ranges::any_of(unfixed, [&](const Flow* it) { return it->limit <= least; });
      std::erase_if(unfixed, [&](Flow* it) {
        const bool is_full =
            std::ranges::any_of(it->links, [&](size_t link) { return share[link] == least; });
        if (is_limited ? it->limit > least : !is_full) return false;
        it->rate = is_limited ? it->limit : least;
        for (const size_t link : it->links) {
          residual[link] -= it->rate;
          --open[link];
        }
        return true;
      });
    }
  }

  std::vector<Resource> links_;
  std::vector<int64_t> rates_;  // by link
  std::vector<Flow> flows_;
};

// Catches shares that are not computed again where they change, or not from the same sums, and what
// a flow loses when another link than before holds it up.
TEST(FluidSharingTest, IsThatOfAllFlowsComputedAnew) {
  const uint64_t seed = TestSeed();
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    const Network network = RandomFluidNetwork(random, 8);
    const auto nodes = static_cast<uint32_t>(network.nodes.size());
    if (nodes < 2) continue;
    std::vector<TimedTransfer> transfers = RandomTransfers(random, nodes, i % 4 == 0 ? 400 : 60);
    if (random.Coin()) {
      for (TimedTransfer& it : transfers) it.start = random.Below(2'000) * Picoseconds{1'000'000};
    }
    const std::vector<Picoseconds> ends = RunFluid(network, transfers);
    const std::vector<Picoseconds> expected = ExactReference(network, transfers).Run();
    for (size_t t = 0; t < transfers.size(); ++t) {
      ASSERT_EQ(ends[t], expected[t])
          << "seed " << seed << " case " << i << " transfer " << t << " of " << transfers.size();
    }
  }
}

// Racks whose uplinks hold up many flows, which are counted, and which move to ports and back as
// others come and go; all at once, and a few at a time. Catches counts that miss one, or have it
// twice.
TEST(FluidSharingTest, ManyFlowsOfRacksAreThoseComputedAnew) {
  const uint64_t seed = TestSeed();
  Random random(seed);
  for (int i = 0; i < 8; ++i) {
    const uint32_t racks = random.Between(2, 4), hosts = random.Between(3, 6);
    Network network = Network::Uniform(racks * hosts);
    network.racks.clear();
    for (uint32_t r = 0; r < racks; ++r) {
      const double rate = random.Pick(std::array{2e9, 7e9, 11e9});
      network.racks.push_back({.name = fmt::format("r{}", r), .up_rate = rate, .down_rate = rate});
    }
    for (uint32_t n = 0; n < network.nodes.size(); ++n) {
      const double rate = random.Coin() ? 3e9 : 5e9;
      network.nodes[n] = {.rack = n / hosts, .out_rate = rate, .in_rate = rate};
    }
    std::vector<TimedTransfer> transfers = RandomTransfers(random, racks * hosts, 600);
    if (random.Coin()) {
      for (TimedTransfer& it : transfers) it.start = random.Below(400) * Picoseconds{1'000'000};
    }
    const std::vector<Picoseconds> ends = RunFluid(network, transfers);
    ASSERT_EQ(ends, ExactReference(network, transfers).Run())
        << "seed " << seed << " case " << i << ", " << transfers.size() << " transfers";
  }
}

// Equal ports and sizes: all rates are ties, and what a division leaves decides.
TEST(FluidSharingTest, TiesAreThoseOfAllFlowsComputedAnew) {
  const uint64_t seed = TestSeed();
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    const uint32_t nodes = random.Between(3, 12);
    Network network = Network::Uniform(nodes);
    for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 7e9;
    std::vector<TimedTransfer> transfers;
    for (uint32_t shift = 1; shift < nodes; ++shift) {
      for (uint32_t n = 0; n < nodes; ++n) {
        if (random.Below(8) == 0) continue;
        transfers.push_back({.start = random.Below(3) * Picoseconds{1'000'000},
                             .from = NodeId(n),
                             .to = NodeId((n + shift) % nodes),
                             .bytes = 10'000});
      }
    }
    const std::vector<Picoseconds> ends = RunFluid(network, transfers);
    ASSERT_EQ(ends, ExactReference(network, transfers).Run()) << "seed " << seed << " case " << i;
  }
}

}  // namespace
}  // namespace prepost::test::fluid_sharing_test
