// SPDX-License-Identifier: Apache-2.0
//
// `acyclic`, over all nodes: conditions only ever become true (a producer counter passes an index,
// a limit rises), so it does not matter in which order queues run: either all of them end, or they
// stop at one set of WQEs that wait for each other. So the queues are run, each as far as it gets,
// in time linear in their WQEs: a send delivers to the peer's next receive, which counts on that
// receive's CQ, and counts on its own CQ if it is signaled. A queue that stops at a WAIT is put
// aside until that CQ has what it waits for.
//
// A queue that is longer than its ring is there as far as its host has written it, which reads each
// CQE at once and then writes half a ring; and a send runs when its host has rung for it, which it
// does when the receives are posted that it wants to be first. A queue that stops for its host is
// tried again when that has written anything.
//
// What is left at the end is followed from one stopped queue to the one that it waits for, until
// one occurs twice: that is the cycle, or ends at a queue that has nothing more to give.
#include "backends/nic/validate/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "backends/nic/validate/number_index.h"
#include "backends/nic/validate/validate_node.h"

namespace prepost::nic {
namespace {

constexpr uint32_t kNone = NumberIndex::kNone;

/// All queues of all nodes, run to where they stop.
class Simulation {
 public:
  /// `nodes`: all of a plan, each once.
  explicit Simulation(const std::vector<NodeSteps>& nodes) : nodes_(nodes) {}

  /// What is wrong with how QPs are connected, or "".
  std::string Connect() {
    std::vector<NumberIndex> by_number(nodes_.size());      // by node id, of its QPNs
    std::vector<uint32_t> first_qps(nodes_.size(), kNone);  // by node id
    uint32_t cqs = 0;
    for (const NodeSteps& node : nodes_) {
      by_number[node.node.index()].Build(node.queues);
      first_qps[node.node.index()] = static_cast<uint32_t>(queues_.size());
      for (const QueueSteps& steps : node.queues) {
        queues_.push_back({.node = &node,
                           .steps = &steps,
                           .first_cq = cqs,
                           .first_qp = static_cast<uint32_t>(
                               queues_.size() - static_cast<size_t>(&steps - node.queues.data()))});
      }
      cqs += node.cqs;
    }
    produced_.assign(cqs, 0);
    waiters_.assign(cqs, kNone);
    host_waiters_.resize(nodes_.size());
    feeder_.assign(cqs, kNone);
    for (uint32_t i = 0; i < queues_.size(); ++i) {
      Queue& queue = queues_[i];
      const QueueSteps& it = *queue.steps;
      const uint32_t position =
          it.peer.index() < by_number.size() ? by_number[it.peer.index()].Find(it.peer_qpn) : kNone;
      if (position != kNone) queue.peer = first_qps[it.peer.index()] + position;
      const QueueSteps* peer = position == kNone ? nullptr : queues_[queue.peer].steps;
      const bool is_back = peer != nullptr && peer->peer == queue.node->node &&
                           peer->peer_qpn == it.number && (it.loopback || peer->lane == it.lane);
      if (!is_back) {
        return fmt::format(
            "node {}: {} is connected to QP {:#x} of node {}, which is not connected to it",
            queue.node->node.value, DescribeQp(*queue.node, i - queue.first_qp), it.peer_qpn,
            it.peer.value);
      }
      feeder_[queue.first_cq + it.send_cq] = i;
      if (it.receives != 0) feeder_[queue.first_cq + it.recv_cq] = queue.peer;
    }
    return "";
  }

  /// True when all queues end.
  bool Run() {
    for (uint32_t i = 0; i < queues_.size(); ++i) {
      if (!queues_[i].steps->managed) RunFrom(i);
    }
    return std::ranges::all_of(queues_, [](const Queue& it) { return it.is_at_end(); });
  }

  /// Where queues stand that did not end: the cycle, if there is one.
  std::string Stopped() const {
    std::vector<std::string> way;
    std::vector<bool> seen(queues_.size(), false);
    uint32_t at = 0;
    while (at < queues_.size() && queues_[at].is_at_end()) ++at;
    while (at != kNone && !seen[at] && way.size() < kWayMax) {
      seen[at] = true;
      const Queue& queue = queues_[at];
      const uint32_t next = WaitsFor(queue, at);
      way.push_back(fmt::format("node {} {} WQE {}{}", queue.node->node.value,
                                DescribeQp(*queue.node, at - queue.first_qp), queue.at,
                                IsHeldByHost(queue) ? " (for which its host cannot ring)" : ""));
      at = next;
    }
    return fmt::format("queues stop: {}{}", fmt::join(way, " waits for "),
                       at == kNone ? "" : ", and so on around");
  }

 private:
  static constexpr size_t kWayMax = 12;

  struct Queue {
    const NodeSteps* node = nullptr;
    const QueueSteps* steps = nullptr;
    uint32_t first_cq = 0;  ///< of the node
    uint32_t first_qp = 0;
    uint32_t peer = kNone;
    uint32_t at = 0;       ///< next WQE
    uint32_t enabled = 0;  ///< managed
    uint32_t ready = 0;    ///< managed: WQEs that a SEND_EN may let run, as far as was asked
    uint32_t received = 0;
    uint32_t next_waiter = kNone;

    bool is_at_end() const { return at == steps->steps.size(); }
    size_t length() const { return steps->steps.size(); }
    /// WQEs that are in the ring or were. The last one of a half is signaled, so that the host
    /// knows how many halves are behind `at`.
    size_t written() const { return Filled(at, length(), steps->send_ring); }
    size_t posted() const { return Filled(received, steps->receives, steps->receive_ring); }
  };

  /// How much of `length` entries a host has written when `done` have completed.
  static size_t Filled(size_t done, size_t length, size_t ring) {
    if (length <= ring) return length;
    const size_t half = ring / 2;
    return std::min(length, ring + done / half * half);
  }

  void RunFrom(uint32_t queue) {
    ready_.push_back(queue);
    while (!ready_.empty()) {
      const uint32_t next = ready_.back();
      ready_.pop_back();
      RunQueue(next);
    }
  }

  void RunQueue(uint32_t id) {
    Queue& queue = queues_[id];
    const std::vector<QueueStep>& steps = queue.steps->steps;
    const size_t limit = queue.steps->managed ? queue.enabled : steps.size();
    for (; queue.at < limit; ++queue.at) {
      const QueueStep& step = steps[queue.at];
      if (!IsRung(queue, step)) return host_waiters_[NodeOf(queue)].push_back(id);
      switch (step.kind) {
        case QueueStep::Kind::kWait: {
          const uint32_t cq = queue.first_cq + step.target;
          if (produced_[cq] > step.value) break;
          queue.next_waiter = std::exchange(waiters_[cq], id);
          return;
        }
        case QueueStep::Kind::kEnable: {
          Queue& slave = queues_[queue.first_qp + step.target];
          slave.enabled = std::max(slave.enabled, step.value);
          ready_.push_back(queue.first_qp + step.target);
          break;
        }
        case QueueStep::Kind::kSend: {
          Queue& peer = queues_[queue.peer];
          if (peer.received == peer.steps->receives) return;  // for ever: no receive is left
          ++peer.received;
          NoteDone(peer, peer.received, peer.steps->receives, peer.steps->receive_ring);
          Produce(peer.first_cq + peer.steps->recv_cq);
          break;
        }
        case QueueStep::Kind::kNop:
          break;
      }
      if (step.signaled) Produce(queue.first_cq + queue.steps->send_cq);
      NoteDone(queue, queue.at + 1, steps.size(), queue.steps->send_ring);
    }
  }

  size_t NodeOf(const Queue& queue) const {
    return static_cast<size_t>(queue.node - nodes_.data());
  }

  /// The host of `queue` writes a half of a ring when one has completed, and rings.
  void NoteDone(const Queue& queue, size_t done, size_t length, size_t ring) {
    if (length <= ring || done % (ring / 2) != 0) return;
    std::vector<uint32_t>& waiters = host_waiters_[NodeOf(queue)];
    ready_.insert(ready_.end(), waiters.begin(), waiters.end());
    waiters.clear();
  }

  /// Has the host rung for `step` of `queue`?
  bool IsRung(const Queue& queue, const QueueStep& step) {
    if (step.kind == QueueStep::Kind::kSend) {
      return step.value == 0 || queues_[queue.first_qp + step.target].posted() >= step.value;
    }
    if (step.kind != QueueStep::Kind::kEnable) return true;
    Queue& slave = queues_[queue.first_qp + step.target];
    const size_t limit = std::min<size_t>(step.value, slave.written());
    while (slave.ready < limit && IsRung(slave, slave.steps->steps[slave.ready])) ++slave.ready;
    return slave.ready >= step.value;
  }

  /// For a queue that stopped for its host: the queue whose progress lets the host post or write.
  uint32_t HostWaitsFor(const Queue& queue, const QueueStep& step) const {
    if (step.kind == QueueStep::Kind::kSend) {
      if (step.value == 0) return kNone;
      const Queue& first = queues_[queue.first_qp + step.target];
      return first.posted() >= step.value ? kNone : first.peer;
    }
    if (step.kind != QueueStep::Kind::kEnable) return kNone;
    const uint32_t slave = queue.first_qp + step.target;
    const Queue& it = queues_[slave];
    return it.ready == it.written() ? slave : HostWaitsFor(it, it.steps->steps[it.ready]);
  }

  void Produce(uint32_t cq) {
    ++produced_[cq];
    uint32_t* link = &waiters_[cq];
    while (*link != kNone) {
      Queue& waiter = queues_[*link];
      if (produced_[cq] > waiter.steps->steps[waiter.at].value) {
        ready_.push_back(*link);
        *link = std::exchange(waiter.next_waiter, kNone);
      } else {
        link = &waiter.next_waiter;
      }
    }
  }

  /// The queue that would let this one go on; kNone when there is none.
  uint32_t WaitsFor(const Queue& queue, uint32_t id) const {
    if (queue.steps->managed && queue.at == queue.enabled) {
      for (uint32_t i = queue.first_qp; i < queues_.size(); ++i) {
        const Queue& master = queues_[i];
        if (master.node != queue.node) break;
        for (uint32_t at = master.at; at < master.steps->steps.size(); ++at) {
          const QueueStep& step = master.steps->steps[at];
          if (step.kind == QueueStep::Kind::kEnable && queue.first_qp + step.target == id) return i;
        }
      }
      return kNone;
    }
    const QueueStep& step = queue.steps->steps[queue.at];
    if (step.kind != QueueStep::Kind::kWait) return HostWaitsFor(queue, step);
    return feeder_[queue.first_cq + step.target];
  }
  bool IsHeldByHost(const Queue& queue) const {
    if (queue.steps->managed && queue.at == queue.enabled) return false;
    return HostWaitsFor(queue, queue.steps->steps[queue.at]) != kNone;
  }

  const std::vector<NodeSteps>& nodes_;
  std::vector<Queue> queues_;
  std::vector<uint32_t> produced_;  // by CQ of all nodes
  std::vector<uint32_t> waiters_;   // by CQ: first of a list of queues
  std::vector<uint32_t> feeder_;    // by CQ: the queue whose progress completes to it
  std::vector<uint32_t> ready_;
  std::vector<std::vector<uint32_t>> host_waiters_;  // by node: queues
};

}  // namespace

void ValidationFindings::Add(const QueueObjects& objects, size_t qp, size_t position,
                             const char* rule, const std::string& what) {
  ++report_.findings;
  if (report_.first.size() >= kKeptMax) return;
  report_.first.push_back({.node = objects.node,
                           .qp = static_cast<uint32_t>(qp),
                           .position = static_cast<uint32_t>(position),
                           .rule = rule,
                           .message = fmt::format("node {}: {}: WQE {}: {}: {}", objects.node.value,
                                                  DescribeQp(objects, qp), position, rule, what)});
}

void ValidationFindings::AddGlobal(const char* rule, const std::string& what) {
  ++report_.findings;
  report_.first.push_back({.rule = rule, .message = fmt::format("{}: {}", rule, what)});
}

ValidationReport ValidationFindings::Take(uint64_t wqes) {
  report_.wqes = wqes;
  std::ranges::stable_sort(report_.first, {}, [](const ValidationFinding& it) {
    return std::tuple(it.node, it.qp, it.position);
  });
  if (report_.first.size() > kValidationFindingsMax) report_.first.resize(kValidationFindingsMax);
  return std::move(report_);
}

Status ValidationReport::ToStatus() const {
  if (ok()) return {};
  std::string text = fmt::format("the queues' bytes are not the plan, {} finding{}", findings,
                                 findings == 1 ? "" : "s");
  for (const ValidationFinding& finding : first) text += "\n  " + finding.message;
  if (findings > first.size()) text += fmt::format("\n  and {} more", findings - first.size());
  return Rejected(text);
}

class Validator::Impl {
 public:
  explicit Impl(const Plan& plan) : plan_(plan) {}

  void Add(const QueueObjects& objects) {
    nodes_.push_back(ValidateNode(plan_, objects, &findings_));
    for (const QueueSteps& queue : nodes_.back().queues) {
      wqes_ += queue.steps.size() + queue.receives;
    }
  }

  ValidationReport Finish() {
    if (findings_.empty() && nodes_.size() == plan_.header().nodes) {
      Simulation simulation(nodes_);
      std::string wrong = simulation.Connect();
      if (wrong.empty() && !simulation.Run()) wrong = simulation.Stopped();
      if (!wrong.empty()) findings_.AddGlobal("acyclic", wrong);
    }
    return findings_.Take(wqes_);
  }

 private:
  const Plan& plan_;
  ValidationFindings findings_;
  std::vector<NodeSteps> nodes_;
  uint64_t wqes_ = 0;
};

Validator::Validator(const Plan& plan) : impl_(std::make_unique<Impl>(plan)) {}
Validator::~Validator() = default;
void Validator::Add(const QueueObjects& objects) { impl_->Add(objects); }
ValidationReport Validator::Finish() { return impl_->Finish(); }

}  // namespace prepost::nic
