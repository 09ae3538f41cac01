// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/output_set.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "runtime/file_descriptor.h"

namespace prepost {
namespace {

constexpr std::string_view kTemporaryPrefix = ".prepost-";
constexpr std::string_view kTemporarySuffix = ".partial";

/// `tag` is empty, or begins with '-' and says on which machine `pid` is one.
std::string TemporaryName(pid_t pid, const std::string& tag) {
  return fmt::format("{}{}{}{}", kTemporaryPrefix, pid, tag, kTemporarySuffix);
}

/// Where our pid means what it does: this machine since it was started, and the namespace of pids.
/// Random if the system does not say, so that nobody takes us for gone.
std::string MachineTag() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path pids = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  if (boot.empty() || error) return fmt::format("-{:016x}", std::random_device()());
  const std::string both = boot + pids.string();
  return fmt::format("-{:016x}", XXH3_64bits(both.data(), both.size()));
}

/// The process that made a file of this name; nothing if it is no temporary name with `tag`.
std::optional<pid_t> MakerOf(const std::string& name, const std::string& tag) {
  pid_t pid = 0;
  const size_t digits = std::min(kTemporaryPrefix.size(), name.size());
  std::from_chars(name.data() + digits, name.data() + name.size(), pid);
  if (pid <= 0 || name != TemporaryName(pid, tag)) return std::nullopt;
  return pid;
}

/// Removes what runs that were killed have left in `folder`. A file with our own pid is one of
/// these: pids come again, in containers almost always.
void RemoveStale(const std::string& folder, const std::string& tag) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::optional<pid_t> maker = MakerOf(entry->path().filename(), tag);
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

OutputSet::OutputSet(const std::string& tag) : temporary_name_(TemporaryName(getpid(), tag)) {}

OutputSet::OutputSet(OutputSet&& other) noexcept
    : copies_(std::move(other.copies_)),
      temporary_name_(std::move(other.temporary_name_)),
      made_folders_(std::move(other.made_folders_)),
      pending_(std::exchange(other.pending_, false)) {}

Result<OutputSet> OutputSet::Create(const Options& options) {
  OutputSet set(/*tag=*/"");
  for (uint32_t node = 0; node < options.nodes; ++node) {
    if (NodeId(node) == options.root) continue;
    set.copies_.push_back({.node = NodeId(node),
                           .folder = fmt::format("{}/node-{}", options.folder, node),
                           .name = options.name});
  }
  PREPOST_RETURN_IF_ERROR(MakeFolder(options.folder, &set.made_folders_));
  for (const Copy& copy : set.copies_) {
    PREPOST_RETURN_IF_ERROR(MakeFolder(copy.folder, &set.made_folders_));
    PREPOST_RETURN_IF_ERROR(CheckName(copy));
    RemoveStale(copy.folder, /*tag=*/"");
  }
  return set;
}

Result<OutputSet> OutputSet::CreateOne(NodeId node, const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::exists(path, error)
                                         ? std::filesystem::canonical(path, error)
                                         : std::filesystem::path(path);
  // The folder may be shared by machines, on which the same pid means something else.
  const std::string tag = MachineTag();
  OutputSet set(tag);
  set.copies_.push_back({.node = node,
                         .folder = real.has_parent_path() ? real.parent_path().string() : ".",
                         .name = real.filename()});
  if (set.copies_.front().name.empty()) return Rejected(fmt::format("cannot write {}", path));
  PREPOST_RETURN_IF_ERROR(CheckName(set.copies_.front()));
  RemoveStale(set.copies_.front().folder, tag);
  return set;
}

Status OutputSet::CheckName(const Copy& copy) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(FinalPath(copy), error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Rejected(fmt::format("cannot write {}: {} has this name", FinalPath(copy),
                                std::filesystem::is_directory(status) ? "a folder" : "a device"));
  }
  return {};
}

const OutputSet::Copy& OutputSet::CopyOf(NodeId node) const {
  const auto copy = std::ranges::lower_bound(copies_, node, {}, &Copy::node);
  PREPOST_CHECK(copy != copies_.end() && copy->node == node);
  return *copy;
}

std::string OutputSet::TemporaryPath(NodeId node) const { return TemporaryPath(CopyOf(node)); }
std::string OutputSet::TemporaryPath(const Copy& copy) const {
  return fmt::format("{}/{}", copy.folder, temporary_name_);
}

std::string OutputSet::FinalPath(NodeId node) const { return FinalPath(CopyOf(node)); }
std::string OutputSet::FinalPath(const Copy& copy) {
  return std::filesystem::path(copy.folder) / copy.name;
}

Status OutputSet::Commit() {
  PREPOST_CHECK(pending_);
  Status status;
  std::vector<std::string> renamed;
  for (const Copy& copy : copies_) {
    const std::string path = FinalPath(copy);
    if (rename(TemporaryPath(copy).c_str(), path.c_str()) != 0) {
      status = SystemError(StatusCode::kRejected, fmt::format("cannot write {}", path), errno);
      break;
    }
    renamed.push_back(path);
  }
  if (!status.ok()) {
    for (const std::string& path : renamed) unlink(path.c_str());
    Remove();
  }
  pending_ = false;
  return status;
}

void OutputSet::Withdraw() {
  PREPOST_CHECK(!pending_);
  for (const Copy& copy : copies_) unlink(FinalPath(copy).c_str());
}

void OutputSet::Remove() {
  if (!std::exchange(pending_, false)) return;
  for (const Copy& copy : copies_) unlink(TemporaryPath(copy).c_str());
  std::for_each(made_folders_.rbegin(), made_folders_.rend(),
                [](const std::string& folder) { rmdir(folder.c_str()); });
}

}  // namespace prepost
