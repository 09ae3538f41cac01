// SPDX-License-Identifier: Apache-2.0
#include "compiler/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "compiler/choice/collective_choice.h"
#include "compiler/collectives/collective_schedule.h"
#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"
#include "ir/base/count.h"
#include "ir/base/near_name.h"
#include "ir/words.h"

namespace prepost {
namespace {

constexpr std::string_view kWindowPrefix = "window=";

Result<uint32_t> ParseWindow(std::string_view text) {
  uint32_t window = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), window);
  if (error != std::errc() || end != text.data() + text.size() || window == 0) {
    return Rejected(fmt::format("'{}' is no window, expected a number from 1 to {}",
                                text.substr(0, 40), UINT32_MAX));
  }
  return window;
}

Status CheckTopologyOf(const Spec& spec) {
  if (!spec.topology_path.empty())
    return Rejected(fmt::format("file '{}' is not read yet", spec.topology_path), "/topology");
  if (!spec.topology) return {};
  if (Status status = CheckNetwork(*spec.topology); !status.ok())
    return Rejected(status.message(), "/topology" + status.where());
  if (spec.nodes > spec.topology->nodes.size()) {
    return Rejected(fmt::format("{} nodes are too many, the topology has {} hosts", spec.nodes,
                                spec.topology->nodes.size()),
                    "/nodes");
  }
  return {};
}

/// Which key says how large parts are.
const char* SizeKey(const Spec& spec) {
  return spec.part_bytes.empty() ? "/message_bytes" : "/part_bytes";
}

/// What is different where a spec is for another collective than a multicast.
Status CheckCollective(const Spec& spec, const Payload& payload) {
  const Result<CollectiveAlgorithm> algorithm =
      FindCollectiveAlgorithm(spec.collective, spec.algorithm, spec.nodes);
  if (!algorithm.ok()) return Rejected(algorithm.status().message(), "/algorithm");
  if (algorithm->own == nullptr) {
    PREPOST_RETURN_IF_ERROR(CheckOrder(spec, *algorithm->multicast.schedule));
  } else if (!spec.order.empty()) {
    return Rejected(fmt::format("{} goes by ranks and takes no order", spec.algorithm), "/order");
  }
  if (const Status status = CheckMemory({.kind = spec.collective}, spec.nodes, payload, 0);
      !status.ok())
    return Rejected(status.message(), SizeKey(spec));
  // Whatever the schedule, each block is sent to every other node twice at most; of those whose
  // blocks have one way, once for each bit of a rank.
  const bool has_one_way = spec.collective == CollectiveKind::kGather ||
                           spec.collective == CollectiveKind::kScatter ||
                           spec.collective == CollectiveKind::kAlltoall;
  const bool is_straight = spec.algorithm == "direct" || spec.algorithm == "pairwise";
  const auto sends = has_one_way
                         ? is_straight ? 1u : static_cast<uint32_t>(std::bit_width(spec.nodes))
                         : spec.nodes - 1;
  PREPOST_RETURN_IF_ERROR(CheckTransfers(sends + 1, payload.blocks));
  if (Combines(spec.collective) != !spec.combine.is_none()) {
    return Rejected(spec.combine.is_none()
                        ? fmt::format("what {} does to values is missing, such as sum:float32",
                                      Name(spec.collective))
                        : fmt::format("{} combines nothing", Name(spec.collective)),
                    "/combine");
  }
  if (Status status = CheckCombine(spec.combine); !status.ok())
    return Rejected(status.message(), "/combine" + status.where());
  if (spec.collective == CollectiveKind::kBarrier && !spec.combine.is_idempotent()) {
    return Rejected(
        fmt::format("a barrier carries nothing, so no {}; leave it out", ToString(spec.combine)),
        "/combine");
  }
  const bool has_order = spec.collective != CollectiveKind::kReduceScatter;
  if (spec.combine.is_ordered() && !(has_order && spec.algorithm == "chain")) {
    return Rejected(
        fmt::format("operands of {} are in the order of ranks, and {} does not join them so; {}",
                    Name(spec.combine.op), spec.algorithm,
                    has_order ? "chain does" : "no schedule of a reduce_scatter does"),
        "/algorithm");
  }
  if (const char* expected = DeterministicAlgorithm(spec.collective);
      spec.is_deterministic && spec.algorithm != (expected == nullptr ? "" : expected)) {
    return Rejected(expected == nullptr
                        ? fmt::format("{} combines nothing", Name(spec.collective))
                        : fmt::format("sums of {} depend on the size, those of {} do not",
                                      spec.algorithm, expected),
                    "/deterministic");
  }
  const uint64_t size = SizeOf(spec.combine.type);
  for (size_t i = 0; size != 0 && i < payload.part_bytes.size(); ++i) {
    if (payload.part_bytes[i] % size == 0) continue;
    return Rejected(fmt::format("{} bytes of part {} are not a whole number of {} ({} bytes each)",
                                payload.part_bytes[i], i, Name(spec.combine.type), size),
                    fmt::format("/part_bytes/{}", i));
  }
  if (size != 0 && payload.bytes % size != 0) {
    return Rejected(fmt::format("{} bytes are not a whole number of {} ({} bytes each)",
                                payload.bytes, Name(spec.combine.type), size),
                    "/message_bytes");
  }
  if (size != 0 && payload.bytes > payload.block_bytes && payload.block_bytes % size != 0) {
    return Rejected(fmt::format("{} bytes are not a whole number of {} ({} bytes each)",
                                payload.block_bytes, Name(spec.combine.type), size),
                    "/block_bytes");
  }
  return {};
}

}  // namespace

Status CheckTransfers(uint32_t nodes, uint32_t blocks) {
  const uint64_t transfers = uint64_t{blocks} * (nodes - 1);
  if (transfers <= kTransfersMax) return {};
  return Rejected(
      fmt::format("{} to {} make {} transfers, the limit is {}; larger blocks make fewer",
                  Count(blocks, "block"), Count(nodes - 1, "node"), transfers, kTransfersMax),
      "/block_bytes");
}

Result<Payload> PayloadOf(const Spec& spec) {
  if (!spec.part_bytes.empty()) return MakePayload(spec.part_bytes, spec.block_bytes);
  return MakePayload(spec.message_bytes.value_or(0), spec.block_bytes,
                     PartsOf(spec.collective, spec.nodes));
}

Status CheckPartCount(const Spec& spec) {
  if (spec.part_bytes.empty()) return {};
  const uint64_t parts = PartsOf(spec.collective, spec.nodes);
  const bool has_parts = PartsOf(spec.collective, 2) != 1;
  if (!has_parts) {
    return Rejected(fmt::format("{} {} has one part, whose size is message_bytes",
                                ArticleOf(spec.collective), Name(spec.collective)),
                    "/part_bytes");
  }
  if (spec.part_bytes.size() == parts) return {};
  return Rejected(fmt::format("{}, but {} {} of {} has {}{}", Count(spec.part_bytes.size(), "size"),
                              ArticleOf(spec.collective), Name(spec.collective),
                              Count(spec.nodes, "node"), Count(parts, "part"),
                              spec.collective == CollectiveKind::kAlltoall
                                  ? ": a row for each that sends, in it one for each that receives"
                                  : ": one for each node"),
                  "/part_bytes");
}

Status CheckSpec(const Spec& spec) {
  if (spec.algorithm == kAutoAlgorithm) return Rejected("auto is not chosen yet", "/algorithm");
  if (spec.choose_block_bytes) return Rejected("auto is not chosen yet", "/block_bytes");
  if (spec.nodes == 0 && !spec.part_bytes.empty()) {
    const uint64_t sizes = spec.part_bytes.size();
    const auto side = static_cast<uint64_t>(std::sqrt(static_cast<double>(sizes)));
    return Rejected(
        fmt::format("{}, but an alltoall of {} has {}, and one of {} has {}", Count(sizes, "size"),
                    Count(side, "node"), Count(side * side, "part"), Count(side + 1, "node"),
                    Count((side + 1) * (side + 1), "part")),
        "/part_bytes");
  }
  if (spec.nodes == 0) {
    return Rejected(fmt::format("{} {} has at least 1 node, found 0", ArticleOf(spec.collective),
                                Name(spec.collective)),
                    "/nodes");
  }
  if (spec.nodes > kNodesMax) {
    return Rejected(fmt::format("{} nodes are too many, the limit is {}", spec.nodes, kNodesMax),
                    "/nodes");
  }
  if (spec.root.value >= spec.nodes) {
    return Rejected(fmt::format("root {} is out of range, the nodes are 0 to {}", spec.root.value,
                                spec.nodes - 1),
                    "/root");
  }
  PREPOST_RETURN_IF_ERROR(CheckPartCount(spec));
  const Result<Payload> payload = PayloadOf(spec);
  if (!payload.ok()) {
    const Status status = payload.status();
    return Rejected(status.message(), status.where() == "/bytes" ? SizeKey(spec) : status.where());
  }
  PREPOST_RETURN_IF_ERROR(CheckTopologyOf(spec));
  if (spec.collective != CollectiveKind::kMulticast) {
    PREPOST_RETURN_IF_ERROR(CheckCollective(spec, *payload));
  } else if (!spec.combine.is_none() || spec.is_deterministic) {
    return Rejected("a multicast combines nothing",
                    spec.is_deterministic ? "/deterministic" : "/combine");
  } else {
    const Result<Algorithm> algorithm = FindAlgorithm(spec.algorithm);
    if (!algorithm.ok()) return Rejected(algorithm.status().message(), "/algorithm");
    PREPOST_RETURN_IF_ERROR(CheckOrder(spec, *algorithm->schedule));
    PREPOST_RETURN_IF_ERROR(CheckTransfers(spec.nodes, payload->blocks));
  }
  if (!spec.message_bytes) return Rejected("the size of the message is missing", "/message_bytes");
  if (!spec.part_bytes.empty() && payload->bytes != *spec.message_bytes) {
    return Rejected(fmt::format("{} bytes, but the largest of the parts has {}",
                                *spec.message_bytes, payload->bytes),
                    "/message_bytes");
  }
  return {};
}

namespace {

/// As many as the sizes of parts are for; 0 where there are none, or as many as no collective has.
uint32_t NodesOfParts(const Spec& spec) {
  const size_t parts = spec.part_bytes.size();
  if (spec.collective != CollectiveKind::kAlltoall || parts == 0)
    return static_cast<uint32_t>(parts);
  const auto nodes = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(parts))));
  return PartsOf(spec.collective, nodes) == parts ? nodes : 0;
}

}  // namespace

Spec WithImplied(Spec spec) {
  if (spec.nodes == 0) spec.nodes = NodesOfParts(spec);
  if (!spec.part_bytes.empty() && !spec.message_bytes)
    spec.message_bytes = *std::ranges::max_element(spec.part_bytes);
  if (spec.collective == CollectiveKind::kBarrier) {
    if (spec.combine.is_none()) spec.combine = {.op = CombineOp::kAnd, .type = ElementType::kUint8};
    if (!spec.message_bytes) spec.message_bytes = 0;
  }
  return spec;
}

CollectiveSize SizeToChooseFor(const Spec& spec) {
  return {.kind = spec.collective,
          .members = std::max(spec.nodes, 1u),
          .bytes = spec.message_bytes.value_or(0),
          .combine = spec.combine,
          .is_deterministic = spec.is_deterministic,
          .is_uneven = !spec.part_bytes.empty(),
          .algorithm = spec.algorithm == kAutoAlgorithm ? "" : spec.algorithm,
          .block_bytes = spec.choose_block_bytes ? 0 : spec.block_bytes};
}

Spec WithChoice(Spec spec, const CollectiveChoice& choice) {
  spec.algorithm = choice.algorithm;
  if (std::exchange(spec.choose_block_bytes, false)) spec.block_bytes = choice.block_bytes;
  if (spec.send_window.automatic && choice.send_window)
    spec.send_window = {.automatic = false, .window = choice.send_window};
  return spec;
}

Spec WithDefaults(Spec spec, const CollectiveParameters& parameters) {
  spec = WithImplied(std::move(spec));
  CollectiveChoice choice = ChooseCollective(SizeToChooseFor(spec), parameters);
  if (choice.algorithm.empty()) choice.block_bytes = 1u << 20;
  if (spec.algorithm != kAutoAlgorithm) {
    choice.algorithm = spec.algorithm;
    choice.send_window.reset();
  }
  return WithChoice(std::move(spec), choice);
}

Result<CollectiveKind> ParseCollective(const std::string& text) {
  const std::optional<CollectiveKind> kind = EnumeratorOf<CollectiveKind>(text);
  if (kind) return *kind;
  const std::vector<std::string> names = NamesOf<CollectiveKind>();
  return Rejected(fmt::format("unknown collective '{}'{}; known are {}", text.substr(0, 40),
                              DidYouMean(text, names), fmt::join(names, ", ")));
}

Result<Combine> ParseCombine(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string op_word = text.substr(0, colon);
  const std::optional<CombineOp> op = EnumeratorOf<CombineOp>(op_word);
  if (!op) {
    const std::vector<std::string> names = NamesOf<CombineOp>();
    return Rejected(fmt::format("unknown operation '{}'{}; known are {}", op_word.substr(0, 40),
                                DidYouMean(op_word, names), fmt::join(names, ", ")));
  }
  if (colon == std::string::npos)
    return Rejected(fmt::format("{} of no type; say which, as {}:float32", op_word, op_word));
  const std::string type_word = text.substr(colon + 1);
  const std::optional<ElementType> type = EnumeratorOf<ElementType>(type_word);
  if (!type) {
    const std::vector<std::string> names = NamesOf<ElementType>();
    return Rejected(fmt::format("{} of unknown type '{}'{}; known are {}", op_word,
                                type_word.substr(0, 40), DidYouMean(type_word, names),
                                fmt::join(names, ", ")));
  }
  return Combine{.op = *op, .type = *type};
}

Result<SpecReady> ParseReady(const std::string& text) {
  if (text == "auto") return SpecReady{};
  if (text.starts_with(kWindowPrefix)) {
    Result<uint32_t> window = ParseWindow(std::string_view(text).substr(kWindowPrefix.size()));
    if (!window.ok()) return window.status();
    return SpecReady{.automatic = false, .ready = {.mode = ReadyMode::kWindow, .window = *window}};
  }
  for (ReadyMode mode : {ReadyMode::kBarrier, ReadyMode::kChannel, ReadyMode::kRetry}) {
    if (text == Name(mode))
      return SpecReady{.automatic = false, .ready = {.mode = mode, .window = 0}};
  }
  return Rejected(fmt::format(
      "unknown ready mode '{}'{}; known are auto, barrier, channel, window=W, retry",
      text.substr(0, 40), DidYouMean(text, {"auto", "barrier", "channel", "window=1", "retry"})));
}

Result<SpecSendWindow> ParseSendWindow(const std::string& text) {
  if (text == "auto") return SpecSendWindow{};
  if (text == "none") return SpecSendWindow{.automatic = false, .window = std::nullopt};
  Result<uint32_t> window = ParseWindow(text);
  if (!window.ok()) return Rejected(window.status().message() + ", 'auto' or 'none'");
  return SpecSendWindow{.automatic = false, .window = *window};
}

std::string ToString(const SpecReady& ready) {
  return ready.automatic ? "auto" : ToString(ready.ready);
}

std::string ToString(const SpecSendWindow& send_window) {
  if (send_window.automatic) return "auto";
  return send_window.window ? fmt::to_string(*send_window.window) : "none";
}

}  // namespace prepost
