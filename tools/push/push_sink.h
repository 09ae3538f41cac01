// SPDX-License-Identifier: Apache-2.0
//
// PushSink: what a host makes of the bytes that it receives (push_source.h): files in a folder, or
// one device or pipe. Files have no names until all are complete.
#ifndef PREPOST_TOOLS_PUSH_PUSH_SINK_H_
#define PREPOST_TOOLS_PUSH_PUSH_SINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/files/message_file.h"
#include "runtime/files/message_sum.h"
#include "runtime/files/output_set.h"
#include "tools/push/file_attributes.h"
#include "tools/push/manifest.h"
#include "tools/push/write_back.h"

namespace prepost::tools {

struct PushSinkOptions {
  /// A folder, made if it is missing; or a pipe, or a device, or a link of this user's or root's to
  /// one of these; "": ".".
  std::string target;
  bool allow_devices = false;
  bool sync = false;  ///< what is named is on the disk, too
  /// Called about ten times a second while it waits for the reader of a pipe, which its errors end,
  /// or for a disk, as WriteBackOptions say.
  Checkpoint checkpoint;
  /// Called with what it waits for when that takes more than a second, or ten for a disk; may be
  /// empty.
  std::function<void(const std::string& text)> waiting = {};
  UnkeptFunction unkept = {};
  DiskCalls disk = {};
  /// So many files are open at once at most, besides others of the process. With more files than
  /// that each has a temporary name as soon as it is complete, which a killed process leaves.
  size_t files_max = FilesMax();
};

/// `target` as it is to be found here: ~ at its beginning is this user's home. Errors (kRejected):
/// another user's, or no home.
Result<std::string> TargetHere(const std::string& target);

/// Used by one thread; the destructor leaves no file that has not been named by Commit().
class PushSink {
 public:
  /// Which files of `manifest`, by place, the target has already: of equal size and time, or of
  /// equal content where the manifest has sums; only their mode and time are set. Times are equal
  /// where the file system keeps no finer ones. A link is none, nor is what came of a device,
  /// unless by content. Errors (kRejected): those of reading, of `checkpoint`, of `unkept`.
  static Result<std::vector<size_t>> FilesThere(const Manifest& manifest,
                                                const PushSinkOptions& options);

  /// Reserves space for all data. Errors (kRejected), with a path: a full disk, a target of another
  /// kind or too small, a device in use.
  static Result<std::unique_ptr<PushSink>> Open(Manifest manifest, PushSinkOptions options);

  /// The next bytes. Errors (kRejected): a disk that is full after all, a pipe that no program
  /// reads, more than the manifest says.
  Status Write(std::span<const std::byte> bytes);
  /// All has come: modes, times, holes. The sums of what has come, as of RunningSum. Errors
  /// (kRejected): less than the manifest says; those of the checkpoint and of `unkept`.
  Result<std::vector<MessageSum>> Finish();
  /// Gives the files their names. Errors (kRejected): none has one then.
  Status Commit();

  /// What was written stays, without any commit: a pipe's reader has it, or a device.
  bool is_in_place() const { return kind_ != Kind::kFolder; }
  /// All data that was written.
  uint64_t bytes() const { return bytes_; }

 private:
  enum class Kind : uint8_t { kFolder, kDevice, kStream };

  PushSink(Manifest manifest, PushSinkOptions options);
  Status OpenFolder();
  Status OpenFile(size_t file);
  Status CheckRoom() const;
  Status OpenDevice(const FileDescriptor& found);
  Status OpenStream(const FileDescriptor& found);
  const PushedFile& file() const { return manifest_[sums_.size()]; }
  /// What is written is to be on a disk in the end.
  bool IsSynced() const { return kind_ == Kind::kDevice || options_.sync; }
  int fd() const;
  std::string NameOf(size_t file) const;
  Status Put(std::span<const std::byte> bytes);
  Status PutHole(uint64_t bytes);
  Status BeginFile();
  Status EndFile();

  const Manifest manifest_;
  const PushSinkOptions options_;
  Kind kind_ = Kind::kFolder;
  std::optional<OutputSet> outputs_;     ///< of a folder
  std::vector<PartialOutput> partials_;  ///< of a folder, by file, as far as they are made
  bool is_one_at_a_time_ = false;        ///< of these only one is open
  FileDescriptor device_;                ///< elsewhere
  WriteBack write_back_;
  std::vector<MessageSum> sums_;   ///< of the files before the one at hand
  std::optional<RunningSum> sum_;  ///< of the one at hand, once something of it is there
  size_t extent_ = 0;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSH_SINK_H_
