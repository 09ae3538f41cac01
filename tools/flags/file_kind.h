// SPDX-License-Identifier: Apache-2.0
//
// KindOf: whether a file is a plan, a rolled plan or a spec, for subcommands that take several.
#ifndef PREPOST_TOOLS_FLAGS_FILE_KIND_H_
#define PREPOST_TOOLS_FLAGS_FILE_KIND_H_

#include <string>

#include "ir/status.h"

namespace prepost::tools {

enum class FileKind : uint8_t {
  kPlan,  ///< or a folder, which can only be one in shards
  kRolledPlan,
  kSpec,
  kPlanPart  ///< the index of a folder of shards, or a shard
};

/// By the file's "format" key, up to which it is looked at; stdin ("-") too, which can then be read
/// from its beginning. What says nothing or is no JSON counts as a plan: its reader tells what is
/// wrong. Errors: kRejected: it cannot be read.
Result<FileKind> KindOf(const std::string& path);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_FILE_KIND_H_
