// SPDX-License-Identifier: Apache-2.0
//
// MakeApp: the whole command line of `prepost`, with the texts of --help. The command parses with
// it; the manual is made of it (tools/report/manual.h).
#ifndef PREPOST_TOOLS_COMMANDS_APP_H_
#define PREPOST_TOOLS_COMMANDS_APP_H_

#include <memory>

#include "tools/commands/commands.h"

namespace prepost::tools {

/// Parsing sets `*action`, which must outlive it.
std::unique_ptr<CLI::App> MakeApp(Action* action);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_APP_H_
