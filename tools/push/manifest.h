// SPDX-License-Identifier: Apache-2.0
//
// Manifest: what is pushed, as the receivers hear of it before it comes: each file's name, size,
// mode, time, and where it has data. What is sent is the data of all files, one after the other,
// without their holes.
#ifndef PREPOST_TOOLS_PUSH_MANIFEST_H_
#define PREPOST_TOOLS_PUSH_MANIFEST_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/files/message_sum.h"

namespace prepost::tools {

using Extent = FileExtent;

struct PushedFile {
  std::string name;        ///< without folders
  bool is_stream = false;  ///< the size is known when it has come: of a pipe. The only file then
  bool is_device = false;  ///< the time is that of its node, and says nothing of its bytes
  uint64_t bytes = 0;
  uint32_t mode = 0;            ///< permissions, at most 0777
  int64_t mtime_s = 0;          ///< since 1970
  uint32_t mtime_ns = 0;        ///< of that second
  std::vector<Extent> extents;  ///< in order, not empty, apart from each other, within `bytes`
  std::string sum;              ///< as of RunningSum, if files are compared by it; else ""

  uint64_t data_bytes() const;
  bool has_holes() const { return HasHoles(bytes, extents); }
  friend bool operator==(const PushedFile&, const PushedFile&) = default;
};

using Manifest = std::vector<PushedFile>;

inline constexpr size_t kPushedFilesMax = 1'000'000;

nlohmann::json ToJson(const Manifest& manifest);
/// Errors (kRejected): what is no manifest that ToJson() makes.
Result<Manifest> ManifestFromJson(const nlohmann::json& json);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_MANIFEST_H_
