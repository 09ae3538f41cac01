// SPDX-License-Identifier: Apache-2.0
#include "viz/page_data/page_run.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "runtime/trace/op_times.h"

namespace prepost::viz {
namespace {

constexpr uint64_t kStepFactor = 4;
constexpr uint64_t kStepMax = uint64_t{1} << 40;
constexpr uint64_t kTimeMax = uint64_t{1} << 50;  // differences are exact in a browser, too

/// How far the times are from the start of the transfer, at most.
uint64_t LatestOf(const Plan& plan, const RunTrace& trace) {
  uint64_t latest = 0;
  for (const Program& program : plan.programs()) {
    for (const OpTimes& op : trace.times(program.node)) {
      for (const uint64_t time : {op.posted_ns, op.started_ns, op.completed_ns}) {
        if (time != 0)
          latest =
              std::max(latest, std::max(time, trace.start_ns) - std::min(time, trace.start_ns));
      }
    }
  }
  return latest;
}

/// In steps since the start of the transfer.
using Time = std::optional<int64_t>;

class RunColumns {
 public:
  RunColumns(const PlanTables& tables, const PageRun& run, uint64_t step)
      : tables_(tables),
        plan_(tables.plan()),
        is_preposted_(run.info.executor == "offload"),
        arrival_(ArrivalsOf(tables.plan())) {
    const RunTrace& trace = *run.trace;
    times_.reserve(plan_.ops().size());
    const auto since = [&](uint64_t time) -> Time {
      if (time == 0) return std::nullopt;
      const auto ns = static_cast<int64_t>(time - trace.start_ns);
      const auto unit = static_cast<int64_t>(step);
      return ns / unit - (ns % unit < 0 ? 1 : 0);
    };
    for (const TraceHost& host : run.info.hosts) {
      for (const uint64_t time : host.wakeups_ns) wakeups_.push_back(since(time).value_or(0));
    }
    for (const Program& program : plan_.programs()) {
      for (const OpTimes& op : trace.times(program.node))
        times_.push_back({since(op.posted_ns), since(op.started_ns), since(op.completed_ns)});
    }
  }

  void AddTo(const std::string& prefix, PageColumns* columns) const {
    const auto add = [&](const char* name, Time Times::*time, auto&& base_of) {
      columns->Begin(prefix + name, PageColumns::Coding::kPlain);
      for (uint32_t op = 0; op < times_.size(); ++op) {
        const Time& at = times_[op].*time;
        const int64_t base = base_of(op);  // of each op, as some look at the ops before
        const int64_t difference = at ? *at - base : 0;
        columns->Add(!at ? 0 : difference < 0 ? difference : difference + 1);
      }
    };
    int64_t before = 0;
    NodeId node(0);
    add("run.posted", &Times::posted, [&](uint32_t op) {
      if (!is_preposted_ && plan_.ops()[op].is_send()) return OrStart(times_[op].started);
      const uint32_t credit = is_preposted_ ? CreditTable::kNone : CreditOf(op);
      if (credit != CreditTable::kNone)
        return OrStart(times_[tables_.messages().send(credit)].posted);
      const NodeId own = tables_.RefOf(op).node;
      const int64_t base = own == node ? before : 0;
      node = own;
      before = OrStart(times_[op].posted);
      return base;
    });
    add("run.started", &Times::started, [&](uint32_t op) {
      return plan_.ops()[op].is_send() ? LatestBefore(op) : OrStart(times_[SendOf(op)].started);
    });
    add("run.completed", &Times::completed, [&](uint32_t op) {
      return plan_.ops()[op].is_send() ? OrStart(times_[RecvOf(op)].completed)
                                       : OrStart(times_[SendOf(op)].started);
    });
    columns->Begin(prefix + "run.wakeups");
    for (const int64_t time : wakeups_) columns->Add(time);
  }

 private:
  struct Times {
    Time posted;
    Time started;
    Time completed;
  };

  /// Of each send, the last receive of its node before it that brought one of its blocks, or kNone.
  static std::vector<uint32_t> ArrivalsOf(const Plan& plan) {
    std::vector<uint32_t> arrivals(plan.ops().size(), MessageTable::kNone);
    // By block, at any node: one before the program at hand is another's.
    std::vector<uint32_t> last(plan.header().payload.blocks, MessageTable::kNone);
    for (const Program& program : plan.programs()) {
      for (uint32_t i = program.op_begin; i < program.op_begin + program.op_count; ++i) {
        const Op& op = plan.ops()[i];
        if (op.is_credit()) continue;
        const auto blocks = std::span(last).subspan(op.block, op.count);
        if (!op.is_send()) {
          std::ranges::fill(blocks, i);
          continue;
        }
        for (const uint32_t receive : blocks) {
          const bool is_own = receive != MessageTable::kNone && receive >= program.op_begin;
          if (is_own && (arrivals[i] == MessageTable::kNone || receive > arrivals[i]))
            arrivals[i] = receive;
        }
      }
    }
    return arrivals;
  }

  static int64_t OrStart(const Time& time) { return time.value_or(0); }
  uint32_t SendOf(uint32_t op) const {
    return tables_.messages().send(tables_.messages().MessageOf(op));
  }
  uint32_t RecvOf(uint32_t op) const {
    return tables_.messages().recv(tables_.messages().MessageOf(op));
  }
  /// The message that grants a receive.
  uint32_t CreditOf(uint32_t recv) const {
    const Op& op = plan_.ops()[recv];
    const uint32_t partner = tables_.credits().Partner(op.channel);
    if (op.is_credit() || partner == CreditTable::kNone) return CreditTable::kNone;
    const uint32_t message = tables_.messages().MessageOf(recv);
    return tables_.credits().CreditFor(ChannelId(partner),
                                       message - tables_.messages().ChannelBegin(op.channel));
  }
  /// When the last of what a send waits for at its node completed.
  int64_t LatestBefore(uint32_t send) const {
    const Op& op = plan_.ops()[send];
    const NodeId node = plan_.channels()[op.channel.index()].from;
    const uint32_t begin = tables_.ProgramOf(node).op_begin;
    int64_t latest = 0;
    for (const OpId before : plan_.after(op))
      latest = std::max(latest, OrStart(times_[begin + before.value].completed));
    if (op.is_credit()) return latest;
    const uint32_t arrival = arrival_[send];
    if (arrival == MessageTable::kNone) return latest;
    return std::max(latest, OrStart(times_[arrival].completed));
  }

  const PlanTables& tables_;
  const Plan& plan_;
  const bool is_preposted_;
  const std::vector<uint32_t> arrival_;  ///< by op
  std::vector<Times> times_;             ///< by op
  std::vector<int64_t> wakeups_;
};

}  // namespace

uint64_t AddPageRun(const PlanTables& tables, const PageRun& run, const std::string& prefix,
                    size_t bytes_max, PageColumns* columns) {
  uint64_t first = 1;
  while (LatestOf(tables.plan(), *run.trace) / first >= kTimeMax) first *= kStepFactor;
  for (uint64_t step = first;; step *= kStepFactor) {
    PageColumns own;
    RunColumns(tables, run, step).AddTo(prefix, &own);
    if (step < kStepMax && own.bytes().size() > bytes_max && PackedBytes(own) > bytes_max) continue;
    columns->Append(own);
    return step;
  }
}

}  // namespace prepost::viz
