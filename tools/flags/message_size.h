// SPDX-License-Identifier: Apache-2.0
//
// MessageSize: --message-bytes and --message, for subcommands that compile.
#ifndef PREPOST_TOOLS_FLAGS_MESSAGE_SIZE_H_
#define PREPOST_TOOLS_FLAGS_MESSAGE_SIZE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ir/status.h"
#include "tools/flags/cli_forward.h"

namespace prepost::tools {

/// The size of a message in `text`, which `flag` gives. Errors: kUsage, no size; kRejected, more
/// than any message has.
Result<uint64_t> ParseMessageBytes(const std::string& flag, const std::string& text);

class MessageSize {
 public:
  /// `takes_any`: whether --message-bytes may be "any".
  void AddTo(CLI::App& command, bool takes_any);

  /// The one that was given.
  const char* flag() const { return path_.empty() ? "--message-bytes" : "--message"; }
  bool is_given() const { return !bytes_.empty() || !path_.empty(); }
  bool is_any() const { return takes_any_ && bytes_ == "any"; }
  /// What was asked for, or none. Errors: no size, a file that cannot be read. Needs !is_any().
  Result<std::optional<uint64_t>> Bytes() const;

 private:
  std::string bytes_;
  std::string path_;
  bool takes_any_ = false;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_MESSAGE_SIZE_H_
