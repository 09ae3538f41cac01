// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/replay_buffer.h"

namespace prepost::tools {

void ReplayBuffer::BeginPreview() {
  bytes_.assign(gptr(), egptr());
  setg(bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size());
  is_preview_ = true;
}

void ReplayBuffer::EndPreview() {
  setg(bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size());
  is_preview_ = false;
}

ReplayBuffer::int_type ReplayBuffer::underflow() {
  constexpr size_t kPreviewStep = 4096, kStep = size_t{1} << 16;
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  if (is_preview_ && bytes_.size() >= kPreviewBytesMax) return traits_type::eof();
  const size_t kept = is_preview_ ? bytes_.size() : 0;
  const size_t wanted = is_preview_ ? kPreviewStep : kStep;
  bytes_.resize(kept + wanted);
  const std::streamsize got =
      source_.sgetn(bytes_.data() + kept, static_cast<std::streamsize>(wanted));
  bytes_.resize(kept + (got > 0 ? static_cast<size_t>(got) : 0));
  setg(bytes_.data(), bytes_.data() + kept, bytes_.data() + bytes_.size());
  return bytes_.size() > kept ? traits_type::to_int_type(*gptr()) : traits_type::eof();
}

}  // namespace prepost::tools
