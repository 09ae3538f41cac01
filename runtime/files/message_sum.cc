// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/message_sum.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

using namespace std::string_view_literals;

/// Between checkpoints: some milliseconds of one core.
constexpr size_t kMemoryStepBytes = size_t{4} << 20;
constexpr size_t kFileStepBytes = size_t{1} << 20;

constexpr std::string_view kSparse = "prepost sparse\0\0"sv;
static_assert(kSparse.size() == crypto_generichash_blake2b_PERSONALBYTES);

}  // namespace

bool HasHoles(uint64_t bytes, std::span<const FileExtent> extents) {
  for (const FileExtent& extent : extents) bytes -= extent.bytes;
  return bytes != 0;
}

struct RunningSum::State {
  crypto_generichash_blake2b_state blake2b;
};

RunningSum::RunningSum() : RunningSum(0, {}) {}

RunningSum::RunningSum(uint64_t bytes, std::span<const FileExtent> extents)
    : state_(std::make_unique<State>()) {
  // Chooses the code for this processor. If it fails there are no random numbers, but there is a
  // sum.
  [[maybe_unused]] const int code = sodium_init();
  if (!HasHoles(bytes, extents)) {
    crypto_generichash_blake2b_init(&state_->blake2b, nullptr, 0, sizeof(MessageSum));
    return;
  }
  crypto_generichash_blake2b_init_salt_personal(
      &state_->blake2b, nullptr, 0, sizeof(MessageSum), nullptr,
      reinterpret_cast<const unsigned char*>(kSparse.data()));
  const auto add = [this](uint64_t first, uint64_t second) {
    std::array<std::byte, 2 * sizeof(uint64_t)> pair;
    ByteWriter writer(pair);
    writer.Put(first);
    writer.Put(second);
    Add(pair);
  };
  add(bytes, extents.size());
  for (const FileExtent& extent : extents) add(extent.offset, extent.bytes);
}

RunningSum::RunningSum(RunningSum&& other) noexcept = default;
RunningSum& RunningSum::operator=(RunningSum&& other) noexcept = default;
RunningSum::~RunningSum() = default;

void RunningSum::Add(std::span<const std::byte> bytes) {
  crypto_generichash_blake2b_update(
      &state_->blake2b, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

MessageSum RunningSum::Get() const {
  MessageSum sum;
  State end = *state_;
  crypto_generichash_blake2b_final(&end.blake2b, reinterpret_cast<unsigned char*>(sum.bytes.data()),
                                   sum.bytes.size());
  return sum;
}

std::string MessageSum::ToString() const {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

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
  const FileExtent all = {.offset = 0, .bytes = bytes};
  return SumFile(fd, bytes, {&all, 1}, name, checkpoint);
}

Result<MessageSum> SumFile(int fd, uint64_t bytes, std::span<const FileExtent> extents,
                           const std::string& name, const Checkpoint& checkpoint) {
  RunningSum sum(bytes, extents);
  std::vector<std::byte> buffer(std::min<uint64_t>(bytes, kFileStepBytes));
  for (const FileExtent& extent : extents) {
    for (uint64_t done = 0; done < extent.bytes;) {
      PREPOST_RETURN_IF_ERROR(Check(checkpoint));
      const auto step =
          std::span(buffer).first(std::min<uint64_t>(extent.bytes - done, buffer.size()));
      PREPOST_RETURN_IF_ERROR(ReadExactly(fd, extent.offset + done, step, name));
      sum.Add(step);
      done += step.size();
    }
  }
  return sum.Get();
}

}  // namespace prepost
