// SPDX-License-Identifier: Apache-2.0
#include "tools/push/file_extents.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "runtime/base/file_descriptor.h"

namespace prepost::tools {
namespace {

constexpr size_t kExtentStepBytes = size_t{1} << 20;  ///< between checkpoints

}  // namespace

std::optional<FileExtent> NextData(int file, uint64_t begin, uint64_t end) {
  if (begin >= end) return std::nullopt;
  const off_t data = lseek(file, static_cast<off_t>(begin), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return std::nullopt;
  if (data < 0) return FileExtent{.offset = begin, .bytes = end - begin};
  const off_t hole = lseek(file, data, SEEK_HOLE);
  const auto data_begin = static_cast<uint64_t>(data);
  // A file that is changed meanwhile may have a hole there now.
  const uint64_t data_end = hole <= data ? end : std::min(static_cast<uint64_t>(hole), end);
  if (data_begin >= end) return std::nullopt;
  return FileExtent{.offset = data_begin, .bytes = data_end - data_begin};
}

Result<std::vector<FileExtent>> ExtentsOf(int file, uint64_t bytes, size_t extents_max,
                                          const Checkpoint& checkpoint) {
  std::vector<FileExtent> extents;
  for (uint64_t offset = 0; std::optional<FileExtent> data = NextData(file, offset, bytes);) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    if (extents.size() + 1 == extents_max) data->bytes = bytes - data->offset;
    offset = data->offset + data->bytes;
    extents.push_back(*data);
  }
  return extents;
}

Result<bool> AreZeros(int file, uint64_t begin, uint64_t end, const std::string& name,
                      const Checkpoint& checkpoint) {
  std::vector<std::byte> buffer;
  while (const std::optional<FileExtent> data = NextData(file, begin, end)) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    buffer.resize(kExtentStepBytes);
    const auto step = std::span(buffer).first(std::min<uint64_t>(data->bytes, buffer.size()));
    PREPOST_RETURN_IF_ERROR(ReadExactly(file, data->offset, step, name));
    if (std::ranges::any_of(step, [](std::byte byte) { return byte != std::byte{0}; }))
      return false;
    begin = data->offset + step.size();
  }
  return true;
}

}  // namespace prepost::tools
