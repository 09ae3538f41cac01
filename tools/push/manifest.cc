// SPDX-License-Identifier: Apache-2.0
#include "tools/push/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace prepost::tools {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{1} << 62;

Status CheckFile(const PushedFile& file) {
  if (file.name.empty() || file.name == "." || file.name == ".." ||
      file.name.find('/') != std::string::npos || file.name.find('\0') != std::string::npos) {
    return Rejected(fmt::format("'{}' is no file name", file.name));
  }
  if (file.bytes > kFileBytesMax || file.mode > 0777 || file.mtime_ns >= 1'000'000'000)
    return Rejected(fmt::format("size, mode or time of {} is out of range", file.name));
  uint64_t end = 0;
  for (const Extent& extent : file.extents) {
    if (extent.bytes == 0 || extent.offset < end || extent.offset > file.bytes ||
        extent.bytes > file.bytes - extent.offset) {
      return Rejected(fmt::format("the extents of {} overlap or lie outside of it", file.name));
    }
    end = extent.offset + extent.bytes;
  }
  if (file.is_stream && (file.bytes != 0 || !file.extents.empty()))
    return Rejected(fmt::format("{} is a stream and has a size", file.name));
  return {};
}

}  // namespace

uint64_t PushedFile::data_bytes() const {
  return std::accumulate(extents.begin(), extents.end(), uint64_t{0},
                         [](uint64_t all, const Extent& extent) { return all + extent.bytes; });
}

nlohmann::json ToJson(const Manifest& manifest) {
  nlohmann::json files = nlohmann::json::array();
  for (const PushedFile& file : manifest) {
    nlohmann::json extents = nlohmann::json::array();
    for (const Extent& extent : file.extents) extents.push_back({extent.offset, extent.bytes});
    files.push_back({{"name", file.name},
                     {"stream", file.is_stream},
                     {"device", file.is_device},
                     {"bytes", file.bytes},
                     {"mode", file.mode},
                     {"mtime", {file.mtime_s, file.mtime_ns}},
                     {"extents", std::move(extents)},
                     {"sum", file.sum}});
  }
  return files;
}

Result<Manifest> ManifestFromJson(const nlohmann::json& json) {
  Manifest manifest;
  try {
    if (!json.is_array() || json.size() > kPushedFilesMax)
      return Rejected("the list of files is no list, or too long");
    std::set<std::string> names;
    for (const nlohmann::json& entry : json) {
      PushedFile file = {.name = entry.at("name"),
                         .is_stream = entry.at("stream"),
                         .is_device = entry.at("device"),
                         .bytes = entry.at("bytes"),
                         .mode = entry.at("mode"),
                         .mtime_s = entry.at("mtime").at(0),
                         .mtime_ns = entry.at("mtime").at(1),
                         .extents = {},
                         .sum = entry.at("sum")};
      for (const nlohmann::json& extent : entry.at("extents"))
        file.extents.push_back({.offset = extent.at(0), .bytes = extent.at(1)});
      PREPOST_RETURN_IF_ERROR(CheckFile(file));
      if (!names.insert(file.name).second)
        return Rejected(fmt::format("{} stands twice in the list of files", file.name));
      manifest.push_back(std::move(file));
    }
  } catch (const nlohmann::json::exception& error) {
    return Rejected(fmt::format("the list of files is wrong: {}", error.what()));
  }
  const auto is_stream = [](const PushedFile& file) { return file.is_stream; };
  if (manifest.size() > 1 && std::ranges::any_of(manifest, is_stream))
    return Rejected("a stream is not the only file");
  return manifest;
}

}  // namespace prepost::tools
