// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/output_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "runtime/base/file_descriptor.h"
#include "runtime/files/temporary_file.h"

namespace prepost {
namespace {

/// Makes `path` and its missing parents, adding what it made to `*made`, parents first.
Status MakeFolder(const std::string& path, std::vector<std::string>* made) {
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0777) == 0) {
      made->push_back(prefix);
    } else if (errno != EEXIST) {
      return SystemError(StatusCode::kRejected, fmt::format("cannot make folder {}", prefix),
                         errno);
    }
  }
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return Rejected(fmt::format("cannot make folder {}: it exists and is not a folder", path));
  }
  return {};
}

}  // namespace

OutputSet::OutputSet(OutputSet&& other) noexcept
    : copies_(std::move(other.copies_)),
      made_folders_(std::move(other.made_folders_)),
      pending_(std::exchange(other.pending_, false)) {}

Result<OutputSet> OutputSet::Create(const Options& options) {
  OutputSet set;
  for (uint32_t node = 0; node < options.nodes; ++node) {
    if (!options.roles.IsTarget(NodeId(node))) continue;
    set.copies_.push_back({.node = NodeId(node),
                           .folder = fmt::format("{}/node-{}", options.folder, node),
                           .name = options.name,
                           .temporary_name = TemporaryName(),
                           .older_name = TemporaryName()});
  }
  PREPOST_RETURN_IF_ERROR(MakeFolder(options.folder, &set.made_folders_));
  for (const Copy& copy : set.copies_) {
    PREPOST_RETURN_IF_ERROR(MakeFolder(copy.folder, &set.made_folders_));
    PREPOST_RETURN_IF_ERROR(CheckName(copy));
    RemoveStale(copy.folder);
  }
  return set;
}

Result<OutputSet> OutputSet::CreateOne(NodeId node, const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::exists(path, error)
                                         ? std::filesystem::canonical(path, error)
                                         : std::filesystem::path(path);
  OutputSet set;
  set.copies_.push_back({.node = node,
                         .folder = real.has_parent_path() ? real.parent_path().string() : ".",
                         .name = real.filename(),
                         .temporary_name = TemporaryName(),
                         .older_name = TemporaryName()});
  if (set.copies_.front().name.empty()) return Rejected(fmt::format("cannot write {}", path));
  PREPOST_RETURN_IF_ERROR(CheckName(set.copies_.front()));
  RemoveStale(set.copies_.front().folder);
  return set;
}

Result<OutputSet> OutputSet::CreateIn(const std::string& folder,
                                      const std::vector<std::string>& names) {
  OutputSet set;
  PREPOST_RETURN_IF_ERROR(MakeFolder(folder, &set.made_folders_));
  for (size_t i = 0; i < names.size(); ++i) {
    set.copies_.push_back({.node = NodeId::FromIndex(i),
                           .folder = folder,
                           .name = names[i],
                           .temporary_name = TemporaryName(),
                           .older_name = TemporaryName()});
    PREPOST_RETURN_IF_ERROR(CheckName(set.copies_.back()));
  }
  RemoveStale(folder);
  return set;
}

namespace {
const char* NameOfKind(std::filesystem::file_type kind) {
  switch (kind) {
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a pipe";
    case std::filesystem::file_type::socket:
      return "a socket";
    default:
      return "a device";
  }
}
}  // namespace

Status OutputSet::CheckName(const Copy& copy) {
  std::error_code error;
  const std::filesystem::file_status status =
      std::filesystem::symlink_status(FinalPath(copy), error);
  if (error == std::errc::filename_too_long) {
    return SystemError(StatusCode::kRejected, fmt::format("cannot write {}", FinalPath(copy)),
                       ENAMETOOLONG);
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_symlink(status)) {
    return Rejected(fmt::format("cannot write {}: {} has this name", FinalPath(copy),
                                NameOfKind(status.type())));
  }
  return {};
}

const OutputSet::Copy& OutputSet::CopyOf(NodeId node) const {
  const auto copy = std::ranges::lower_bound(copies_, node, {}, &Copy::node);
  PREPOST_CHECK(copy != copies_.end() && copy->node == node);
  return *copy;
}

std::string OutputSet::TemporaryPath(NodeId node) const { return TemporaryPath(CopyOf(node)); }
std::string OutputSet::TemporaryPath(const Copy& copy) {
  return fmt::format("{}/{}", copy.folder, copy.temporary_name);
}

std::string OutputSet::FinalPath(NodeId node) const { return FinalPath(CopyOf(node)); }
std::string OutputSet::FinalPath(const Copy& copy) {
  return std::filesystem::path(copy.folder) / copy.name;
}

std::string OutputSet::OlderPath(const Copy& copy) {
  return fmt::format("{}/{}", copy.folder, copy.older_name);
}

Status OutputSet::Commit(bool sync) {
  PREPOST_CHECK(pending_);
  Status status;
  size_t placed = 0;
  while (status.ok() && placed < copies_.size()) {
    status = Place(&copies_[placed]);
    if (status.ok()) ++placed;
  }
  if (status.ok() && sync) status = SyncFolders();
  if (!status.ok()) {
    while (placed > 0) TakeBack(copies_[--placed]);
    Remove();
  }
  for (const Copy& copy : copies_) {
    if (copy.has_older) unlink(OlderPath(copy).c_str());
  }
  pending_ = false;
  return status;
}

/// Gives it its final name, under which there is a file at any moment if there was one before. That
/// one keeps its older_name: by a link or, where there are none, because the two change names.
Status OutputSet::Place(Copy* copy) {
  const std::string path = FinalPath(*copy);
  const std::string temporary = TemporaryPath(*copy);
  const std::string older = OlderPath(*copy);
  bool is_placed = false;
  if (lstat(temporary.c_str(), &copy->placed) != 0) copy->placed = {};
  copy->has_older = link(path.c_str(), older.c_str()) == 0;
  struct stat about = {};
  if (!copy->has_older && lstat(path.c_str(), &about) == 0 && !S_ISDIR(about.st_mode)) {
    is_placed =
        renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0;
    copy->has_older = is_placed && rename(temporary.c_str(), older.c_str()) == 0;
  }
  if (is_placed || rename(temporary.c_str(), path.c_str()) == 0) return {};
  return SystemError(StatusCode::kRejected, fmt::format("cannot write {}", path), errno);
}

/// Another run may have given its own file the name since.
bool OutputSet::IsStillThere(const Copy& copy) {
  struct stat now = {};
  return lstat(FinalPath(copy).c_str(), &now) == 0 && IsSameFile(copy.placed, now);
}

void OutputSet::TakeBack(const Copy& copy) {
  if (!IsStillThere(copy)) return;
  if (copy.has_older) {
    rename(OlderPath(copy).c_str(), FinalPath(copy).c_str());
  } else {
    unlink(FinalPath(copy).c_str());
  }
}

Status OutputSet::SyncFolders() const {
  std::set<std::string> folders;
  for (const Copy& copy : copies_) folders.insert(copy.folder);
  for (const std::string& made : made_folders_) {  // whose names are in their parents
    const std::filesystem::path parent = std::filesystem::path(made).parent_path();
    folders.insert(parent.empty() ? "." : parent.string());
  }
  for (const std::string& path : folders) {
    const FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid() || fsync(folder.get()) != 0)
      return SystemError(StatusCode::kRejected, fmt::format("cannot write {}", path), errno);
  }
  return {};
}

void OutputSet::Withdraw() {
  PREPOST_CHECK(!pending_);
  for (const Copy& copy : copies_) {
    if (IsStillThere(copy)) unlink(FinalPath(copy).c_str());
  }
}

void OutputSet::Remove() {
  if (!std::exchange(pending_, false)) return;
  for (const Copy& copy : copies_) unlink(TemporaryPath(copy).c_str());
  std::for_each(made_folders_.rbegin(), made_folders_.rend(),
                [](const std::string& folder) { rmdir(folder.c_str()); });
}

}  // namespace prepost
