// SPDX-License-Identifier: Apache-2.0
//
// GivenFlags: the flags and arguments with which a subcommand was called, in the order of its
// --help. With some of them replaced it can be parsed again: so every row of a sweep is what that
// command alone would print, and can say it.
#ifndef PREPOST_TOOLS_FLAGS_GIVEN_FLAGS_H_
#define PREPOST_TOOLS_FLAGS_GIVEN_FLAGS_H_

#include <string>
#include <vector>

#include "tools/flags/cli_forward.h"

namespace prepost::tools {

class GivenFlags {
 public:
  /// After parsing. Defaults are not there.
  static GivenFlags Of(const CLI::App& command);

  /// Takes `flag` ("--nodes") away.
  void Remove(const std::string& flag);
  /// Those of `flag`; of "", the arguments that stand in their places.
  std::vector<std::string> ValuesOf(const std::string& flag) const;
  /// In place of any that is there.
  void Set(const std::string& flag, const std::string& value);
  /// Besides those that are there.
  void Add(const std::string& flag, const std::string& value);

  /// For CLI::App::parse(), which takes them from the back.
  std::vector<std::string> ForParsing() const;
  /// As a shell takes it: "prepost NAME ...".
  std::string CommandLine() const;

 private:
  struct Flag {
    std::string name;   ///< empty: an argument in its place
    std::string value;  ///< empty: a switch
    bool is_switch = false;
  };

  std::string subcommand_;
  std::vector<Flag> flags_;
};

/// The long names ("--nodes") of the flags of `command` that take a value.
std::vector<std::string> FlagsWithValues(const CLI::App& command);
/// Those that must not stand beside `flag`.
std::vector<std::string> ExcludedBy(const CLI::App& command, const std::string& flag);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_GIVEN_FLAGS_H_
