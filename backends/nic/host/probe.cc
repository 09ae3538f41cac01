// SPDX-License-Identifier: Apache-2.0
//
// Drivers and tests of mlx5 hardware show most of what WAIT, SEND_EN and RECV_EN do, and leave some
// questions open. Each experiment makes a few loopback queues, posts by hand and records which
// CQEs come: a WQE of theirs has "passed", was "refused" (an error CQE, with its syndrome), or
// "holds" (none came in time). Nothing here relies on an answer, but for the bound on waiting.
#include "backends/nic/host/probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "backends/nic/host/cqe_reader.h"
#include "backends/nic/program/encode.h"
#include "runtime/base/clock.h"

namespace prepost::nic {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kEntries = 64;        // of every ring
constexpr milliseconds kHoldsAfter{50};  // what has not come by then does not come
constexpr size_t kReceiveEnables = 32;   // of U4
constexpr size_t kLatencies = 1000;      // of U8
constexpr uint64_t kLatencyMaxNs = 1'000'000'000;

/// A QP connected to itself, with a CQ for each direction.
class ProbeQueue {
 public:
  static Result<std::unique_ptr<ProbeQueue>> Make(const ProbeTarget& target, QpConfig config) {
    std::unique_ptr<ProbeQueue> queue(new ProbeQueue(target));
    for (auto [cq, number] : {std::pair(&queue->send_cq_, &config.send_cq),
                              std::pair(&queue->recv_cq_, &config.recv_cq)}) {
      Result<Cq> made = target.device.CreateCq(
          {.entries = kEntries, .ignore_overrun = true, .doorbell_page = config.doorbell_page});
      if (!made.ok()) return made.status();
      *cq = *made;
      *number = made->number;
    }
    config.sq_wqebbs = config.rq_wqes = kEntries;
    Result<Qp> qp = target.device.CreateQp(config);
    if (!qp.ok()) return qp.status();
    queue->qp_ = *qp;
    PREPOST_RETURN_IF_ERROR(
        target.device.Connect(qp->number, {target.device.port_address(), qp->number}));
    queue->reader_.emplace(queue->send_cq_);
    return queue;
  }

  const Cq& send_cq() const { return send_cq_; }
  /// Lets the NIC do what it will do, without polling a CQ.
  void LetRun() const {
    if (target_.settle) {
      target_.settle();
    } else {
      std::this_thread::sleep_for(kHoldsAfter);
    }
  }
  /// Where the device says that the send queue and its CQ stand.
  Result<std::string> Counters() const {
    const Result<QpCounters> qp = target_.device.QueryQp(qp_.number);
    if (!qp.ok()) return qp.status();
    const Result<CqCounters> cq = target_.device.QueryCq(send_cq_.number);
    if (!cq.ok()) return cq.status();
    return fmt::format("{} of {} fetched and {} CQEs", qp->sq_fetched, qp->sq_posted, cq->producer);
  }

  void Nop() { Post(Opcode::kNop, {}); }
  void Send() { Post(Opcode::kSend, {}); }
  void Wait(const Cq& cq, uint32_t index) {
    Post(Opcode::kWait, CoordinationSegment{.index = index, .number = cq.number});
  }
  void Enable(Opcode opcode, const ProbeQueue& target, uint32_t index) {
    Post(opcode, CoordinationSegment{.index = index, .number = target.qp_.number});
  }
  /// A receive without bytes.
  void Receive() {
    EncodeSegment(DataSegment{.lkey = kInvalidLkey},
                  qp_.rq.data() + (rq_next_ % kEntries) * kReceiveStrideBytes);
    PostReceives(qp_, ++rq_next_);
  }
  void Ring() { PostSends(target_.device, qp_, sq_next_, static_cast<uint16_t>(sq_next_ - 1)); }

  /// The next CQE of the send queue, or nothing if none comes in time.
  std::optional<Cqe> Next() {
    if (target_.settle) target_.settle();
    const uint64_t due_ns = MonotonicNs() + std::chrono::nanoseconds(kHoldsAfter).count();
    while (true) {
      if (std::optional<Cqe> cqe = reader_->Next()) return cqe;
      if (target_.is_software() || MonotonicNs() >= due_ns) return std::nullopt;
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  /// When the next CQE came, without sleeping; 0: too late.
  uint64_t PollNs() {
    const uint64_t due_ns = MonotonicNs() + kLatencyMaxNs;
    while (!reader_->Next()) {
      if (MonotonicNs() >= due_ns) return 0;
    }
    return MonotonicNs();
  }
  /// How many WQEs complete from now on.
  size_t CountCompletions() {
    size_t count = 0;
    for (std::optional<Cqe> cqe = Next(); cqe && !cqe->is_error(); cqe = Next()) ++count;
    return count;
  }
  /// "passes", "holds" or "is refused (SYNDROME)".
  std::string Outcome() {
    const std::optional<Cqe> cqe = Next();
    if (!cqe) return "holds";
    return cqe->is_error() ? fmt::format("is refused ({})", Name(cqe->syndrome)) : "passes";
  }

 private:
  explicit ProbeQueue(const ProbeTarget& target) : target_(target) {}

  void Post(Opcode opcode, std::optional<CoordinationSegment> coordination) {
    std::byte* at = qp_.sq.data() + (sq_next_ % kEntries) * kWqebbBytes;
    EncodeSegment(ControlSegment{.wqe_index = sq_next_,
                                 .opcode = opcode,
                                 .qpn = qp_.number,
                                 .segments = static_cast<uint8_t>(coordination ? 2 : 1),
                                 .completion = CompletionMode::kAlways},
                  at);
    if (coordination) EncodeSegment(*coordination, at + kSegmentBytes);
    ++sq_next_;
  }

  const ProbeTarget& target_;
  Cq send_cq_;
  Cq recv_cq_;
  Qp qp_;
  std::optional<CqeReader> reader_;
  uint16_t sq_next_ = 0;
  uint16_t rq_next_ = 0;
};

using Queues = std::vector<std::unique_ptr<ProbeQueue>>;

Result<Queues> MakeQueues(const ProbeTarget& target, const std::vector<QpConfig>& configs) {
  Queues queues;
  for (const QpConfig& config : configs) {
    Result<std::unique_ptr<ProbeQueue>> queue = ProbeQueue::Make(target, config);
    if (!queue.ok()) return queue.status();
    queues.push_back(*std::move(queue));
  }
  return queues;
}

constexpr QpConfig kPlain = {};
constexpr QpConfig kOtherPage = {.doorbell_page = 1};
constexpr QpConfig kMaster = {.cd_master = true};
constexpr QpConfig kManaged = {.managed_send = true};
constexpr QpConfig kManagedReceive = {.managed_recv = true};
constexpr QpConfig kManagedMaster = {.cd_master = true, .managed_send = true};

/// What was seen, or why nothing can be said.
using Seen = Result<std::string>;
/// With the queues of its line in the table.
using Run = Seen (*)(const ProbeTarget&, const Queues&);

constexpr uint32_t kWaitIndices[] = {0,         1,        0xffffff, 0xffffffff, 0x1000000,
                                     0x1000001, 0x7fffff, 0x800000, 0x800001};

Seen WaitComparison(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& waited = *queues[0];
  waited.Nop();
  waited.Ring();
  if (!waited.Next()) return Rejected("a NOP does not complete");
  std::vector<std::string> outcomes;
  for (size_t i = 0; i < std::size(kWaitIndices);
       ++i) {  // each on a master of its own: it may hold
    ProbeQueue& master = *queues[1 + i];
    master.Wait(waited.send_cq(), kWaitIndices[i]);
    master.Ring();
    outcomes.push_back(fmt::format("{:#x} {}", kWaitIndices[i], master.Outcome()));
  }
  return fmt::format("with 1 CQE a WAIT for {}", fmt::join(outcomes, ", "));
}

Seen WaitWithoutMaster(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& waited = *queues[0];
  ProbeQueue& plain = *queues[1];
  plain.Wait(waited.send_cq(), 0);
  plain.Ring();
  const std::string before = plain.Outcome();
  if (before != "holds") return fmt::format("before its CQE the WAIT {}", before);
  waited.Nop();
  waited.Ring();
  if (!waited.Next()) return Rejected("a NOP does not complete");
  return fmt::format("the WAIT holds, and after its CQE it {}", plain.Outcome());
}

Seen WaitOnForeignCq(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& foreign = *queues[0];
  foreign.Nop();
  foreign.Ring();
  if (!foreign.Next()) return Rejected("a NOP does not complete");
  ProbeQueue& master = *queues[1];
  master.Wait(foreign.send_cq(), 0);
  master.Ring();
  return "after its CQE it " + master.Outcome();
}

Seen ReceiveEnables(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& managed = *queues[0];
  ProbeQueue& master = *queues[1];
  size_t held = 0;
  size_t enabled = 0;
  for (uint32_t i = 1; i <= kReceiveEnables; ++i) {
    managed.Receive();
    managed.Send();
    managed.Ring();
    if (!managed.Next()) {
      ++held;
      master.Enable(Opcode::kRecvEnable, managed, i);
      master.Ring();
      if (managed.Outcome() == "passes") ++enabled;
    }
    if (enabled != i) break;
  }
  return fmt::format("of {} receives {} held until their RECV_EN, {} took their message after it",
                     kReceiveEnables, held, enabled);
}

Seen ManagedDoorbell(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& managed = *queues[0];
  ProbeQueue& master = *queues[1];
  managed.Nop();
  managed.Ring();
  const std::string rung = managed.Outcome();
  if (rung != "holds") return fmt::format("after the doorbell the NOP {}", rung);
  master.Enable(Opcode::kSendEnable, managed, 1);
  master.Ring();
  return fmt::format("after the doorbell the NOP holds, after SEND_EN it {}", managed.Outcome());
}

Seen BackwardsEnable(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& managed = *queues[0];
  ProbeQueue& master = *queues[1];
  for (int i = 0; i < 4; ++i) managed.Nop();
  std::vector<std::string> counts;
  for (const uint32_t index : {3u, 1u, 4u}) {
    master.Enable(Opcode::kSendEnable, managed, index);
    master.Ring();
    const std::string outcome = master.Outcome();
    counts.push_back(fmt::format("SEND_EN up to {} {} and {} NOPs run", index, outcome,
                                 managed.CountCompletions()));
  }
  return fmt::format("{}", fmt::join(counts, ", "));
}

Seen MasterAndManaged(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& both = *queues[0];
  ProbeQueue& master = *queues[1];
  ProbeQueue& waited = *queues[2];
  both.Wait(waited.send_cq(), 0);
  const std::string before = both.Outcome();
  master.Enable(Opcode::kSendEnable, both, 1);
  master.Ring();
  const std::string enabled = both.Outcome();
  waited.Nop();
  waited.Ring();
  if (!waited.Next()) return Rejected("a NOP does not complete");
  return fmt::format("its WAIT {}, after SEND_EN it {}, after the CQE it {}", before, enabled,
                     enabled == "holds" ? both.Outcome() : enabled);
}

/// From the doorbell of a NOP to the CQE of what a WAIT holds behind it, and to its own.
Seen WaitLatency(const ProbeTarget& target, const Queues& queues) {
  if (target.is_software()) return Rejected("the NIC is software, its times say nothing");
  ProbeQueue& waited = *queues[0];
  ProbeQueue& master = *queues[1];
  std::vector<uint64_t> direct_ns;
  std::vector<uint64_t> waited_ns;
  for (uint32_t i = 0; i < kLatencies; ++i) {
    master.Wait(waited.send_cq(), i);
    master.Ring();
    waited.Nop();
    const uint64_t start_ns = MonotonicNs();
    waited.Ring();
    const uint64_t first_ns = waited.PollNs();
    const uint64_t second_ns = master.PollNs();
    if (first_ns == 0 || second_ns == 0) return Rejected("a NOP or its WAIT does not complete");
    direct_ns.push_back(first_ns - start_ns);
    waited_ns.push_back(second_ns - start_ns);
  }
  for (std::vector<uint64_t>* times : {&direct_ns, &waited_ns}) std::ranges::sort(*times);
  const auto summary = [](const std::vector<uint64_t>& times) {
    return fmt::format("min {}, median {}, p99 {} ns", times.front(), times[times.size() / 2],
                       times[times.size() * 99 / 100]);
  };
  return fmt::format("{} rounds: the NOP {}; the WAIT on it {}", kLatencies, summary(direct_ns),
                     summary(waited_ns));
}

Seen Permission(const ProbeTarget& target, const Queues&) {
  if (target.is_software()) return Rejected("the NIC is software, there is no driver to refuse");
  return fmt::format("a CQ and a cd_master QP were made by user {}", geteuid());
}

/// A host that sleeps learns from nothing else whether its queues move.
Seen LiveCounters(const ProbeTarget&, const Queues& queues) {
  ProbeQueue& waited = *queues[0];
  ProbeQueue& master = *queues[1];
  master.Nop();
  master.Nop();
  master.Wait(waited.send_cq(), 0);
  master.Nop();
  master.Ring();
  master.LetRun();
  const Result<std::string> held = master.Counters();
  if (!held.ok()) return held.status();
  waited.Nop();
  waited.Ring();
  master.LetRun();
  const Result<std::string> gone_on = master.Counters();
  if (!gone_on.ok()) return gone_on.status();
  return fmt::format("before the WAIT's CQE {}, after it {}", *held, *gone_on);
}

struct Experiment {
  const char* id;
  const char* question;
  const char* experiment;
  std::vector<QpConfig> queues;
  Run run;
  bool is_refusal_answer = false;  ///< that the queues cannot be made
};

std::vector<Experiment> Experiments() {
  std::vector<QpConfig> masters(1 + std::size(kWaitIndices), kMaster);
  masters[0] = kPlain;
  return {{"U1", "how many bits of a WAIT's index count", "WAITs around a producer counter of 1",
           masters, WaitComparison},
          {"U2",
           "does a QP without cd_master take WAIT",
           "a WAIT on one, before and after its CQE",
           {kPlain, kPlain},
           WaitWithoutMaster},
          {"U3",
           "may a WAIT name a CQ of another UAR",
           "a WAIT on such a CQ",
           {kOtherPage, kMaster},
           WaitOnForeignCq},
          {"U4",
           "is RECV_EN reliable",
           "receives that are enabled one by one",
           {kManagedReceive, kMaster},
           ReceiveEnables},
          {"U5",
           "what does a doorbell do to a managed send queue",
           "a NOP, its doorbell, its SEND_EN",
           {kManaged, kMaster},
           ManagedDoorbell},
          {"U6",
           "what does a SEND_EN to before the last one do",
           "4 NOPs, SEND_EN to 3, 1, 4",
           {kManaged, kMaster},
           BackwardsEnable},
          {"U7",
           "may a QP be cd_master and cd_slave_send",
           "a WAIT on one, enabled by another",
           {kManagedMaster, kMaster, kPlain},
           MasterAndManaged,
           /*is_refusal_answer=*/true},
          {"U8",
           "how long does a WAIT take",
           "a NOP, and a WAIT on it",
           {kPlain, kMaster},
           WaitLatency},
          {"U9",
           "may this user make such queues",
           "a CQ and a cd_master QP",
           {kMaster},
           Permission,
           /*is_refusal_answer=*/true},
          {"U10",
           "do QUERY_QP and QUERY_CQ follow the NIC",
           "2 NOPs, a WAIT, a NOP, no CQE read",
           {kPlain, kMaster},
           LiveCounters}};
}

Seen Carry(const Experiment& experiment, const ProbeTarget& target) {
  const Result<Queues> queues = MakeQueues(target, experiment.queues);
  if (queues.ok()) return experiment.run(target, *queues);
  if (!experiment.is_refusal_answer) return queues.status();
  return Seen("refused: " + queues.status().message());
}

}  // namespace

std::vector<ProbeAnswer> Probe(const ProbeTarget& target) {
  std::vector<ProbeAnswer> answers;
  for (const Experiment& experiment : Experiments()) {
    const Seen seen = Carry(experiment, target);
    answers.push_back({.id = experiment.id,
                       .question = experiment.question,
                       .experiment = experiment.experiment,
                       .seen = seen.ok() ? *seen : "not answered: " + seen.status().message(),
                       .is_answered = seen.ok()});
  }
  return answers;
}

}  // namespace prepost::nic
