// SPDX-License-Identifier: Apache-2.0
//
// TemporaryFile: a file that is being written and gets its name when it is complete. Until then it
// has none where the file system can do that (O_TMPFILE), so that nothing of it stays if its
// process is killed, and otherwise one that no other file has, on any machine that shares the
// folder.
#ifndef PREPOST_RUNTIME_FILES_TEMPORARY_FILE_H_
#define PREPOST_RUNTIME_FILES_TEMPORARY_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "runtime/base/file_descriptor.h"

namespace prepost {

/// 16 hexadecimal digits, other ones each time.
std::string RandomDigits();

/// ".prepost-PID-MACHINE-RUN.partial", another one each time: short, so that the final name may be
/// as long as the file system allows. MACHINE is where PID means this process: this machine since
/// it was started, and the namespace of process ids.
std::string TemporaryName();

/// Removes the files of such names in `folder` whose processes were of this machine and are gone.
void RemoveStale(const std::string& folder);

/// Whether both are one file, of one kind.
bool IsSameFile(const struct stat& a, const struct stat& b);

/// Move only.
class TemporaryFile {
 public:
  enum class Named : uint8_t { kWhenComplete, kAtOnce };

  TemporaryFile() = default;
  /// Makes the file in the folder of `path`, a temporary name that is free. 0 or an errno value.
  int Create(const std::string& path, mode_t mode, Named named = Named::kWhenComplete);
  int fd() const { return file_.get(); }
  /// Has it be what `path` names, from where it may be renamed. 0 or an errno value; ESTALE:
  /// another file has the name, or none.
  int GiveName();
  /// After GiveName(), which may still be asked afterwards. 0 or an errno value.
  int Close();

 private:
  std::string path_;
  FileDescriptor file_;
  struct stat closed_ = {};  ///< what it was then
  bool is_unnamed_ = false;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_TEMPORARY_FILE_H_
