// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `prepost`: how they register and how they end. Results go to stdout,
// everything else to stderr. One thin file per subcommand; what it does lives in the libraries.
#ifndef PREPOST_TOOLS_COMMANDS_COMMANDS_H_
#define PREPOST_TOOLS_COMMANDS_COMMANDS_H_

#include <functional>

#include "ir/base/status.h"
#include "planning/flags/values.h"

namespace prepost::tools {

/// What a subcommand does once its flags are parsed. The Status becomes one line on stderr and the
/// exit code.
using Action = std::function<Status()>;

// Each adds one subcommand to `app` and sets `*action` when it is the one chosen (in its CLI
// callback).
void AddCalibrate(CLI::App& app, Action* action);
void AddChoose(CLI::App& app, Action* action);
void AddCompare(CLI::App& app, Action* action);
void AddCompile(CLI::App& app, Action* action);
void AddDevices(CLI::App& app, Action* action);
void AddDiff(CLI::App& app, Action* action);
void AddDraw(CLI::App& app, Action* action);
void AddExplain(CLI::App& app, Action* action);
void AddExport(CLI::App& app, Action* action);
void AddImport(CLI::App& app, Action* action);
void AddLower(CLI::App& app, Action* action);
void AddNode(CLI::App& app, Action* action);
void AddProbe(CLI::App& app, Action* action);
void AddProfile(CLI::App& app, Action* action);
void AddPush(CLI::App& app, Action* action);
void AddReceive(CLI::App& app, Action* action);
void AddRun(CLI::App& app, Action* action);
void AddSimulate(CLI::App& app, Action* action);
void AddStats(CLI::App& app, Action* action);
void AddTopology(CLI::App& app, Action* action);
void AddUnroll(CLI::App& app, Action* action);
void AddVerify(CLI::App& app, Action* action);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_COMMANDS_H_
