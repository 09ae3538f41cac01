// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/given_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace prepost::tools {
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

GivenFlags GivenFlags::Of(const CLI::App& command) {
  GivenFlags given;
  given.subcommand_ = command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    const bool is_switch = option->get_items_expected_max() == 0;
    for (const std::string& value : option->results()) {
      given.flags_.push_back({LongName(*option), is_switch ? "" : value, is_switch});
    }
  }
  return given;
}

void GivenFlags::Remove(const std::string& flag) {
  std::erase_if(flags_, [&](const Flag& it) { return it.name == flag; });
}

std::vector<std::string> GivenFlags::ValuesOf(const std::string& flag) const {
  std::vector<std::string> values;
  for (const Flag& it : flags_) {
    if (it.name == flag && !it.is_switch) values.push_back(it.value);
  }
  return values;
}

void GivenFlags::Set(const std::string& flag, const std::string& value) {
  Remove(flag);
  Add(flag, value);
}

void GivenFlags::Add(const std::string& flag, const std::string& value) {
  flags_.push_back({flag, value, /*is_switch=*/false});
}

std::vector<std::string> GivenFlags::ForParsing() const {
  std::vector<std::string> words;
  for (const Flag& flag : flags_) {
    if (flag.name.empty()) {
      words.push_back(flag.value);
    } else {
      words.push_back(flag.is_switch ? flag.name : flag.name + "=" + flag.value);
    }
  }
  std::ranges::reverse(words);
  return words;
}

std::string GivenFlags::CommandLine() const {
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

std::vector<std::string> ExcludedBy(const CLI::App& command, const std::string& flag) {
  std::vector<std::string> names;
  for (const CLI::Option* other : command.get_option(flag)->get_excludes())
    names.push_back(LongName(*other));
  return names;
}

}  // namespace prepost::tools
