// SPDX-License-Identifier: Apache-2.0
#include "backends/mlx5/capabilities.h"

#include <fmt/format.h>

#include <cerrno>
#include <memory>

#include "runtime/base/file_descriptor.h"

namespace prepost::mlx5 {
namespace {

using prm::Field;
using prm::Get;

/// The capabilities of one type.
class CapabilityPage {
 public:
  Status Query(Verbs& verbs, uint16_t op_mod) {
    const prm::Header in = CommandHeader(prm::Command::kQueryHcaCap, op_mod, 0);
    const int error = verbs.GeneralCommand(in, *out_);
    return error == 0 ? Status() : CallError("QUERY_HCA_CAP", error, *out_);
  }
  uint64_t operator[](Field field) const {
    return Get(*out_, prm::In(prm::query_hca_cap_out::kCapability, field));
  }
  bool Has(Field field) const { return (*this)[field] != 0; }

 private:
  std::unique_ptr<prm::QueryHcaCapOut> out_ = std::make_unique<prm::QueryHcaCapOut>();
};

}  // namespace

Result<Capabilities> QueryCapabilities(Verbs& verbs) {
  CapabilityPage general;
  PREPOST_RETURN_IF_ERROR(general.Query(verbs, prm::kGeneralCaps));
  using namespace prm::hca_cap;
  Capabilities found{.cross_channel = general.Has(kCd),
                     .cq_ignore_overrun = general.Has(kCqOi),
                     .log_max_qp_sz = static_cast<uint8_t>(general[kLogMaxQpSz]),
                     .log_max_cq_sz = static_cast<uint8_t>(general[kLogMaxCqSz]),
                     .cqe_version = static_cast<uint8_t>(general[kCqeVersion]),
                     .has_roce = general.Has(kRoce)};
  if (!found.has_roce) return found;
  CapabilityPage roce;
  PREPOST_RETURN_IF_ERROR(roce.Query(verbs, prm::kRoceCaps));
  found.force_loopback = roce.Has(prm::roce_cap::kFlRcQpWhenRoceEnabled);
  found.default_ts_format = roce.Has(prm::roce_cap::kQpTsFormat);
  return found;
}

std::string WhatIsMissing(const Capabilities& capabilities) {
  if (!capabilities.cross_channel) return "capability cd (cross-channel: WAIT and SEND_EN)";
  if (!capabilities.cq_ignore_overrun) return "capability cq_oi (CQs that ignore overrun)";
  return "";
}

Status CallError(const std::string& what, int error, Input out) {
  if (error != EREMOTEIO || out.size() < prm::kHeaderBytes) {
    return SystemError(StatusCode::kEnvironment, what, error);
  }
  const auto status = static_cast<prm::Status>(Get(out, prm::out::kStatus));
  return EnvironmentError(fmt::format("{}: refused by the firmware: {} ({:#x}), syndrome {:#x}",
                                      what, prm::Name(status), static_cast<uint8_t>(status),
                                      Get(out, prm::out::kSyndrome)));
}

prm::Header CommandHeader(prm::Command command, uint16_t op_mod, uint32_t number) {
  prm::Header in = {};
  prm::Set(in, prm::in::kOpcode, static_cast<uint16_t>(command));
  prm::Set(in, prm::in::kOpMod, op_mod);
  prm::Set(in, prm::in::kNumber, number);
  return in;
}

}  // namespace prepost::mlx5
