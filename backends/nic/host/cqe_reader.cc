// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/cqe_reader.h"

#include <fmt/format.h>

#include "ir/base/count.h"

namespace prepost::nic {

std::string WrongReceive(const Cqe& cqe, const ExpectedReceive& expected) {
  if (IsRight(cqe, expected)) return "";
  if (expected.block == kNoBlock) {
    return fmt::format("a credit of 0 bytes was expected, {} came", Count(cqe.byte_count, "byte"));
  }
  const uint32_t immediate = BlockImmediate(expected.epoch, expected.block);
  if (cqe.opcode != CqeOpcode::kResponderSendImm || cqe.immediate != immediate) {
    return fmt::format("block {} of epoch {} was expected, block {} of epoch {} came",
                       expected.block, expected.epoch, cqe.immediate & 0xffffff,
                       cqe.immediate >> 24);
  }
  return fmt::format("block {} has {}, {} came", expected.block, Count(expected.bytes, "byte"),
                     cqe.byte_count);
}

}  // namespace prepost::nic
