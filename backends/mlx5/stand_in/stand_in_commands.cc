// SPDX-License-Identifier: Apache-2.0
//
// The firmware's part of the stand-in: commands in, answers out.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "backends/mlx5/stand_in/stand_in.h"
#include "backends/mlx5/stand_in/stand_in_address.h"
#include "backends/mlx5/stand_in/stand_in_forms.h"
#include "backends/nic/wqe.h"

namespace prepost::mlx5 {
namespace {

using prm::Command;
using prm::Field;
using prm::Get;
using prm::In;
using prm::Set;
using stand_in::CommandForm;
using stand_in::FindForm;
using stand_in::StrayBit;

constexpr uint32_t kSyndrome = 0x505001;  // of no firmware: last_refusal() says more
constexpr size_t kRecordBytes = 8;
constexpr uint8_t kMtuMax = 5;
/// The GID fields of an address path on Ethernet.
constexpr Field kGidFields[] = {prm::ads::kSrcAddrIndex, prm::ads::kHopLimit, prm::ads::kTclass,
                                prm::ads::kFlowLabel,    prm::ads::kRgidHigh, prm::ads::kRgidLow,
                                prm::ads::kUdpSport,     prm::ads::kEthPrio,  prm::ads::kRmacHigh,
                                prm::ads::kRmacLow};

Command CommandOf(Input in) {
  if (in.size() < prm::kHeaderBytes) return Command{};
  return static_cast<Command>(Get(in, prm::in::kOpcode));
}

/// The fields of a QPC or a CQC.
class Context {
 public:
  Context(Input in, Field structure) : in_(in), structure_(structure) {}
  uint64_t operator[](Field field) const { return Get(in_, In(structure_, field)); }
  bool Has(Field field) const { return (*this)[field] != 0; }

 private:
  Input in_;
  Field structure_;
};

/// Fills in an answer: all zero but for what is set in a structure.
class AnswerFields {
 public:
  AnswerFields(Output out, Field structure) : out_(out), structure_(structure) {
    std::ranges::fill(out, std::byte{0});
  }
  void Set(Field field, uint64_t value) const { prm::Set(out_, In(structure_, field), value); }

 private:
  Output out_;
  Field structure_;
};

prm::QpcState Encode(nic::QpState state) {
  switch (state) {
    case nic::QpState::kReset:
      return prm::QpcState::kReset;
    case nic::QpState::kInit:
      return prm::QpcState::kInit;
    case nic::QpState::kReadyToReceive:
      return prm::QpcState::kRtr;
    case nic::QpState::kReadyToSend:
      return prm::QpcState::kRts;
    case nic::QpState::kError:
      return prm::QpcState::kError;
  }
  return prm::QpcState::kError;
}

}  // namespace

/// Writes the header of the answer.
int StandIn::Answer(Output out, const Verdict& verdict) {
  if (!verdict) return 0;
  std::ranges::fill(out, std::byte{0});
  Set(out, prm::out::kStatus, static_cast<uint8_t>(verdict->status));
  Set(out, prm::out::kSyndrome, kSyndrome);
  return Refuse(EREMOTEIO, verdict->why);
}

StandIn::Refusal StandIn::Bad(std::string why) {
  return {prm::Status::kBadParameter, std::move(why)};
}

/// The verdict on a correct command, by what the NIC answered.
StandIn::Verdict StandIn::Outcome(const Status& status) {
  if (status.ok()) return {};
  return Refusal{prm::Status::kInternalError, status.message()};
}

#define PREPOST_REFUSE_IF(expression) \
  if (Verdict refusal = (expression)) return refusal

/// What is wrong with the form of a command that came by `call`: 0, or an errno value as the kernel
/// returns it, with the answer if it got as far as the firmware.
int StandIn::CheckForm(stand_in::Call call, Input in, Output out) {
  if (in.size() < prm::kHeaderBytes || out.size() < prm::kHeaderBytes) {
    return Refuse(EINVAL, "a mailbox is shorter than its header");
  }
  if (nic_.has_failed()) return Refuse(EIO, "the device has failed");
  const auto refuse = [&](prm::Status status, std::string why) {
    return Answer(out, Refusal{status, std::move(why)});
  };
  const Command command = CommandOf(in);
  const CommandForm* form = FindForm(command);
  if (form == nullptr) {
    return refuse(prm::Status::kBadOperation,
                  fmt::format("opcode {:#x} is not known", static_cast<uint16_t>(command)));
  }
  if (form->call != call) {
    return Refuse(EINVAL, fmt::format("{} does not go by this call", Name(command)));
  }
  if (in.size() != form->in_bytes) {
    return refuse(
        prm::Status::kBadInputLength,
        fmt::format("{} has {} bytes, expected {}", Name(command), in.size(), form->in_bytes));
  }
  if (out.size() < form->out_bytes) {
    return refuse(prm::Status::kBadOutputLength,
                  fmt::format("the answer to {} has {} bytes", Name(command), form->out_bytes));
  }
  if (const std::optional<uint32_t> bit = StrayBit(in, *form)) {
    return refuse(prm::Status::kBadParameter,
                  fmt::format("bit {:#x} is set, which {} does not take", *bit, Name(command)));
  }
  return 0;
}

int StandIn::GeneralCommand(Input in, Output out) {
  if (const int error = CheckForm(stand_in::Call::kGeneral, in, out); error != 0) return error;
  return Answer(out, QueryHcaCap(in, out));
}

int StandIn::CreateObject(Input in, Output out, Object* object) {
  if (const int error = CheckForm(stand_in::Call::kCreate, in, out); error != 0) return error;
  return Answer(out, CommandOf(in) == Command::kCreateCq ? CreateCq(in, out, object)
                                                         : CreateQp(in, out, object));
}

int StandIn::ModifyObject(Object object, Input in, Output out) {
  if (const int error = CheckForm(stand_in::Call::kModify, in, out); error != 0) return error;
  const auto qp = qps_.find(IdOf(object.handle));
  if (qp == qps_.end() || Get(in, prm::in::kNumber) != qp->second.qpn) {
    return Refuse(EINVAL, "the command is for another object");
  }
  return Answer(out, ChangeQp(qp->second, CommandOf(in), in));
}

int StandIn::QueryObject(Object object, Input in, Output out) {
  if (const int error = CheckForm(stand_in::Call::kQuery, in, out); error != 0) return error;
  const uint32_t id = IdOf(object.handle);
  const uint64_t number = Get(in, prm::in::kNumber);
  if (CommandOf(in) == Command::kQueryQp) {
    const auto qp = qps_.find(id);
    if (qp != qps_.end() && qp->second.qpn == number) return Answer(out, QueryQp(qp->second, out));
  } else {
    const auto cq = cqs_.find(id);
    if (cq != cqs_.end() && cq->second.cqn == number) return Answer(out, QueryCq(cq->second, out));
  }
  return Refuse(EINVAL, "the command is for another object");
}

StandIn::Verdict StandIn::QueryHcaCap(Input in, Output out) const {
  const uint64_t type = Get(in, prm::in::kOpMod);
  if (type != prm::kGeneralCaps && type != prm::kRoceCaps) {
    return Bad(fmt::format("capabilities {:#x} are not known", type));
  }
  const AnswerFields answer(out, prm::query_hca_cap_out::kCapability);
  if (type == prm::kRoceCaps) {
    answer.Set(prm::roce_cap::kFlRcQpWhenRoceEnabled, options_.force_loopback);
    answer.Set(prm::roce_cap::kQpTsFormat, 1);
    return {};
  }
  answer.Set(prm::hca_cap::kLogMaxQpSz, options_.log_max_qp_sz);
  answer.Set(prm::hca_cap::kLogMaxCqSz, options_.log_max_cq_sz);
  answer.Set(prm::hca_cap::kCqeVersion, 1);
  answer.Set(prm::hca_cap::kRoce, options_.is_ethernet);
  answer.Set(prm::hca_cap::kCqOi, options_.cq_ignore_overrun);
  answer.Set(prm::hca_cap::kCd, options_.cross_channel);
  return {};
}

StandIn::Verdict StandIn::Slice(const char* what, uint64_t umem, uint64_t offset, uint64_t bytes,
                                uint64_t alignment, std::span<std::byte>* slice) const {
  const auto found = umems_.find(static_cast<uint32_t>(umem));
  if (found == umems_.end()) {
    return Refusal{prm::Status::kBadResource,
                   fmt::format("{}: umem {:#x} does not exist", what, umem)};
  }
  const uint64_t size = found->second.size();
  if (offset % alignment != 0) {
    return Bad(fmt::format("{}: offset {:#x} is not a multiple of {}", what, offset, alignment));
  }
  if (offset > size || bytes > size - offset) {
    return Bad(
        fmt::format("{}: {} bytes at {:#x} are not in a umem of {}", what, bytes, offset, size));
  }
  *slice = found->second.subspan(offset, bytes);
  return {};
}

/// Hardware would write over what lies there.
StandIn::Verdict StandIn::CheckApart(const Memory& memory) const {
  const auto overlap = [](std::span<const std::byte> a, std::span<const std::byte> b) {
    return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
  };
  const auto is_hit = [&](const auto& entry) {
    const Memory& other = entry.second.memory;
    return overlap(memory.rings, other.rings) || overlap(memory.rings, other.record) ||
           overlap(memory.record, other.rings) || overlap(memory.record, other.record);
  };
  if (overlap(memory.rings, memory.record) || std::ranges::any_of(cqs_, is_hit) ||
      std::ranges::any_of(qps_, is_hit)) {
    return Bad("rings or doorbell record lie in memory of a queue");
  }
  return {};
}

StandIn::Verdict StandIn::CheckUar(uint64_t page) const {
  if (uars_.contains(static_cast<uint32_t>(page))) return {};
  return Refusal{prm::Status::kBadResource,
                 fmt::format("doorbell page {:#x} does not exist", page)};
}

StandIn::Verdict StandIn::CreateCq(Input in, Output out, Object* object) {
  namespace c = prm::cqc;
  const Context cqc(in, prm::kCqc);
  PREPOST_REFUSE_IF(CheckUar(cqc[c::kUarPage]));
  if (Get(in, prm::cq_command::kCqUmemValid) == 0 || !cqc.Has(c::kDbrUmemValid)) {
    return Bad("a umem of the CQ is not said to be valid");
  }
  const uint64_t log_size = cqc[c::kLogCqSize];
  if (log_size > options_.log_max_cq_sz) return Bad("log_cq_size is above the device's");
  if (cqc.Has(c::kOi) && !options_.cq_ignore_overrun) return Bad("oi without capability cq_oi");
  if (cqc[c::kEqn] != stand_in::kEqn) return Bad("the event queue does not exist");
  if (cqc.Has(c::kCqeSize)) return Bad("CQEs of 128 bytes are not modelled");
  if (cqc.Has(c::kLogPageSize)) return Bad("pages above 4096 bytes are not modelled");
  nic::CqConfig config{.entries = 1u << log_size,
                       .ignore_overrun = cqc.Has(c::kOi),
                       .collapsed = cqc.Has(c::kCc),
                       .producer_base = static_cast<uint32_t>(cqc[c::kProducerCounter])};
  Memory memory{.umem = static_cast<uint32_t>(Get(in, prm::cq_command::kCqUmemId)),
                .record_umem = static_cast<uint32_t>(cqc[c::kDbrUmemId])};
  PREPOST_REFUSE_IF(Slice("CQ ring", memory.umem, Get(in, prm::cq_command::kCqUmemOffset),
                          config.entries * nic::kCqeBytes, prm::kPageBytes, &memory.rings));
  PREPOST_REFUSE_IF(Slice("CQ doorbell record", memory.record_umem, cqc[c::kDbrAddr], kRecordBytes,
                          kRecordBytes, &memory.record));
  PREPOST_REFUSE_IF(CheckApart(memory));
  for (size_t i = 0; i < config.entries; ++i) {
    const std::byte owner = memory.rings[i * nic::kCqeBytes + nic::cqe::kOpcodeOwner];
    if ((owner >> 4) != (std::byte{nic::cqe::kInvalid} >> 4)) {
      return Bad(fmt::format("CQ entry {} is not invalid", i));
    }
  }
  if (nic::BigEndian(memory.Load(nic::kConsumerRecord)) != cqc[c::kConsumerCounter]) {
    return Bad("the CQ's doorbell record has another consumer counter");
  }
  config.doorbell_page = static_cast<uint32_t>(cqc[c::kUarPage]);
  const Result<uint32_t> cqn = nic_.CreateCq(
      config,
      {.ring = memory.rings, .doorbell_record = reinterpret_cast<uint32_t*>(memory.record.data())});
  if (!cqn.ok()) return Bad(cqn.status().message());
  const uint32_t id = next_++;
  cqs_[id] = {.cqn = *cqn, .uar_page = static_cast<uint32_t>(cqc[c::kUarPage]), .memory = memory};
  Set(out, prm::out::kNumber, *cqn);
  object->handle = HandleOf(id);
  return {};
}

/// What does not depend on sizes.
StandIn::Verdict StandIn::CheckQpContext(Input in) const {
  namespace q = prm::qpc;
  const Context qpc(in, prm::kQpc);
  if (qpc[q::kSt] != 0) return Bad("only RC is modelled");
  if (qpc[q::kPmState] != prm::kPmMigrated) return Bad("pm_state is not migrated");
  if (qpc.Has(q::kNoSq)) return Bad("a QP without send queue is not modelled");
  if (qpc.Has(q::kLogPageSize)) return Bad("pages above 4096 bytes are not modelled");
  if (qpc.Has(q::kCsReq) || qpc.Has(q::kCsRes)) return Bad("payload in CQEs is not modelled");
  if (Get(in, prm::qp_command::kWqUmemValid) == 0 || !qpc.Has(q::kDbrUmemValid)) {
    return Bad("a umem of the QP is not said to be valid");
  }
  // The RoCE capability is of real time only; without it there is free running only.
  if (qpc[q::kTsFormat] != (options_.is_ethernet ? 1 : 0)) {
    return Bad("ts_format is not the one that the device says it has");
  }
  if (qpc[q::kUserIndex] != prm::kDefaultUserIndex) return Bad("cqe_version 1 wants a user index");
  const bool is_crossing =
      qpc.Has(q::kCdMaster) || qpc.Has(q::kCdSlaveSend) || qpc.Has(q::kCdSlaveReceive);
  if (is_crossing && !options_.cross_channel) return Bad("cd_* without capability cd");
  if (qpc[q::kHwSqWqebbCounter] != qpc[q::kSwSqWqebbCounter]) {
    return Bad("the send queue's counters differ");
  }
  if (!pds_.contains(static_cast<uint32_t>(qpc[q::kPd]))) {
    return Refusal{prm::Status::kBadResource, "the protection domain does not exist"};
  }
  for (const auto& [id, region] : regions_) {  // its WQEs would name keys that are not for it
    if (region.pd != qpc[q::kPd]) return Bad("memory is registered for another protection domain");
  }
  PREPOST_REFUSE_IF(CheckUar(qpc[q::kUarPage]));
  return CheckQpCqs(in);
}

StandIn::Verdict StandIn::CheckQpCqs(Input in) const {
  const Context qpc(in, prm::kQpc);
  for (const Field field : {prm::qpc::kCqnSend, prm::qpc::kCqnReceive}) {
    const CqEntry* cq = FindCq(qpc[field]);
    if (cq == nullptr) {
      return Refusal{prm::Status::kBadResource, fmt::format("CQ {:#x} does not exist", qpc[field])};
    }
    if (cq->uar_page != qpc[prm::qpc::kUarPage]) {
      return Bad(fmt::format("CQ {:#x} is on another doorbell page", cq->cqn));
    }
  }
  return {};
}

StandIn::Verdict StandIn::QpSizes(Input in, nic::QpConfig* config) const {
  namespace q = prm::qpc;
  const Context qpc(in, prm::kQpc);
  const auto rq_type = static_cast<prm::RqType>(qpc[q::kRqType]);
  if (rq_type != prm::RqType::kRegular && rq_type != prm::RqType::kNone) {
    return Bad("this type of receive queue is not modelled");
  }
  if (rq_type == prm::RqType::kNone && (qpc.Has(q::kLogRqSize) || qpc.Has(q::kLogRqStride))) {
    return Bad("no receive queue has a size");
  }
  if (qpc[q::kLogSqSize] > options_.log_max_qp_sz) return Bad("log_sq_size is above the device's");
  if (qpc[q::kLogRqSize] > options_.log_max_qp_sz) return Bad("log_rq_size is above the device's");
  config->sq_wqebbs = 1u << qpc[q::kLogSqSize];
  config->sq_base = static_cast<uint16_t>(qpc[q::kSwSqWqebbCounter]);
  if (rq_type == prm::RqType::kNone) return {};
  config->rq_wqes = 1u << qpc[q::kLogRqSize];
  config->rq_stride = static_cast<uint32_t>(nic::kSegmentBytes) << qpc[q::kLogRqStride];
  if (size_t{config->rq_wqes} * config->rq_stride < nic::kWqebbBytes) {
    return Bad("the receive queue is smaller than a basic block");
  }
  return {};
}

StandIn::Verdict StandIn::CreateQp(Input in, Output out, Object* object) {
  namespace q = prm::qpc;
  const Context qpc(in, prm::kQpc);
  PREPOST_REFUSE_IF(CheckQpContext(in));
  nic::QpConfig config{.send_cq = static_cast<uint32_t>(qpc[q::kCqnSend]),
                       .recv_cq = static_cast<uint32_t>(qpc[q::kCqnReceive]),
                       .cd_master = qpc.Has(q::kCdMaster),
                       .managed_send = qpc.Has(q::kCdSlaveSend),
                       .managed_recv = qpc.Has(q::kCdSlaveReceive),
                       .doorbell_page = static_cast<uint32_t>(qpc[q::kUarPage])};
  PREPOST_REFUSE_IF(QpSizes(in, &config));
  Memory memory{.umem = static_cast<uint32_t>(Get(in, prm::qp_command::kWqUmemId)),
                .record_umem = static_cast<uint32_t>(qpc[q::kDbrUmemId])};
  const size_t rq_bytes = size_t{config.rq_wqes} * config.rq_stride;
  const size_t sq_bytes = config.sq_wqebbs * nic::kWqebbBytes;
  PREPOST_REFUSE_IF(Slice("QP rings", memory.umem, Get(in, prm::qp_command::kWqUmemOffset),
                          rq_bytes + sq_bytes, prm::kPageBytes, &memory.rings));
  PREPOST_REFUSE_IF(Slice("QP doorbell record", memory.record_umem, qpc[q::kDbrAddr], kRecordBytes,
                          kRecordBytes, &memory.record));
  PREPOST_REFUSE_IF(CheckApart(memory));
  const Result<uint32_t> qpn =
      nic_.CreateQp(config, {.sq = memory.rings.subspan(rq_bytes),
                             .rq = memory.rings.first(rq_bytes),
                             .doorbell_record = reinterpret_cast<uint32_t*>(memory.record.data())});
  if (!qpn.ok()) return Bad(qpn.status().message());
  const uint32_t id = next_++;
  qps_[id] = {.qpn = *qpn,
              .uar_page = static_cast<uint32_t>(qpc[q::kUarPage]),
              .pd = static_cast<uint32_t>(qpc[q::kPd]),
              .sq_base = config.sq_base,
              .memory = memory};
  Set(out, prm::out::kNumber, *qpn);
  object->handle = HandleOf(id);
  return {};
}

StandIn::Verdict StandIn::ChangeQp(const QpEntry& qp, Command command, Input in) {
  if (command == Command::k2Err) return Outcome(nic_.ToError(qp.qpn));
  if (command == Command::k2Rst) return Outcome(nic_.ToReset(qp.qpn));
  if (Get(in, prm::qp_command::kOptParamMask) != 0) {
    return Bad("opt_param_mask: no parameter is optional here");
  }
  const nic::QpState from = command == Command::kRst2Init   ? nic::QpState::kReset
                            : command == Command::kInit2Rtr ? nic::QpState::kInit
                                                            : nic::QpState::kReadyToReceive;
  const Result<nic::QpCounters> now = nic_.QueryQp(qp.qpn);
  if (!now.ok()) return Outcome(now.status());
  if (now->state != from) {
    return Refusal{prm::Status::kBadResourceState,
                   fmt::format("{} of a QP in state {}", Name(command), nic::Name(now->state))};
  }
  return command == Command::kRst2Init   ? ResetToInit(qp, in)
         : command == Command::kInit2Rtr ? InitToReceive(qp.qpn, in)
                                         : ReceiveToSend(qp.qpn, in);
}

StandIn::Verdict StandIn::ResetToInit(const QpEntry& qp, Input in) {
  if (Get(in, In(prm::kQpc, prm::qpc::kPmState)) != prm::kPmMigrated) {
    return Bad("pm_state is not migrated");
  }
  if (Get(in, In(prm::kPath, prm::ads::kVhcaPortNum)) != stand_in::kPort) {
    return Refusal{prm::Status::kBadIndex, "the port does not exist"};
  }
  if (Get(in, In(prm::kPath, prm::ads::kPkeyIndex)) != 0) {
    return Refusal{prm::Status::kBadIndex, "the port has one partition, of index 0"};
  }
  if (Get(in, In(prm::kQpc, prm::qpc::kRre)) == 0 || Get(in, In(prm::kQpc, prm::qpc::kRwe)) == 0) {
    return Bad("a QP that its peer must not read or write (rre, rwe) is not modelled");
  }
  const bool takes_atomics = Get(in, In(prm::kQpc, prm::qpc::kRae)) != 0;
  if (Get(in, In(prm::kQpc, prm::qpc::kAtomicMode)) !=
      (takes_atomics ? prm::kAtomicModeInfiniBand : 0)) {
    return Bad(
        "atomic_mode is not that of InfiniBand for a QP that takes atomics (rae), 0 for others");
  }
  if (nic::BigEndian(qp.memory.Load(nic::kReceiveRecord)) != 0 ||
      nic::BigEndian(qp.memory.Load(nic::kSendRecord)) != qp.sq_base) {
    return Bad("the QP's doorbell record tells of WQEs that were not posted");
  }
  return Outcome(nic_.ResetToInit(qp.qpn, takes_atomics));
}

StandIn::Verdict StandIn::InitToReceive(uint32_t qpn, Input in) {
  namespace q = prm::qpc;
  const Context qpc(in, prm::kQpc);
  if (qpc[q::kMtu] == 0 || qpc[q::kMtu] > std::min(options_.mtu, kMtuMax)) {
    return Bad(fmt::format("mtu {} is not one of the port's", qpc[q::kMtu]));
  }
  if (qpc[q::kLogMsgMax] == 0 || qpc[q::kLogMsgMax] > prm::kLogMessageMax) {
    return Bad(
        fmt::format("log_msg_max {} is not 1 to {}", qpc[q::kLogMsgMax], prm::kLogMessageMax));
  }
  if (Get(in, In(prm::kPath, prm::ads::kVhcaPortNum)) != stand_in::kPort) {
    return Refusal{prm::Status::kBadIndex, "the port does not exist"};
  }
  if (qpc.Has(q::kNextRcvPsn)) return Bad("next_rcv_psn is not 0, as the peer's next_send_psn is");
  if (qpc[q::kMinRnrNak] == 0) return Bad("min_rnr_nak 0 means 655 ms");
  NodeId remote;
  PREPOST_REFUSE_IF(FindRemote(in, qpn, &remote));
  const Status status = nic_.InitToReceive(qpn, remote, static_cast<uint32_t>(qpc[q::kRemoteQpn]));
  if (!status.ok()) return Bad(status.message());
  return {};
}

/// Which NIC the address path leads to.
StandIn::Verdict StandIn::FindRemote(Input in, uint32_t qpn, NodeId* remote) const {
  namespace p = prm::ads;
  const Context path(in, prm::kPath);
  const bool by_lid = path.Has(p::kRlid) || path.Has(p::kSl);
  const bool by_gid = std::ranges::any_of(kGidFields, [&](Field it) { return path.Has(it); });
  if (path.Has(p::kFl)) {
    if (!options_.is_ethernet || !options_.force_loopback) {
      return Bad("fl without capability fl_rc_qp_when_roce_enabled");
    }
    if (by_lid || by_gid) return Bad("fl with an address");
    if (Get(in, In(prm::kQpc, prm::qpc::kRemoteQpn)) != qpn) return Bad("fl to another QP");
    *remote = nic_.node();
    return {};
  }
  if (options_.is_ethernet) {
    return by_lid ? Bad("an InfiniBand address on Ethernet") : FindRemoteByGid(in, remote);
  }
  if (by_gid) return Bad("an Ethernet address on InfiniBand");
  const uint64_t lid = path[p::kRlid];
  if (lid == 0 || lid > stand_in::kLidMax) return Bad(fmt::format("LID {:#x} is no port's", lid));
  *remote = NodeId(static_cast<uint32_t>(lid - 1));
  return {};
}

StandIn::Verdict StandIn::FindRemoteByGid(Input in, NodeId* remote) const {
  namespace p = prm::ads;
  const Context path(in, prm::kPath);
  if (!stand_in::IsRoceV2(static_cast<uint32_t>(path[p::kSrcAddrIndex]))) {
    return Refusal{prm::Status::kBadIndex, "src_addr_index is not one of RoCE v2"};
  }
  if (path[p::kUdpSport] < prm::kUdpPortFirst) return Bad("udp_sport is below 0xc000");
  if (!path.Has(p::kHopLimit)) return Bad("hop_limit is 0");
  Gid gid;
  nic::StoreBigEndian(gid.data(), path[p::kRgidHigh]);
  nic::StoreBigEndian(gid.data() + 8, path[p::kRgidLow]);
  const std::optional<NodeId> node = stand_in::NodeOf(gid);
  if (!node) return Bad("rgid is nobody's");
  MacAddress mac;
  nic::StoreBigEndian(mac.data(), static_cast<uint16_t>(path[p::kRmacHigh]));
  nic::StoreBigEndian(mac.data() + 2, static_cast<uint32_t>(path[p::kRmacLow]));
  if (mac != stand_in::MacOf(*node)) return Bad("rmac is not that of rgid");
  *remote = *node;
  return {};
}

StandIn::Verdict StandIn::ReceiveToSend(uint32_t qpn, Input in) {
  if (Get(in, In(prm::kPath, prm::ads::kAckTimeout)) == 0) {
    return Bad("ack_timeout 0 would wait for ever");
  }
  if (Get(in, In(prm::kQpc, prm::qpc::kRetryCount)) == 0) {
    return Bad("retry_count 0 gives up at the first lost packet");
  }
  if (Get(in, In(prm::kQpc, prm::qpc::kNextSendPsn)) != 0) {
    return Bad("next_send_psn is not 0, as the peer's next_rcv_psn is");
  }
  const auto rnr_retry = static_cast<uint8_t>(Get(in, In(prm::kQpc, prm::qpc::kRnrRetry)));
  return Outcome(nic_.ReceiveToSend(qpn, rnr_retry));
}

StandIn::Verdict StandIn::QueryQp(const QpEntry& qp, Output out) {
  namespace q = prm::qpc;
  const Result<nic::QpCounters> now = nic_.QueryQp(qp.qpn);
  if (!now.ok()) return Outcome(now.status());
  const AnswerFields answer(out, prm::kQpc);
  answer.Set(q::kState, static_cast<uint8_t>(Encode(now->state)));
  answer.Set(q::kSwSqWqebbCounter, now->sq_posted);
  answer.Set(q::kHwSqWqebbCounter, now->sq_fetched);
  answer.Set(q::kSwRqCounter, now->rq_posted);
  answer.Set(q::kHwRqCounter, now->rq_taken);
  return {};
}

StandIn::Verdict StandIn::QueryCq(const CqEntry& cq, Output out) {
  namespace c = prm::cqc;
  const Result<nic::CqCounters> now = nic_.QueryCq(cq.cqn);
  if (!now.ok()) return Outcome(now.status());
  const prm::CqcStatus status = now->is_overrun ? prm::CqcStatus::kOverflow : prm::CqcStatus::kOk;
  const AnswerFields answer(out, prm::kCqc);
  answer.Set(c::kStatus, static_cast<uint8_t>(status));
  answer.Set(c::kProducerCounter, now->producer);
  answer.Set(c::kConsumerCounter, now->consumer);
  return {};
}

}  // namespace prepost::mlx5
