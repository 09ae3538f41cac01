// SPDX-License-Identifier: Apache-2.0
//
// Writes the manual of the command into a folder: man1/ and bash-completion/. Run by the build.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "tools/commands/app.h"
#include "tools/report/manual.h"

namespace {

namespace fs = std::filesystem;

bool Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::cerr << path.string() << ": cannot write\n";
  return out.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: prepost_manual FOLDER\n";
    return 2;
  }
  const fs::path folder = argv[1];
  prepost::tools::Action action;
  const auto app = prepost::tools::MakeApp(&action);
  bool is_written =
      Write(folder / "man1" / (app->get_name() + ".1"), prepost::tools::ManPageOf(*app)) &&
      Write(folder / "bash-completion" / app->get_name(), prepost::tools::BashCompletionOf(*app));
  for (const CLI::App* command : app->get_subcommands({})) {
    is_written &= Write(folder / "man1" / (app->get_name() + "-" + command->get_name() + ".1"),
                        prepost::tools::ManPageOf(*app, *command));
  }
  return is_written ? 0 : 1;
}
