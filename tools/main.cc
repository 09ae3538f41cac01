// SPDX-License-Identifier: Apache-2.0
//
// The `prepost` command: picks the subcommand, turns its Status into one line on stderr and an exit
// code.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "ir/near_name.h"
#include "ir/version.h"
#include "tools/flags/command.h"
#include "tools/flags/message.h"

namespace prepost::tools {
namespace {

constexpr void (*kCommands[])(CLI::App&, Action*) = {
    AddCompile,  AddChoose, AddUnroll, AddVerify,  AddStats,   AddExplain,  AddDiff,
    AddDraw,     AddLower,  AddRun,    AddNode,    AddCompare, AddSimulate, AddCalibrate,
    AddTopology, AddExport, AddImport, AddDevices, AddProbe};

int Fail(const Status& status) {
  PrintFailure(status);
  return static_cast<int>(status.code());
}

std::vector<std::string> NamesOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

/// How CLI11 tells of a flag that stands more than once, between its name and how often.
constexpr std::string_view kTooMany = "At Most 1 required but received ";

/// A usage error in one line, with the near name where a subcommand or flag is unknown.
Status UsageError(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string message = error.what();
  const auto chosen = app.get_subcommands();
  if (argc > 1 && chosen.empty() && argv[1][0] != '-') {
    message = fmt::format("unknown subcommand '{}'{}", argv[1], DidYouMean(argv[1], NamesOf(app)));
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const CLI::App& command = chosen.empty() ? app : *chosen.front();
    const std::vector<std::string> extras = command.remaining(/*recurse=*/true);
    const std::string first =
        extras.empty() ? "" : extras.front().substr(0, extras.front().find('='));
    const std::string name = first.substr(std::min(first.find_first_not_of('-'), first.size()));
    message = first.starts_with("-")
                  ? fmt::format("unknown flag '{}'{}", first, DidYouMean(name, FlagsOf(command)))
                  : fmt::format("unexpected argument '{}'", first);
  } else if (const size_t many = message.find(kTooMany); many != std::string::npos) {
    message = fmt::format("{}given {} times, expected once", message.substr(0, many),
                          message.substr(many + kTooMany.size()));
  }
  return {StatusCode::kUsage, message + " (see --help)"};
}

/// Of an interrupt while nobody holds it (interrupt.h): nothing that needs putting away has been
/// made.
extern "C" void EndInterrupted(int) {
  constexpr std::string_view kText = "prepost: interrupted\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(static_cast<int>(StatusCode::kInterrupted));
}

void ExitWhenInterrupted() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Whoever starts this in the background, or under nohup, may have it ignored.
    if (std::signal(signal, EndInterrupted) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

int Main(int argc, char** argv) {
  ExitWhenInterrupted();
  CLI::App app(
      "Prepost compiles a multicast ahead of the transfer into one partially ordered program of "
      "sends and receives per "
      "node,\nproves it correct, draws it, and runs it from CPUs or preposted to a NIC.",
      "prepost");
  app.set_version_flag("--version", fmt::format("prepost {}", kVersion));
  app.require_subcommand(1);
  app.footer(
      "'prepost COMMAND --help' tells more, with examples. Exit codes: 0 done, 1 rejected input or "
      "failed check, "
      "2 usage,\n3 missing environment, 130 interrupted.");
  std::signal(
      SIGXFSZ,
      SIG_IGN);  // a file that may not grow is an error of the write, not the end of the process
  Action action;
  for (const auto add : kCommands) add(app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return Fail(UsageError(app, error, argc, argv));
  }
  Status status = action();
  std::cout.flush();
  if (status.ok() && !std::cout)
    status = Rejected("cannot write: the output is full or closed", "<stdout>");
  return status.ok() ? 0 : Fail(status);
}

}  // namespace
}  // namespace prepost::tools

int main(int argc, char** argv) {
  try {
    return prepost::tools::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "prepost: out of memory\n";
    return static_cast<int>(prepost::StatusCode::kEnvironment);
  } catch (const std::exception& error) {
    prepost::tools::PrintMessage(std::string("internal error: ") + error.what());
    return static_cast<int>(prepost::StatusCode::kRejected);
  }
}
