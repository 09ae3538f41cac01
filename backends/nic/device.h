// SPDX-License-Identifier: Apache-2.0
//
// Device: one NIC as its host sees it: objects with memory, and two things that can be done to it:
// ring a doorbell, and sleep until a completion event. Everything else is bytes in memory. The
// emulated NIC implements it; hardware does the same behind the same interface, and
// tests/conformance is written once for all.
//
// Objects are made and connected before the first doorbell and live as long as the device, whose
// destructor removes them all; memory can be deregistered before. A Device is used by one thread at
// a time; the NIC behind it runs on its own, and other NICs' hosts on theirs.
#ifndef PREPOST_BACKENDS_NIC_DEVICE_H_
#define PREPOST_BACKENDS_NIC_DEVICE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/nic/wqe.h"
#include "ir/base/status.h"
#include "ir/ids.h"

namespace prepost::nic {

struct CqConfig {
  uint32_t entries = 1;         ///< a power of two
  bool ignore_overrun = false;  ///< cqc.oi: keeps counting when nobody consumes
  bool collapsed = false;       ///< cqc.cc: every CQE is written to entry 0
  uint32_t producer_base = 0;   ///< cqc.producer_counter to start from
  /// Which of the device's doorbell pages (UARs). Any but 0 is for experiments, and is made when it
  /// is first asked for: WAITs are only known to see CQs of their own queue's page.
  uint32_t doorbell_page = 0;
};

/// A CQ and its memory, owned by the device.
struct Cq {
  uint32_t number = 0;
  std::span<std::byte> ring;            ///< entries x kCqeBytes
  uint32_t* doorbell_record = nullptr;  ///< big-endian words, kConsumerRecord
  uint32_t producer_base = 0;
  uint64_t* cqes_read = nullptr;  ///< what CqeReader has read, for DeviceCounters
};

/// QpConfig::rnr_retry: a send that meets no receive tries again until there is one. 0: it fails.
inline constexpr uint8_t kRnrRetryForEver = 7;

struct QpConfig {
  uint32_t send_cq = 0;     ///< CQN
  uint32_t recv_cq = 0;     ///< CQN
  uint32_t sq_wqebbs = 1;   ///< a power of two, at most 32768
  uint16_t sq_base = 0;     ///< index of the first WQEBB to be posted
  uint32_t rq_wqes = 0;     ///< a power of two, or 0: no receive queue
  uint32_t rq_stride = 16;  ///< bytes: 16 << n
  bool cd_master = false;   ///< may hold WAIT, SEND_EN, RECV_EN
  /// cd_slave_send: executes what SEND_EN enables, not what doorbells say
  bool managed_send = false;
  /// cd_slave_receive: the same with RECV_EN
  bool managed_recv = false;
  bool takes_atomics = false;            ///< of its peer
  uint8_t rnr_retry = kRnrRetryForEver;  ///< how often at most
  uint32_t doorbell_page = 0;            ///< that of both CQs
};

/// What every device asks of sizes. Errors (kRejected): what, its limit and the value.
Status CheckSizes(const CqConfig& config);
Status CheckSizes(const QpConfig& config);

/// A QP and its memory, owned by the device.
struct Qp {
  uint32_t number = 0;
  std::span<std::byte> sq;
  std::span<std::byte> rq;              ///< may be larger than asked for, a power of two too
  uint32_t* doorbell_record = nullptr;  ///< big-endian words, kReceiveRecord and kSendRecord
};

/// Where a NIC's port is, as other NICs of its kind need it to reach its QPs. What the bytes mean
/// is the device's business; they may be kept and sent to other machines.
struct PortAddress {
  static constexpr size_t kBytes = 32;
  std::array<std::byte, kBytes> bytes = {};

  friend bool operator==(const PortAddress&, const PortAddress&) = default;
};

/// Where a QP is: which port, and its number there.
struct QpAddress {
  PortAddress port;
  uint32_t qpn = 0;
  /// To there and back, for timeouts; 0: not known.
  std::chrono::microseconds round_trip{0};
};

/// What a QP can do.
enum class QpState : uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kError };
/// "RST", "INIT", "RTR", "RTS", "ERR".
const char* Name(QpState state);

/// Where a QP's queues stand; modulo 2^16.
struct QpCounters {
  QpState state = QpState::kReset;
  uint16_t sq_posted = 0;   ///< WQEBBs that a doorbell or SEND_EN has announced
  uint16_t sq_fetched = 0;  ///< WQEBBs that the NIC is through with or at work on
  uint16_t rq_posted = 0;   ///< WQEs
  uint16_t rq_taken = 0;    ///< WQEs that messages came for
};

struct CqCounters {
  uint32_t producer = 0;  ///< CQEs written, from the base on, modulo 2^24
  uint32_t consumer = 0;  ///< what the host has reported to the NIC
  bool is_overrun = false;
};

/// Why a host was woken besides the CQEs that it asked for.
struct ErrorEvent {
  enum class Kind : uint8_t {
    kErrorCqe,     ///< RequestErrorEvent() or RequestEvent() of this CQ: an error CQE has come
    kCqError,      ///< IBV_EVENT_CQ_ERR: this CQ has lost a CQE, and gets no more
    kQpFatal,      ///< IBV_EVENT_QP_FATAL: the NIC itself has moved this QP to the error state
    kQpRequest,    ///< IBV_EVENT_QP_REQ_ERR: the same, for a message of its peer that is no request
    kQpAccess,     ///< IBV_EVENT_QP_ACCESS_ERR: the same, for what its peer wanted to read or write
    kDeviceFatal,  ///< IBV_EVENT_DEVICE_FATAL: the device has stopped, or is gone
    kPortDown      ///< IBV_EVENT_PORT_ERR: the port's link is down
  };
  Kind kind = Kind::kErrorCqe;
  uint32_t number = 0;  ///< CQN, QPN or port; kDeviceFatal: 0

  friend bool operator==(const ErrorEvent&, const ErrorEvent&) = default;
};
/// "CQ error", "QP fatal error", ...
const char* Name(ErrorEvent::Kind kind);

/// What a NIC may do with registered memory besides reading it for its own sends.
struct Access {
  bool local_write = false;
  bool remote_write = false;
  bool remote_read = false;
  bool remote_atomic = false;
};

/// What the host side did with the device.
struct DeviceCounters {
  uint64_t doorbells = 0;       ///< writes of the doorbell register
  uint64_t event_requests = 0;  ///< on hardware a write of a register, too
  uint64_t wakeups = 0;         ///< returns from waiting for events of this device, or for nothing
  uint64_t cqes_read = 0;       ///< CQEs that the host took from the rings
  uint64_t objects = 0;         ///< CQs, QPs and memory keys made
};

class Device {
 public:
  virtual ~Device() = default;

  /// What other devices connect to. Does not change.
  virtual PortAddress port_address() const = 0;
  virtual Result<Cq> CreateCq(const CqConfig& config) = 0;
  virtual Result<Qp> CreateQp(const QpConfig& config) = 0;
  /// Brings the QP to RTS, connected to `remote` (which may be itself: loopback). A QP that could
  /// not be connected can be tried again.
  virtual Status Connect(uint32_t qpn, QpAddress remote) = 0;
  /// Returns the key, used as lkey and rkey. The memory must stay until the key is deregistered or
  /// the device is gone.
  virtual Result<uint32_t> RegisterMemory(std::span<const std::byte> memory, Access access) = 0;
  /// From here on the NIC does not touch the memory. Errors: there is no such key.
  virtual Status DeregisterMemory(uint32_t key) = 0;
  /// Writes the doorbell register: the first 8 bytes of the last posted WQE, as they stand in
  /// memory. What this thread wrote before, the NIC sees before.
  virtual void RingDoorbell(uint64_t first_bytes) = 0;
  /// Moves the QP to the error state: what is posted is flushed, and so is what is posted later.
  virtual Status MoveToError(uint32_t qpn) = 0;
  /// Where its queues stand, for the report of a run that does not go on. May take long.
  virtual Result<QpCounters> QueryQp(uint32_t qpn) = 0;
  virtual Result<CqCounters> QueryCq(uint32_t cqn) = 0;
  /// Asks for one event when the CQ gets its next CQE. CQEs that came before need not give one
  /// (those that the host has not read may, at once): poll the ring after the request.
  virtual Status RequestEvent(uint32_t cqn) = 0;
  /// Asks for one event when the CQ gets its next CQE that is an error. It is the request for
  /// solicited CQEs (ibv_req_notify_cq with solicited_only): an error always counts as one, and no
  /// WQE of ours asks to be one. Leaves a request for any CQE as it is. A device that cannot does
  /// nothing: its host learns of errors at its final completion.
  virtual Status RequestErrorEvent(uint32_t /*cqn*/) { return {}; }
  /// The errors among the events that have come. Those of QPs, of CQs and of the device itself come
  /// unasked; a device that cannot report them has none. Never waits.
  /// Events come by AckEvents(), which is called first.
  virtual std::vector<ErrorEvent> TakeErrors() { return {}; }
  /// A file that is readable while there are events to acknowledge, of any kind, as those of verbs'
  /// ibv_comp_channel and of its asynchronous events. The device owns it; the first call makes it
  /// and must come before the first doorbell. Errors: kEnvironment.
  virtual Result<int> EventFile() = 0;
  /// Takes the events that have come; how many. Never waits.
  virtual uint64_t AckEvents() = 0;
  /// For DeviceCounters: the host has come back from waiting.
  virtual void CountWakeup() = 0;
  virtual DeviceCounters counters() const = 0;
};

/// When a host that polls instead of sleeping is to call TakeErrors(), which may take system
/// calls: at every 64th poll.
class ErrorPacer {
 public:
  bool IsDue() { return ++polls_ % 64 == 0; }

 private:
  uint32_t polls_ = 0;
};

struct EventWait {
  bool event = false;  ///< of the device; acknowledged
  bool woken = false;  ///< `wake_fd` is readable
};
/// Sleeps until an event of the device, until `wake_fd` (-1: none) is readable, or for `timeout`
/// (negative: for ever), and counts one wake-up. Errors: kEnvironment.
Result<EventWait> WaitForEvent(Device& device, int wake_fd, std::chrono::milliseconds timeout);

/// Rings the doorbell of `qp` for everything up to producer index `producer`; `last` is the index
/// of the last WQE posted. Stores the doorbell record first.
void PostSends(Device& device, const Qp& qp, uint16_t producer, uint16_t last);
/// The same by whoever has that WQE's first bytes, 8 at least, at hand as they stand in the ring.
void PostSends(Device& device, const Qp& qp, uint16_t producer, std::span<const std::byte> first);
/// Makes receive WQEs up to producer index `producer` visible to the NIC.
void PostReceives(const Qp& qp, uint16_t producer);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_DEVICE_H_
