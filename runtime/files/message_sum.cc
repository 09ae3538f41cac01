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

}  // namespace

struct RunningSum::State {
  State() : xxh(XXH3_createState(), &XXH3_freeState) {
    PREPOST_CHECK(xxh != nullptr);
    XXH3_128bits_reset(xxh.get());
  }
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> xxh;
};

RunningSum::RunningSum() : state_(std::make_unique<State>()) {}
RunningSum::RunningSum(RunningSum&& other) noexcept = default;
RunningSum& RunningSum::operator=(RunningSum&& other) noexcept = default;
RunningSum::~RunningSum() = default;

void RunningSum::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

void RunningSum::AddZeros(uint64_t bytes) {
  static constexpr std::array<std::byte, 65536> kZeros = {};
  for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, kZeros.size()))
    Add(std::span(kZeros).first(std::min<uint64_t>(bytes, kZeros.size())));
}

MessageSum RunningSum::Get() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh.get());
  return {.high = hash.high64, .low = hash.low64};
}

std::string MessageSum::ToString() const { return fmt::format("{:016x}{:016x}", high, low); }

Result<MessageSum> SumMemory(std::span<const std::byte> memory, const Checkpoint& checkpoint) {
  RunningSum sum;
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
  RunningSum sum;
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
