// SPDX-License-Identifier: Apache-2.0
//
// Receive(): what runs on a host that files are pushed to. It is told what to do on its stdin and
// answers on its stdout, a JSON object a line (push_protocol.h); the files come by a session's
// group.
#ifndef PREPOST_TOOLS_PUSH_RECEIVER_H_
#define PREPOST_TOOLS_PUSH_RECEIVER_H_

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"

namespace prepost::tools {

/// Until the end of `in`, or until the files have their names. `interrupt_fd` as InterruptSignals.
/// Errors: what went wrong here, which was said on `out` as well; kInterrupted.
Status Receive(FileDescriptor in, FileDescriptor out, int interrupt_fd);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_RECEIVER_H_
