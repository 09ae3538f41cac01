// SPDX-License-Identifier: Apache-2.0
//
// What the command that pushes (pusher.h) and the receivers on the hosts (receiver.h) agree on.
// They talk through agents, a JSON object a line (line_channel.h):
//
//     hello     who you are, where to write         listening  the port of its session
//     files     the manifest                        have       the files that are there already
//     prepare   which files will come               prepared   there is room for them; whether
//                                                          what is written stays: a pipe, a device
//     group     members and addresses, from which   written    so many messages are on the disk
//               message on                          broken     the group has failed
//     leave     that group                          left       after so many messages; its new port
//     end       that was all                        summed     the sums of what it has received
//     commit    the sums are those of what was      done       what could not be kept of modes,
//     times
//               sent: give the files their names               and owners
//                                                   alive      once a second: what it has sent to
//                                                              others, and how long that took
//                                                   note       what it waits for
//                                                   error      it ends, and why
#ifndef PREPOST_TOOLS_PUSH_PUSH_PROTOCOL_H_
#define PREPOST_TOOLS_PUSH_PUSH_PROTOCOL_H_

#include <cstddef>
#include <cstdint>

namespace prepost::tools {

inline constexpr int kPushProtocol = 9;

/// What is pushed goes in messages of so many bytes, of which every host holds no more than
/// kPushWindow, so that memory does not grow with the files.
inline constexpr uint64_t kPushMessageBytes = uint64_t{16} << 20;
inline constexpr uint32_t kPushWindow = 8;

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSH_PROTOCOL_H_
