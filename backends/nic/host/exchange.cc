// SPDX-License-Identifier: Apache-2.0
//
// A record, all words of 4 bytes big-endian:
//   "PPQP", version (2), number of QPs, the port's address (32 bytes), and per QP: lane, QPN
// QPs are in the order of lanes. Its size follows from the plan, which both sides have: the same
// QPs stand at both ends.
#include "backends/nic/host/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/device/peer_exchange.h"

namespace prepost::nic {
namespace {

constexpr uint32_t kMagic = 0x50505150;  // "PPQP"
constexpr uint32_t kVersion = 2;
constexpr size_t kWordBytes = 4;
constexpr size_t kHeadBytes = 3 * kWordBytes + PortAddress::kBytes;

size_t BytesOf(size_t qps) { return kHeadBytes + 2 * kWordBytes * qps; }

/// The QPs for one peer, which stand side by side.
std::span<const OpenQp> QpsFor(const OpenNode& own, NodeId peer) {
  const auto begin = std::ranges::find(own.qps, peer, &OpenQp::peer);
  const auto end =
      std::find_if(begin, own.qps.end(), [&](const OpenQp& qp) { return qp.peer != peer; });
  return {begin, end};
}

std::vector<std::byte> RecordFor(const OpenNode& own, std::span<const OpenQp> qps) {
  std::vector<std::byte> record(BytesOf(qps.size()));
  std::byte* at = record.data();
  const auto put = [&at](uint32_t word) {
    StoreBigEndian(at, word);
    at += kWordBytes;
  };
  put(kMagic);
  put(kVersion);
  put(static_cast<uint32_t>(qps.size()));
  const PortAddress address = own.device->port_address();
  at = std::ranges::copy(address.bytes, at).out;
  for (const OpenQp& qp : qps) {
    put(NumberOf(qp.lane));
    put(qp.qpn);
  }
  return record;
}

Status Connect(const OpenNode& own, const RecordExchange& exchange, const PeerRecord& record) {
  const std::chrono::microseconds round_trip = exchange.links.RoundTripTo(record.peer);
  const auto wrong = [&](const std::string& why) { return NotLearned(exchange, record.peer, why); };
  const std::span<const OpenQp> qps = QpsFor(own, record.peer);
  const std::byte* at = record.received.data();
  const auto get = [&at] {
    const auto word = LoadBigEndian<uint32_t>(at);
    at += kWordBytes;
    return word;
  };
  if (record.received.size() < kHeadBytes || get() != kMagic)
    return wrong("it does not play over a NIC");
  const uint32_t version = get();
  if (version != kVersion) return wrong(fmt::format("it speaks version {}", version));
  const uint32_t count = get();
  if (count != qps.size() || record.received.size() != BytesOf(count))
    return wrong(fmt::format("it has {}, expected {}", count, qps.size()));
  PortAddress address;
  std::copy_n(at, PortAddress::kBytes, address.bytes.begin());
  at += PortAddress::kBytes;
  for (const OpenQp& qp : qps) {
    const uint32_t lane = get();
    const uint32_t qpn = get();
    if (lane != NumberOf(qp.lane))
      return wrong(fmt::format("it has one on lane {}, expected lane {}", lane, NumberOf(qp.lane)));
    if (qpn > kNumberMask) return wrong(fmt::format("{:#x} is no QPN", qpn));
    PREPOST_RETURN_IF_ERROR(own.device->Connect(qp.qpn, {address, qpn, round_trip}));
  }
  return {};
}

}  // namespace

Status ExchangeAddresses(const OpenNode& own, PeerLinks& links, const Checkpoint& checkpoint,
                         std::chrono::milliseconds interval, std::chrono::milliseconds answer_max) {
  std::vector<PeerRecord> records;
  size_t bytes_max = 0;
  for (const OpenQp& qp : own.qps) {
    if (!records.empty() && records.back().peer == qp.peer) continue;
    records.push_back({.peer = qp.peer, .sent = RecordFor(own, QpsFor(own, qp.peer))});
    bytes_max = std::max(bytes_max, records.back().sent.size());
  }
  const RecordExchange exchange = {.node = own.node,
                                   .what = "queue pairs",
                                   .bytes_max = static_cast<uint32_t>(bytes_max),
                                   .links = links,
                                   .checkpoint = checkpoint,
                                   .interval = interval,
                                   .answer_max = answer_max};
  PREPOST_RETURN_IF_ERROR(ExchangeRecords(exchange, records));
  for (const PeerRecord& record : records) PREPOST_RETURN_IF_ERROR(Connect(own, exchange, record));
  return {};
}

}  // namespace prepost::nic
