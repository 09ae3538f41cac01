// SPDX-License-Identifier: Apache-2.0
//
// A queue pair's name for its peer (queue_names.h), integers little-endian: its link (1 byte,
// PortAddress::Link), MTU (1), LID (2), QPN (4), the number of its first packet (4), GID (16).
#include "backends/verbs/queue_pairs.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#include "runtime/base/little_endian.h"
#include "runtime/device/ack_timeout.h"
#include "runtime/device/block_immediate.h"
#include "runtime/device/queue_names.h"

namespace prepost::verbs {
namespace {

constexpr size_t kPairNameBytes = 28;
/// What is under way at most, of the requests of one end.
constexpr uint32_t kRequestsMax = 2048;
constexpr uint8_t kRetries = 7;
constexpr uint8_t kRnrRetriesForEver = 7;
constexpr uint8_t kRnrTimer = 5;  // 60 us: a receiver that is not ready soon will be
/// 134 ms, so that a peer is lost after a second.
constexpr uint8_t kAckTimeout = 15;
constexpr uint32_t kPacketMask = 0xffffff;
constexpr int kEventLateMs = 200;

uint32_t RandomPacketNumber() {
  static thread_local std::random_device random;
  return random() & kPacketMask;
}

}  // namespace

Result<std::shared_ptr<QueuePairs>> QueuePairs::Make(Device& device, ChannelEnds ends,
                                                     const NodeMemory& memory) {
  std::shared_ptr<QueuePairs> made(new QueuePairs(device, std::move(ends), memory));
  PREPOST_RETURN_IF_ERROR(made->MakeParts());
  return made;
}

Status QueuePairs::MakeParts() {
  uint64_t largest = 0;
  uint64_t requests = 1;
  for (const ChannelEnd& end : ends_.all()) {
    for (const OpId op : end.ops) largest = std::max(largest, ends_.BytesOf(op));
    requests += std::min<uint64_t>(end.ops.size(), kRequestsMax);
  }
  if (largest > device_.message_bytes_max()) {
    return Rejected(fmt::format("{} of {} bytes {} not fit one message, the limit is {}",
                                is_multicast() ? "block" : "blocks", largest,
                                is_multicast() ? "does" : "do", device_.message_bytes_max()));
  }
  const auto entries_max = static_cast<uint64_t>(std::max(device_.limits().max_cqe, 1));
  if (ends_.size() > entries_max) {
    return Rejected(fmt::format("{} ends of channels need a CQ of as many entries, the limit is {}",
                                ends_.size(), entries_max));
  }
  uint32_t room = std::min(kRequestsMax, static_cast<uint32_t>(device_.limits().max_qp_wr));
  if (requests > entries_max)
    room = std::min(room, static_cast<uint32_t>(entries_max / ends_.size()));
  PREPOST_RETURN_IF_ERROR(Register());
  errno = 0;
  events_.reset(Calls().ibv_create_comp_channel(device_.context()));
  if (events_ == nullptr) return CallFailed("make a completion channel");
  either_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  for (const int file : {events_->fd, device_.context()->async_fd}) {
    const int error = either_.valid() ? WatchForReading(either_.get(), file) : errno;
    if (error != 0)
      return SystemError(StatusCode::kEnvironment, "cannot wait for the device's events", error);
  }
  queue_.reset(Calls().ibv_create_cq(device_.context(),
                                     static_cast<int>(std::min(requests, entries_max)), &failure_,
                                     events_.get(), 0));
  if (queue_ == nullptr) return CallFailed("make a completion queue");
  for (const ChannelEnd& end : ends_.all()) {
    PREPOST_RETURN_IF_ERROR(MakePart(end, std::min(room, static_cast<uint32_t>(end.ops.size()))));
  }
  return {};
}

Status QueuePairs::Register() {
  for (const MemoryRoom room : kMemoryRooms) {
    if (ends_.Uses(room)) PREPOST_RETURN_IF_ERROR(Register(room));
  }
  return {};
}

/// Kernels before 6.2 register nothing that cannot be written, as a file that is mapped for
/// reading: of that a copy is sent.
Status QueuePairs::Register(MemoryRoom room) {
  const std::span<const std::byte> bytes = BytesOf(memory_, room);
  if (bytes.empty()) return {};
  Key& key = keys_[static_cast<size_t>(room)];
  if (const std::optional<uint32_t> kept = device_.KeyOf(bytes)) {
    key.value = *kept;
    return {};
  }
  // Of a multicast the input is all that there is, and is written by all that have a target.
  const bool is_written = is_multicast() ? !memory_.target.empty() : room != MemoryRoom::kInput;
  const auto add = [&](std::span<const std::byte> memory) {
    errno = 0;
    key.region.reset(Calls().ibv_reg_mr(device_.domain(), const_cast<std::byte*>(memory.data()),
                                        memory.size(), is_written ? IBV_ACCESS_LOCAL_WRITE : 0));
    return key.region != nullptr;
  };
  if (!add(bytes) && errno == EFAULT && !is_written) {
    copy_.reset(new (std::nothrow) std::byte[bytes.size()]);
    if (copy_ == nullptr) return EnvironmentError("there is no memory for a copy of the message");
    std::ranges::copy(bytes, copy_.get());
    memory_.source = {copy_.get(), bytes.size()};
    add(memory_.source);
  }
  if (key.region == nullptr) {
    const bool is_limit = errno == ENOMEM;
    const Status failed = CallFailed("register the message's memory");
    return is_limit ? EnvironmentError(failed.message() + " (ulimit -l)") : failed;
  }
  key.value = key.region->lkey;
  return {};
}

void QueuePairs::Release() {
  keys_ = {};
  copy_ = nullptr;
  memory_ = {};
}

Status QueuePairs::Restart(const NodeMemory& memory) {
  memory_ = memory;
  for (Part& part : parts_) ++part.epoch;
  return Register();
}

void QueuePairs::Stop() {
  parts_.clear();
  queue_ = nullptr;
  keys_ = {};
}

Status QueuePairs::MakePart(const ChannelEnd& end, uint32_t entries) {
  Part& part = parts_.emplace_back();
  part.room = entries;
  part.first_packet = RandomPacketNumber();
  ibv_qp_init_attr spec = {};
  spec.qp_context = &failure_;
  spec.send_cq = spec.recv_cq = queue_.get();
  spec.cap.max_send_wr = end.is_send ? entries : 1;
  spec.cap.max_recv_wr = end.is_send ? 1 : entries;
  spec.cap.max_send_sge = spec.cap.max_recv_sge = 1;
  spec.qp_type = IBV_QPT_RC;
  spec.sq_sig_all = 1;
  errno = 0;
  part.pair.reset(Calls().ibv_create_qp(device_.domain(), &spec));
  if (part.pair == nullptr) return CallFailed("make a queue pair");
  ibv_qp_attr init = {};
  init.qp_state = IBV_QPS_INIT;
  init.pkey_index = device_.pkey_index();
  init.port_num = device_.selection().port;
  const int error = Calls().ibv_modify_qp(
      part.pair.get(), &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error == 0) return {};
  return SystemError(StatusCode::kEnvironment, "cannot initialize a queue pair", error);
}

std::vector<std::byte> QueuePairs::NameOf(const Part& part) const {
  const PortAddress& address = device_.address();
  std::vector<std::byte> name(kPairNameBytes);
  ByteWriter out(name);
  out.Put(static_cast<uint8_t>(address.link));
  out.Put(address.mtu);
  out.Put(address.lid);
  out.Put(part.pair->qp_num);
  out.Put(part.first_packet);
  out.PutBytes(std::as_bytes(std::span(address.gid.raw)));
  return name;
}

/// Connects the end with the queue pair of this name.
Status QueuePairs::Learn(uint32_t end, std::span<const std::byte> name) {
  if (name.empty())
    return Rejected(fmt::format("it has no queue pair for lane {}", NumberOf(ends_[end].lane)));
  if (name.size() != kPairNameBytes) return Rejected("its queue pair's name is none");
  ByteReader in(name);
  PortAddress remote;
  remote.link = static_cast<PortAddress::Link>(in.Get<uint8_t>());
  remote.mtu = in.Get<uint8_t>();
  remote.lid = in.Get<uint16_t>();
  const auto number = in.Get<uint32_t>();
  const auto first_packet = in.Get<uint32_t>();
  std::ranges::copy(in.Take(16), std::as_writable_bytes(std::span(remote.gid.raw)).begin());
  if (remote.link != device_.address().link)
    return Rejected("its device is on another kind of link, or its GID is of another kind of RoCE");
  if (remote.mtu < IBV_MTU_256 || remote.mtu > IBV_MTU_4096)
    return Rejected("its queue pair's name has no MTU");

  Part& part = parts_[end];
  part.epoch = static_cast<uint8_t>(ends_[end].is_send ? part.first_packet : first_packet);
  ibv_qp_attr receive = {};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = static_cast<ibv_mtu>(std::min(device_.address().mtu, remote.mtu));
  receive.dest_qp_num = number & kPacketMask;
  receive.rq_psn = first_packet & kPacketMask;
  receive.max_dest_rd_atomic = 1;
  receive.min_rnr_timer = kRnrTimer;
  receive.ah_attr = device_.PathTo(remote);
  int error =
      Calls().ibv_modify_qp(part.pair.get(), &receive,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error == 0) {
    ibv_qp_attr send = {};
    send.qp_state = IBV_QPS_RTS;
    send.timeout = AckTimeoutFor(round_trips_[ends_[end].peer], kAckTimeout);
    send.retry_cnt = kRetries;
    send.rnr_retry = kRnrRetriesForEver;
    send.sq_psn = part.first_packet;
    send.max_rd_atomic = 1;
    error = Calls().ibv_modify_qp(part.pair.get(), &send,
                                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  if (error == 0) return {};
  return Rejected(fmt::format("its queue pair cannot be connected: {}", std::strerror(error)));
}

Status QueuePairs::Connect(const PlayerDevice::Task& task) {
  for (const ChannelEnd& end : ends_.all())
    round_trips_[end.peer] = task.links->RoundTripTo(end.peer);
  std::vector<std::vector<std::byte>> own;
  for (const Part& part : parts_) own.push_back(NameOf(part));
  return ExchangeQueueNames(ExchangeOf(task, "queue pairs"),
                            {.over = "libibverbs",
                             .ends = ends_,
                             .own = own,
                             .learn = [this](uint32_t end, std::span<const std::byte> name) {
                               return Learn(end, name);
                             }});
}

Result<bool> QueuePairs::Post(OpId op) {
  Part& part = parts_[ends_.PlaceOf(op).end];
  if (part.room == 0) return false;
  const std::span<const std::byte> block = ends_.BytesIn(memory_, op);
  ibv_sge piece = {.addr = reinterpret_cast<uintptr_t>(block.data()),
                   .length = static_cast<uint32_t>(block.size()),
                   .lkey = keys_[static_cast<size_t>(ends_.PlaceInMemory(op).at.room)].value};
  int error = 0;
  if (const Op& it = ends_.op(op); it.is_send()) {
    ibv_send_wr request = {};
    request.wr_id = op.value;
    request.sg_list = &piece;
    request.num_sge = block.empty() ? 0 : 1;
    request.opcode = it.is_credit() ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(BlockImmediate(part.epoch, it.block));
    ibv_send_wr* bad = nullptr;
    error = ibv_post_send(part.pair.get(), &request, &bad);
  } else {
    ibv_recv_wr request = {};
    request.wr_id = op.value;
    request.sg_list = &piece;
    request.num_sge = block.empty() ? 0 : 1;
    ibv_recv_wr* bad = nullptr;
    error = ibv_post_recv(part.pair.get(), &request, &bad);
  }
  if (error != 0) return ends_.Failure(op, fmt::format("cannot post it: {}", std::strerror(error)));
  --part.room;
  return true;
}

Result<size_t> QueuePairs::Read(std::span<OpId> completed) {
  PREPOST_RETURN_IF_ERROR(failure_);
  size_t count = 0;
  while (count < completed.size()) {
    std::array<ibv_wc, 16> batch;
    const auto wanted = std::min(batch.size(), completed.size() - count);
    const int got = ibv_poll_cq(queue_.get(), static_cast<int>(wanted), batch.data());
    if (got < 0) return Rejected("the completion queue cannot be read");
    for (int i = 0; i < got; ++i) {
      const Result<OpId> op = Completed(batch[static_cast<size_t>(i)]);
      if (!op.ok()) return op.status();
      completed[count++] = *op;
    }
    if (static_cast<size_t>(got) < wanted) break;
  }
  return count;
}

bool QueuePairs::MayWait() {
  if (is_armed_) return true;
  is_armed_ = ibv_req_notify_cq(queue_.get(), /*solicited_only=*/0) == 0;
  if (!is_armed_) failure_ = Rejected("the completion queue makes no events");
  return false;
}

Status QueuePairs::TakeEvents() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (Calls().ibv_get_cq_event(events_.get(), &queue, &context) == 0) {
    Calls().ibv_ack_cq_events(queue, 1);
    is_armed_ = false;
  }
  PREPOST_RETURN_IF_ERROR(device_.TakeEvents());
  return failure_;
}

/// The device's own trouble is the cause of all that fails with it, and may be reported a moment
/// later.
Status QueuePairs::Failed(OpId op, ibv_wc_status status) {
  const bool is_lost = status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
                       status == IBV_WC_RESP_TIMEOUT_ERR || status == IBV_WC_REM_ABORT_ERR;
  pollfd events = {.fd = device_.context()->async_fd, .events = POLLIN, .revents = 0};
  if (!is_lost) poll(&events, 1, kEventLateMs);
  PREPOST_RETURN_IF_ERROR(device_.TakeEvents());
  PREPOST_RETURN_IF_ERROR(failure_);
  if (is_lost) lost_peer_ = ends_[ends_.PlaceOf(op).end].peer;
  return ends_.Failure(op, Calls().ibv_wc_status_str(status));
}

Result<OpId> QueuePairs::Completed(const ibv_wc& completion) {
  if (completion.wr_id >= ends_.ops()) return Rejected("a completion of nothing that was posted");
  const OpId op = OpId::FromIndex(completion.wr_id);
  Part& part = parts_[ends_.PlaceOf(op).end];
  if (completion.status != IBV_WC_SUCCESS) return Failed(op, completion.status);
  ++part.room;
  const Op& it = ends_.op(op);
  if (it.is_send()) return op;
  const bool has_block = (completion.wc_flags & IBV_WC_WITH_IMM) != 0;
  const uint32_t immediate = has_block ? ntohl(completion.imm_data) : 0;
  if (has_block == it.is_credit() || completion.byte_len != ends_.BytesOf(op) ||
      (has_block && immediate != BlockImmediate(part.epoch, it.block))) {
    return ends_.Failure(
        op, fmt::format("{} bytes of {} came", completion.byte_len,
                        has_block ? fmt::format("block {} of epoch {}", immediate & 0xffffff,
                                                immediate >> 24)
                                  : "a credit"));
  }
  return op;
}

}  // namespace prepost::verbs
