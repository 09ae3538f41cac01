// SPDX-License-Identifier: Apache-2.0
//
// What an emulated NIC knows: its QPs and CQs as a NIC's context memory would hold them. Plain
// data; the rules that act on it are in engine.h. The rings and doorbell records are the host's
// memory.
#ifndef PREPOST_BACKENDS_EMULATED_NIC_STATE_H_
#define PREPOST_BACKENDS_EMULATED_NIC_STATE_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/emulated/growing_ring.h"
#include "backends/emulated/memory_table.h"
#include "backends/emulated/page_arena.h"
#include "backends/emulated/picoseconds.h"
#include "backends/nic/device.h"
#include "backends/nic/nic_model.h"
#include "backends/nic/wqe.h"

namespace prepost::emulated {

struct NicState;
struct QpState;

/// retry_count of every QP, as drivers set it.
inline constexpr uint8_t kTransportRetries = 7;

/// The only port of every NIC.
inline constexpr uint8_t kPort = 1;

/// Which CQEs the host of a CQ asks an event of. A greater one contains the smaller, bit by bit.
enum EventRequest : uint8_t { kNoEvent = 0, kErrorEvent = 1, kAnyEvent = 3 };

/// What is used for each CQE comes first.
struct alignas(64) CqState {
  CqState(uint32_t number_in, const nic::CqConfig& config, const nic::CqMemory& memory_in)
      : producer(config.producer_base),
        entries_log(static_cast<uint8_t>(std::countr_zero(config.entries))),
        ignores_overrun(config.ignore_overrun),
        is_collapsed(config.collapsed),
        number(number_in),
        doorbell_page(config.doorbell_page),
        memory(memory_in) {}

  uint32_t entries() const { return uint32_t{1} << entries_log; }
  /// For an event of the next CQE, where hosts and NICs take turns.
  void AskForNext() { event_requested.store(kAnyEvent, std::memory_order_relaxed); }

  std::atomic<uint32_t> producer;                   ///< CQEs written, modulo 2^24
  std::atomic<uint8_t> event_requested = kNoEvent;  ///< an EventRequest; raised by the host
  bool overrun : 1 = false;                         ///< a CQE was lost: nothing is written any more
  const uint8_t entries_log;
  const bool ignores_overrun : 1;
  const bool is_collapsed : 1;
  uint32_t number;
  uint32_t doorbell_page;
  /// Send queues parked at a WAIT on this CQ, in the order in which they came: see
  /// QpState::next_waiter.
  QpState* first_waiter = nullptr;
  QpState* last_waiter = nullptr;
  void* listener = nullptr;  ///< see Nic::Listen()
  nic::CqMemory memory;
  uint32_t users = 0;  ///< QPs that complete to it, each direction counts
};

/// The stages that a send queue's work passes through; each can be delayed on its own.
enum class Stage : uint8_t {
  kFetch,     ///< read the next WQE and start it
  kTransmit,  ///< move (a part of) the oldest message that is not fully moved
  kDeliver,   ///< write the receiver's CQE of the oldest message that is moved, and acknowledge it
  kComplete   ///< retire the oldest WQE, writing its CQE if it is signaled
};
inline constexpr size_t kStages = 4;

/// A WQE that was started and is not retired.
struct alignas(64) Work {
  enum class State : uint8_t {
    kQueued,     ///< its message is still to be moved
    kUnderWay,   ///< modelled time: its message is on the wire
    kMoved,      ///< all bytes are in place
    kReturning,  ///< modelled time: nothing is left to do but to let its sender know
    kDone,       ///< acknowledged, or needs no peer
    kFailed
  };
  uint16_t wqe_index = 0;
  nic::Opcode opcode = nic::Opcode::kNop;
  bool signaled = false;
  State state = State::kDone;
  bool placed = false;                            ///< transmission has begun: `receive` is taken
  nic::Syndrome syndrome = nic::Syndrome::kNone;  ///< of its own CQE
  nic::Syndrome responder_syndrome = nic::Syndrome::kNone;  ///< what breaks the receiver
  uint16_t receive = 0;  ///< index of the receive WQE that it consumes
  uint32_t immediate = 0;
  uint64_t bytes = 0;
  uint64_t moved = 0;
  // Modelled time.
  Picoseconds ready = 0;  ///< its queue is through with it, and its message may start
  uint32_t tag = 0;       ///< of its payload: see MemoryTable
};

/// What is used for each message comes first.
struct alignas(64) QpState {
  QpState(NicState& nic_in, uint32_t number_in, const nic::QpConfig& config_in,
          const nic::QpMemory& memory_in, CqState& send, CqState& recv)
      : nic(nic_in),
        send_cq(send),
        recv_cq(recv),
        number(number_in),
        sq_posted(config_in.sq_base),
        sq_enabled(config_in.sq_base),
        sq_next(config_in.sq_base),
        memory(memory_in),
        config(config_in) {}

  /// The first WQE whose slot is still needed: not complete, or not yet fetched.
  uint16_t OldestWqe() const { return work.empty() ? sq_next : work.front().wqe_index; }
  /// Up to where WQEs may be fetched (R1).
  uint16_t SendLimit() const { return config.managed_send ? sq_enabled : sq_posted; }
  bool CanReceive() const {
    return state == nic::QpState::kReadyToReceive || state == nic::QpState::kReadyToSend;
  }

  // As a sender and as a receiver.
  NicState& nic;
  QpState* remote = nullptr;
  CqState& send_cq;
  CqState& recv_cq;
  uint32_t number;
  nic::QpState state = nic::QpState::kReset;
  // Send queue, in WQEBBs modulo 2^16.
  bool parked = false;            ///< at a WAIT; in that CQ's waiter list
  bool has_waited = false;        ///< the CQE of the WAIT at sq_next is there
  bool fenced = false;            ///< at a WQE whose fence holds it until READs are complete
  bool fetch_stopped = false;     ///< a WQE failed: what follows is flushed
  bool transmit_stopped = false;  ///< the receiver broke
  bool rnr_waiting = false;       ///< the receiver has no receive posted
  bool is_wire_busy = false;      ///< modelled time: the next message cannot start yet
  bool is_due = false;            ///< modelled time: a timed engine has it among those to serve
  uint16_t sq_posted;             ///< what the last doorbell said
  uint16_t sq_enabled;            ///< what SEND_EN said
  uint16_t sq_next;               ///< the next to fetch
  // Receive queue, in WQEs modulo 2^16.
  uint16_t rq_posted = 0;    ///< what the doorbell record said when it was read last
  uint16_t rq_next = 0;      ///< the next to take
  uint16_t rq_done = 0;      ///< the next to complete
  uint16_t to_transmit = 0;  ///< position in `work`: nothing before it is kQueued
  uint16_t to_deliver = 0;   ///< position in `work`: nothing before it is kQueued to kMoved
  uint8_t rnr_left = 0;
  uint8_t retries_left = kTransportRetries;  ///< of sends that nobody answers

  nic::QpMemory memory;
  uint64_t received = 0;  ///< messages
  GrowingRing<Work> work;
  nic::QpConfig config;
  // Modelled time.
  Picoseconds sq_until = 0;     ///< the send queue is at work on what is fetched
  Picoseconds landed_at = 0;    ///< the last message that came here could be seen
  Picoseconds acked_until = 0;  ///< unsignaled WQEs that it has forgotten are acknowledged

  // Not of each message.
  Picoseconds retry_at = 0;        ///< modelled time, rnr_waiting: it tries again
  QpState* next_waiter = nullptr;  ///< parked: the next one at a WAIT on the same CQ
  uint32_t parked_cq = 0;
  uint32_t parked_index = 0;
  uint32_t reads_in_flight = 0;
  uint16_t rq_enabled = 0;                                                ///< what RECV_EN said
  nic::CompletionMode parked_completion = nic::CompletionMode::kOnError;  ///< of that WAIT

  // Scheduling.
  std::array<bool, kStages> scheduled = {};
  std::array<uint32_t, kStages> priority = {};
};

/// What is used for each message comes first.
struct alignas(64) NicState {
  NodeId node;
  bool has_failed = false;          ///< as a whole: nothing moves any more, and no command is taken
  bool is_link_down = false;        ///< it reaches nobody but itself
  bool has_rung = false;            ///< modelled time: there was a doorbell
  Picoseconds doorbells_until = 0;  ///< modelled time: all doorbells so far have come
  std::vector<ArenaPointer<QpState>> qps;  ///< number = kFirstQpn + position; null: destroyed
  std::vector<ArenaPointer<CqState>> cqs;  ///< number = kFirstCqn + position; null: destroyed
  MemoryTable memory;
  uint64_t rnr_retries = 0;  ///< of peers, because this NIC had no receive posted
  /// QPs that were destroyed or reset. Peers still have them as remotes, and find out.
  std::vector<ArenaPointer<QpState>> retired_qps;

  /// The engine notes them; for the host.
  void NoteError(const nic::ErrorEvent& error) {
    const std::lock_guard lock(error_mutex);
    errors.push_back(error);
    has_errors.store(true, std::memory_order_release);
  }

  std::mutex error_mutex;
  std::vector<nic::ErrorEvent> errors;  // guarded by error_mutex
  std::atomic<bool> has_errors = false;

  // Object numbers never look like positions.
  static constexpr uint32_t kFirstCqn = 0x400;
  static constexpr uint32_t kFirstQpn = 0x1000;

  /// Null when there is none.
  CqState* FindCq(uint32_t number) const { return At(cqs, number - kFirstCqn); }
  QpState* FindQp(uint32_t number) const { return At(qps, number - kFirstQpn); }

 private:
  template <typename T>
  static T* At(const std::vector<ArenaPointer<T>>& objects, uint32_t position) {
    return position < objects.size() ? objects[position].get() : nullptr;
  }
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_NIC_STATE_H_
