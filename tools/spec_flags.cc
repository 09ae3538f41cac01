// SPDX-License-Identifier: Apache-2.0
#include "tools/spec_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "prepost/compiler/schedule.h"
#include "prepost/compiler/spec_json.h"
#include "tools/command.h"
#include "tools/number_check.h"
#include "tools/topology_file.h"

namespace prepost::tools {
namespace {

/// The flag for a key of the spec: "--block-bytes" for "/block_bytes", "--order" for "/order/3".
std::string FlagOf(const std::string& pointer) {
  std::string flag = "--" + pointer.substr(1, pointer.find('/', 1) - 1);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

constexpr size_t kOrderBytesMax = size_t{16} << 20;

/// Nodes as numbers between blanks, line ends and commas.
Result<std::vector<NodeId>> ParseOrder(const std::string& text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  std::vector<NodeId> order;
  for (size_t begin = text.find_first_not_of(kBetween); begin != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    uint32_t node = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), node);
    if (error != std::errc() || rest != word.data() + word.size())
      return Rejected(fmt::format("'{}' is no node, expected a number", word.substr(0, 40)));
    order.emplace_back(node);
    begin = text.find_first_not_of(kBetween, end);
  }
  if (order.empty()) return Rejected("an order names each node, found none");
  return order;
}

/// "3,0,1" itself, or the file that holds it.
Result<std::vector<NodeId>> LoadOrder(const std::string& given) {
  if (given.find_first_not_of("0123456789,") == std::string::npos) {
    Result<std::vector<NodeId>> order = ParseOrder(given);
    if (order.ok()) return order;
    return Status(StatusCode::kUsage, "--order: " + order.status().message());
  }
  std::vector<NodeId> order;
  PREPOST_RETURN_IF_ERROR(
      WithInput(given, [&](std::istream& in, const std::string& name) -> Status {
        std::string text(kOrderBytesMax + 1, '\0');
        in.read(text.data(), static_cast<std::streamsize>(text.size()));
        text.resize(static_cast<size_t>(in.gcount()));
        if (text.size() > kOrderBytesMax)
          return Rejected(fmt::format("the file has more than {} bytes", kOrderBytesMax), name);
        Result<std::vector<NodeId>> read = ParseOrder(text);
        if (!read.ok()) return Rejected(read.status().message(), name);
        order = *std::move(read);
        return {};
      }));
  return order;
}

/// The file that a spec names for its topology.
std::string BesideSpec(const std::string& spec_path, const std::string& path) {
  return (std::filesystem::path(spec_path).parent_path() / path).string();
}

/// A flag's value error, with the flag's name.
Status Usage(const char* flag, const Status& status) {
  return {StatusCode::kUsage, fmt::format("{}: {}", flag, status.message())};
}

}  // namespace

void SpecFlags::AddTo(CLI::App& command) {
  const std::string group = "The multicast";
  command.add_option("--nodes", nodes_, "Nodes, the root included")
      ->type_name("N")
      ->check(WholeNumber(0, UINT32_MAX))
      ->group(group);
  command.add_option("--root", root_, "The node that has the message [0]")
      ->type_name("R")
      ->check(WholeNumber(0, UINT32_MAX))
      ->group(group);
  command.add_option("--block-bytes", block_bytes_, "Size of a block, such as 64KiB [1MiB]")
      ->type_name("B")
      ->group(group);
  command
      .add_option("--algorithm", algorithm_,
                  fmt::format("One of {} [binomial_pipeline]", fmt::join(ScheduleNames(), ", ")))
      ->type_name("A")
      ->group(group);
  command
      .add_option("--ready", ready_,
                  "How senders know that receives are posted: auto, barrier, channel, window=W, "
                  "retry [auto]")
      ->type_name("MODE")
      ->group(group);
  command
      .add_option("--send-window", send_window_,
                  "Block sends of a node in flight: auto, W or none [auto]")
      ->type_name("W")
      ->group(group);
  command
      .add_option("--topology", topology_,
                  "Topology file: node i is its host i, racks stay together [one rack]")
      ->type_name("T")
      ->group(group);
  command
      .add_option("--order", order_,
                  "The node at each place of the schedule, the root first: 3,0,1,.. or a file of "
                  "numbers [see --show-order of compile]")
      ->type_name("LIST")
      ->group(group);
}

bool SpecFlags::any() const {
  return nodes_ || root_ || block_bytes_ || algorithm_ || ready_ || send_window_ || topology_ ||
         order_;
}

Status SpecFlags::ApplyTopology(const std::string& spec_path, Spec* spec) const {
  if (topology_ || !spec->topology_path.empty()) {
    Result<Topology> topology =
        LoadTopology(topology_ ? *topology_ : BesideSpec(spec_path, spec->topology_path));
    if (!topology.ok()) return topology.status();
    spec->topology = *std::move(topology);
    spec->topology_path.clear();
  }
  if (spec->topology && spec->nodes == 0 && !nodes_)
    spec->nodes = static_cast<uint32_t>(spec->topology->hosts.size());
  if (order_) {
    Result<std::vector<NodeId>> order = LoadOrder(*order_);
    if (!order.ok()) return order.status();
    spec->order = *std::move(order);
  }
  return {};
}

Result<Spec> SpecFlags::ToSpec(const std::string& spec_path,
                               std::optional<uint64_t> message_bytes) const {
  Spec spec;
  if (!spec_path.empty()) {
    PREPOST_RETURN_IF_ERROR(
        WithInput(spec_path, [&](std::istream& in, const std::string& name) -> Status {
          std::vector<std::string> warnings;
          Result<Spec> read = ReadSpec(in, name, spec, &warnings);
          for (const std::string& warning : warnings)
            std::cerr << "prepost: warning: " << name << ": " << warning << "\n";
          if (!read.ok()) return read.status();
          spec = *read;
          return {};
        }));
  }
  if (nodes_) spec.nodes = *nodes_;
  if (root_) spec.root = NodeId(*root_);
  if (message_bytes) spec.message_bytes = *message_bytes;
  if (algorithm_) spec.algorithm = *algorithm_;
  if (block_bytes_) {
    const Result<uint64_t> bytes = ParseSize(*block_bytes_);
    if (!bytes.ok()) return Usage("--block-bytes", bytes.status());
    spec.block_bytes = *bytes;
  }
  if (ready_) {
    const Result<SpecReady> ready = ParseReady(*ready_);
    if (!ready.ok()) return Usage("--ready", ready.status());
    spec.ready = *ready;
  }
  if (send_window_) {
    const Result<SpecSendWindow> send_window = ParseSendWindow(*send_window_);
    if (!send_window.ok()) return Usage("--send-window", send_window.status());
    spec.send_window = *send_window;
  }
  PREPOST_RETURN_IF_ERROR(ApplyTopology(spec_path, &spec));
  if (const Status status = CheckSpec(spec); !status.ok()) {
    const std::string where =
        spec_path.empty() ? FlagOf(status.where()) : spec_path + ": " + status.where();
    return Rejected(status.message(), where);
  }
  return spec;
}

}  // namespace prepost::tools
