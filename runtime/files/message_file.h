// SPDX-License-Identifier: Apache-2.0
//
// The files of a run: MappedInput, the message as the root reads it, and PartialOutput, a copy that
// is being received and has a temporary name until it is complete and checked (output_set.h). Both
// executors use them; neither class knows of nodes or plans.
#ifndef PREPOST_RUNTIME_FILES_MESSAGE_FILE_H_
#define PREPOST_RUNTIME_FILES_MESSAGE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"
#include "runtime/files/message_sum.h"
#include "runtime/files/temporary_file.h"

namespace prepost {

/// The size of a regular file. Errors: kRejected, naming the file: missing, not readable, something
/// else (which is named), or a file of the kernel, whose size is not that of its bytes.
Result<uint64_t> MessageFileBytes(const std::string& path);

/// A regular file, mapped read-only. See Mapping about files that shrink meanwhile.
class MappedInput {
 public:
  /// Errors: those of MessageFileBytes(); kEnvironment if it cannot be mapped.
  static Result<MappedInput> Open(const std::string& path);

  /// Of no bytes, which no file has: for what needs none. Errors: kEnvironment.
  static Result<MappedInput> Empty();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return mapping_.bytes().size(); }
  std::span<const std::byte> bytes() const { return mapping_.bytes(); }
  int fd() const { return file_.get(); }
  /// See prepost::IsSealed(): true for a sealed memory file, opened by /proc/self/fd/N.
  bool is_sealed() const { return IsSealed(fd()); }

  /// An error (kRejected) if the file is shorter now than when it was opened.
  Status CheckStillWhole() const;
  /// The sum of the file's bytes as they are now.
  Result<MessageSum> Sum(const Checkpoint& checkpoint = {}) const;
  /// A copy of the file in memory that no file backs, for users that touch it themselves. Errors:
  /// kRejected if the file is cut short meanwhile; kEnvironment; those of `checkpoint`.
  Result<Mapping> Read(const Checkpoint& checkpoint = {}) const {
    return Read(0, size_bytes(), checkpoint);
  }
  /// Of `bytes` at byte `offset`, which the file had when it was opened.
  Result<Mapping> Read(uint64_t offset, uint64_t bytes, const Checkpoint& checkpoint = {}) const;

 private:
  std::string path_;
  FileDescriptor file_;
  Mapping mapping_;
};

/// Errors (kRejected): `folder`'s file system has less than `bytes` left, as far as it says.
Status CheckFreeSpace(const std::string& folder, uint64_t bytes);

/// One copy on its way: a new file with its space reserved, mapped for writing. Its names, its
/// commit and its removal are the business of OutputSet.
class PartialOutput {
 public:
  /// Makes the file, still empty; it must not exist yet. Errors: kRejected, naming the file: the
  /// folder cannot be written. Whoever made the folder removes the file.
  /// Messages call it `name`, the name that it gets in the end.
  static Result<PartialOutput> Create(const std::string& path, const std::string& name,
                                      mode_t mode = 0666);
  /// The same, but where the file system can (O_TMPFILE) the file has no name before GiveName(), so
  /// that nothing of it stays if this process is killed.
  static Result<PartialOutput> CreateUnnamed(const std::string& path, const std::string& name,
                                             mode_t mode = 0666);
  /// To be called before it is renamed, however it was made. Errors: kRejected, naming the file:
  /// what has its temporary name is another file, or none.
  Status GiveName();
  /// GiveName(), and closes the file, which is complete. GiveName() checks the name again.
  Status NameAndClose();
  /// Reserves space for `bytes` and maps them. Once, before all that follows. Errors: kRejected,
  /// naming the file: the disk is too full; those of `checkpoint`.
  Status Reserve(uint64_t bytes, const Checkpoint& checkpoint = {});
  /// Reserves space for `bytes` at byte `offset` without mapping it. Errors as Reserve().
  Status ReserveSpace(uint64_t offset, uint64_t bytes, const Checkpoint& checkpoint = {});

  int fd() const { return file_.fd(); }

  /// For the kernel to fill; see Mapping about files that shrink meanwhile.
  std::span<std::byte> bytes() const { return mapping_.bytes(); }
  /// Writes the whole copy, for users that received it into other memory. Errors: kRejected, naming
  /// the file, when a write fails; those of `checkpoint`.
  Status Write(std::span<const std::byte> copy, const Checkpoint& checkpoint = {});
  /// The sum of what the file holds now.
  Result<MessageSum> Sum(const Checkpoint& checkpoint = {}) const;

 private:
  static Result<PartialOutput> Make(const std::string& path, const std::string& name, mode_t mode,
                                    TemporaryFile::Named named);

  std::string name_;
  TemporaryFile file_;
  Mapping mapping_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_MESSAGE_FILE_H_
