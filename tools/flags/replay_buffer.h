// SPDX-License-Identifier: Apache-2.0
//
// ReplayBuffer: a stream that can be read only once, such as stdin or a pipe, of which a look at
// its beginning takes nothing away.
#ifndef PREPOST_TOOLS_FLAGS_REPLAY_BUFFER_H_
#define PREPOST_TOOLS_FLAGS_REPLAY_BUFFER_H_

#include <cstddef>
#include <streambuf>
#include <vector>

namespace prepost::tools {

class ReplayBuffer final : public std::streambuf {
 public:
  /// Reads from `source`, which outlives it.
  explicit ReplayBuffer(std::streambuf& source) : source_(source) {}

  /// What is read until EndPreview() is read again afterwards. The stream seems to end after
  /// kPreviewBytesMax.
  void BeginPreview();
  void EndPreview();
  static constexpr size_t kPreviewBytesMax = size_t{1} << 20;

 protected:
  int_type underflow() override;

 private:
  std::streambuf& source_;
  std::vector<char> bytes_;  ///< the get area
  bool is_preview_ = false;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_REPLAY_BUFFER_H_
