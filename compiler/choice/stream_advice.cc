// SPDX-License-Identifier: Apache-2.0
#include "compiler/choice/stream_advice.h"

#include <fmt/format.h>

#include "compiler/choice/choice.h"
#include "compiler/choice/stream_cost.h"

namespace prepost {
namespace {

constexpr double kWorthSaying = 1.1;
constexpr uint64_t kBytesMin = uint64_t{256} << 10;  ///< the model was fitted from here on

}  // namespace

std::optional<std::string> AdviceForStreams(const PlanHeader& header) {
  if (header.collective.kind != CollectiveKind::kMulticast || header.nodes < 2 ||
      header.payload.bytes < kBytesMin)
    return std::nullopt;
  Spec open = OpenSpec();
  open.nodes = header.nodes;
  open.root = header.collective.root;
  open.message_bytes = header.payload.bytes;
  const StreamParameters parameters;
  const Result<Choice> choice = Choose(open, {.streams = parameters});
  if (!choice.ok()) return std::nullopt;
  const Candidate& best = choice->winner();
  const Result<StreamCandidate> own = MakeStreamCandidate(header.algorithm, header.nodes);
  const double seconds = StreamSeconds({.nodes = header.nodes,
                                        .blocks = header.payload.blocks,
                                        .rounds = header.rounds,
                                        .has_fan_in = own.ok() && own->has_fan_in},
                                       header.payload.block_bytes, parameters);
  const double ratio = seconds / best.seconds();
  if (ratio < kWorthSaying) return std::nullopt;
  return fmt::format(
      "over TCP this plan takes {:.2f} times as long, by the model, as the one that prepost "
      "compile "
      "--transport tcp chooses: --algorithm {} --block-bytes {}",
      ratio, best.algorithm, best.block_bytes);
}

}  // namespace prepost
