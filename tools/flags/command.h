// SPDX-License-Identifier: Apache-2.0
//
// What the subcommands of `prepost` share: how they register, how they end, and how their values
// are read. Results go to stdout, everything else to stderr. One thin file per subcommand; what it
// does lives in the libraries.
#ifndef PREPOST_TOOLS_FLAGS_COMMAND_H_
#define PREPOST_TOOLS_FLAGS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/status.h"
#include "tools/flags/cli_forward.h"

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
void AddRun(CLI::App& app, Action* action);
void AddSimulate(CLI::App& app, Action* action);
void AddStats(CLI::App& app, Action* action);
void AddTopology(CLI::App& app, Action* action);
void AddUnroll(CLI::App& app, Action* action);
void AddVerify(CLI::App& app, Action* action);

/// Ok if `word`, the value of `flag`, is one of `words`; else kUsage, with the near one.
Status CheckWord(const char* flag, const std::string& word, const std::vector<std::string>& words);

/// "65536", "64KiB", "1MiB", "1GB", ...: bytes. Errors: kUsage.
Result<uint64_t> ParseSize(const std::string& text);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_COMMAND_H_
