// SPDX-License-Identifier: Apache-2.0
#include "planning/files/shipped_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "ir/base/near_name.h"
#include "ir/base/utf8.h"

namespace prepost {
namespace {

std::vector<std::string> ListOf(std::span<const ShippedFile> files) {
  std::vector<std::string> names;
  for (const ShippedFile& it : files) names.emplace_back(it.name);
  return names;
}

}  // namespace

std::string NamesOf(std::span<const ShippedFile> files) {
  return fmt::to_string(fmt::join(ListOf(files), ", "));
}

Result<std::optional<std::string_view>> ShippedText(std::span<const ShippedFile> files,
                                                    const std::string& path, std::string_view flag,
                                                    std::string_view kind) {
  using Text = std::optional<std::string_view>;
  std::error_code unknown;  // a path whose stat fails cannot be opened either
  const std::filesystem::file_status status = std::filesystem::status(path, unknown);
  const bool is_file = std::filesystem::exists(status) && !std::filesystem::is_directory(status);
  if (path == "-" || path.find_first_of("./") != std::string::npos || is_file) return Text();
  const auto found = std::ranges::find(files, path, &ShippedFile::name);
  if (found != files.end()) return Text(found->text);
  return Status(
      StatusCode::kUsage,
      fmt::format("{}: '{}' is neither a file nor a {}{}; shipped are {}", flag, Printable(path),
                  kind, DidYouMean(path, ListOf(files)), NamesOf(files)));
}

}  // namespace prepost
