// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/message_sum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/file_descriptor.h"

namespace prepost {
namespace {

constexpr size_t kMemoryStepBytes = size_t{16} << 20;  ///< between checkpoints: a few milliseconds
constexpr size_t kFileStepBytes = size_t{1} << 20;

class SumState {
 public:
  SumState() : state_(XXH3_createState(), &XXH3_freeState) {
    PREPOST_CHECK(state_ != nullptr);
    XXH3_128bits_reset(state_.get());
  }
  void Add(std::span<const std::byte> memory) {
    XXH3_128bits_update(state_.get(), memory.data(), memory.size());
  }
  MessageSum Get() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {.high = hash.high64, .low = hash.low64};
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace

std::string MessageSum::ToString() const { return fmt::format("{:016x}{:016x}", high, low); }

Result<MessageSum> SumMemory(std::span<const std::byte> memory, const Checkpoint& checkpoint) {
  SumState sum;
  while (!memory.empty()) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    const size_t step = std::min(memory.size(), kMemoryStepBytes);
    sum.Add(memory.first(step));
    memory = memory.subspan(step);
  }
  return sum.Get();
}

Result<MessageSum> SumFile(int fd, uint64_t bytes, const std::string& name,
                           const Checkpoint& checkpoint) {
  SumState sum;
  std::vector<std::byte> buffer(std::min<uint64_t>(bytes, kFileStepBytes));
  for (uint64_t offset = 0; offset < bytes;) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    const auto step = std::span(buffer).first(std::min<uint64_t>(bytes - offset, buffer.size()));
    PREPOST_RETURN_IF_ERROR(ReadExactly(fd, offset, step, name));
    sum.Add(step);
    offset += step.size();
  }
  return sum.Get();
}

}  // namespace prepost
