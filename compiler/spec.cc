// SPDX-License-Identifier: Apache-2.0
#include "compiler/spec.h"

#include <fmt/format.h>

#include <charconv>

#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"
#include "ir/count.h"
#include "ir/near_name.h"

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

}  // namespace

Status CheckTransfers(uint32_t nodes, uint32_t blocks) {
  const uint64_t transfers = uint64_t{blocks} * (nodes - 1);
  if (transfers <= kTransfersMax) return {};
  return Rejected(
      fmt::format("{} to {} make {} transfers, the limit is {}; larger blocks make fewer",
                  Count(blocks, "block"), Count(nodes - 1, "node"), transfers, kTransfersMax),
      "/block_bytes");
}

Status CheckSpec(const Spec& spec) {
  if (spec.algorithm == kAutoAlgorithm) return Rejected("auto is not chosen yet", "/algorithm");
  if (spec.choose_block_bytes) return Rejected("auto is not chosen yet", "/block_bytes");
  if (spec.nodes == 0) return Rejected("a multicast has at least 1 node, found 0", "/nodes");
  if (spec.nodes > kNodesMax) {
    return Rejected(fmt::format("{} nodes are too many, the limit is {}", spec.nodes, kNodesMax),
                    "/nodes");
  }
  if (spec.root.value >= spec.nodes) {
    return Rejected(fmt::format("root {} is out of range, the nodes are 0 to {}", spec.root.value,
                                spec.nodes - 1),
                    "/root");
  }
  const Result<Payload> payload = MakePayload(spec.message_bytes.value_or(0), spec.block_bytes);
  if (!payload.ok()) {
    const Status status = payload.status();
    return Rejected(status.message(),
                    status.where() == "/bytes" ? "/message_bytes" : status.where());
  }
  PREPOST_RETURN_IF_ERROR(CheckTopologyOf(spec));
  const Result<Algorithm> algorithm = FindAlgorithm(spec.algorithm);
  if (!algorithm.ok()) return Rejected(algorithm.status().message(), "/algorithm");
  PREPOST_RETURN_IF_ERROR(CheckOrder(spec, *algorithm->schedule));
  PREPOST_RETURN_IF_ERROR(CheckTransfers(spec.nodes, payload->blocks));
  if (!spec.message_bytes) return Rejected("the size of the message is missing", "/message_bytes");
  return {};
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
