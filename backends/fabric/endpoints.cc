// SPDX-License-Identifier: Apache-2.0
//
// A record for a peer (peer_exchange.h): magic, version, number of ends that receive from it (4 bytes
// each, little-endian), and per end: lane (4), the length of its endpoint's name (2), the name.
#include "backends/fabric/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/little_endian.h"
#include "runtime/program.h"
#include "runtime/transport/peer_exchange.h"

namespace prepost::fabric {
namespace {

constexpr uint32_t kMagic = 0x50504642;  // "PPFB"
constexpr uint32_t kRecordVersion = 1;
constexpr size_t kHeadBytes = 12;
constexpr size_t kEndBytes = 6;
constexpr size_t kNameBytesMax = 512;

}  // namespace

std::span<const Op> Endpoints::OpsOf(const Plan& plan, NodeId node) {
  return plan.ops(ProgramOf(plan, node));
}

Result<std::unique_ptr<Endpoints>> Endpoints::Make(const Domain& domain, EndpointsSpec spec) {
  std::unique_ptr<Endpoints> made(new Endpoints(domain, std::move(spec)));
  PREPOST_RETURN_IF_ERROR(made->MakeParts());
  return made;
}

Status Endpoints::MakeParts() {
  contexts_.resize(ops_.size());
  place_of_.resize(ops_.size());
  for (uint32_t end = 0; end < spec_.ends.size(); ++end) {
    const std::vector<OpId>& ops = spec_.ends[end].ops;
    for (uint32_t i = 0; i < ops.size(); ++i) place_of_[ops[i].index()] = {end, i};
  }
  Result<Fid<fid_mr>> region = domain_.Register(spec_.memory.source);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  Result<Fid<fid_cq>> queue = domain_.MakeQueue(ops_.size() + 1);
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  if (fi_control(&queue_->fid, FI_GETWAIT, &queue_file_) != 0) queue_file_ = -1;
  for (const ChannelEnd& end : spec_.ends) {
    Part& part = parts_.emplace_back();
    // Room for all receives of the channel, which are posted at once.
    if (!end.is_send) {
      size_t& size = domain_.info()->rx_attr->size;
      size = std::max(size, end.ops.size());
    }
    if (spec_.has_counters) {
      Result<Fid<fid_cntr>> counter = domain_.MakeCounter(/*is_awaited=*/false);
      if (!counter.ok()) return counter.status();
      part.counter = *std::move(counter);
    }
    // Deferred sends name the counter that they raise.
    Result<Fid<fid_ep>> endpoint =
        MakeEndpoint(spec_.has_counters ? Entries::kReceives : Entries::kAll,
                     end.is_send ? nullptr : part.counter.get());
    if (!endpoint.ok()) return endpoint.status();
    part.endpoint = *std::move(endpoint);
  }
  return {};
}

Result<Fid<fid_ep>> Endpoints::MakeQuiet(fid_cntr* counter) const {
  return MakeEndpoint(Entries::kNone, counter);
}

Result<Fid<fid_ep>> Endpoints::MakeEndpoint(Entries entries, fid_cntr* receives) const {
  Result<Fid<fid_ep>> endpoint = domain_.MakeEndpoint();
  if (!endpoint.ok()) return endpoint;
  fid_ep* const object = endpoint->get();
  int error = 0;
  const auto bind = [&](fid* to, uint64_t flags) {
    if (error == 0) error = fi_ep_bind(object, to, flags);
  };
  bind(&domain_.addresses()->fid, 0);
  bind(&queue_->fid, FI_RECV | (entries == Entries::kNone ? FI_SELECTIVE_COMPLETION : 0));
  bind(&queue_->fid, FI_TRANSMIT | (entries == Entries::kAll ? 0 : FI_SELECTIVE_COMPLETION));
  if (receives != nullptr) bind(&receives->fid, FI_RECV);
  if (error == 0) error = fi_enable(object);
  if (error != 0) return FabricError(StatusCode::kEnvironment, "set up an endpoint", error);
  return endpoint;
}

Result<std::vector<std::byte>> Endpoints::RecordFor(NodeId peer) const {
  std::vector<std::pair<uint32_t, std::vector<std::byte>>> ends;  // lane, name
  size_t bytes = kHeadBytes;
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    const ChannelEnd& end = spec_.ends[i];
    if (end.peer != peer || end.is_send) continue;
    Result<std::vector<std::byte>> name = NameOf(parts_[i].endpoint.get());
    if (!name.ok()) return name.status();
    ends.emplace_back(end.lane, *std::move(name));
    bytes += kEndBytes + ends.back().second.size();
  }
  std::vector<std::byte> record(bytes);
  ByteWriter out(record);
  out.Put(kMagic);
  out.Put(kRecordVersion);
  out.Put(static_cast<uint32_t>(ends.size()));
  for (const auto& [lane, name] : ends) {
    out.Put(lane);
    out.Put(static_cast<uint16_t>(name.size()));
    out.PutBytes(name);
  }
  return record;
}

/// `why`: what is wrong with the record.
Status Endpoints::Learn(NodeId peer, std::span<const std::byte> record, std::string* why) {
  const auto wrong = [&](std::string text) {
    *why = std::move(text);
    return Rejected(*why);
  };
  ByteReader in(record);
  if (in.left() < kHeadBytes || in.Get<uint32_t>() != kMagic)
    return wrong("it does not play over libfabric");
  if (const auto version = in.Get<uint32_t>(); version != kRecordVersion)
    return wrong(fmt::format("it speaks version {}", version));
  const auto count = in.Get<uint32_t>();
  std::vector<bool> is_known(parts_.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (in.left() < kEndBytes) return wrong("its record is too short");
    const auto lane = in.Get<uint32_t>();
    const auto bytes = in.Get<uint16_t>();
    if (bytes > in.left()) return wrong("its record is too short");
    const std::span<const std::byte> name = in.Take(bytes);
    const auto found = std::ranges::find_if(spec_.ends, [&](const ChannelEnd& end) {
      return end.peer == peer && end.lane == lane && end.is_send;
    });
    if (found == spec_.ends.end())
      return wrong(fmt::format("it has an endpoint on lane {} that nothing is sent to", lane));
    const auto end = static_cast<size_t>(found - spec_.ends.begin());
    // A provider takes a name for as long as its own are.
    const Result<std::vector<std::byte>> own = NameOf(parts_[end].endpoint.get());
    const bool is_text = domain_.info()->addr_format == FI_ADDR_STR;
    const bool is_long_enough = own.ok() && (is_text ? !name.empty() && name.back() == std::byte{0}
                                                     : name.size() == own->size());
    if (!is_long_enough) return wrong("its endpoints are of another provider");
    const Result<fi_addr_t> address = domain_.Insert(name);
    if (!address.ok()) return wrong(address.status().message());
    parts_[end].peer = *address;
    is_known[end] = true;
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (spec_.ends[i].peer == peer && spec_.ends[i].is_send && !is_known[i])
      return wrong(fmt::format("it has no endpoint for lane {}", spec_.ends[i].lane));
  }
  return {};
}

Status Endpoints::Connect(std::span<const TcpSocket> sockets, const Checkpoint& checkpoint,
                          std::chrono::milliseconds interval,
                          std::chrono::milliseconds answer_max) {
  std::vector<PeerRecord> records;
  size_t ends_max = 0;
  for (const ChannelEnd& end : spec_.ends) {
    if (std::ranges::find(records, end.peer, &PeerRecord::peer) != records.end()) continue;
    Result<std::vector<std::byte>> record = RecordFor(end.peer);
    if (!record.ok()) return record.status();
    records.push_back({.peer = end.peer, .sent = *std::move(record)});
    ends_max = std::max<size_t>(
        ends_max, static_cast<size_t>(std::ranges::count(spec_.ends, end.peer, &ChannelEnd::peer)));
  }
  const RecordExchange exchange = {
      .node = spec_.node,
      .what = "endpoints",
      .bytes_max = static_cast<uint32_t>(kHeadBytes + ends_max * (kEndBytes + kNameBytesMax)),
      .sockets = sockets,
      .checkpoint = checkpoint,
      .interval = interval,
      .answer_max = answer_max};
  PREPOST_RETURN_IF_ERROR(ExchangeRecords(exchange, records));
  for (const PeerRecord& record : records) {
    std::string why;
    if (!Learn(record.peer, record.received, &why).ok())
      return NotLearned(exchange, record.peer, why);
  }
  return {};
}

void Endpoints::Describe(OpId op, iovec* piece, void** key, fi_msg* message) {
  const Op& it = ops_[op.index()];
  const Message& whole = spec_.plan.header().message;
  const std::span<const std::byte> bytes =
      it.is_credit()
          ? std::span<const std::byte>()
          : spec_.memory.source.subspan(whole.BlockOffset(it.block), whole.BlockSize(it.block));
  *piece = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  *key = region_ == nullptr ? nullptr : fi_mr_desc(region_.get());
  *message = {};
  message->msg_iov = piece;
  message->desc = key;
  message->iov_count = 1;
  message->addr = parts_[place_of_[op.index()].end].peer;  // of receives: anyone who knows the name
  message->context = &contexts_[op.index()];
  message->data = it.block;
}

uint64_t Endpoints::BytesOf(OpId op) const {
  const Op& it = ops_[op.index()];
  return it.is_credit() ? 0 : spec_.plan.header().message.BlockSize(it.block);
}

bool Endpoints::MayWait() const {
  if (queue_file_ < 0) return true;
  fid* const waits[] = {&queue_->fid};
  return fi_trywait(domain_.fabric(), const_cast<fid**>(waits), 1) == 0;
}

Status Endpoints::Failed(OpId op, const std::string& why) {
  const Op& it = ops_[op.index()];
  const ChannelEnd& end = spec_.ends[place_of_[op.index()].end];
  lost_peer_ = end.peer;
  return Rejected(fmt::format("node {} cannot {} {} {} node {}: {}", spec_.node.value,
                              end.is_send ? "send" : "receive",
                              it.is_credit() ? "a credit" : fmt::format("block {}", it.block),
                              end.is_send ? "to" : "from", end.peer.value, why));
}

Result<OpId> Endpoints::Completed(const fi_cq_data_entry& entry) {
  const auto* const context = static_cast<const fi_context2*>(entry.op_context);
  const auto index = static_cast<size_t>(context - contexts_.data());
  if (index >= ops_.size()) return Rejected("a completion of nothing that was posted");
  const OpId op = OpId::FromIndex(index);
  const Op& it = ops_[index];
  if (it.is_send()) return op;
  const uint64_t bytes = BytesOf(op);
  const bool has_data = (entry.flags & FI_REMOTE_CQ_DATA) != 0;
  if (!has_data || static_cast<uint32_t>(entry.data) != it.block || entry.len != bytes) {
    return Failed(op, fmt::format("{} bytes of {} came", entry.len,
                                  has_data ? fmt::format("block {}", entry.data) : "no block"));
  }
  return op;
}

Status Endpoints::ErrorOf(ssize_t error) {
  if (error != -FI_EAVAIL) return FabricError(StatusCode::kRejected, "read completions", error);
  fi_cq_err_entry entry = {};
  if (fi_cq_readerr(queue_.get(), &entry, 0) < 0)
    return Rejected("cannot read why a request has failed");
  const auto index =
      static_cast<size_t>(static_cast<const fi_context2*>(entry.op_context) - contexts_.data());
  const std::string why = FabricError(StatusCode::kRejected, "", -entry.err).message();
  if (index >= ops_.size()) return Rejected("a request has failed" + why);
  return Failed(OpId::FromIndex(index), why.substr(why.find(": ") + 2));
}

}  // namespace prepost::fabric
