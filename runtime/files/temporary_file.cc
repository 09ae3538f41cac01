// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/files/message_sum.h"

namespace prepost {
namespace {

constexpr std::string_view kPrefix = ".prepost-";
constexpr std::string_view kSuffix = ".partial";
constexpr size_t kProcessDigits = 8;  ///< behind the machine's: the same for all files of a process
constexpr size_t kFileDigits = 16;    ///< behind those: for a million files in one folder

/// Where our pid means what it does. Random if the system does not say, so that nobody takes us for
/// gone.
std::string MachineTag() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path pids = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  if (boot.empty() || error) return RandomDigits();
  const std::string both = boot + pids.string();
  return SumMemory(std::as_bytes(std::span(both)))->ToString().substr(0, 16);
}

struct Origin {
  const std::string machine = MachineTag();
  const std::string process = RandomDigits().substr(0, kProcessDigits);
};
const Origin& OwnOrigin() {
  static const Origin origin;
  return origin;
}

/// Whether a process of this machine made a file of this name and is gone. One with our pid is, if
/// it is not this one: pids come again, in containers almost always.
bool IsStale(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  name.remove_prefix(kPrefix.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  const std::string tag = fmt::format("-{}-", OwnOrigin().machine);
  if (error != std::errc() || pid <= 0 || !name.starts_with(tag)) return false;
  name.remove_prefix(tag.size());
  if (name.size() != kProcessDigits + kFileDigits + kSuffix.size()) return false;
  if (pid == getpid()) return !name.starts_with(OwnOrigin().process);
  return kill(pid, 0) != 0 && errno == ESRCH;
}

/// Gives an open file that may have none a name. 0 or an errno value.
int LinkOpen(const FileDescriptor& file, const std::string& path) {
  const std::string open_file = fmt::format("/proc/self/fd/{}", file.get());
  const bool is_linked =
      linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  return is_linked ? 0 : errno;
}

/// Whether files of this file system that have no name can be given one: not without /proc, nor
/// where links are refused. Found by trying, once for each file system.
bool CanBeNamed(const FileDescriptor& file, const std::string& folder) {
  static std::mutex mutex;
  static std::map<dev_t, bool> found;
  struct stat about = {};
  if (fstat(file.get(), &about) != 0) return false;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = found.try_emplace(about.st_dev, false);
  if (!is_new) return entry->second;
  const FileDescriptor probe(open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  const std::string name = folder + "/" + TemporaryName();
  if (probe.valid() && LinkOpen(probe, name) == 0) {
    unlink(name.c_str());
    entry->second = true;
  }
  return entry->second;
}

}  // namespace

std::string RandomDigits() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::string TemporaryName() {
  const Origin& own = OwnOrigin();
  return fmt::format("{}{}-{}-{}{}{}", kPrefix, getpid(), own.machine, own.process, RandomDigits(),
                     kSuffix);
}

void RemoveStale(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (IsStale(entry->path().filename().string())) unlink(entry->path().c_str());
  }
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         (a.st_mode & S_IFMT) == (b.st_mode & S_IFMT);
}

int TemporaryFile::Create(const std::string& path, mode_t mode, Named named) {
  path_ = path;
  if (named == Named::kWhenComplete) {
    const std::string parent = std::filesystem::path(path).parent_path();
    const std::string folder = parent.empty() ? "." : parent;
    file_ = FileDescriptor(open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, mode));
    is_unnamed_ = file_.valid() && CanBeNamed(file_, folder);
    if (is_unnamed_) return 0;
  }
  file_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  return file_.valid() ? 0 : errno;
}

int TemporaryFile::GiveName() {
  if (std::exchange(is_unnamed_, false)) return LinkOpen(file_, path_);
  struct stat own = {}, there = {};
  if (!file_.valid()) {
    own = closed_;
  } else if (fstat(file_.get(), &own) != 0) {
    return errno;
  }
  if (lstat(path_.c_str(), &there) != 0) return errno == ENOENT ? ESTALE : errno;
  return IsSameFile(own, there) ? 0 : ESTALE;
}

int TemporaryFile::Close() {
  if (fstat(file_.get(), &closed_) != 0) return errno;
  file_.Close();
  return 0;
}

}  // namespace prepost
