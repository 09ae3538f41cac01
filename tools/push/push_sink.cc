// SPDX-License-Identifier: Apache-2.0
#include "tools/push/push_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "ir/base/count.h"
#include "runtime/files/temporary_file.h"
#include "tools/push/file_extents.h"

namespace prepost::tools {
namespace {

constexpr int kTargetPollMs = 100;
constexpr int kLinksMax = 40;        ///< on the way to a target, as the kernel's
constexpr int kSilentPollsMax = 10;  ///< then it says what it waits for

Status WriteError(const std::string& path, int error) {
  return SystemError(StatusCode::kRejected, fmt::format("cannot write {}", path), error);
}

std::string TargetOf(const PushSinkOptions& options) {
  return options.target.empty() ? "." : options.target;
}

std::string PathIn(const std::string& folder, const std::string& name) {
  return std::filesystem::path(folder) / name;
}

/// What stands at a path, held (O_PATH) without being opened for anything.
struct Target {
  FileDescriptor file;        ///< empty: there is nothing
  struct stat about = {};     ///< of it
  bool is_of_others = false;  ///< neither root nor this user has made all links on the way

  mode_t kind() const { return file.valid() ? about.st_mode & S_IFMT : 0; }
};

/// Follows links by itself, as others could exchange them in between.
Result<Target> FindTarget(const std::string& path) {
  Target target;
  std::filesystem::path next = path;
  for (int links = 0; links < kLinksMax; ++links) {
    target.file = FileDescriptor(open(next.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!target.file.valid() && (errno == ENOENT || errno == ENOTDIR)) return target;
    if (!target.file.valid() || fstat(target.file.get(), &target.about) != 0)
      return WriteError(path, errno);
    if (!S_ISLNK(target.about.st_mode)) return target;
    target.is_of_others |= target.about.st_uid != 0 && target.about.st_uid != geteuid();
    std::array<char, PATH_MAX> text;
    const ssize_t bytes = readlinkat(target.file.get(), "", text.data(), text.size());
    if (bytes < 0) return WriteError(path, errno);
    next = next.parent_path() / std::string_view(text.data(), static_cast<size_t>(bytes));
  }
  return WriteError(path, ELOOP);
}

/// The system lets nobody but its owner, the folder's and root replace a file in a folder with the
/// sticky bit, such as /tmp.
Status CheckReplaceable(const std::string& path) {
  struct stat there = {}, folder = {};
  const std::string parent = std::filesystem::path(path).parent_path();
  if (geteuid() == 0 || lstat(path.c_str(), &there) != 0 ||
      stat(parent.empty() ? "." : parent.c_str(), &folder) != 0 ||
      (folder.st_mode & S_ISVTX) == 0 || there.st_uid == geteuid() || folder.st_uid == geteuid())
    return {};
  return Rejected(
      fmt::format("cannot replace {}: it is another user's (user {}), and its folder has "
                  "the sticky bit",
                  path, there.st_uid));
}

/// Opens what was found, and nothing else that has its name now. `*error`: an errno value.
FileDescriptor OpenFound(const FileDescriptor& found, int flags, int* error) {
  const std::string path = fmt::format("/proc/self/fd/{}", found.get());
  FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC));
  *error = file.valid() ? 0 : errno;
  return file;
}

/// Of OpenFound().
Status OpenError(const std::string& target, int error) {
  if (error == ENOENT && access("/proc/self/fd", F_OK) != 0)
    return EnvironmentError(fmt::format(
        "cannot write {}: a pipe or a device is opened through /proc, which is not there", target));
  return WriteError(target, error);
}

/// Whether an open file of the size of `file` has its sum and, where that is over a table of
/// extents, zeros elsewhere, in holes of its own or not.
Result<bool> HasContent(int there, const std::string& path, const PushedFile& file,
                        const Checkpoint& checkpoint) {
  uint64_t hole = 0;
  for (const Extent& extent : file.extents) {
    const Result<bool> are_zeros = AreZeros(there, hole, extent.offset, path, checkpoint);
    if (!are_zeros.ok() || !*are_zeros) return are_zeros;
    hole = extent.offset + extent.bytes;
  }
  const Result<bool> are_zeros = AreZeros(there, hole, file.bytes, path, checkpoint);
  if (!are_zeros.ok() || !*are_zeros) return are_zeros;
  const Result<MessageSum> sum = SumFile(there, file.bytes, file.extents, path, checkpoint);
  if (!sum.ok()) return sum.status();
  return sum->ToString() == file.sum;
}

/// Whether the regular file `path` is `file` already. Not what a link points to, nor a file with
/// more names that would have to be changed: it is another one's.
Result<bool> IsThere(const std::string& path, const PushedFile& file,
                     const PushSinkOptions& options) {
  const FileDescriptor there(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat about = {};
  if (!there.valid() || fstat(there.get(), &about) != 0) return false;
  if (!S_ISREG(about.st_mode) || static_cast<uint64_t>(about.st_size) != file.bytes) return false;
  if (IsOfStranger(path, about)) return false;
  bool has_time = about.st_mtim.tv_sec == file.mtime_s && about.st_mtim.tv_nsec == file.mtime_ns;
  if (!has_time && (file.sum.empty() || about.st_nlink > 1))
    has_time = IsRoundedTime(about, file, TargetOf(options));
  const bool has_mode = (about.st_mode & 0777u) == file.mode;
  if (about.st_nlink > 1 && !(has_time && has_mode)) return false;
  if (file.sum.empty()) {
    if (!has_time || file.is_device) return false;
  } else {
    const Result<bool> has_content = HasContent(there.get(), path, file, options.checkpoint);
    if (!has_content.ok() || !*has_content) return has_content;
  }
  if (about.st_nlink > 1) return true;
  PREPOST_RETURN_IF_ERROR(RenewAttributes(there.get(), about, file, path, options.unkept));
  return true;
}

}  // namespace

Result<std::string> TargetHere(const std::string& target) {
  if (!target.starts_with('~')) return target;
  if (target.size() > 1 && target[1] != '/') {
    return Rejected(
        fmt::format("{}: only ~ and ~/... are found, not the homes of other users; a "
                    "folder that is called so is ./{}",
                    target, target));
  }
  const char* const home = std::getenv("HOME");  // NOLINT: nobody sets it
  if (home == nullptr || *home == '\0')
    return Rejected(fmt::format("{}: HOME is not set, so ~ is nowhere", target));
  return home + target.substr(1);
}

Result<std::vector<size_t>> PushSink::FilesThere(const Manifest& manifest,
                                                 const PushSinkOptions& options) {
  std::vector<size_t> there;
  const Result<Target> target = FindTarget(TargetOf(options));
  if (!target.ok()) return target.status();
  if (target->kind() != S_IFDIR) return there;
  for (size_t i = 0; i < manifest.size(); ++i) {
    if (manifest[i].is_stream) continue;
    PREPOST_RETURN_IF_ERROR(Check(options.checkpoint));
    const Result<bool> is_there =
        IsThere(PathIn(TargetOf(options), manifest[i].name), manifest[i], options);
    if (!is_there.ok()) return is_there.status();
    if (*is_there) there.push_back(i);
  }
  return there;
}

PushSink::PushSink(Manifest manifest, PushSinkOptions options)
    : manifest_(std::move(manifest)),
      options_(std::move(options)),
      write_back_({.checkpoint = options_.checkpoint,
                   .waiting = options_.waiting,
                   .calls = options_.disk}) {}

Result<std::unique_ptr<PushSink>> PushSink::Open(Manifest manifest, PushSinkOptions options) {
  std::unique_ptr<PushSink> sink(new PushSink(std::move(manifest), std::move(options)));
  const std::string target = TargetOf(sink->options_);
  const Result<Target> found = FindTarget(target);
  if (!found.ok()) return found.status();
  const mode_t kind = found->kind();
  if (kind == 0 || kind == S_IFDIR) {
    PREPOST_RETURN_IF_ERROR(sink->OpenFolder());
    return sink;
  }
  if (kind == S_IFREG) {
    return Rejected(fmt::format("{} is a file; name the folder that it is to be in", target));
  }
  if (sink->manifest_.size() > 1)
    return Rejected(fmt::format("{} is no folder and can take one file only", target));
  if (found->is_of_others) {
    return Rejected(fmt::format(
        "{} is a link of another user; name the pipe or the device that it points to", target));
  }
  if (kind == S_IFBLK || kind == S_IFCHR) {
    if (!sink->options_.allow_devices) {
      return Rejected(fmt::format(
          "{} is a device; --allow-devices permits to overwrite what is on it", target));
    }
  }
  if (kind == S_IFBLK) {
    PREPOST_RETURN_IF_ERROR(sink->OpenDevice(found->file));
  } else if (kind == S_IFIFO || kind == S_IFCHR) {
    PREPOST_RETURN_IF_ERROR(sink->OpenStream(found->file));
  } else {
    return Rejected(fmt::format("{} is a socket, which cannot be written", target));
  }
  return sink;
}

Status PushSink::OpenFolder() {
  std::vector<std::string> names;
  for (const PushedFile& file : manifest_) names.push_back(file.name);
  Result<OutputSet> outputs = OutputSet::CreateIn(TargetOf(options_), names);
  if (!outputs.ok()) return outputs.status();
  outputs_.emplace(*std::move(outputs));
  for (size_t i = 0; i < manifest_.size(); ++i)
    PREPOST_RETURN_IF_ERROR(CheckReplaceable(NameOf(i)));
  constexpr size_t kOtherFiles = 64;
  is_one_at_a_time_ = manifest_.size() + kOtherFiles > options_.files_max;
  if (is_one_at_a_time_) return CheckRoom();
  PREPOST_RETURN_IF_ERROR(RaiseFileLimit(manifest_.size() + kOtherFiles));
  for (size_t i = 0; i < manifest_.size(); ++i) PREPOST_RETURN_IF_ERROR(OpenFile(i));
  return {};
}

/// Files are made in the order of the manifest.
Status PushSink::OpenFile(size_t file) {
  Result<PartialOutput> partial =
      PartialOutput::CreateUnnamed(outputs_->TemporaryPath(NodeId::FromIndex(file)), NameOf(file),
                                   /*mode=*/0600);  // its own when it is complete
  if (!partial.ok()) return partial.status();
  for (const Extent& extent : manifest_[file].extents) {
    PREPOST_RETURN_IF_ERROR(
        partial->ReserveSpace(extent.offset, extent.bytes, options_.checkpoint));
  }
  partials_.push_back(*std::move(partial));
  return {};
}

/// For all files, without making any.
Status PushSink::CheckRoom() const {
  uint64_t bytes = 0;
  for (const PushedFile& file : manifest_) {
    if (__builtin_add_overflow(bytes, file.data_bytes(), &bytes))
      return Rejected("the files have more bytes than can be counted");
  }
  return CheckFreeSpace(TargetOf(options_), bytes);
}

Status PushSink::OpenDevice(const FileDescriptor& found) {
  kind_ = Kind::kDevice;
  const std::string target = TargetOf(options_);
  // One that is mounted, or otherwise in use, cannot be opened exclusively.
  int error = 0;
  device_ = OpenFound(found, O_WRONLY | O_EXCL, &error);
  if (!device_.valid()) return OpenError(target, error);
  uint64_t bytes = 0;
  if (ioctl(device_.get(), BLKGETSIZE64, &bytes) != 0) return WriteError(target, errno);
  if (!manifest_.empty() && manifest_.front().bytes > bytes) {
    return Rejected(fmt::format("{} has room for {}, but {} has {}", target, Count(bytes, "byte"),
                                manifest_.front().name, manifest_.front().bytes));
  }
  return {};
}

Status PushSink::OpenStream(const FileDescriptor& found) {
  kind_ = Kind::kStream;
  const std::string target = TargetOf(options_);
  for (int polls = 0;; ++polls) {  // until somebody reads
    int error = 0;
    device_ = OpenFound(found, O_WRONLY | O_NONBLOCK, &error);
    if (device_.valid()) return {};
    if (error != ENXIO) return OpenError(target, error);
    PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    struct stat first = {}, now = {};
    if (fstat(found.get(), &first) != 0) return WriteError(target, errno);
    if (stat(target.c_str(), &now) != 0 || !IsSameFile(first, now))
      return Rejected(fmt::format("{} was replaced or removed before anybody read it", target));
    if (polls == kSilentPollsMax && options_.waiting)
      options_.waiting(fmt::format("waits until somebody reads the pipe {}", target));
    poll(nullptr, 0, kTargetPollMs);
  }
}

int PushSink::fd() const {
  return kind_ == Kind::kFolder ? partials_[sums_.size()].fd() : device_.get();
}

std::string PushSink::NameOf(size_t file) const {
  return kind_ == Kind::kFolder ? PathIn(TargetOf(options_), manifest_[file].name)
                                : TargetOf(options_);
}

/// At offset_ of the file at hand.
Status PushSink::Put(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  if (kind_ != Kind::kStream) {
    const std::string name = NameOf(sums_.size());
    PREPOST_RETURN_IF_ERROR(WriteExactly(fd(), offset_ - bytes.size(), bytes, name));
    return IsSynced() ? write_back_.Advance(fd(), offset_, name) : Status();
  }
  while (!bytes.empty()) {
    const ssize_t written = write(fd(), bytes.data(), bytes.size());
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
    if (written >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return WriteError(NameOf(sums_.size()), errno);
    PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    pollfd writable = {.fd = fd(), .events = POLLOUT, .revents = 0};
    poll(&writable, 1, kTargetPollMs);
  }
  return {};
}

/// A file's is just not written.
Status PushSink::PutHole(uint64_t bytes) {
  if (kind_ == Kind::kFolder) {
    offset_ += bytes;
    return {};
  }
  const std::vector<std::byte> zeros(std::min<uint64_t>(bytes, size_t{1} << 20));
  while (bytes > 0) {
    const uint64_t step = std::min<uint64_t>(bytes, zeros.size());
    PREPOST_RETURN_IF_ERROR(Put(std::span(zeros).first(step)));
    PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    bytes -= step;
  }
  return {};
}

Status PushSink::Write(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (sums_.size() == manifest_.size()) return Rejected("more bytes than the files have");
    PREPOST_RETURN_IF_ERROR(BeginFile());
    if (file().is_stream) {
      sum_->Add(bytes);
      return Put(bytes);
    }
    if (extent_ == file().extents.size()) {
      PREPOST_RETURN_IF_ERROR(EndFile());
      continue;
    }
    const Extent& extent = file().extents[extent_];
    if (extent.offset > offset_) PREPOST_RETURN_IF_ERROR(PutHole(extent.offset - offset_));
    const uint64_t step = std::min<uint64_t>(extent.offset + extent.bytes - offset_, bytes.size());
    sum_->Add(bytes.first(step));
    PREPOST_RETURN_IF_ERROR(Put(bytes.first(step)));
    bytes = bytes.subspan(step);
    if (offset_ == extent.offset + extent.bytes) ++extent_;
  }
  return {};
}

/// Unless it has begun.
Status PushSink::BeginFile() {
  if (sum_) return {};
  sum_.emplace(file().bytes, file().extents);
  return kind_ == Kind::kFolder && is_one_at_a_time_ ? OpenFile(sums_.size()) : Status();
}

Status PushSink::EndFile() {
  PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
  PREPOST_RETURN_IF_ERROR(BeginFile());
  const PushedFile& it = file();
  const std::string name = NameOf(sums_.size());
  if (!it.is_stream) {
    if (extent_ < it.extents.size()) {
      return Rejected(fmt::format("{} is not complete", name));
    }
    if (it.bytes > offset_) PREPOST_RETURN_IF_ERROR(PutHole(it.bytes - offset_));
  }
  if (kind_ == Kind::kFolder) {
    if (ftruncate(fd(), static_cast<off_t>(offset_)) != 0) return WriteError(name, errno);
    PREPOST_RETURN_IF_ERROR(SetAttributes(fd(), it, name, options_.unkept));
  }
  // Pipes cannot and need not.
  if (IsSynced() && kind_ != Kind::kStream) PREPOST_RETURN_IF_ERROR(write_back_.Finish(fd(), name));
  if (kind_ == Kind::kFolder && is_one_at_a_time_)
    PREPOST_RETURN_IF_ERROR(partials_.back().NameAndClose());
  sums_.push_back(sum_->Get());
  sum_.reset();
  extent_ = 0;
  offset_ = 0;
  return {};
}

Result<std::vector<MessageSum>> PushSink::Finish() {
  while (sums_.size() < manifest_.size()) PREPOST_RETURN_IF_ERROR(EndFile());
  return sums_;
}

Status PushSink::Commit() {
  if (kind_ != Kind::kFolder) return {};
  for (PartialOutput& partial : partials_) PREPOST_RETURN_IF_ERROR(partial.GiveName());
  if (!options_.sync) return outputs_->Commit(/*sync=*/false);
  Status status;
  // All or none of the files have their names afterwards, so nothing else counts.
  static_cast<void>(
      write_back_.WaitFor([&] { status = outputs_->Commit(/*sync=*/true); }, TargetOf(options_)));
  return status;
}

}  // namespace prepost::tools
