// SPDX-License-Identifier: Apache-2.0
//
// Link: fills in what an image left open, once objects and memory exist. One linker serves hardware
// and emulated NIC.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_LINK_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_LINK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/nic/program/encode.h"
#include "ir/base/status.h"

namespace prepost::nic {

/// One node's objects. The bases are what the counters stand at when the run starts: 0 on fresh
/// objects.
struct Bindings {
  std::vector<uint32_t> qpns = {};      ///< by QpId, 24 bits
  std::vector<uint32_t> cqns = {};      ///< by CqId, 24 bits
  std::vector<uint16_t> sq_bases = {};  ///< by QpId
  std::vector<uint32_t> cq_bases = {};  ///< by CqId
  uint32_t lkey = 0;                    ///< of the message buffer
  uint64_t address = 0;                 ///< of the message buffer
  uint8_t epoch = 0;
};

/// The final bytes of one queue. Errors (kRejected): an image that relocates outside of its bytes
/// or names an object that `bindings` does not have.
Result<std::vector<std::byte>> Link(QueueImage image, const Bindings& bindings);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_LINK_H_
