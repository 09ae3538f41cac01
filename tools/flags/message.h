// SPDX-License-Identifier: Apache-2.0
//
// What the command says on stderr. Texts quote files and arguments, so they are Printable(); of
// line breaks only those remain that two spaces follow, by which our own texts go on.
#ifndef PREPOST_TOOLS_FLAGS_MESSAGE_H_
#define PREPOST_TOOLS_FLAGS_MESSAGE_H_

#include <string>
#include <vector>

#include "ir/status.h"

namespace prepost::tools {

/// "prepost: `text`".
void PrintMessage(const std::string& text);
/// "prepost: where: message"; what names the place goes on no further line.
void PrintFailure(const Status& status);
/// The same, of what is no error: "prepost: note: `text`".
void PrintNote(const std::string& text);
/// What was read of `name` and is only warned of: the first few of a kind, and how many more there
/// are.
void PrintWarnings(const std::string& name, const std::vector<std::string>& warnings);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_MESSAGE_H_
