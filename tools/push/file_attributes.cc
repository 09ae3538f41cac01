// SPDX-License-Identifier: Apache-2.0
#include "tools/push/file_attributes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>

#include "ir/base/count.h"
#include "runtime/base/little_endian.h"
#include "runtime/files/temporary_file.h"

namespace prepost::tools {
namespace {

std::array<timespec, 2> TimesOf(const PushedFile& file) {
  const timespec modified = {.tv_sec = static_cast<time_t>(file.mtime_s),
                             .tv_nsec = static_cast<long>(file.mtime_ns)};
  return {timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, modified};
}

Status Say(const UnkeptFunction& unkept, const char* what, const std::string& path, int error) {
  return unkept ? unkept(what, path, error) : Status();
}

/// Of the regular file that the new one replaces.
Status SetOwner(int fd, const std::string& path, const UnkeptFunction& unkept) {
  struct stat own = {}, older = {};
  if (fstat(fd, &own) != 0 || lstat(path.c_str(), &older) != 0 || !S_ISREG(older.st_mode))
    return {};
  if (own.st_uid == older.st_uid && own.st_gid == older.st_gid) return {};
  if (IsOfStranger(path, older)) return Say(unkept, "owner", path, EPERM);
  if (fchown(fd, older.st_uid, older.st_gid) == 0) return {};
  return Say(unkept, "owner", path, errno);
}

/// 0, or an error. Some file systems that are mounted through others (FUSE) take the call and do
/// nothing.
int SetMode(int fd, mode_t mode) {
  struct stat now = {};
  if (fchmod(fd, mode) != 0 || fstat(fd, &now) != 0) return errno;
  return (now.st_mode & 0777u) == mode ? 0 : EOPNOTSUPP;
}

/// 0, or an error. Some file systems that are mounted through others (FUSE) take the call and do
/// nothing, where the time of the last access is left alone. What is rounded, or cut to what the
/// file system can have, is set.
int SetTime(int fd, const PushedFile& file) {
  constexpr int64_t kRoundedMax = 2;  // seconds, as FAT does
  struct stat before = {};
  if (fstat(fd, &before) != 0) return errno;
  for (const bool is_alone : {true, false}) {
    std::array<timespec, 2> times = TimesOf(file);
    if (!is_alone) times.front() = before.st_atim;
    struct stat now = {};
    if (futimens(fd, times.data()) != 0 || fstat(fd, &now) != 0) return errno;
    const int64_t found = now.st_mtim.tv_sec;
    const bool has_changed =
        found != before.st_mtim.tv_sec || now.st_mtim.tv_nsec != before.st_mtim.tv_nsec;
    if (has_changed || (file.mtime_s >= found - kRoundedMax && file.mtime_s <= found + kRoundedMax))
      return 0;
  }
  return EOPNOTSUPP;
}

}  // namespace

bool IsOfStranger(const std::string& path, const struct stat& about) {
  struct stat folder = {};
  const std::string parent = std::filesystem::path(path).parent_path();
  if (stat(parent.empty() ? "." : parent.c_str(), &folder) != 0) return true;
  return (folder.st_mode & S_IWOTH) != 0 && about.st_uid != geteuid() && about.st_uid != 0 &&
         about.st_uid != folder.st_uid;
}

Status SetAttributes(int fd, const PushedFile& file, const std::string& path,
                     const UnkeptFunction& unkept) {
  PREPOST_RETURN_IF_ERROR(SetOwner(fd, path, unkept));  // first: it may change the mode
  if (const int error = SetMode(fd, file.mode); error != 0)
    PREPOST_RETURN_IF_ERROR(Say(unkept, "mode", path, error));
  const int error = SetTime(fd, file);
  return error == 0 ? Status() : Say(unkept, "time", path, error);
}

Status RenewAttributes(int fd, const struct stat& there, const PushedFile& file,
                       const std::string& path, const UnkeptFunction& unkept) {
  const int mode_error = (there.st_mode & 0777u) == file.mode ? 0 : SetMode(fd, file.mode);
  if (mode_error != 0) PREPOST_RETURN_IF_ERROR(Say(unkept, "mode", path, mode_error));
  const bool has_time =
      there.st_mtim.tv_sec == file.mtime_s && there.st_mtim.tv_nsec == file.mtime_ns;
  const int error = has_time ? 0 : SetTime(fd, file);
  return error == 0 ? Status() : Say(unkept, "time", path, error);
}

bool IsRoundedTime(const struct stat& there, const PushedFile& file, const std::string& folder) {
  TemporaryFile probe;
  const std::string path = std::filesystem::path(folder) / TemporaryName();
  if (probe.Create(path, 0600) != 0) return false;
  struct stat about = {};
  const bool is_set = SetTime(probe.fd(), file) == 0 && fstat(probe.fd(), &about) == 0;
  unlink(path.c_str());  // if it has that name
  return is_set && about.st_mtim.tv_sec == there.st_mtim.tv_sec &&
         about.st_mtim.tv_nsec == there.st_mtim.tv_nsec;
}

void AddUnkept(const char* what, const std::string& path, int error, std::vector<Unkept>* list) {
  const auto entry = std::ranges::find(*list, what, &Unkept::what);
  if (entry != list->end()) {
    ++entry->files;
    return;
  }
  list->push_back(
      {.what = what, .error = std::system_category().message(error), .file = path, .files = 1});
}

std::string TextOf(const Unkept& unkept) {
  const std::string of =
      unkept.files == 1 ? unkept.file
                        : fmt::format("{}, the first {}", Count(unkept.files, "file"), unkept.file);
  return fmt::format("{} of {} ({})", unkept.what, of, unkept.error);
}

mode_t ModeOf(int fd, const struct stat& about) {
  // system.posix_acl_access: a version, then entries of tag, permissions (16 bits each) and an id.
  constexpr size_t kHeadBytes = 4, kEntryBytes = 8;
  constexpr uint16_t kOwningGroup = 0x04;
  const mode_t mode = about.st_mode & 0777u;
  std::array<std::byte, kHeadBytes + 256 * kEntryBytes> acl;
  const ssize_t bytes = fgetxattr(fd, "system.posix_acl_access", acl.data(), acl.size());
  for (size_t at = kHeadBytes; bytes > 0 && at + kEntryBytes <= static_cast<size_t>(bytes);
       at += kEntryBytes) {
    ByteReader entry(std::span<const std::byte>(acl).subspan(at, kEntryBytes));
    if (entry.Get<uint16_t>() != kOwningGroup) continue;
    const mode_t group = entry.Get<uint16_t>() & 7u;
    return (mode & ~070u) | (mode & group << 3);
  }
  return mode;
}

}  // namespace prepost::tools
