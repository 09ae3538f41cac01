// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ir/base/count.h"
#include "planning/text/plan_text.h"
#include "runtime/files/collective_sums.h"

namespace prepost::tools {
namespace {

/// The report is one of the nodes that are on several machines.
bool IsOfOne(const PlanHeader& header, const RunReport& report) {
  return report.nodes.size() < header.nodes;
}

/// Some host wrote to rings again, or might have had to.
bool HasRearms(const RunReport& report) {
  return std::ranges::any_of(report.nodes,
                             [](const NodeReport& node) { return node.rearms_max != 0; });
}

bool HasEventRequests(const RunReport& report) {
  return std::ranges::any_of(
      report.nodes, [](const NodeReport& node) { return node.host_event_requests_during != 0; });
}

/// Message bytes over the node's time, as 10^6 bytes a second; 0 where nothing took any time.
double MegabytesPerSecond(uint64_t bytes, uint64_t elapsed_ns) {
  if (elapsed_ns == 0) return 0;
  return static_cast<double>(bytes) * 1e3 / static_cast<double>(elapsed_ns);
}

constexpr size_t kOutputsMax = 16;  ///< whose sums are shown in text

double Milliseconds(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

/// The queue that was written to most often.
void PrintRearms(const RunReport& report, std::ostream& out) {
  if (report.queue_rearms.empty()) return;
  const QueueRearms& most =
      *std::ranges::max_element(report.queue_rearms, {}, &QueueRearms::rearms);
  out << fmt::format("{} in parts; most re-arms: {} of at most {}, node {}'s {}\n",
                     Count(report.queue_rearms.size(), "queue"), most.rearms, most.bound,
                     most.node.value, most.queue);
}

nlohmann::ordered_json QueuesJson(const RunReport& report, NodeId node) {
  nlohmann::ordered_json queues = nlohmann::ordered_json::array();
  for (const QueueRearms& it : report.queue_rearms) {
    if (it.node != node) continue;
    queues.push_back({{"queue", it.queue}, {"rearms", it.rearms}, {"rearms_bound", it.bound}});
  }
  return queues;
}

/// A line of each node.
void PrintNodes(const RunReport& report, const std::function<uint64_t(const NodeReport&)>& bytes_of,
                std::ostream& out) {
  const bool has_rearms = HasRearms(report);
  const bool has_requests = HasEventRequests(report);
  out << fmt::format("{:>6} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}{}{}\n", "node", "time ms",
                     "posts", "during", "wake-ups", "cpu ms", "retries", "MB/s",
                     has_requests ? "  requests" : "", has_rearms ? "  re-arms (bound)" : "");
  for (const NodeReport& node : report.nodes) {
    out << fmt::format("{:>6} {:>10.3f} {:>9} {:>9} {:>9} {:>9.2f} {:>9} {:>9.1f}", node.node.value,
                       Milliseconds(node.elapsed_ns), node.host_posts, node.host_posts_during,
                       node.host_wakeups, Milliseconds(node.cpu_ns), node.retries,
                       MegabytesPerSecond(bytes_of(node), node.elapsed_ns));
    if (has_requests) out << fmt::format(" {:>9}", node.host_event_requests_during);
    if (has_rearms)
      out << fmt::format(" {:>8} {:>7}", node.rearms, fmt::format("({})", node.rearms_max));
    out << "\n";
  }
  PrintRearms(report, out);
}

void PrintReport(const PlanHeader& header, const RunReport& report, const MessageSum& sum,
                 std::ostream& out) {
  const uint64_t bytes = header.payload.bytes;
  out << fmt::format("executor {} on {}, {}, {} in {}\n", report.executor, report.detail,
                     Count(header.nodes, "node"), Count(bytes, "byte"),
                     Count(header.payload.blocks, "block"));
  PrintNodes(
      report, [bytes](const NodeReport&) { return bytes; }, out);
  if (header.nodes == 1) {
    out << fmt::format("one node has the message, nothing was sent: BLAKE2b-256 {}\n",
                       sum.ToString());
    return;
  }
  const std::string copies =
      IsOfOne(header, report)
          ? fmt::format("the copy of node {} is", report.nodes.front().node.value)
      : header.nodes == 2 ? "the only copy is"
                          : fmt::format("all {} copies are", header.nodes - 1);
  out << fmt::format("{} identical after {:.3f} ms: BLAKE2b-256 {}\n", copies,
                     Milliseconds(report.elapsed_ns), sum.ToString());
}

/// By node: whether the plan makes an output equal to its own; false of those that have none.
std::vector<bool> HaveEqual(const PlanHeader& header) {
  const std::vector<NodeId> firsts = FirstsOfEqualOutputs(header);
  std::vector<bool> have(firsts.size());
  for (uint32_t node = 0; node < firsts.size(); ++node) {
    const uint32_t first = firsts[node].value;  // at most `node`
    if (first != node) have[first] = have[node] = true;
  }
  return have;
}

/// What is known of the outputs of `nodes`: one node's, or all that there are.
std::string OutputsText(const PlanHeader& header, const RunReport& report,
                        const std::vector<uint32_t>& nodes, OutputCheck check) {
  if (header.collective.kind == CollectiveKind::kBarrier) {
    const uint32_t members = header.roles().members();
    return members == 1 ? "the only node has come to the barrier"
                        : fmt::format("all {} nodes have come to the barrier", members);
  }
  if (nodes.empty())
    return fmt::format("node {} gets no output and has done its part",
                       report.nodes.front().node.value);
  const bool is_one = nodes.size() == 1;
  const std::string which = is_one ? fmt::format("the output of node {} is", nodes[0])
                                   : fmt::format("all {} outputs are", nodes.size());
  if (check == OutputCheck::kInputs)
    return fmt::format("{} what the plan makes of the input", which);
  if (!HaveEqual(header)[nodes[0]])
    return fmt::format("{} complete; the plan makes no other equal, so {} compared with nothing",
                       which, is_one ? "it is" : "they are");
  return fmt::format("{} identical{}", which, is_one ? " with all others" : "");
}

void PrintOutputs(const PlanHeader& header, const RunReport& report,
                  const std::vector<std::optional<MessageSum>>& outputs, OutputCheck check,
                  std::ostream& out) {
  out << fmt::format("executor {} on {}; {}\n", report.executor, report.detail, PlanText(header));
  PrintNodes(
      report, [](const NodeReport& node) { return node.bytes_received; }, out);
  std::vector<uint32_t> nodes;
  for (uint32_t node = 0; node < outputs.size(); ++node)
    if (outputs[node]) nodes.push_back(node);
  const bool are_same = std::ranges::all_of(
      nodes, [&](uint32_t node) { return outputs[node] == outputs[nodes.front()]; });
  const bool has_bytes = !nodes.empty() && header.collective.kind != CollectiveKind::kBarrier;
  out << fmt::format("{}, after {:.3f} ms{}\n", OutputsText(header, report, nodes, check),
                     Milliseconds(report.elapsed_ns),
                     !are_same   ? ":"
                     : has_bytes ? ": BLAKE2b-256 " + outputs[nodes.front()]->ToString()
                                 : "");
  for (size_t i = 0; !are_same && i < std::min(nodes.size(), kOutputsMax); ++i)
    out << fmt::format("{:>6} BLAKE2b-256 {}\n", nodes[i], outputs[nodes[i]]->ToString());
  if (!are_same && nodes.size() > kOutputsMax)
    out << fmt::format("  ... and {} more, see --json\n", nodes.size() - kOutputsMax);
}

nlohmann::ordered_json NodesJson(const RunReport& report) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const NodeReport& node : report.nodes) {
    nodes.push_back({{"node", node.node.value},
                     {"elapsed_ns", node.elapsed_ns},
                     {"host_posts", node.host_posts},
                     {"host_posts_during", node.host_posts_during},
                     {"host_event_requests_during", node.host_event_requests_during},
                     {"host_wakeups", node.host_wakeups},
                     {"host_completions", node.host_completions},
                     {"host_cpu_ns", node.cpu_ns},
                     {"retries", node.retries},
                     {"rearms", node.rearms},
                     {"rearms_bound", node.rearms_max},
                     {"bytes_received", node.bytes_received}});
    if (!report.queue_rearms.empty()) {
      nodes.back()["queues_in_parts"] = QueuesJson(report, node.node);
    }
  }
  return nodes;
}

void PrintOutputsJson(const PlanHeader& header, const RunReport& report,
                      const std::vector<std::optional<MessageSum>>& outputs, OutputCheck check,
                      std::ostream& out) {
  nlohmann::ordered_json nodes = NodesJson(report);
  const std::vector<bool> have_equal = HaveEqual(header);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const uint32_t node = report.nodes[i].node.value;
    const std::optional<MessageSum>& sum = outputs[node];
    const char* const with = check == OutputCheck::kInputs ? "inputs"
                             : have_equal[node]            ? "outputs"
                                                           : "nothing";
    nodes[i]["blake2b_256"] = sum ? nlohmann::ordered_json(sum->ToString()) : nullptr;
    nodes[i]["compared_with"] = sum ? nlohmann::ordered_json(with) : nullptr;
  }
  nlohmann::ordered_json all = {
      {"executor", report.executor}, {"detail", report.detail}, {"wait", report.wait}};
  all.update(PlanJson(header));
  all["elapsed_ns"] = report.elapsed_ns;
  all["nodes"] = std::move(nodes);
  PrintJson(all, out);
}

void PrintReportJson(const PlanHeader& header, const RunReport& report, const MessageSum& sum,
                     std::ostream& out) {
  nlohmann::ordered_json nodes = NodesJson(report);
  const nlohmann::ordered_json all = {{"executor", report.executor},
                                      {"detail", report.detail},
                                      {"wait", report.wait},
                                      {"message_bytes", header.payload.bytes},
                                      {"blocks", header.payload.blocks},
                                      {"copies", IsOfOne(header, report) ? 1 : header.nodes - 1},
                                      {"blake2b_256", sum.ToString()},
                                      {"elapsed_ns", report.elapsed_ns},
                                      {"nodes", std::move(nodes)}};
  PrintJson(all, out);
}

}  // namespace

void PrintRun(const PlanHeader& header, const LocalRun& run, OutputCheck check, bool is_json,
              std::ostream& out) {
  if (header.collective.kind == CollectiveKind::kMulticast)
    return (is_json ? PrintReportJson : PrintReport)(header, run.report, run.sum, out);
  (is_json ? PrintOutputsJson : PrintOutputs)(header, run.report, run.outputs, check, out);
}

}  // namespace prepost::tools
