// SPDX-License-Identifier: Apache-2.0
//
// The manual: man pages and the completion of bash, made of the texts of --help, at build time
// (tools/manual_main.cc).
#ifndef PREPOST_TOOLS_REPORT_MANUAL_H_
#define PREPOST_TOOLS_REPORT_MANUAL_H_

#include <string>

namespace CLI {
class App;
}

namespace prepost::tools {

/// The source of prepost(1): what the command is, and its subcommands.
std::string ManPageOf(const CLI::App& app);
/// The source of prepost-NAME(1), of a subcommand of `app`. A line of its footer that says
/// "Examples:" begins these.
std::string ManPageOf(const CLI::App& app, const CLI::App& command);

/// A file for /usr/share/bash-completion/completions: subcommands, their flags, and files.
std::string BashCompletionOf(const CLI::App& app);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_MANUAL_H_
