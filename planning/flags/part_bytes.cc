// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/part_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "compiler/part_rows.h"
#include "ir/base/utf8.h"
#include "ir/plan.h"
#include "planning/files/named_file.h"
#include "planning/flags/values.h"

namespace prepost {
namespace {

/// Of 2^24 sizes, which a plan can have, of up to 19 digits each.
constexpr size_t kPartsFileBytesMax = size_t{512} << 20;

constexpr std::string_view kBetween = ", \t\r";
constexpr std::string_view kRowEnds = "\n;[]";
constexpr std::string_view kWordEnds =
    ", \t\r\n;[]";  ///< all of them, so that each word is read once

}  // namespace

Result<std::vector<uint64_t>> ParsePartBytes(const std::string& text, const std::string& name) {
  PartRows rows;
  size_t line = 1, count = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (kBetween.find(c) != std::string_view::npos) {
      ++at;
      continue;
    }
    if (kRowEnds.find(c) != std::string_view::npos) {
      rows.EndRow(line);
      if (c == '\n') ++line;
      ++at;
      continue;
    }
    const size_t end = std::min(text.find_first_of(kWordEnds, at), text.size());
    const std::string word = text.substr(at, std::min(end - at, kWordBytesShownMax));
    const auto where = [&] { return fmt::format("{}:{}", name, line); };
    if (word.size() < end - at)
      return Rejected(fmt::format("'{}...' is no size", Printable(word)), where());
    const Result<uint64_t> bytes = ParseSize(word);
    if (!bytes.ok()) return Rejected(Printable(bytes.status().message()), where());
    if (*bytes > kMessageBytesMax) {
      return Rejected(
          fmt::format("part of {} bytes is above the limit of {}", *bytes, kMessageBytesMax),
          where());
    }
    if (const Status status = rows.Add(*bytes); !status.ok())
      return Rejected(status.message(), where());
    ++count;
    at = end;
  }
  if (count == 0) return Rejected("expected a size for each part, found none", name);
  rows.EndRow(line);
  Result<std::vector<uint64_t>> sizes = rows.Take();
  if (!sizes.ok())
    return Rejected(sizes.status().message(), fmt::format("{}:{}", name, sizes.status().where()));
  return sizes;
}

Result<std::vector<uint64_t>> LoadPartBytes(const std::string& given) {
  constexpr const char* kFlag = "--part-bytes";
  std::error_code unknown;
  if (given != "-" && !std::filesystem::exists(given, unknown)) {
    Result<std::vector<uint64_t>> sizes = ParsePartBytes(given, kFlag);
    if (sizes.ok()) return sizes;
    const bool is_list = !given.empty() && std::string_view("[0123456789").find(given.front()) !=
                                               std::string_view::npos;
    if (is_list) {
      return Status(StatusCode::kUsage, fmt::format("{}: {}", kFlag, sizes.status().message()));
    }
    return Status(StatusCode::kUsage,
                  fmt::format("{}: '{}' is no list of sizes such as 4KiB,0,7, and there is no "
                              "such file",
                              kFlag, Printable(given.substr(0, kWordBytesShownMax))));
  }
  std::vector<uint64_t> sizes;
  const auto parse = [&](const std::string& text, const std::string& name) -> Status {
    Result<std::vector<uint64_t>> read = ParsePartBytes(text, name);
    if (!read.ok()) return read.status();
    sizes = *std::move(read);
    return {};
  };
  PREPOST_RETURN_IF_ERROR(WithText(given, kPartsFileBytesMax, parse));
  return sizes;
}

}  // namespace prepost
