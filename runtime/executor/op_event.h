// SPDX-License-Identifier: Apache-2.0
//
// OpEvent: what an executor reports to an observer while it plays a plan: of its ops, and that its
// host woke up. Traces (op_times.h) and tests of order are made of it.
#ifndef PREPOST_RUNTIME_EXECUTOR_OP_EVENT_H_
#define PREPOST_RUNTIME_EXECUTOR_OP_EVENT_H_

#include <cstdint>
#include <functional>

#include "ir/ids.h"

namespace prepost {

struct OpEvent {
  enum class Kind : uint8_t {
    kPost,      ///< handed to the transport; preposted: its WQE was written, before the doorbell
    kStart,     ///< send: nothing holds it any more. Receive: the first of its bytes is here
    kComplete,  ///< of an unsignaled send on a NIC: what the NIC knows
    kWakeup     ///< of no op: the node's host has come back from waiting, and counts it
  };
  NodeId node;
  OpId op;  ///< means nothing with kWakeup
  Kind kind = Kind::kStart;
};
using OpObserver = std::function<void(const OpEvent&)>;

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_OP_EVENT_H_
