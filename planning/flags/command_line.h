// SPDX-License-Identifier: Apache-2.0
//
// CommandLine: the flags and arguments with which a subcommand was called, in the order of its
// --help, as text: so every row of a sweep can say by which command alone its figures are printed.
#ifndef PREPOST_PLANNING_FLAGS_COMMAND_LINE_H_
#define PREPOST_PLANNING_FLAGS_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "ir/base/status.h"
#include "planning/flags/values.h"

namespace prepost {

class CommandLine {
 public:
  /// After parsing. Defaults are not there.
  static CommandLine Of(const CLI::App& command);

  /// Takes `flag` ("--nodes") away.
  void Remove(const std::string& flag);
  /// Those of `flag`; of "", the arguments that stand in their places.
  std::vector<std::string> ValuesOf(const std::string& flag) const;
  bool Has(const std::string& flag) const;
  /// In place of any that is there.
  void Set(const std::string& flag, const std::string& value);
  /// Besides those that are there.
  void Add(const std::string& flag, const std::string& value);

  /// As a shell takes it: "prepost NAME ...".
  std::string Text() const;

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
/// Parses `value` as that of `flag`, checks its range, and sets what `command` has it set. Errors:
/// kUsage.
Status SetFlag(CLI::App& command, const std::string& flag, const std::string& value);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_COMMAND_LINE_H_
