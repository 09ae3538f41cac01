// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_queue.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace prepost::test {
namespace {

template <typename Segment>
std::vector<std::byte> Bytes(const Segment& segment) {
  std::vector<std::byte> bytes(nic::kSegmentBytes);
  nic::EncodeSegment(segment, bytes.data());
  return bytes;
}

nic::ControlSegment Control(nic::Opcode opcode, Flags flags) {
  return {
      .opcode = opcode,
      .completion = flags.signaled ? nic::CompletionMode::kAlways : nic::CompletionMode::kOnError,
      .fence = flags.fence};
}

std::vector<std::vector<std::byte>> AllBytes(const std::vector<nic::DataSegment>& data) {
  std::vector<std::vector<std::byte>> all;
  for (const nic::DataSegment& segment : data) all.push_back(Bytes(segment));
  return all;
}

template <typename T>
T Must(const Result<T>& result) {
  if (!result.ok()) ADD_FAILURE() << result.status().ToString();
  return result.ok() ? *result : T{};
}

}  // namespace

TestQueue::TestQueue(nic::Device& device, nic::QpConfig config, nic::CqConfig send_cq,
                     nic::CqConfig recv_cq)
    : device_(device), config_(config), memory_(kMemoryBytes) {
  key_ = Must(device.RegisterMemory(
      memory_,
      {.local_write = true, .remote_write = true, .remote_read = true, .remote_atomic = true}));
  send_cq_ = Must(device.CreateCq(send_cq));
  recv_cq_ = Must(device.CreateCq(recv_cq));
  config_.send_cq = send_cq_.number;
  config_.recv_cq = recv_cq_.number;
  qp_ = Must(device.CreateQp(config_));
  sent_ = std::make_unique<nic::CqeReader>(send_cq_);
  received_ = std::make_unique<nic::CqeReader>(recv_cq_);
  sq_next_ = config_.sq_base;
}

void TestQueue::Nop(Flags flags) { Post(Control(nic::Opcode::kNop, flags)); }

void TestQueue::Wait(const nic::Cq& cq, uint32_t index, Flags flags) {
  Post(Control(nic::Opcode::kWait, flags),
       {Bytes(nic::CoordinationSegment{.index = index, .number = cq.number})});
}

void TestQueue::SendEnable(const TestQueue& target, uint32_t index, Flags flags) {
  Post(Control(nic::Opcode::kSendEnable, flags),
       {Bytes(nic::CoordinationSegment{.index = index, .number = target.qp().number})});
}

void TestQueue::RecvEnable(const TestQueue& target, uint32_t index, Flags flags) {
  Post(Control(nic::Opcode::kRecvEnable, flags),
       {Bytes(nic::CoordinationSegment{.index = index, .number = target.qp().number})});
}

void TestQueue::Send(std::vector<nic::DataSegment> data, Flags flags) {
  Post(Control(nic::Opcode::kSend, flags), AllBytes(data));
}

void TestQueue::SendImm(uint32_t immediate, std::vector<nic::DataSegment> data, Flags flags) {
  nic::ControlSegment control = Control(nic::Opcode::kSendImm, flags);
  control.immediate = immediate;
  Post(control, AllBytes(data));
}

void TestQueue::Rdma(nic::Opcode opcode, nic::RemoteSegment remote,
                     std::vector<nic::DataSegment> data, Flags flags) {
  std::vector<std::vector<std::byte>> segments = AllBytes(data);
  segments.insert(segments.begin(), Bytes(remote));
  Post(Control(opcode, flags), segments);
}

void TestQueue::FetchAdd(nic::RemoteSegment remote, uint64_t add, nic::DataSegment before,
                         Flags flags) {
  Post(Control(nic::Opcode::kAtomicFetchAdd, flags),
       {Bytes(remote), Bytes(nic::AtomicSegment{.add = add}), Bytes(before)});
}

void TestQueue::Post(nic::ControlSegment control,
                     const std::vector<std::vector<std::byte>>& segments) {
  control.wqe_index = sq_next_;
  control.qpn = qp_.number;
  control.segments = static_cast<uint8_t>(1 + segments.size());
  const size_t ring = qp_.sq.size();
  size_t at = size_t{sq_next_} * nic::kWqebbBytes;
  nic::EncodeSegment(control, qp_.sq.data() + (at & (ring - 1)));
  for (const std::vector<std::byte>& segment : segments) {
    at += nic::kSegmentBytes;
    std::ranges::copy(segment, qp_.sq.begin() + static_cast<ptrdiff_t>(at & (ring - 1)));
  }
  sq_last_ = sq_next_;
  sq_next_ = static_cast<uint16_t>(sq_next_ + (control.segments + 3) / 4);
}

void TestQueue::Ring() { nic::PostSends(device_, qp_, sq_next_, sq_last_); }

void TestQueue::Receive(size_t offset, uint32_t bytes) {
  const size_t at_byte = rq_next_ * size_t{config_.rq_stride} & (qp_.rq.size() - 1);
  const nic::DataSegment segment =
      bytes == 0 ? nic::DataSegment{.lkey = nic::kInvalidLkey} : data(offset, bytes);
  std::byte* at = qp_.rq.data() + at_byte;
  nic::EncodeSegment(segment, at);
  if (config_.rq_stride > nic::kSegmentBytes) {
    nic::EncodeSegment(nic::DataSegment{.lkey = nic::kInvalidLkey}, at + nic::kSegmentBytes);
  }
  nic::PostReceives(qp_, ++rq_next_);
}

std::vector<nic::Cqe> TestQueue::Drain(nic::CqeReader& reader) {
  std::vector<nic::Cqe> cqes;
  while (const std::optional<nic::Cqe> cqe = reader.Next()) cqes.push_back(*cqe);
  reader.Consume();
  return cqes;
}

void Connect(nic::Device& device_a, TestQueue& a, nic::Device& device_b, TestQueue& b) {
  EXPECT_TRUE(device_a.Connect(a.qp().number, b.address()).ok());
  if (&a != &b) {
    EXPECT_TRUE(device_b.Connect(b.qp().number, a.address()).ok());
  }
}

std::vector<uint16_t> Counters(const std::vector<nic::Cqe>& cqes) {
  std::vector<uint16_t> counters;
  for (const nic::Cqe& cqe : cqes) counters.push_back(cqe.wqe_counter);
  return counters;
}

}  // namespace prepost::test
