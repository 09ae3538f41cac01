// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/output_set.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "prepost/runtime/file_descriptor.h"

namespace prepost {
namespace {

constexpr std::string_view kTemporaryPrefix = ".prepost-";
constexpr std::string_view kTemporarySuffix = ".partial";

std::string TemporaryName(pid_t pid) {
  return fmt::format("{}{}{}", kTemporaryPrefix, pid, kTemporarySuffix);
}

/// The process that made a file of this name; nothing if it is no temporary name.
std::optional<pid_t> MakerOf(const std::string& name) {
  pid_t pid = 0;
  const size_t digits = std::min(kTemporaryPrefix.size(), name.size());
  std::from_chars(name.data() + digits, name.data() + name.size(), pid);
  if (pid <= 0 || name != TemporaryName(pid)) return std::nullopt;
  return pid;
}

/// Removes what runs that were killed have left in `folder`. A file with our own pid is one of
/// these: pids come again, in containers almost always.
void RemoveStale(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::optional<pid_t> maker = MakerOf(entry->path().filename());
    if (!maker) continue;
    const bool lives = *maker != getpid() && (kill(*maker, 0) == 0 || errno != ESRCH);
    if (!lives) unlink(entry->path().c_str());
  }
}

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

OutputSet::OutputSet(const Options& options)
    : options_(options), temporary_name_(TemporaryName(getpid())) {}

OutputSet::OutputSet(OutputSet&& other) noexcept
    : options_(std::move(other.options_)),
      temporary_name_(std::move(other.temporary_name_)),
      made_folders_(std::move(other.made_folders_)),
      pending_(std::exchange(other.pending_, false)) {}

Result<OutputSet> OutputSet::Create(const Options& options) {
  OutputSet set(options);
  PREPOST_RETURN_IF_ERROR(set.MakeFolders());
  return set;
}

template <typename Action>
void OutputSet::ForEachReceiver(Action action) const {
  for (uint32_t node = 0; node < options_.nodes; ++node) {
    if (NodeId(node) != options_.root) action(NodeId(node));
  }
}

Status OutputSet::MakeFolders() {
  Status status = MakeFolder(options_.folder, &made_folders_);
  ForEachReceiver([&](NodeId node) {
    if (status.ok()) status = MakeFolder(Folder(node), &made_folders_);
    std::error_code error;
    if (status.ok() && std::filesystem::is_directory(FinalPath(node), error)) {
      status = Rejected(fmt::format("cannot write {}: a folder has this name", FinalPath(node)));
    }
    if (status.ok()) RemoveStale(Folder(node));
  });
  return status;
}

std::string OutputSet::Folder(NodeId node) const {
  return fmt::format("{}/node-{}", options_.folder, node.value);
}

std::string OutputSet::TemporaryPath(NodeId node) const {
  return fmt::format("{}/{}", Folder(node), temporary_name_);
}

std::string OutputSet::FinalPath(NodeId node) const {
  return fmt::format("{}/{}", Folder(node), options_.name);
}

Status OutputSet::Commit() {
  PREPOST_CHECK(pending_);
  Status status;
  std::vector<std::string> renamed;
  ForEachReceiver([&](NodeId node) {
    if (!status.ok()) return;
    const std::string path = FinalPath(node);
    if (rename(TemporaryPath(node).c_str(), path.c_str()) == 0) {
      renamed.push_back(path);
    } else {
      status = SystemError(StatusCode::kRejected, fmt::format("cannot write {}", path), errno);
    }
  });
  if (!status.ok()) {
    for (const std::string& path : renamed) unlink(path.c_str());
    Remove();
  }
  pending_ = false;
  return status;
}

void OutputSet::Remove() {
  if (!std::exchange(pending_, false)) return;
  ForEachReceiver([&](NodeId node) { unlink(TemporaryPath(node).c_str()); });
  std::for_each(made_folders_.rbegin(), made_folders_.rend(),
                [](const std::string& folder) { rmdir(folder.c_str()); });
}

}  // namespace prepost
