// SPDX-License-Identifier: Apache-2.0
//
// What a pushed file has beside its bytes: mode and time of its source, and the owner of what it
// replaces. Not every file system keeps these, nor does everybody have the right to set them.
#ifndef PREPOST_TOOLS_PUSH_FILE_ATTRIBUTES_H_
#define PREPOST_TOOLS_PUSH_FILE_ATTRIBUTES_H_

#include <sys/stat.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "tools/push/manifest.h"

namespace prepost::tools {

/// Something that files at a host do not have as they should, for its verdict.
struct Unkept {
  std::string what;   ///< "mode", "time" or "owner"
  std::string error;  ///< of the system, for the first of them
  std::string file;   ///< the first
  size_t files = 0;
};

/// Called where `what` of the file `path` could not be kept, with an errno value. An error that it
/// returns ends the push.
using UnkeptFunction = std::function<Status(const char* what, const std::string& path, int error)>;

/// Whether the file `path` of the status `about` may be there because another user has put it into
/// a folder that all may write to, such as /tmp, where a file is to come. It is neither that file
/// nor is its owner the new one's.
bool IsOfStranger(const std::string& path, const struct stat& about);

/// Sets them of an open file that is to be `path`. Errors: those of `unkept`, which may be empty.
Status SetAttributes(int fd, const PushedFile& file, const std::string& path,
                     const UnkeptFunction& unkept);

/// The same for a file that is there with the right bytes, and that only differs in them.
Status RenewAttributes(int fd, const struct stat& there, const PushedFile& file,
                       const std::string& path, const UnkeptFunction& unkept);

/// Whether a file in `folder` with the time of `there` is as new as `file`, because its file system
/// keeps no finer times: found by giving that time to a file there.
bool IsRoundedTime(const struct stat& there, const PushedFile& file, const std::string& folder);

/// One that counts another file. `list` has one entry for each `what`.
void AddUnkept(const char* what, const std::string& path, int error, std::vector<Unkept>* list);
/// "mode of 3 files, the first image.raw (Operation not permitted)".
std::string TextOf(const Unkept& unkept);

/// The permissions of a file of the status `about`, with those of its owning group: where it has a
/// POSIX ACL, the bits of the group are the mask of the ACL.
mode_t ModeOf(int fd, const struct stat& about);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_FILE_ATTRIBUTES_H_
