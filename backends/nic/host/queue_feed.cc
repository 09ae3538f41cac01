// SPDX-License-Identifier: Apache-2.0
//
// For a queue of w entries and a ring of r < w: the first r are written at the beginning, and each
// time that half a ring is free, the next r / 2. Writing happens half a ring before the NIC needs
// it, and ceil(2 w / r) - 2 times after the first.
//
// Example, w = 40, r = 16: 0..15 at the beginning; 16..23 when 8 are complete, 24..31 when 16 are,
// 32..39 when 24 are: 3 re-arms, which is ceil(80 / 16) - 2.
#include "backends/nic/host/queue_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/nic/program/encode.h"

namespace prepost::nic {
namespace {

/// Calls `copy` with bytes of the ring, and where in the queue these are, for each run of entries
/// from `begin` up to `end` that does not wrap. The queue's first entry has index `base`.
template <typename Copy>
void ForEachRun(std::span<std::byte> ring, size_t stride, uint16_t base, uint32_t begin,
                uint32_t end, Copy copy) {
  const auto slots = static_cast<uint32_t>(ring.size() / stride);
  while (begin < end) {
    const uint32_t slot = (base + begin) & (slots - 1);
    const uint32_t run = std::min(end - begin, slots - slot);
    copy(ring.subspan(slot * stride, run * stride), begin * stride);
    begin += run;
  }
}

}  // namespace

Status QueueFeed::Begin(std::span<QueuePairImage> images, const Bindings& bindings,
                        bool keeps_images) {
  const auto take = [&](QueueImage& image) { return keeps_images ? image : std::move(image); };
  is_complete_ = false;
  for (size_t i = 0; i < queues_.size(); ++i) {
    Result<std::vector<std::byte>> sends = Link(take(images[i].sq), bindings);
    if (!sends.ok()) return sends.status();
    Result<std::vector<std::byte>> receives = Link(take(images[i].rq), bindings);
    if (!receives.ok()) return receives.status();
    const QueuePair& qp = program_->qps[i];
    Queue& it = queues_[i];
    it.rq_base = static_cast<uint16_t>(it.rq_base + it.rq.total);
    it.sq_base = bindings.sq_bases[i];
    it.sq = {.bytes = *std::move(sends),
             .entries = qp.sq_wqebbs,
             .total = static_cast<uint32_t>(qp.sends.size())};
    it.rq = {.bytes = *std::move(receives),
             .entries = qp.rq_wqes,
             .total = static_cast<uint32_t>(qp.receives.size())};
    it.ready = it.rung = 0;
  }
  for (size_t i = 0; i < queues_.size(); ++i) FillReceives(i);
  for (size_t i = 0; i < queues_.size(); ++i) FillSends(i);
  return {};
}

void QueueFeed::SendsCompleted(QpId qp, uint32_t completed) {
  queues_[qp.index()].sq.completed = completed;
}

void QueueFeed::ReceivesCompleted(QpId qp, uint32_t completed) {
  queues_[qp.index()].rq.completed = completed;
}

void QueueFeed::Refill() {
  if (is_complete_) return;
  for (size_t i = 0; i < queues_.size(); ++i) FillReceives(i);
  for (size_t i = 0; i < queues_.size(); ++i) FillSends(i);
  RingDoorbells();
}

QueueFeed::Count QueueFeed::refillable() const {
  const auto count = [](const Ring& ring) {
    uint32_t written = ring.written;
    while (const uint32_t part = NextPart(ring, written)) written += part;
    return written - ring.written;
  };
  Count all;
  for (const Queue& it : queues_) {
    all.sends += count(it.sq);
    all.receives += count(it.rq);
  }
  return all;
}

/// How many entries there is room for at once when `written` are; 0: not for as many as there
/// should be, or there are no more.
uint32_t QueueFeed::NextPart(const Ring& ring, uint32_t written) {
  const uint32_t entries = ring.entries;  // the device may have given more
  const uint32_t part = written == 0 ? entries : entries / 2;
  return entries - (written - ring.completed) < part ? 0 : std::min(part, ring.total - written);
}

/// Writes what there is room for. True when that was anything.
bool QueueFeed::Fill(Ring& ring, std::span<std::byte> memory, size_t stride, uint16_t base) {
  const uint32_t before = ring.written;
  while (const uint32_t part = NextPart(ring, ring.written)) {
    if (ring.written != 0) ++ring.rearms;
    const uint32_t end = ring.written + part;
    ForEachRun(memory, stride, base, ring.written, end,
               [&](std::span<std::byte> slots, size_t offset) {
                 std::memcpy(slots.data(), ring.bytes.data() + offset, slots.size());
               });
    ring.written = end;
  }
  wqes_written_ += ring.written - before;
  if (ring.written == ring.total) ring.bytes = std::vector<std::byte>();  // {} would keep memory
  return ring.written != before;
}

void QueueFeed::FillReceives(size_t qp) {
  Queue& it = queues_[qp];
  if (!Fill(it.rq, qps_[qp].rq, kReceiveStrideBytes, it.rq_base)) return;
  PostReceives(qps_[qp], static_cast<uint16_t>(it.rq_base + it.rq.written));
}

void QueueFeed::FillSends(size_t qp) {
  Queue& it = queues_[qp];
  Fill(it.sq, qps_[qp].sq, kWqebbBytes, it.sq_base);
}

bool QueueFeed::IsReady(const SendEntry& entry) const {
  switch (entry.opcode) {
    case Opcode::kSend:
    case Opcode::kSendImm:
      return entry.count == 0 || queues_[entry.qp.index()].rq.written >= entry.count;
    case Opcode::kSendEnable:
      return queues_[entry.qp.index()].ready >= entry.count;
    default:
      return true;
  }
}

void QueueFeed::Advance(size_t qp) {
  Queue& it = queues_[qp];
  const std::vector<SendEntry>& sends = program_->qps[qp].sends;
  while (it.ready < it.sq.written && IsReady(sends[it.ready])) ++it.ready;
}

void QueueFeed::RingDoorbells() {
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (program_->qps[i].managed) Advance(i);
  }
  is_complete_ = true;
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue& it = queues_[i];
    if (!program_->qps[i].managed) {
      Advance(i);
      if (it.ready != it.rung) {
        const auto producer = static_cast<uint16_t>(it.sq_base + it.ready);
        PostSends(*device_, qps_[i], producer, static_cast<uint16_t>(producer - 1));
        it.rung = it.ready;
        ++doorbells_;
      }
    }
    if (it.ready != it.sq.total || it.rq.written != it.rq.total) is_complete_ = false;
  }
}

std::vector<std::byte> QueueFeed::sends(QpId qp) const {
  const Queue& it = queues_[qp.index()];
  return Content(it.sq, qps_[qp.index()].sq, kWqebbBytes, it.sq_base);
}

std::vector<std::byte> QueueFeed::receives(QpId qp) const {
  const Queue& it = queues_[qp.index()];
  return Content(it.rq, qps_[qp.index()].rq, kReceiveStrideBytes, it.rq_base);
}

std::vector<std::byte> QueueFeed::Content(const Ring& ring, std::span<std::byte> memory,
                                          size_t stride, uint16_t base) {
  PREPOST_CHECK(ring.rearms == 0);
  std::vector<std::byte> bytes;
  bytes.reserve(ring.total * stride);
  ForEachRun(memory, stride, base, 0, ring.written, [&](std::span<std::byte> slots, size_t) {
    bytes.insert(bytes.end(), slots.begin(), slots.end());
  });
  if (ring.written == ring.total) return bytes;  // ring.bytes are gone
  bytes.insert(bytes.end(), ring.bytes.begin() + static_cast<ptrdiff_t>(bytes.size()),
               ring.bytes.end());
  return bytes;
}

uint64_t QueueFeed::rearms() const {
  uint64_t count = 0;
  for (const Queue& it : queues_) count += it.sq.rearms + it.rq.rearms;
  return count;
}

std::vector<QueueFeed::Rearmed> QueueFeed::rearmed() const {
  std::vector<Rearmed> list;
  for (size_t i = 0; i < queues_.size(); ++i) {
    const QueuePair& qp = program_->qps[i];
    const QpId id = QpId::FromIndex(i);
    if (qp.sends_in_parts()) {
      list.push_back({id, true, queues_[i].sq.rearms, Rearms(qp.sends.size(), qp.sq_wqebbs)});
    }
    if (qp.receives_in_parts()) {
      list.push_back({id, false, queues_[i].rq.rearms, Rearms(qp.receives.size(), qp.rq_wqes)});
    }
  }
  return list;
}

std::string Describe(const NodeProgram& program, const QueueFeed::Rearmed& rearmed) {
  return fmt::format("{} queue of {}", rearmed.is_send ? "send" : "receive",
                     Describe(program, rearmed.qp));
}

}  // namespace prepost::nic
