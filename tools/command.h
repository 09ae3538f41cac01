// SPDX-License-Identifier: Apache-2.0
//
// What the subcommands of `prepost` share: how they register, how they end, and how they read and
// write files. Results go to stdout, everything else to stderr. One thin file per subcommand; what
// it does lives in the libraries.
#ifndef PREPOST_TOOLS_COMMAND_H_
#define PREPOST_TOOLS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prepost/ir/near_name.h"
#include "prepost/ir/plan.h"
#include "prepost/ir/rolled_plan.h"
#include "prepost/ir/status.h"
#include "tools/cli_forward.h"

namespace prepost::tools {

/// What a subcommand does once its flags are parsed. The Status becomes one line on stderr and the
/// exit code.
using Action = std::function<Status()>;

// Each adds one subcommand to `app` and sets `*action` when it is the one chosen (in its CLI
// callback).
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
void AddStats(CLI::App& app, Action* action);
void AddTopology(CLI::App& app, Action* action);
void AddUnroll(CLI::App& app, Action* action);
void AddVerify(CLI::App& app, Action* action);

/// Opens `path` ("-": stdin) and calls `read` with the stream and the name to use in messages.
Status WithInput(const std::string& path,
                 const std::function<Status(std::istream&, const std::string&)>& read);

/// As WithInput(), for a look at how a file begins: of stdin and pipes, whose bytes come only once,
/// nothing is taken, and only so much is shown as ReplayBuffer keeps.
Status WithPreview(const std::string& path,
                   const std::function<Status(std::istream&, const std::string&)>& read);

/// Reads all of `path` ("-": stdin), at most `bytes_max`, and calls `read` with it and the name to
/// use in messages.
Status WithText(const std::string& path, size_t bytes_max,
                const std::function<Status(const std::string& text, const std::string&)>& read);

/// "prepost: `text`", a line on stderr. Texts quote files and arguments, so it is Printable().
void PrintMessage(const std::string& text);
/// The same, of what is no error: "prepost: note: `text`".
void PrintNote(const std::string& text);
/// What was read of `name` and is only warned of, to stderr: the first few of a kind, and how many
/// more there are.
void PrintWarnings(const std::string& name, const std::vector<std::string>& warnings);

/// Reads a plan ("-": stdin), prints warnings to stderr; does not verify it.
Result<Plan> ReadPlanFile(const std::string& path);
/// Reads a rolled plan; the same.
Result<RolledPlan> ReadRolledPlanFile(const std::string& path);
/// Reads a plan and verifies it; the Status holds the first finding and how many more there are.
Result<Plan> LoadPlan(const std::string& path);

/// What a signal that comes while a file is written does: nothing is left of the file, or it comes
/// too late; for that the caller holds signals (InterruptSignals).
enum class OnInterrupt : uint8_t { kLeaveNothing, kFinish };

/// Writes what `write` gives to `path` ("-": stdout) through a temporary name in the same folder
/// that is renamed when complete, so that a failure or an interruption (kInterrupted) leaves
/// nothing behind and an old file untouched. A link stays a link.
Status WriteFile(const std::string& path, const std::function<void(std::ostream&)>& write,
                 OnInterrupt on_interrupt = OnInterrupt::kLeaveNothing);

/// Whether WriteFile() to `path` can begin: for commands whose results take long to make. Leaves
/// nothing behind. To be called while no signals are held.
Status CheckWritable(const std::string& path);

/// Ok if `word`, the value of `flag`, is one of `words`; else kUsage, with the near one.
Status CheckWord(const char* flag, const std::string& word, const std::vector<std::string>& words);

/// What follows the last '.' of the file's name; empty where there is none.
std::string SuffixOf(const std::string& path);

/// "65536", "64KiB", "1MiB", "1GB", ...: bytes. Errors: kUsage.
Result<uint64_t> ParseSize(const std::string& text);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMAND_H_
