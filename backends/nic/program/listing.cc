// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/listing.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <numeric>
#include <span>

#include "backends/nic/program/decode.h"
#include "backends/nic/program/encode.h"
#include "backends/nic/program/link.h"
#include "ir/base/count.h"

namespace prepost::nic {
namespace {

/// Numbers that say which object is meant; addresses are offsets into the message.
Bindings ListingBindings(const NodeProgram& program) {
  Bindings bindings;
  bindings.qpns.resize(program.qps.size());
  std::iota(bindings.qpns.begin(), bindings.qpns.end(), 0);
  bindings.cqns.resize(program.cqs.size());
  std::iota(bindings.cqns.begin(), bindings.cqns.end(), 0);
  bindings.sq_bases.assign(program.qps.size(), 0);
  bindings.cq_bases.assign(program.cqs.size(), 0);
  return bindings;
}

std::string Range(const std::vector<DataPiece>& data) {
  if (data.empty()) return "0 bytes";
  return fmt::format("[{}, {})", data[0].address, data[0].address + data[0].bytes);
}

/// The bytes of a node's queues, linked, and what is in them.
class Reader {
 public:
  explicit Reader(const NodeProgram& program)
      : program_(program), images_(Encode(program)), bindings_(ListingBindings(program)) {}

  /// What the NIC would read of the receive or send queue of QP `qp`; each entry by itself.
  std::vector<std::byte> Bytes(size_t qp, bool is_receive) const {
    return *Link(is_receive ? images_[qp].rq : images_[qp].sq, bindings_);
  }
  static std::string ReceiveText(std::span<const std::byte> bytes, size_t index) {
    std::vector<DataPiece> data;
    DecodeReceive(bytes, index, kReceiveStrideBytes, &data);
    return "RECV " + Range(data);
  }
  std::string SendText(std::span<const std::byte> entry, const SendEntry& send) const {
    SendWqe wqe;
    DecodeSend(entry, 0, &wqe);
    return fmt::format("{}{}{}{}", Name(wqe.opcode), Operands(wqe),
                       wqe.signaled() ? " signaled" : "", Needs(send));
  }

 private:
  std::string Operands(const SendWqe& wqe) const {
    switch (wqe.opcode) {
      case Opcode::kWait:
        return fmt::format(" {} until CQE {}", Describe(program_, CqId(wqe.number)), wqe.index);
      case Opcode::kRecvEnable:
      case Opcode::kSendEnable:
        return fmt::format(" {} up to WQE {}", Describe(program_, QpId(wqe.number)),
                           (wqe.index - 1) & kWqIndexMask);
      case Opcode::kSendImm:
        return fmt::format(" imm {:08x} {}", wqe.immediate, Range(wqe.data));
      case Opcode::kSend:
        return " " + Range(wqe.data);
      case Opcode::kRdmaWrite:
      case Opcode::kRdmaWriteImm:
      case Opcode::kRdmaRead:
        return fmt::format(" {} at {}", Range(wqe.data), wqe.remote_address);
      case Opcode::kAtomicFetchAdd:
        return fmt::format(" {} at {}, before it {}", wqe.add, wqe.remote_address, Range(wqe.data));
      case Opcode::kNop:
        return "";
    }
    return "";
  }

  /// What the host must have posted before it lets the NIC come here: in no byte, but for whoever
  /// writes the queues.
  std::string Needs(const SendEntry& entry) const {
    if (!IsSend(entry.opcode) || entry.count == 0) return "";
    return fmt::format(" needs {} receives of {}", entry.count, Describe(program_, entry.qp));
  }

  const NodeProgram& program_;
  const std::vector<QueuePairImage> images_;
  const Bindings bindings_;
};

class Lister {
 public:
  Lister(const Plan& plan, const NodeProgram& program, bool has_bytes)
      : program_(program), reader_(program), has_bytes_(has_bytes) {
    for (const Program& candidate : plan.programs()) {
      if (candidate.node == program.node)
        describe_op_ = [&plan, candidate](OpId op) {
          return op == kNoOp ? std::string("all is done") : Describe(plan, candidate, op);
        };
    }
  }

  std::string Run() {
    fmt::format_to(to(), "node {}\n", program_.node.value);
    for (size_t i = 0; i < program_.cqs.size(); ++i) {
      fmt::format_to(to(), "  CQ {}: {}, CQEs: {}, ring: {}\n", i,
                     Describe(program_, CqId::FromIndex(i)), program_.cqs[i].completions,
                     program_.cqs[i].entries);
    }
    for (size_t i = 0; i < program_.qps.size(); ++i) {
      const QueuePair& qp = program_.qps[i];
      fmt::format_to(to(), "  {}: {}rings: {} and {}, sends on {}, receives on {}\n",
                     Describe(program_, QpId::FromIndex(i)), qp.managed ? "managed, " : "",
                     qp.sq_wqebbs, qp.rq_wqes, Describe(program_, qp.send_cq),
                     Describe(program_, qp.recv_cq));
      ListReceives(i);
      ListSends(i);
    }
    return fmt::to_string(out_);
  }

 private:
  std::back_insert_iterator<fmt::memory_buffer> to() { return std::back_inserter(out_); }

  void ListReceives(size_t qp) {
    const std::vector<std::byte> bytes = reader_.Bytes(qp, /*is_receive=*/true);
    const std::vector<ReceiveEntry>& receives = program_.qps[qp].receives;
    for (size_t i = 0; i < receives.size(); ++i) {
      fmt::format_to(to(), "    rq {:06x}  {:<49} ; {}\n", i * kReceiveStrideBytes,
                     Reader::ReceiveText(bytes, i), describe_op_(receives[i].op));
      ListBytes(std::span(bytes).subspan(i * kReceiveStrideBytes, kReceiveStrideBytes));
    }
  }

  void ListSends(size_t qp) {
    const std::vector<std::byte> bytes = reader_.Bytes(qp, /*is_receive=*/false);
    const std::vector<SendEntry>& sends = program_.qps[qp].sends;
    for (size_t i = 0; i < sends.size(); ++i) {
      const std::span<const std::byte> entry =
          std::span(bytes).subspan(i * kWqebbBytes, kWqebbBytes);
      fmt::format_to(to(), "    sq {:06x}  {:<49} ; {}\n", i * kWqebbBytes,
                     reader_.SendText(entry, sends[i]), describe_op_(sends[i].op));
      ListBytes(entry);
    }
  }

  /// A line per segment of 16 bytes, in big-endian words as the PRM has them.
  void ListBytes(std::span<const std::byte> bytes) {
    for (size_t i = 0; has_bytes_ && i < bytes.size(); ++i) {
      if (i % kSegmentBytes == 0) fmt::format_to(to(), "      # {:02x} ", i);
      fmt::format_to(to(), "{}{:02x}", i % 4 == 0 ? " " : "", static_cast<uint8_t>(bytes[i]));
      if (i % kSegmentBytes == kSegmentBytes - 1) fmt::format_to(to(), "\n");
    }
  }

  const NodeProgram& program_;
  const Reader reader_;
  const bool has_bytes_;
  std::function<std::string(OpId)> describe_op_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string List(const Plan& plan, const QueueProgram& program, bool has_bytes) {
  std::string text = fmt::format(
      "queues: {}, message of {} bytes in blocks of {}, RNR retries: {}\n", Name(program.mode),
      program.payload.bytes, program.payload.block_bytes, program.rnr_retry);
  for (const NodeProgram& node : program.nodes) text += Lister(plan, node, has_bytes).Run();
  return text;
}

std::vector<QueueTexts> TextsOf(const NodeProgram& program) {
  const Reader reader(program);
  std::vector<QueueTexts> texts(program.qps.size());
  for (size_t qp = 0; qp < texts.size(); ++qp) {
    const std::vector<std::byte> receives = reader.Bytes(qp, /*is_receive=*/true);
    for (size_t i = 0; i < program.qps[qp].receives.size(); ++i)
      texts[qp].receives.push_back(Reader::ReceiveText(receives, i));
    const std::vector<std::byte> sends = reader.Bytes(qp, /*is_receive=*/false);
    for (size_t i = 0; i < program.qps[qp].sends.size(); ++i) {
      const auto entry = std::span(sends).subspan(i * kWqebbBytes, kWqebbBytes);
      texts[qp].sends.push_back(reader.SendText(entry, program.qps[qp].sends[i]));
    }
  }
  return texts;
}

std::string Summary(const NodeProgram& program) {
  return fmt::format("node {}: {}, {}, {}, {}, {}, {}, {}, {} of rings", program.node.value,
                     Count(program.qps.size(), "QP"), Count(program.cqs.size(), "CQ"),
                     Count(program.wqes(), "WQE"), Count(program.waits(), "WAIT"),
                     Count(program.enables(), "SEND_EN"), Count(program.doorbells(), "doorbell"),
                     Count(program.rearms(), "re-arm"), Count(program.ring_bytes(), "byte"));
}

}  // namespace prepost::nic
