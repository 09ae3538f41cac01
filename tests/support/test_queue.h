// SPDX-License-Identifier: Apache-2.0
//
// TestQueue: a QP with CQs and memory of its own on any nic::Device, posted to by hand, WQE after
// WQE, for tests of devices. DeviceUnderTest is what such tests need besides: some connected
// devices and a way to let them settle.
#ifndef PREPOST_TESTS_SUPPORT_TEST_QUEUE_H_
#define PREPOST_TESTS_SUPPORT_TEST_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/nic/device.h"
#include "backends/nic/host/cqe_reader.h"
#include "backends/nic/program/encode.h"

namespace prepost::test {

/// Two NICs, nodes 0 and 1, that reach each other and themselves.
class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;
  virtual nic::Device& device(uint32_t node) = 0;
  /// Returns when the devices have done all that they will do without further doorbells.
  virtual void Settle() = 0;
};

/// Flags of a WQE that a test posts.
struct Flags {
  bool signaled = true;
  uint8_t fence = nic::kFenceNone;
};

class TestQueue {
 public:
  static constexpr size_t kMemoryBytes = 64 * 1024;

  /// `config` without its CQs; CQs as given.
  TestQueue(nic::Device& device, nic::QpConfig config, nic::CqConfig send_cq = {.entries = 64},
            nic::CqConfig recv_cq = {.entries = 64});

  nic::QpAddress address() const { return {device_.port_address(), qp_.number}; }
  const nic::Qp& qp() const { return qp_; }
  const nic::Cq& send_cq() const { return send_cq_; }
  const nic::Cq& recv_cq() const { return recv_cq_; }
  std::span<std::byte> memory() { return memory_; }
  uint32_t key() const { return key_; }
  uint64_t at(size_t offset) const { return reinterpret_cast<uintptr_t>(memory_.data() + offset); }
  nic::DataSegment data(size_t offset, uint32_t bytes) const { return {bytes, key_, at(offset)}; }

  // Each writes one WQE at the end of the send queue; none rings the doorbell.
  void Nop(Flags flags = {});
  void Wait(const nic::Cq& cq, uint32_t index, Flags flags = {});
  void SendEnable(const TestQueue& target, uint32_t index, Flags flags = {});
  void RecvEnable(const TestQueue& target, uint32_t index, Flags flags = {});
  void Send(std::vector<nic::DataSegment> data = {}, Flags flags = {});
  void SendImm(uint32_t immediate, std::vector<nic::DataSegment> data = {}, Flags flags = {});
  void Rdma(nic::Opcode opcode, nic::RemoteSegment remote, std::vector<nic::DataSegment> data,
            Flags flags = {});
  void FetchAdd(nic::RemoteSegment remote, uint64_t add, nic::DataSegment before, Flags flags = {});
  /// Any WQE; `control`'s index, QPN and size are filled in.
  void Post(nic::ControlSegment control, const std::vector<std::vector<std::byte>>& segments = {});

  /// Rings the doorbell for all that was posted.
  void Ring();
  /// Posts a receive into [offset, offset + bytes); 0 bytes: none.
  void Receive(size_t offset = 0, uint32_t bytes = 0);

  /// The CQEs since the last call.
  std::vector<nic::Cqe> Sent() { return Drain(*sent_); }
  std::vector<nic::Cqe> Received() { return Drain(*received_); }
  uint16_t posted() const { return sq_next_; }

 private:
  static std::vector<nic::Cqe> Drain(nic::CqeReader& reader);

  nic::Device& device_;
  nic::QpConfig config_;
  std::vector<std::byte> memory_;
  uint32_t key_ = 0;
  nic::Cq send_cq_;
  nic::Cq recv_cq_;
  nic::Qp qp_;
  std::unique_ptr<nic::CqeReader> sent_;
  std::unique_ptr<nic::CqeReader> received_;
  uint16_t sq_next_ = 0;
  uint16_t sq_last_ = 0;
  uint16_t rq_next_ = 0;
};

/// Connects both ways; a queue with itself is a loopback.
void Connect(nic::Device& device_a, TestQueue& a, nic::Device& device_b, TestQueue& b);

/// The WQE indices of these CQEs.
std::vector<uint16_t> Counters(const std::vector<nic::Cqe>& cqes);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_TEST_QUEUE_H_
