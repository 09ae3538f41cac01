// SPDX-License-Identifier: Apache-2.0
//
// PushSource: the files that are pushed, as one sequence of bytes: the data of the chosen ones, one
// after the other (manifest.h).
#ifndef PREPOST_TOOLS_PUSH_PUSH_SOURCE_H_
#define PREPOST_TOOLS_PUSH_PUSH_SOURCE_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/files/message_sum.h"
#include "tools/push/manifest.h"

namespace prepost::tools {

/// Files are open one at a time. Used by one thread.
class PushSource {
 public:
  /// `paths`: regular files, block devices, or one pipe, "-" is stdin; does not wait for who writes
  /// to it. `name`: what a single one is to be called at the hosts, "": as it is here. Errors
  /// (kUsage, kRejected), with the path: what is none of these, cannot be read, has the name of
  /// another or one that is not UTF-8.
  static Result<PushSource> Open(const std::vector<std::string>& paths, const std::string& name);

  const Manifest& manifest() const { return manifest_; }
  /// Reads all files once for their PushedFile::sum. Errors as Read(), and those of `checkpoint`.
  Status AddSums(const Checkpoint& checkpoint);
  /// Those whose data Read() gives, by place in the manifest; all unless called.
  void Choose(std::vector<size_t> files);

  /// Of all that Read() gives; none: not known.
  std::optional<uint64_t> data_bytes() const;
  /// To be polled before Read(), which waits otherwise; -1: never waits for long.
  int stream_fd() const { return stream_.get(); }
  /// The path of a named pipe from which nothing has come yet; "": of none.
  const std::string& awaited_pipe() const { return awaited_pipe_; }
  /// The next bytes; fewer than `out` has room for at the end or of a stream. 0: there are no more.
  /// Errors (kRejected): a file that cannot be read, or changed since Open(); those of
  /// `checkpoint`, which is called every few megabytes and for every file.
  Result<size_t> Read(std::span<std::byte> out, const Checkpoint& checkpoint = {});
  /// When Read() has given 0: of each chosen file.
  const std::vector<MessageSum>& sums() const { return sums_; }

 private:
  PushSource() = default;
  Status OpenNext();
  Status CheckUnchanged() const;
  void EndFile();

  std::vector<std::string> paths_;  ///< by place in the manifest
  std::vector<struct stat> files_;  ///< what each was when it was opened first
  Manifest manifest_;
  FileDescriptor stream_;
  std::string awaited_pipe_;
  std::vector<size_t> chosen_;
  std::vector<MessageSum> sums_;
  // Of the file at hand: chosen_[sums_.size()].
  FileDescriptor file_;
  std::optional<RunningSum> sum_;
  size_t extent_ = 0;
  uint64_t offset_ = 0;  ///< all data before is in sum_
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSH_SOURCE_H_
