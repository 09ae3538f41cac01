// SPDX-License-Identifier: Apache-2.0
//
// Causes in the words of the library. Transports, NICs and plans speak of nodes, the places of a
// group's members, and of the command's flags, since the command uses them, too; callers of a
// session know members by their numbers, and options.
#ifndef PREPOST_RUNTIME_SESSION_MEMBER_WORDS_H_
#define PREPOST_RUNTIME_SESSION_MEMBER_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// "node 1 lacks --ready" of members 4 and 7 is "member 7 lacks ready". A name of a host, "node1"
/// or "node-1", stays as it is.
std::string InMemberWords(const std::string& text, const std::vector<uint32_t>& members);
/// Of an error's message, with its code.
Status InMemberWords(const Status& status, const std::vector<uint32_t>& members);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_MEMBER_WORDS_H_
