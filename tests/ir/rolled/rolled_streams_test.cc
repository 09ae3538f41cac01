// SPDX-License-Identifier: Apache-2.0
#include "ir/rolled/rolled_streams.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/schedules/rolled_schedule.h"

namespace prepost::rolled_streams_test {
namespace {

/// (round, peer, is the last block) of a send.
using Sends = std::multiset<std::tuple<uint32_t, uint32_t, bool>>;

Sends OfStreams(const std::vector<SendStream>& streams) {
  Sends sends;
  for (const SendStream& stream : streams) {
    for (uint32_t round = stream.first; round <= stream.last; round += stream.period)
      sends.emplace(round, stream.peer.value, stream.is_last_block);
  }
  return sends;
}

Sends OfRounds(const RolledProgram& program, uint32_t blocks) {
  Sends sends;
  const RolledRounds rounds(program, blocks);
  for (uint32_t round = rounds.begin(); round < rounds.end(); ++round) {
    if (const auto out = rounds.Outgoing(round))
      sends.emplace(round, out->peer.value, out->block + 1 == blocks);
  }
  return sends;
}

// A stream that begins or ends a round off, a residue of a wrong phase, a last block that counts as
// a full one, segments for other numbers of blocks.
TEST(RolledStreamsTest, AreTheSendsOfAllRounds) {
  for (const char* name :
       {"sequential", "chain", "kary_chain=3", "binomial_tree", "kary_tree=2", "binomial_pipeline",
        "circulant", "two_tree", "rack_chain", "rack_hybrid", "rack_circulant"}) {
    const Algorithm algorithm = *FindAlgorithm(name);
    for (uint32_t nodes = 2; nodes <= 21; ++nodes) {
      std::vector<uint32_t> racks;  // of 3 nodes
      for (uint32_t node = 0; node < nodes; node += 3) racks.push_back(node);
      const RolledExtent extent({.nodes = nodes, .racks = racks, .fanout = algorithm.fanout});
      for (uint32_t node = 0; node < nodes; ++node) {
        const RolledProgram program{
            .node = NodeId(node),
            .segments = algorithm.schedule->rolled()->SegmentsOf(extent, node)};
        for (const uint32_t blocks : {1u, 2u, 3u, 7u, 40u}) {
          ASSERT_EQ(OfStreams(SendStreams(program.segments, blocks)), OfRounds(program, blocks))
              << name << " n=" << nodes << " node " << node << " k=" << blocks;
        }
      }
    }
  }
}

}  // namespace
}  // namespace prepost::rolled_streams_test
