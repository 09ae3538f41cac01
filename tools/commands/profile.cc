// SPDX-License-Identifier: Apache-2.0
//
// prepost profile: the profiles that are part of the command, to read or to start from.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "planning/files/named_file.h"
#include "planning/files/shipped_files.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct ProfileFlags {
  std::string name;
  std::string output;
};

const ShippedFile* Find(const std::string& name) {
  for (const auto& files : {kShippedProfiles, kShippedDevices}) {
    const auto found = std::ranges::find(files, name, &ShippedFile::name);
    if (found != files.end()) return &*found;
  }
  return nullptr;
}

/// What it says of itself.
std::string About(const ShippedFile& file) {
  const auto json = nlohmann::json::parse(file.text);
  const std::string name = json.at("name");
  return json.contains("cluster") ? fmt::format("{}: {}", name, std::string(json.at("cluster")))
                                  : name;
}

void PrintList(std::ostream& out) {
  const auto print = [&out](const char* title, std::span<const ShippedFile> files) {
    out << title << "\n";
    for (const ShippedFile& file : files)
      out << fmt::format("  {:<12} {}\n", file.name, About(file));
  };
  print("Clusters, for --profile:", kShippedProfiles);
  print("NICs, for --device-profile:", kShippedDevices);
}

Status Run(const ProfileFlags& flags) {
  if (flags.name.empty()) {
    if (!flags.output.empty()) return {StatusCode::kUsage, "-o needs the NAME of a profile"};
    PrintList(std::cout);
    return {};
  }
  const ShippedFile* const file = Find(flags.name);
  if (file == nullptr) {
    return {StatusCode::kUsage,
            fmt::format("no profile '{}' is shipped; known are {} and, of NICs, {}", flags.name,
                        NamesOf(kShippedProfiles), NamesOf(kShippedDevices))};
  }
  const std::string output = flags.output.empty() ? "-" : flags.output;
  return WriteFile(output, [file](std::ostream& out) { out << file->text; });
}

}  // namespace

void AddProfile(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command = app.add_subcommand("profile", "Print a shipped profile, to start from");
  command->footer(
      "Without a NAME all are listed. A profile is a JSON file, in which each value says where it "
      "comes from; simulate takes\n"
      "a changed copy as --profile FILE (docs/simulate.md).\n\n"
      "Examples:\n"
      "  prepost profile\n"
      "  prepost profile fractus -o mine.json\n"
      "  prepost profile tiny");
  command->add_option("NAME", flags->name, "Which");
  command->add_option("-o,--output", flags->output, "Write it there")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
