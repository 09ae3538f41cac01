// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace prepost {
namespace {

/// As a shell reads it as one word.
std::string Quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string LongName(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : "--" + option.get_lnames().front();
}

}  // namespace

CommandLine CommandLine::Of(const CLI::App& command) {
  CommandLine line;
  line.subcommand_ = command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    const bool is_switch = option->get_items_expected_max() == 0;
    for (const std::string& value : option->results()) {
      line.flags_.push_back({LongName(*option), is_switch ? "" : value, is_switch});
    }
  }
  return line;
}

void CommandLine::Remove(const std::string& flag) {
  std::erase_if(flags_, [&](const Flag& it) { return it.name == flag; });
}

std::vector<std::string> CommandLine::ValuesOf(const std::string& flag) const {
  std::vector<std::string> values;
  for (const Flag& it : flags_) {
    if (it.name == flag && !it.is_switch) values.push_back(it.value);
  }
  return values;
}

bool CommandLine::Has(const std::string& flag) const {
  return std::ranges::find(flags_, flag, &Flag::name) != flags_.end();
}

void CommandLine::Set(const std::string& flag, const std::string& value) {
  Remove(flag);
  Add(flag, value);
}

void CommandLine::Add(const std::string& flag, const std::string& value) {
  flags_.push_back({flag, value, /*is_switch=*/false});
}

std::string CommandLine::Text() const {
  std::string line = "prepost " + subcommand_;
  for (const Flag& flag : flags_) {
    if (!flag.name.empty()) line += " " + flag.name;
    if (!flag.is_switch) line += " " + Quoted(flag.value);
  }
  return line;
}

std::vector<std::string> FlagsWithValues(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() != 0 && !LongName(*option).empty())
      names.push_back(LongName(*option));
  }
  return names;
}

Status SetFlag(CLI::App& command, const std::string& flag, const std::string& value) {
  CLI::Option* option = command.get_option(flag);
  option->clear();
  try {
    option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    return {StatusCode::kUsage, error.what()};
  }
  return {};
}

}  // namespace prepost
