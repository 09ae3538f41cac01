// SPDX-License-Identifier: Apache-2.0
//
// prepost draw -o FILE.html: a page of a plan, of its run, and of what is put beside it.
#ifndef PREPOST_TOOLS_COMMANDS_DRAW_PAGE_H_
#define PREPOST_TOOLS_COMMANDS_DRAW_PAGE_H_

#include <string>

#include "ir/base/status.h"
#include "ir/verify/verify.h"
#include "tools/commands/draw_flags.h"

namespace prepost::tools {

/// The page as text. `plan` is that of `flags.path`; all other files are loaded here.
Result<std::string> DrawPage(const DrawFlags& flags, const VerifiedPlan& plan);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_DRAW_PAGE_H_
