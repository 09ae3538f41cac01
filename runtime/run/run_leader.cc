// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/run_leader.h"

#include <algorithm>
#include <utility>

#include "runtime/session/keeper.h"

namespace prepost {

namespace {

constexpr std::chrono::milliseconds kProgressInterval{500};

}  // namespace

RunLeader::RunLeader(const PlanHeader& header, RunControl& control, RunLeaderOptions options)
    : header_(header),
      control_(control),
      options_(std::move(options)),
      sums_(header, options_.prover),
      reports_(header.nodes) {
  for (uint32_t node = 0; node < header.nodes; ++node) reports_[node].node = NodeId(node);
}

Status RunLeader::Take(const KeeperEvent& event) {
  if (event.kind == KeeperEvent::Kind::kPassed && event.gate == Gate::kMoved) AskForSums();
  if (event.kind != KeeperEvent::Kind::kRunMessage) return {};
  if (event.node.index() >= reports_.size()) return {};  // this process, which plays no part
  if (const auto* progress = std::get_if<control::Progress>(&event.message)) {
    NoteProgress(event.node, progress->so_far);
  } else if (const auto* done = std::get_if<control::Report>(&event.message)) {
    sums_.NoteNonce(event.node, done->nonce);
    reports_[event.node.index()] = done->report;
    reports_[event.node.index()].node = event.node;
  } else if (const auto* summed = std::get_if<control::Summed>(&event.message)) {
    return NoteSum(event.node, *summed);
  }
  return {};
}

void RunLeader::AskForSums() {
  may_sum_ = true;
  for (uint32_t node = 0; node < header_.nodes; ++node) {
    if (NodeId(node) != options_.node)
      control_.keeper().SendRunMessage(RunControl::kSerial, control::Sum{sums_.nonce()},
                                       NodeId(node));
  }
}

/// Counters so far; those that a node has delivered with are final.
void RunLeader::NoteProgress(NodeId node, const NodeReport& report) {
  NodeReport& last = reports_[node.index()];
  if (may_sum_ || last.elapsed_ns != 0) return;
  last = report;
  last.node = node;
  const auto now = std::chrono::steady_clock::now();
  if (!options_.progress || now < next_progress_) return;
  next_progress_ = now + kProgressInterval;
  uint64_t bytes = 0;
  for (const NodeReport& it : reports_) bytes += it.bytes_received;
  options_.progress(bytes);
}

Status RunLeader::NoteSum(NodeId node, const control::Summed& summed) {
  if (!sums_.NoteSum(node, summed.sum, summed.proof) || may_commit_) return {};
  if (options_.expected) {
    const auto expected = options_.expected();
    if (!expected.ok()) return expected.status();
    PREPOST_RETURN_IF_ERROR(sums_.CompareWith(*expected));
  } else {
    PREPOST_RETURN_IF_ERROR(sums_.Compare());
  }
  may_commit_ = true;
  return {};
}

void RunLeader::LetCommit() {
  for (uint32_t node = 0; node < header_.nodes; ++node) {
    if (NodeId(node) != options_.node)
      control_.keeper().SendRunMessage(RunControl::kSerial, sums_.CommitOf(NodeId(node)),
                                       NodeId(node));
  }
}

LocalRun RunLeader::MakeRun() const {
  LocalRun run = {.report = {.nodes = reports_}, .sum = sums_.of(header_.collective.root)};
  for (const NodeReport& node : reports_)
    run.report.elapsed_ns = std::max(run.report.elapsed_ns, node.elapsed_ns);
  if (header_.collective.kind == CollectiveKind::kMulticast) return run;
  for (uint32_t node = 0; node < header_.nodes; ++node) {
    run.outputs.push_back(header_.roles().IsTarget(NodeId(node))
                              ? std::optional(sums_.of(NodeId(node)))
                              : std::nullopt);
  }
  return run;
}

}  // namespace prepost
