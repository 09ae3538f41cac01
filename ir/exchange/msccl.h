// SPDX-License-Identifier: Apache-2.0
//
// A plan as the XML of MSCCL, an interpreter of collectives inside NCCL: a gpu per node, a thread
// block per channel and end, a step per op. docs/inspect.md describes what is kept and what is
// lost.
#ifndef PREPOST_IR_EXCHANGE_MSCCL_H_
#define PREPOST_IR_EXCHANGE_MSCCL_H_

#include <iosfwd>
#include <string>

#include "ir/plan.h"

namespace prepost {

/// What MSCCL's loader accepts.
inline constexpr uint32_t kMscclStepsMax = 256;  ///< of a thread block
inline constexpr uint32_t kMscclGpusMax = 1024;
inline constexpr uint32_t kMscclElementsMax = 4096;  ///< of XML, that a gpu reads: its own
inline constexpr uint32_t kMscclPeersMax = 32;  ///< a gpu sends to, or receives from, on a channel

/// Ok if `plan`, which must be valid, has a form in MSCCL; else kRejected, with the first node and
/// limit that it breaks. Linear.
Status CheckMsccl(const Plan& plan);

/// Writes `plan`, which must pass CheckMsccl(). The caller checks `out` for I/O errors.
void WriteMsccl(const Plan& plan, std::ostream& out);

/// What of `plan` MSCCL has no form for, in one line.
std::string MscclLosses(const Plan& plan);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_MSCCL_H_
