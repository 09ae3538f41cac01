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
#include <memory>
#include <string>
#include <string_view>

#include "ir/base/near_name.h"
#include "planning/text/messages.h"
#include "tools/commands/app.h"

namespace prepost::tools {
namespace {

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

/// The words of the command line. `help`, `help COMMAND` and `version` are other ways to write
/// --help and --version.
std::vector<std::string> WordsOf(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) return words;
  if (words.front() == "version") words.front() = "--version";
  if (words.front() != "help") return words;
  if (words.size() == 1 || words[1] == "help" || words[1] == "version") return {"--help"};
  return {words[1], "--help"};
}

/// An error (kUsage) where the value of a flag of `command` is missing and the next flag would be
/// taken for it, or nothing comes. `words` begin with the subcommand. A value that begins with two
/// dashes can be written as --flag=--value.
Status CheckValues(const CLI::App& command, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (!words[i].starts_with("-")) continue;
    const bool is_empty = words[i].starts_with("--") && words[i].ends_with("=");
    const std::string name = words[i].substr(0, words[i].size() - (is_empty ? 1 : 0));
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr || option->get_items_expected_max() == 0) continue;
    if (is_empty || i + 1 == words.size())
      return {StatusCode::kUsage, name + ": expected a value (see --help)"};
    const std::string value = words[i + 1].substr(0, words[i + 1].find('='));
    const bool is_flag = value.starts_with("--") ||
                         (value.starts_with("-") && command.get_option_no_throw(value) != nullptr);
    if (is_flag) {
      return {StatusCode::kUsage, fmt::format("{}: expected a value, found the flag '{}' "
                                              "(see --help)",
                                              name, value)};
    }
    ++i;  // behind the value
  }
  return {};
}

/// What of the command line no subcommand, flag or argument takes.
std::string Unexpected(const CLI::App& command, const std::string& extra) {
  const std::string name = extra.substr(0, extra.find('='));
  if (!name.starts_with("-")) return fmt::format("unexpected argument '{}'", extra);
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  return fmt::format("unknown flag '{}'{}", name,
                     DidYouMean(bare, FlagsOf(command), /*before=*/"--"));
}

/// How CLI11 reports a flag that stands more than once, between its name and how often.
constexpr std::string_view kTooMany = "At Most 1 required but received ";

/// A usage error in one line, with the near name where a subcommand or flag is unknown.
Status UsageError(const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& words) {
  std::string message = error.what();
  const auto chosen = app.get_subcommands();
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  const bool is_required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!words.empty() && chosen.empty() && !words.front().starts_with("-")) {
    message = fmt::format("unknown subcommand '{}'{}", words.front(),
                          DidYouMean(words.front(), NamesOf(app)));
  } else if (!extras.empty() &&
             (is_required || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)) {
    const CLI::App& command = chosen.empty() ? app : *chosen.front();
    const auto flag =
        std::ranges::find_if(extras, [](const std::string& it) { return it.starts_with("-"); });
    message = Unexpected(command, flag == extras.end() ? extras.front() : *flag) +
              (is_required ? "; " + message : "");
  } else if (const size_t many = message.find(kTooMany); many != std::string::npos) {
    message = fmt::format("{}given {} times, expected once", message.substr(0, many),
                          message.substr(many + kTooMany.size()));
  }
  return {StatusCode::kUsage, message + " (see --help)"};
}

/// Handles an interrupt while nobody holds it (interrupt.h): nothing that needs removal has been
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

/// `status`, or that its output could not be written.
Status Flushed(Status status) {
  std::cout.flush();
  if (!status.ok() || std::cout) return status;
  return Rejected("cannot write: the output is full or closed", "<stdout>");
}

int Main(int argc, char** argv) {
  ExitWhenInterrupted();
  std::signal(
      SIGXFSZ,
      SIG_IGN);  // a file that may not grow is an error of the write, not the end of the process
  Action action;
  const std::unique_ptr<CLI::App> made = MakeApp(&action);
  CLI::App& app = *made;
  const std::vector<std::string> words = WordsOf(argc, argv);
  for (const CLI::App* command : app.get_subcommands({})) {
    if (words.empty() || command->get_name() != words.front()) continue;
    if (const Status status = CheckValues(*command, words); !status.ok()) return Fail(status);
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp& help) {
    if (app.get_subcommands().empty() && !words.front().starts_with("-"))
      return Fail(UsageError(app, help, words));
    app.exit(help);
    const Status status = Flushed({});
    return status.ok() ? 0 : Fail(status);
  } catch (const CLI::CallForVersion& version) {
    app.exit(version);
    const Status status = Flushed({});
    return status.ok() ? 0 : Fail(status);
  } catch (const CLI::ParseError& error) {
    return Fail(UsageError(app, error, words));
  }
  const Status status = Flushed(action());
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
    prepost::PrintMessage(std::string("internal error: ") + error.what());
    return static_cast<int>(prepost::StatusCode::kRejected);
  }
}
