// SPDX-License-Identifier: Apache-2.0
//
// QueueFeed: writes a node's linked queues into its rings, all at once where they fit and otherwise
// half a ring at a time, ahead of need. It decides what may be written and how far doorbells may
// go; it reads no CQE: the caller reports what has completed.
//
// A slot is re-armed only when a CQE at or behind it has been polled. Receives are written
// first, then managed send queues, then the others; and a doorbell never covers a WQE that relies
// on something unwritten: a credit on the receives that it grants, a block on the receives for the
// credits that its delivery may cause, a SEND_EN on the WQEs that it enables and on what they rely
// on.
#ifndef PREPOST_BACKENDS_NIC_HOST_QUEUE_FEED_H_
#define PREPOST_BACKENDS_NIC_HOST_QUEUE_FEED_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/nic/device.h"
#include "backends/nic/program/link.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"

namespace prepost::nic {

class QueueFeed {
 public:
  /// How often one queue was written to after the first time.
  struct Rearmed {
    QpId qp;
    bool is_send = false;
    uint32_t count = 0;
    uint64_t bound = 0;  ///< Rearms()
  };

  /// How far one QP's queues are, in WQEs of this message.
  struct Progress {
    uint32_t sends_written = 0;
    uint32_t sends_completed = 0;
    uint32_t receives_written = 0;
    uint32_t receives_completed = 0;
  };

  /// All must outlive the feed; `qps` are by QpId.
  QueueFeed(Device& device, const NodeProgram& program, std::span<const Qp> qps)
      : device_(&device), program_(&program), qps_(qps), queues_(program.qps.size()) {}

  /// Links `images` for one message and writes what fits. Unless `keeps_images`, nothing is left of
  /// them. Every queue must have completed all that was written before. Errors: those of Link().
  Status Begin(std::span<QueuePairImage> images, const Bindings& bindings, bool keeps_images);
  /// Rings the first doorbells.
  void Start() { RingDoorbells(); }

  /// The first `completed` WQEs of the send queue, or of the receive queue, are complete.
  void SendsCompleted(QpId qp, uint32_t completed);
  void ReceivesCompleted(QpId qp, uint32_t completed);
  /// Writes into what is free by now and rings doorbells for it.
  void Refill();
  struct Count {
    uint64_t sends = 0;
    uint64_t receives = 0;
  };
  /// WQEs that Refill() would write.
  Count refillable() const;

  /// True when all is written and all doorbells are rung.
  bool is_complete() const { return is_complete_; }
  uint64_t wqes_written() const { return wqes_written_; }
  /// Doorbells of send queues, over all messages.
  uint64_t doorbells() const { return doorbells_; }
  Progress progress(QpId qp) const {
    const Queue& it = queues_[qp.index()];
    return {it.sq.written, it.sq.completed, it.rq.written, it.rq.completed};
  }
  /// Index of the receive queue's first WQE of this message.
  uint16_t receive_base(QpId qp) const { return queues_[qp.index()].rq_base; }
  /// All WQEs of this message, before Start(): what is in the ring already as it stands there, and
  /// what is to be written later.
  std::vector<std::byte> sends(QpId qp) const;
  std::vector<std::byte> receives(QpId qp) const;
  uint64_t rearms() const;
  /// The re-arms of the queues that do not fit their rings, for this message.
  std::vector<Rearmed> rearmed() const;

 private:
  struct Ring {
    std::vector<std::byte> bytes;  ///< all WQEs of the message, linked
    uint32_t entries = 0;          ///< that may be in the ring
    uint32_t total = 0;            ///< WQEs
    uint32_t written = 0;
    uint32_t completed = 0;
    uint32_t rearms = 0;
  };
  struct Queue {
    Ring sq;
    Ring rq;
    uint32_t ready = 0;  ///< WQEs of the send queue that are written, as all that they rely on
    uint32_t rung = 0;
    uint16_t sq_base = 0;
    uint16_t rq_base = 0;
  };

  static std::vector<std::byte> Content(const Ring& ring, std::span<std::byte> memory,
                                        size_t stride, uint16_t base);
  static uint32_t NextPart(const Ring& ring, uint32_t written);
  bool Fill(Ring& ring, std::span<std::byte> memory, size_t stride, uint16_t base);
  void FillReceives(size_t qp);
  void FillSends(size_t qp);
  void Advance(size_t qp);
  void RingDoorbells();
  bool IsReady(const SendEntry& entry) const;

  Device* device_;
  const NodeProgram* program_;
  std::span<const Qp> qps_;
  std::vector<Queue> queues_;  // by QpId
  bool is_complete_ = false;
  uint64_t wqes_written_ = 0;
  uint64_t doorbells_ = 0;
};

/// "send queue of QP 1<>2 blocks".
std::string Describe(const NodeProgram& program, const QueueFeed::Rearmed& rearmed);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_QUEUE_FEED_H_
