// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ir/base/count.h"
#include "runtime/base/file_descriptor.h"

namespace prepost {
namespace {

/// Between checkpoints while memory is touched.
constexpr uint64_t kTouchStepBytes = uint64_t{64} << 20;

}  // namespace

Result<Mapping> Mapping::Map(uint64_t bytes, int protection, int flags, int fd) {
  if (bytes == 0) return Mapping();
  void* const memory = mmap(nullptr, bytes, protection, flags, fd, 0);
  if (memory == MAP_FAILED) {
    return SystemError(StatusCode::kEnvironment, fmt::format("cannot map {}", Count(bytes, "byte")),
                       errno);
  }
  return Mapping(std::span(static_cast<std::byte*>(memory), bytes));
}

Result<Mapping> Mapping::Anonymous(uint64_t bytes) {
  return Map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

Result<Mapping> Mapping::Reserved(uint64_t bytes) {
  return Map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

Result<Mapping> Mapping::Shared(uint64_t bytes) {
  return Map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

Result<Mapping> Mapping::OfFile(int fd, uint64_t bytes, Access access) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  return Map(bytes, protection, MAP_SHARED, fd);
}

Status Mapping::Touch(Access access, const Checkpoint& checkpoint) const {
  const int advice = access == Access::kRead ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  for (uint64_t offset = 0; offset < bytes_.size(); offset += kTouchStepBytes) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    const auto step = bytes_.subspan(offset, std::min(bytes_.size() - offset, kTouchStepBytes));
    if (madvise(step.data(), step.size(), advice) != 0) {
      return SystemError(StatusCode::kEnvironment,
                         fmt::format("cannot have {} in memory", Count(bytes_.size(), "byte")),
                         errno);
    }
  }
  return {};
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace prepost
