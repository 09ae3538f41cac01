// SPDX-License-Identifier: Apache-2.0
//
// KindOf: whether a file is a plan, a rolled plan or a spec, for subcommands that take several.
#ifndef PREPOST_TOOLS_FILE_KIND_H_
#define PREPOST_TOOLS_FILE_KIND_H_

#include <string>

#include "prepost/ir/status.h"

namespace prepost::tools {

enum class FileKind : uint8_t { kPlan, kRolledPlan, kSpec };

/// By the file's "format" key, up to which it is read. What says nothing, is no JSON, or comes from
/// stdin ("-", which can be read only once) counts as a plan: its reader tells what is wrong.
/// Errors: kRejected: it cannot be read.
Result<FileKind> KindOf(const std::string& path);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FILE_KIND_H_
