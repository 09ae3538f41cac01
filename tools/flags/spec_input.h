// SPDX-License-Identifier: Apache-2.0
//
// SpecInput: what a subcommand that takes a SPEC makes a spec of: the file, flags over it, and the
// size of the message.
#ifndef PREPOST_TOOLS_FLAGS_SPEC_INPUT_H_
#define PREPOST_TOOLS_FLAGS_SPEC_INPUT_H_

#include <string>

#include "compiler/spec.h"
#include "ir/status.h"
#include "tools/flags/cli_forward.h"
#include "tools/flags/message_size.h"
#include "tools/flags/spec_flags.h"

namespace prepost::tools {

struct SpecInput {
  std::string path;
  SpecFlags flags;
  MessageSize size;

  /// SPEC, the flags, --message-bytes and --message. `takes_any`: of MessageSize.
  void AddTo(CLI::App& command, bool takes_any);
  /// Checked, and chosen for. Needs !size.is_any(). Errors: as of SpecFlags::ToSpec(), and of the
  /// size.
  Result<Spec> ToSpec() const;
  /// Over `defaults`, not yet checked or chosen for. The same.
  Result<Spec> Read(const Spec& defaults) const;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SPEC_INPUT_H_
