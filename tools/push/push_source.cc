// SPDX-License-Identifier: Apache-2.0
#include "tools/push/push_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "ir/base/utf8.h"
#include "runtime/files/message_file.h"
#include "runtime/files/temporary_file.h"
#include "tools/push/file_attributes.h"
#include "tools/push/file_extents.h"

namespace prepost::tools {
namespace {

constexpr size_t kExtentsMax = size_t{1} << 20;         ///< more holes than this are sent as zeros
constexpr uint64_t kReadStepBytes = uint64_t{4} << 20;  ///< between checkpoints

Status ReadError(const std::string& path, int error) {
  return SystemError(StatusCode::kRejected, fmt::format("cannot read {}", path), error);
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void SetTimes(const struct stat& about, PushedFile* file) {
  file->mode = about.st_mode & 0777u;
  file->mtime_s = about.st_mtim.tv_sec;
  file->mtime_ns = static_cast<uint32_t>(about.st_mtim.tv_nsec);
}

/// A FILE as it was opened.
struct SourceFile {
  PushedFile file;  ///< all but its name
  FileDescriptor opened;
  struct stat about = {};
};

/// Opens `path`, which must still be what `about` says: the name may have been given to something
/// else since, and a pipe or a device may not be opened just to see what it is.
Result<FileDescriptor> OpenTheSame(const std::string& path, const struct stat& about) {
  // O_NONBLOCK: a pipe that takes the place of a file is not waited for.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return ReadError(path, errno);
  struct stat now = {};
  if (fstat(file.get(), &now) != 0) return ReadError(path, errno);
  if (!IsSameFile(about, now) || about.st_rdev != now.st_rdev)
    return Rejected(fmt::format("{} was replaced by another file meanwhile", path));
  return file;
}

Result<SourceFile> OpenSource(const std::string& path) {
  SourceFile source;
  struct stat& about = source.about;
  PushedFile& file = source.file;
  if (stat(path.c_str(), &about) != 0) return ReadError(path, errno);
  if (S_ISDIR(about.st_mode)) {
    return Rejected(fmt::format(
        "{} is a folder; pack it: tar -c {} | prepost push - --name NAME.tar ...", path, path));
  }
  if (!S_ISFIFO(about.st_mode) && !S_ISREG(about.st_mode) && !S_ISBLK(about.st_mode))
    return Rejected(fmt::format("{} is neither a file nor a pipe nor a block device", path));
  SetTimes(about, &file);
  file.is_stream = S_ISFIFO(about.st_mode);
  file.is_device = S_ISBLK(about.st_mode);
  if (S_ISREG(about.st_mode)) {
    // Refuses those that the kernel makes as they are read.
    const Result<uint64_t> bytes = MessageFileBytes(path);
    if (!bytes.ok()) return bytes.status();
    file.bytes = *bytes;
  }
  Result<FileDescriptor> opened = OpenTheSame(path, about);
  if (!opened.ok()) return opened.status();
  source.opened = *std::move(opened);
  file.mode = ModeOf(source.opened.get(), about);
  if (S_ISREG(about.st_mode)) {
    // Without a checkpoint: nothing was started yet, and a signal ends the process.
    Result<std::vector<Extent>> extents = ExtentsOf(source.opened.get(), file.bytes, kExtentsMax);
    if (!extents.ok()) return extents.status();
    file.extents = *std::move(extents);
  }
  if (!file.is_device) return source;
  if (ioctl(source.opened.get(), BLKGETSIZE64, &file.bytes) != 0) return ReadError(path, errno);
  if (file.bytes > 0) file.extents = {{.offset = 0, .bytes = file.bytes}};
  file.mode = 0600;
  return source;
}

/// The error of a FILE, and which others cannot be sent either.
Status WithMore(const Status& first, std::vector<std::string> more) {
  constexpr size_t kNamedMax = 4;
  const size_t unnamed = more.size() - std::min(more.size(), kNamedMax);
  more.resize(more.size() - unnamed);
  return {first.code(),
          fmt::format("{}; nor can these be sent: {}{}", first.ToString(), fmt::join(more, ", "),
                      unnamed > 0 ? fmt::format(" and {} more", unnamed) : "")};
}

}  // namespace

Result<PushSource> PushSource::Open(const std::vector<std::string>& paths,
                                    const std::string& name) {
  if (!name.empty() && paths.size() > 1) return UsageError("--name is for one file");
  PushSource source;
  std::set<std::string> names;
  Status refused;  // the first one
  std::vector<std::string> more;
  for (const std::string& path : paths) {
    PushedFile file;
    struct stat about = {};
    if (path == "-") {
      if (fstat(STDIN_FILENO, &about) != 0) return ReadError("stdin", errno);
      SetTimes(about, &file);
      file.mode = 0644;
      file.is_stream = true;
      file.name = name.empty() ? "stdin" : name;
      source.stream_ = FileDescriptor(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
      if (!source.stream_.valid()) return ReadError("stdin", errno);
    } else {
      Result<SourceFile> opened = OpenSource(path);
      if (!opened.ok() && !refused.ok()) more.push_back(path);
      if (!opened.ok() && refused.ok()) refused = opened.status();
      if (!opened.ok()) continue;
      file = std::move(opened->file);
      about = opened->about;
      file.name = name.empty() ? std::filesystem::path(path).filename().string() : name;
      if (file.is_stream) {
        // Opened before a program writes to it. Nothing comes from it until then, nor does its end.
        source.stream_ = std::move(opened->opened);
        if (fcntl(source.stream_.get(), F_SETFL, 0) != 0) return ReadError(path, errno);
        source.awaited_pipe_ = path;
      }
    }
    if (file.is_stream && paths.size() > 1)
      return UsageError(fmt::format("{} is a pipe, which goes alone", path));
    if (!names.insert(file.name).second)
      return UsageError(fmt::format("two files are called {}; all go to one folder", file.name));
    if (file.name.find('/') != std::string::npos || file.name == "." || file.name == "..")
      return UsageError(fmt::format("'{}' is no name of a file", file.name));
    if (file.name.size() > NAME_MAX) {
      return UsageError(fmt::format("the name of {} has {} bytes, but files' have {} at most", path,
                                    file.name.size(), NAME_MAX));
    }
    if (!IsUtf8(file.name)) {
      return Rejected(
          fmt::format("the name of {} is not UTF-8; --name gives a single file another", path));
    }
    source.manifest_.push_back(std::move(file));
    source.paths_.push_back(path);
    source.files_.push_back(about);
  }
  if (!refused.ok()) return more.empty() ? refused : WithMore(refused, std::move(more));
  source.chosen_.resize(paths.size());
  std::iota(source.chosen_.begin(), source.chosen_.end(), size_t{0});
  return source;
}

Status PushSource::AddSums(const Checkpoint& checkpoint) {
  std::vector<std::byte> buffer(kReadStepBytes);
  for (;;) {
    const Result<size_t> got = Read(buffer, checkpoint);
    if (!got.ok()) return got.status();
    if (*got == 0) break;
  }
  for (size_t i = 0; i < manifest_.size(); ++i) manifest_[i].sum = sums_[i].ToString();
  sums_.clear();
  return {};
}

void PushSource::Choose(std::vector<size_t> files) { chosen_ = std::move(files); }

std::optional<uint64_t> PushSource::data_bytes() const {
  if (stream_.valid()) return std::nullopt;
  uint64_t bytes = 0;
  for (const size_t file : chosen_) bytes += manifest_[file].data_bytes();
  return bytes;
}

Status PushSource::OpenNext() {
  const size_t place = chosen_[sums_.size()];
  sum_.emplace(manifest_[place].bytes, manifest_[place].extents);
  extent_ = 0;
  offset_ = 0;
  if (stream_.valid()) return {};
  Result<FileDescriptor> file = OpenTheSame(paths_[place], files_[place]);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  return CheckUnchanged();
}

/// Otherwise the hosts would have a file that was never here.
Status PushSource::CheckUnchanged() const {
  const size_t place = chosen_[sums_.size()];
  struct stat about = {};
  if (fstat(file_.get(), &about) != 0) return ReadError(paths_[place], errno);
  if (!S_ISREG(about.st_mode)) return {};
  PushedFile now;
  SetTimes(about, &now);
  const PushedFile& before = manifest_[place];
  if (static_cast<uint64_t>(about.st_size) == before.bytes && now.mtime_s == before.mtime_s &&
      now.mtime_ns == before.mtime_ns) {
    return {};
  }
  return Rejected(fmt::format("{} was changed while it was being sent", paths_[place]));
}

void PushSource::EndFile() {
  sums_.push_back(sum_->Get());
  sum_.reset();
  file_.Close();
}

Result<size_t> PushSource::Read(std::span<std::byte> out, const Checkpoint& checkpoint) {
  if (stream_.valid()) {
    if (!sums_.empty()) return size_t{0};
    if (!sum_) PREPOST_RETURN_IF_ERROR(OpenNext());
    ssize_t got = 0;
    do {
      got = read(stream_.get(), out.data(), out.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) return Rejected("the pipe was not ready");
    if (got < 0) return ReadError(paths_.front(), errno);
    awaited_pipe_.clear();
    if (got == 0) {
      EndFile();
      return size_t{0};
    }
    sum_->Add(out.first(static_cast<size_t>(got)));
    return static_cast<size_t>(got);
  }
  size_t read_bytes = 0;
  while (sums_.size() < chosen_.size()) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    if (!sum_) PREPOST_RETURN_IF_ERROR(OpenNext());
    const size_t place = chosen_[sums_.size()];
    const PushedFile& file = manifest_[place];
    if (extent_ == file.extents.size()) {
      PREPOST_RETURN_IF_ERROR(CheckUnchanged());
      EndFile();
      continue;
    }
    if (read_bytes == out.size()) break;
    const Extent& extent = file.extents[extent_];
    const uint64_t begin = std::max(offset_, extent.offset);
    const uint64_t end = extent.offset + extent.bytes;
    const auto step = out.subspan(read_bytes)
                          .first(std::min({out.size() - read_bytes, end - begin, kReadStepBytes}));
    PREPOST_RETURN_IF_ERROR(ReadExactly(file_.get(), begin, step, paths_[place]));
    sum_->Add(step);
    offset_ = begin + step.size();
    if (offset_ == end) ++extent_;
    read_bytes += step.size();
  }
  return read_bytes;
}

}  // namespace prepost::tools
