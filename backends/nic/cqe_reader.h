// SPDX-License-Identifier: Apache-2.0
//
// CqeReader: the host's view of a completion queue: reads entry after entry by the ownership rule;
// and the check of what a receive got.
#ifndef PREPOST_BACKENDS_NIC_CQE_READER_H_
#define PREPOST_BACKENDS_NIC_CQE_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "prepost/backends/nic/device.h"
#include "prepost/backends/nic/wqe.h"
#include "prepost/ir/plan.h"

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

/// A message as the plan has it.
struct ExpectedReceive {
  uint32_t block = kNoBlock;  ///< kNoBlock: a credit
  uint32_t bytes = 0;
  uint8_t epoch = 0;
};
/// What is wrong with the CQE of a receive that is no error, or "".
std::string WrongReceive(const Cqe& cqe, const ExpectedReceive& expected);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_CQE_READER_H_
