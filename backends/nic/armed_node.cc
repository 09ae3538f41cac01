// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/armed_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "prepost/backends/nic/encode.h"
#include "prepost/backends/nic/link.h"

namespace prepost::nic {
namespace {

uint32_t RingSize(size_t entries) {
  return std::bit_ceil(static_cast<uint32_t>(std::max<size_t>(entries, 1)));
}

}  // namespace

Result<QpId> FindQp(const NodeProgram& program, NodeId peer, uint32_t lane) {
  for (size_t i = 0; i < program.qps.size(); ++i) {
    const QueuePair& qp = program.qps[i];
    if (!qp.loopback && qp.peer == peer && qp.lane == lane) return QpId::FromIndex(i);
  }
  return Rejected(
      fmt::format("node {} has no QP to node {} on lane {}", program.node.value, peer.value, lane));
}

Result<ArmedNode> ArmedNode::Make(Device& device, const NodeProgram& program,
                                  const ArmConfig& config) {
  ArmedNode node(device, program, config);
  PREPOST_RETURN_IF_ERROR(node.MakeObjects());
  return node;
}

Status ArmedNode::MakeObjects() {
  for (const CompletionQueue& cq : program_->cqs) {
    // The host consumes nothing during a run; flushed WQEs may give more CQEs than planned.
    Result<Cq> made =
        device_->CreateCq({.entries = RingSize(cq.completions), .ignore_overrun = true});
    if (!made.ok()) return made.status();
    cqs_.push_back(*made);
  }
  final_reader_.emplace(final_cq());
  final_left_ = program_->cqs[program_->final_cq.index()].completions;
  for (const QueuePair& qp : program_->qps) {
    QpConfig config{.send_cq = cq(qp.send_cq).number,
                    .recv_cq = cq(qp.recv_cq).number,
                    .sq_wqebbs = RingSize(qp.sends.size()),
                    .rq_stride = kReceiveStrideBytes,
                    .cd_master = true,
                    .rnr_retry = config_.rnr_retry};
    if (!qp.receives.empty()) config.rq_wqes = RingSize(qp.receives.size());
    Result<Qp> made = device_->CreateQp(config);
    if (!made.ok()) return made.status();
    qps_.push_back(*made);
  }
  if (!config_.message.empty()) {
    Result<uint32_t> key =
        device_->RegisterMemory(config_.message, {.local_write = config_.writable});
    if (!key.ok()) return key.status();
    lkey_ = *key;
  }
  const QpId loopback = QpId::FromIndex(program_->qps.size() - 1);
  return device_->Connect(qp(loopback).number, {device_->port_address(), qp(loopback).number});
}

OpenNode ArmedNode::open_node() const {
  OpenNode open{.node = program_->node, .device = device_, .qps = {}};
  for (size_t i = 0; i < qps_.size(); ++i) {
    const QueuePair& pair = program_->qps[i];
    if (!pair.loopback) open.qps.push_back({pair.peer, pair.lane, qps_[i].number});
  }
  return open;
}

Status ArmedNode::Arm() {
  Bindings bindings{.lkey = lkey_,
                    .address = reinterpret_cast<uintptr_t>(config_.message.data()),
                    .epoch = config_.epoch};
  for (const Qp& it : qps_) bindings.qpns.push_back(it.number);
  for (const Cq& it : cqs_) bindings.cqns.push_back(it.number);
  bindings.sq_bases.assign(qps_.size(), 0);
  for (const Cq& it : cqs_) bindings.cq_bases.push_back(it.producer_base);

  const std::vector<QueuePairImage> images = Encode(*program_);
  for (size_t i = 0; i < images.size(); ++i) {
    Result<std::vector<std::byte>> sends = Link(images[i].sq, bindings);
    if (!sends.ok()) return sends.status();
    Result<std::vector<std::byte>> receives = Link(images[i].rq, bindings);
    if (!receives.ok()) return receives.status();
    std::ranges::copy(*sends, qps_[i].sq.begin());
    std::ranges::copy(*receives, qps_[i].rq.begin());
    wqes_written_ += sends->size() / kWqebbBytes + receives->size() / kReceiveStrideBytes;
    PostReceives(qps_[i], static_cast<uint16_t>(program_->qps[i].receives.size()));
  }
  return {};
}

Status ArmedNode::RequestEvent() {
  if (event_requested_) return {};
  event_requested_ = true;
  return device_->RequestEvent(final_cq().number);
}

void ArmedNode::Start() {
  for (size_t i = 0; i < qps_.size(); ++i) {
    const size_t sends = program_->qps[i].sends.size();
    if (sends == 0) continue;
    PostSends(*device_, qps_[i], static_cast<uint16_t>(sends), static_cast<uint16_t>(sends - 1));
  }
}

Result<bool> ArmedNode::Poll(std::chrono::milliseconds timeout, int wake_fd) {
  Result<bool> done = timeout.count() == 0 ? TakeFinal() : TakeFinalOrAsk();
  if (!done.ok() || *done || timeout.count() == 0) return done;
  const Result<EventWait> wait = WaitForEvent(*device_, wake_fd, timeout);
  if (!wait.ok()) return wait.status();
  if (wait->event) event_requested_ = false;
  return TakeFinal();
}

Result<bool> ArmedNode::TakeEvent() {
  device_->CountWakeup();
  if (device_->AckEvents() != 0) event_requested_ = false;
  return TakeFinalOrAsk();
}

Result<bool> ArmedNode::TakeFinalOrAsk() {
  Result<bool> done = TakeFinal();
  if (!done.ok() || *done) return done;
  PREPOST_RETURN_IF_ERROR(RequestEvent());
  return TakeFinal();  // what came before the request gives no event
}

Result<bool> ArmedNode::TakeFinal() {
  while (final_left_ != 0) {
    const std::optional<Cqe> cqe = final_reader_->Next();
    if (!cqe) return false;
    if (cqe->is_error()) {
      return Rejected(fmt::format("node {}: the final completion is an error: {}",
                                  program_->node.value, Name(cqe->syndrome)));
    }
    --final_left_;
  }
  return true;
}

Status ArmedNode::CheckQueues(Expect expect) const {
  for (size_t i = 0; i < program_->cqs.size(); ++i) {
    if (program_->cqs[i].role == CompletionQueue::Role::kIdle) continue;
    PREPOST_RETURN_IF_ERROR(CheckQueue(CqId::FromIndex(i), expect));
  }
  return {};
}

Status ArmedNode::CheckQueue(CqId id, Expect expect) const {
  const CompletionQueue& queue = program_->cqs[id.index()];
  const auto wrong = [&](uint32_t index, const std::string& what) {
    return Rejected(fmt::format("node {}: {}: CQE {}: {}", program_->node.value,
                                Describe(*program_, id), index, what));
  };
  CqeReader reader(cq(id));
  for (uint32_t i = 0; i < queue.completions; ++i) {
    const std::optional<Cqe> cqe = reader.Next();
    if (!cqe && expect == Expect::kSome) return {};
    if (!cqe) return wrong(i, fmt::format("missing, {} were expected", queue.completions));
    if (cqe->is_error()) return wrong(i, Name(cqe->syndrome));
    if (queue.role != CompletionQueue::Role::kReceives) continue;
    const ReceiveEntry& expected = program_->qps[queue.qp.index()].receives[i];
    const std::string what = WrongReceive(
        *cqe, {.block = expected.block, .bytes = expected.bytes, .epoch = config_.epoch});
    if (!what.empty()) return wrong(i, what);
  }
  return {};
}

}  // namespace prepost::nic
