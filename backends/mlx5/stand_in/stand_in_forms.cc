// SPDX-License-Identifier: Apache-2.0
#include "backends/mlx5/stand_in/stand_in_forms.h"

#include <algorithm>

namespace prepost::mlx5::stand_in {
namespace {

using prm::Command;
using prm::Field;
using prm::In;
namespace q = prm::qpc;
namespace c = prm::cqc;
namespace p = prm::ads;

constexpr Field kNumber = prm::in::kNumber;
constexpr Field kMask = prm::qp_command::kOptParamMask;

std::vector<Field> Inside(Field structure, std::vector<Field> fields) {
  for (Field& field : fields) field = In(structure, field);
  return fields;
}

std::vector<Field> Join(std::vector<Field> a, const std::vector<Field>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Field> CreateCqFields() {
  return Join(
      Inside(prm::kCqc, {c::kOi, c::kCc, c::kCqeSize, c::kLogCqSize, c::kUarPage, c::kEqn,
                         c::kLogPageSize, c::kConsumerCounter, c::kProducerCounter,
                         c::kDbrUmemValid, c::kDbrUmemId, c::kDbrAddr}),
      {prm::cq_command::kCqUmemOffset, prm::cq_command::kCqUmemId, prm::cq_command::kCqUmemValid});
}

std::vector<Field> CreateQpFields() {
  return Join(
      Inside(prm::kQpc, {q::kSt,
                         q::kPmState,
                         q::kPd,
                         q::kLogRqSize,
                         q::kLogRqStride,
                         q::kNoSq,
                         q::kLogSqSize,
                         q::kTsFormat,
                         q::kUarPage,
                         q::kUserIndex,
                         q::kLogPageSize,
                         q::kCqnSend,
                         q::kCdSlaveReceive,
                         q::kCdSlaveSend,
                         q::kCdMaster,
                         q::kCqnReceive,
                         q::kDbrAddr,
                         q::kRqType,
                         q::kHwSqWqebbCounter,
                         q::kSwSqWqebbCounter,
                         q::kCsReq,
                         q::kCsRes,
                         q::kDbrUmemValid,
                         q::kDbrUmemId}),
      {prm::qp_command::kWqUmemOffset, prm::qp_command::kWqUmemId, prm::qp_command::kWqUmemValid});
}

std::vector<Field> InitFields() {
  return Join(Inside(prm::kQpc, {q::kPmState, q::kRre, q::kRwe, q::kRae, q::kAtomicMode}),
              {kNumber, kMask, In(prm::kPath, p::kVhcaPortNum), In(prm::kPath, p::kPkeyIndex)});
}

std::vector<Field> ReceiveFields() {
  return Join(
      Join(Inside(prm::kQpc, {q::kMtu, q::kLogMsgMax, q::kRemoteQpn, q::kLogRraMax, q::kMinRnrNak,
                              q::kNextRcvPsn}),
           Inside(prm::kPath, {p::kFl, p::kRlid, p::kSrcAddrIndex, p::kHopLimit, p::kTclass,
                               p::kFlowLabel, p::kRgidHigh, p::kRgidLow, p::kUdpSport, p::kEthPrio,
                               p::kSl, p::kVhcaPortNum, p::kRmacHigh, p::kRmacLow})),
      {kNumber, kMask});
}

std::vector<Field> SendFields() {
  return Join(Inside(prm::kQpc, {q::kLogAckReqFreq, q::kLogSraMax, q::kRetryCount, q::kRnrRetry,
                                 q::kNextSendPsn}),
              {kNumber, kMask, In(prm::kPath, p::kAckTimeout)});
}

std::vector<CommandForm> MakeForms() {
  constexpr size_t kSmall = prm::kHeaderBytes;
  constexpr size_t kLarge = prm::kObjectCommandBytes;
  return {
      {Command::kQueryHcaCap, Call::kGeneral, kSmall, prm::kQueryHcaCapOutBytes, {prm::in::kOpMod}},
      {Command::kCreateCq, Call::kCreate, kLarge, kSmall, CreateCqFields()},
      {Command::kQueryCq, Call::kQuery, kSmall, kLarge, {kNumber}},
      {Command::kCreateQp, Call::kCreate, kLarge, kSmall, CreateQpFields()},
      {Command::kRst2Init, Call::kModify, kLarge, kSmall, InitFields()},
      {Command::kInit2Rtr, Call::kModify, kLarge, kSmall, ReceiveFields()},
      {Command::kRtr2Rts, Call::kModify, kLarge, kSmall, SendFields()},
      {Command::k2Err, Call::kModify, kSmall, kSmall, {kNumber}},
      {Command::k2Rst, Call::kModify, kSmall, kSmall, {kNumber}},
      {Command::kQueryQp, Call::kQuery, kSmall, kLarge, {kNumber}},
  };
}

const std::vector<CommandForm>& Forms() {
  static const std::vector<CommandForm> forms = MakeForms();
  return forms;
}

}  // namespace

const CommandForm* FindForm(Command command) {
  const auto form = std::ranges::find(Forms(), command, &CommandForm::command);
  return form == Forms().end() ? nullptr : &*form;
}

std::optional<uint32_t> StrayBit(Input in, const CommandForm& form) {
  std::vector<bool> taken(in.size() * 8);
  const auto take = [&taken](Field field) {
    for (uint32_t i = 0; i < field.width; ++i) taken[field.offset + i] = true;
  };
  take(prm::in::kOpcode);
  for (const Field& field : form.fields) take(field);
  for (uint32_t bit = 0; bit < taken.size(); ++bit) {
    const bool is_set = (in[bit / 8] & std::byte{0x80} >> bit % 8) != std::byte{0};
    if (is_set && !taken[bit]) return bit;
  }
  return std::nullopt;
}

}  // namespace prepost::mlx5::stand_in
