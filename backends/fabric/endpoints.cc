// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/little_endian.h"
#include "runtime/device/queue_names.h"

namespace prepost::fabric {

Result<std::shared_ptr<Endpoints>> Endpoints::Make(const Domain& domain, EndpointsSpec spec) {
  std::shared_ptr<Endpoints> made(new Endpoints(domain, std::move(spec)));
  PREPOST_RETURN_IF_ERROR(made->MakeParts());
  return made;
}

Status Endpoints::Register() {
  for (const MemoryRoom room : kMemoryRooms) {
    if (!spec_.ends.Uses(room)) continue;
    Result<Fid<fid_mr>> region = domain_.Register(BytesOf(spec_.memory, room));
    if (!region.ok()) return region.status();
    regions_[static_cast<size_t>(room)] = *std::move(region);
  }
  return {};
}

Status Endpoints::Restart(const NodeMemory& memory) {
  spec_.memory = memory;
  return Register();
}

void Endpoints::Stop() {
  parts_.clear();
  queue_ = nullptr;
  regions_ = {};
}

Status Endpoints::MakeParts() {
  PREPOST_RETURN_IF_ERROR(Register());
  Result<Fid<fid_cq>> queue = domain_.MakeQueue(spec_.ends.ops() + 1);
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  if (fi_control(&queue_->fid, FI_GETWAIT, &queue_file_) != 0) queue_file_ = -1;
  for (const ChannelEnd& end : spec_.ends.all()) {
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
    if (!end.is_send) part.tag = domain_.NewTag();
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

/// Of ends that send: the tag and the name of the endpoint that receives.
Status Endpoints::Learn(uint32_t end, std::span<const std::byte> tag_and_name) {
  if (!spec_.ends[end].is_send) return {};
  if (tag_and_name.size() <= sizeof(uint64_t))
    return Rejected(fmt::format("it has no endpoint for lane {}", NumberOf(spec_.ends[end].lane)));
  parts_[end].tag = ByteReader(tag_and_name).Get<uint64_t>();
  const std::span<const std::byte> name = tag_and_name.subspan(sizeof(uint64_t));
  // A provider takes a name for as long as its own are.
  const Result<std::vector<std::byte>> own = NameOf(parts_[end].endpoint.get());
  const bool is_text = domain_.info()->addr_format == FI_ADDR_STR;
  const bool is_long_enough =
      own.ok() && (is_text ? name.back() == std::byte{0} : name.size() == own->size());
  if (!is_long_enough) return Rejected("its endpoints are of another provider");
  const Result<fi_addr_t> address = domain_.Insert(name);
  if (address.ok()) parts_[end].peer = *address;
  return address.status();
}

Status Endpoints::Connect(const PlayerDevice::Task& task) {
  std::vector<std::vector<std::byte>> own(parts_.size());
  for (uint32_t end = 0; end < parts_.size(); ++end) {
    if (spec_.ends[end].is_send) continue;
    Result<std::vector<std::byte>> name = NameOf(parts_[end].endpoint.get());
    if (!name.ok()) return name.status();
    own[end].resize(sizeof(uint64_t));
    ByteWriter(own[end]).Put(parts_[end].tag);
    own[end].insert(own[end].end(), name->begin(), name->end());
  }
  return ExchangeQueueNames(ExchangeOf(task, "endpoints"),
                            {.over = "libfabric",
                             .ends = spec_.ends,
                             .own = own,
                             .learn = [this](uint32_t end, std::span<const std::byte> learned) {
                               return Learn(end, learned);
                             }});
}

void Endpoints::FillMessage(OpId op, iovec* piece, void** key, fi_msg_tagged* message) {
  const std::span<const std::byte> bytes = spec_.ends.BytesIn(spec_.memory, op);
  *piece = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  const auto& region = regions_[static_cast<size_t>(spec_.ends.PlaceInMemory(op).at.room)];
  *key = region == nullptr ? nullptr : fi_mr_desc(region.get());
  *message = {};
  message->msg_iov = piece;
  message->desc = key;
  message->iov_count = 1;
  const Part& part = parts_[spec_.ends.PlaceOf(op).end];
  message->addr = part.peer;  // of receives: anyone who has the tag
  message->tag = part.tag;
  message->context = &contexts_[op.index()];
  message->data = spec_.ends.op(op).block;
}

Result<bool> Endpoints::Post(OpId op) {
  iovec piece;
  void* key = nullptr;
  fi_msg_tagged message;
  FillMessage(op, &piece, &key, &message);
  // Nothing has to be in place of what has no bytes, and the provider shm would never say so.
  const uint64_t when = piece.iov_len == 0 ? 0 : FI_DELIVERY_COMPLETE;
  fid_ep* const endpoint = EndpointOf(op);
  const ssize_t error =
      spec_.ends.op(op).is_send()
          ? fi_tsendmsg(endpoint, &message, FI_COMPLETION | FI_REMOTE_CQ_DATA | when)
          : fi_trecvmsg(endpoint, &message, FI_COMPLETION);
  if (error == -FI_EAGAIN) return false;
  if (error != 0) return Failed(op, FabricError(StatusCode::kRejected, "post it", error).message());
  return true;
}

Result<size_t> Endpoints::Read(std::span<OpId> completed) {
  size_t count = 0;
  while (count < completed.size()) {
    std::array<fi_cq_data_entry, 16> entries;
    const ssize_t got = fi_cq_read(queue_.get(), entries.data(),
                                   std::min(entries.size(), completed.size() - count));
    if (got == -FI_EAGAIN || got == 0) break;
    if (got < 0) return ErrorOf(got);
    for (ssize_t i = 0; i < got; ++i) {
      const Result<OpId> op = Completed(entries[static_cast<size_t>(i)]);
      if (!op.ok()) return op.status();
      completed[count++] = *op;
    }
  }
  return count;
}

bool Endpoints::MayWait() {
  if (queue_file_ < 0) return true;
  fid* const waits[] = {&queue_->fid};
  return fi_trywait(domain_.fabric(), const_cast<fid**>(waits), 1) == 0;
}

Status Endpoints::Failed(OpId op, const std::string& why) {
  lost_peer_ = spec_.ends[spec_.ends.PlaceOf(op).end].peer;
  return spec_.ends.Failure(op, why);
}

Result<OpId> Endpoints::Completed(const fi_cq_data_entry& entry) {
  const auto* const context = static_cast<const fi_context2*>(entry.op_context);
  const auto index = static_cast<size_t>(context - contexts_.data());
  if (index >= contexts_.size()) return Rejected("a completion of nothing that was posted");
  const OpId op = OpId::FromIndex(index);
  const Op& it = spec_.ends.op(op);
  if (it.is_send()) return op;
  const bool has_data = (entry.flags & FI_REMOTE_CQ_DATA) != 0;
  if (!has_data || static_cast<uint32_t>(entry.data) != it.block ||
      entry.len != spec_.ends.BytesOf(op)) {
    return spec_.ends.Failure(
        op, fmt::format("{} bytes of {} came", entry.len,
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
  const std::string why = ReasonOf(-entry.err);
  if (index < contexts_.size()) return Failed(OpId::FromIndex(index), why);
  const std::optional<OpId> op = spec_.find_op ? spec_.find_op(entry.op_context) : std::nullopt;
  return op ? Failed(*op, why) : Rejected("a request has failed: " + why);
}

}  // namespace prepost::fabric
