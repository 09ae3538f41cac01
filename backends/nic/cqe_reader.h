// SPDX-License-Identifier: Apache-2.0
//
// CqeReader: the host's view of a completion queue: reads entry after entry by the ownership rule.
#ifndef PREPOST_BACKENDS_NIC_CQE_READER_H_
#define PREPOST_BACKENDS_NIC_CQE_READER_H_

#include <cstdint>
#include <optional>

#include "prepost/backends/nic/device.h"
#include "prepost/backends/nic/wqe.h"

namespace prepost::nic {

struct Cqe {
  CqeOpcode opcode = CqeOpcode::kInvalid;
  Syndrome syndrome = Syndrome::kNone;  ///< error CQEs
  uint32_t immediate = 0;
  uint32_t byte_count = 0;
  uint32_t qpn = 0;
  uint16_t wqe_counter = 0;

  bool is_error() const {
    return opcode == CqeOpcode::kRequesterError || opcode == CqeOpcode::kResponderError;
  }
};

/// Reads the CQEs of one CQ in order. The NIC may be writing meanwhile.
class CqeReader {
 public:
  explicit CqeReader(const Cq& cq) : cq_(cq), next_(cq.producer_base) {}

  /// The next CQE if the NIC has written it. Does not tell the NIC: call Consume for that.
  std::optional<Cqe> Next();
  /// Stores the consumer index, so that a CQ without ignore_overrun gets room.
  void Consume();

 private:
  Cq cq_;
  uint32_t next_;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_CQE_READER_H_
