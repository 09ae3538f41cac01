// SPDX-License-Identifier: Apache-2.0
//
// NodeBuffer: where one receiver's copy of the message comes to lie, in a file or only in memory,
// and the check of a finished copy. The launcher opens the buffers of all nodes, so that their
// processes can share them; each process reserves its own.
#ifndef PREPOST_RUNTIME_FILES_NODE_BUFFER_H_
#define PREPOST_RUNTIME_FILES_NODE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/base/checkpoint.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"
#include "runtime/files/message_file.h"
#include "runtime/files/message_sum.h"
#include "runtime/files/output_set.h"

namespace prepost {

/// Move only. After Open() its file has a place, after Reserve() all the memory it needs.
class NodeBuffer {
 public:
  /// A buffer of `bytes` for `node`, not the root: its temporary file in `outputs` or, if that is
  /// null, a memory file without a name, of this size for ever. Errors: kRejected for a file that
  /// cannot be made, kEnvironment.
  static Result<NodeBuffer> Open(NodeId node, uint64_t bytes, const OutputSet* outputs);
  /// To be called before the set is committed. Errors: those of PartialOutput::GiveName().
  Status GiveName() { return output_ ? output_->GiveName() : Status(); }
  /// Before Reserve(): a file's bytes are to come in memory that no file backs, for who touches
  /// them himself, as NICs do: so a file that shrinks meanwhile is an error when Store() writes to
  /// it, and no SIGBUS. Errors: kEnvironment.
  Status KeepApart();
  /// Makes room for the bytes and maps them, and touches all of them where it is memory, so that
  /// the transfer meets no page fault. Errors: those of PartialOutput::Reserve and Mapping::Touch.
  Status Reserve(const Checkpoint& checkpoint = {});

  int fd() const { return output_ ? output_->fd() : memory_file_.get(); }
  /// See IsSealed(): true unless it is a file.
  bool is_sealed() const { return !output_; }
  /// After Reserve().
  std::span<std::byte> bytes() const { return has_memory() ? memory_.bytes() : output_->bytes(); }
  /// Writes what is kept apart from its file to it. Errors: those of PartialOutput::Write.
  Status Store(const Checkpoint& checkpoint = {});
  /// The sum of what is there now: in the file, if there is one.
  Result<MessageSum> Sum(const Checkpoint& checkpoint = {}) const;

 private:
  Status MakeMemoryFile();
  bool has_memory() const { return memory_file_.valid(); }

  NodeId node_;
  uint64_t bytes_ = 0;
  std::optional<PartialOutput> output_;
  FileDescriptor memory_file_;
  Mapping memory_;
};

/// An error (kRejected) with both sums if the copy of `node` is not what the root has.
Status CheckCopy(NodeId node, const MessageSum& sum, const MessageSum& root_sum);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_NODE_BUFFER_H_
