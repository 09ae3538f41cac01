// SPDX-License-Identifier: Apache-2.0
//
// LineChannel: JSON values, each a line, over two pipes: how the command that pushes and the
// receivers on the hosts talk, through ssh or whatever else starts them.
#ifndef PREPOST_TOOLS_PUSH_LINE_CHANNEL_H_
#define PREPOST_TOOLS_PUSH_LINE_CHANNEL_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"

namespace prepost::tools {

/// Used by one thread.
class LineChannel {
 public:
  static constexpr size_t kLineBytesMax = size_t{256} << 20;  ///< unless LimitLines() says less
  static constexpr size_t kStringBytesMax = size_t{64} << 10;
  static constexpr size_t kDepthMax = 16;

  LineChannel() = default;
  /// Both are made non-blocking; `out` may be empty.
  LineChannel(FileDescriptor in, FileDescriptor out);

  int in() const { return in_.get(); }
  int out() const { return out_.get(); }
  /// Something waits for out() to become writable.
  bool wants_out() const { return sent_bytes_ < queued_.size(); }

  /// Queues a value; Flush() writes it.
  void Send(const nlohmann::json& value);
  /// The same in two steps, for a large value that goes to many.
  static std::string LineOf(const nlohmann::json& value);
  void SendLine(const std::string& line);
  /// Writes as much as there is room for. False: nobody reads any more.
  bool Flush();
  /// Writes all, for `max_ms` at most. False as Flush(), or when the time is over.
  bool FlushAll(int max_ms);
  /// From an end that has no need of lines of more than `bytes`.
  void LimitLines(size_t bytes) { line_bytes_max_ = bytes; }
  /// What the other end has written so far is taken in, or a line of it. False: it has ended.
  bool Fill();
  /// The next value of what was taken in. Errors (kRejected): a line that is no JSON object, or
  /// longer than is allowed, or has a string longer than kStringBytesMax or arrays and objects
  /// deeper than kDepthMax: what is done with values later is recursive.
  Result<std::optional<nlohmann::json>> Next();
  /// Nothing more is sent: the other end sees the end.
  void HangUp() { out_.Close(); }

 private:
  FileDescriptor in_, out_;
  size_t line_bytes_max_ = kLineBytesMax;
  std::string queued_;
  size_t sent_bytes_ = 0;
  std::string received_;
  size_t taken_bytes_ = 0;    ///< of `received_`, by Next()
  size_t scanned_bytes_ = 0;  ///< of `received_`, for the end of a line
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_LINE_CHANNEL_H_
