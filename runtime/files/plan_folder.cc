// SPDX-License-Identifier: Apache-2.0
//
// A folder is replaced by exchanging names (RENAME_EXCHANGE), so that there is no moment without
// it; where the file system cannot do that (NFS), by two renames. Of the old folder only parts of a
// plan are removed: what somebody else put there meanwhile stays, under the temporary name.
#include "runtime/files/plan_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "ir/base/input_buffer.h"
#include "ir/verify/verify_shard.h"
#include "runtime/base/interrupt.h"
#include "runtime/files/temporary_file.h"

namespace prepost {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "index.json";

Status CannotWrite(const std::string& path, int error) {
  return Rejected(fmt::format("cannot write: {}", std::strerror(error)), path);
}

/// "a/b" for "a/b/", and what a link points to for a link that the system lets this process follow.
std::string RealPath(const std::string& path) {
  std::error_code unknown;
  if (fs::exists(path, unknown)) {
    const fs::path real = fs::canonical(path, unknown);
    if (!unknown) return real.string();
  }
  const size_t end = path.find_last_not_of('/');
  return end == std::string::npos ? path : path.substr(0, end + 1);
}

bool IsPart(const fs::directory_entry& entry) {
  std::error_code error;
  if (!fs::is_regular_file(entry.symlink_status(error))) return false;
  const std::string name = entry.path().filename();
  uint32_t node = 0;
  const size_t digits = std::min(name.size(), std::strlen("node-"));
  std::from_chars(name.data() + digits, name.data() + name.size(), node);
  return name == kIndexName || name == ShardFileName(NodeId(node));
}

/// With the folder, if nothing else is in it.
void RemoveParts(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> parts;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (IsPart(*entry)) parts.push_back(entry->path());
  }
  for (const fs::path& part : parts) fs::remove(part, error);
  rmdir(folder.c_str());
}

/// Reads the file with `read`; warnings get the file's name.
template <typename Read>
auto ReadWith(Read read, const std::string& path, std::vector<std::string>* warnings)
    -> decltype(read(std::declval<std::istream&>(), path, warnings)) {
  std::error_code unknown;  // a path whose stat fails cannot be opened either
  const fs::file_status file = fs::status(path, unknown);
  if (fs::exists(file) && !fs::is_regular_file(file))  // a pipe would be waited for
    return Rejected("cannot read: not a regular file", path);
  InputBuffer buffer(path);
  PREPOST_RETURN_IF_ERROR(buffer.status(path));
  std::istream in(&buffer);
  std::vector<std::string> own;
  auto result = read(in, path, &own);
  PREPOST_RETURN_IF_ERROR(buffer.status(path));
  if (warnings != nullptr)
    for (const std::string& warning : own)
      warnings->push_back(fs::path(path).filename().string() + ": " + warning);
  return result;
}

Status WriteTo(const std::string& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) return CannotWrite(path, errno);
  write(out);
  out.close();
  return out ? Status() : CannotWrite(path, errno != 0 ? errno : EIO);
}

/// A folder of parts that goes with its owner.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    if (is_made_) RemoveParts(path_);
  }

  Status Make() {
    if (mkdir(path_.c_str(), 0777) != 0) return CannotWrite(path_, errno);
    is_made_ = true;
    return {};
  }
  /// Gives it the name `path`; what had that name goes instead.
  Status Become(const std::string& path) {
    if (rename(path_.c_str(), path.c_str()) == 0) {  // nothing or an empty folder was there
      is_made_ = false;
      return {};
    }
    if (errno != ENOTEMPTY && errno != EEXIST) return CannotWrite(path, errno);
    if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return {};
    if (errno != EINVAL && errno != ENOSYS) return CannotWrite(path, errno);
    const std::string old = path_ + ".old";
    if (rename(path.c_str(), old.c_str()) != 0) return CannotWrite(path, errno);
    if (rename(path_.c_str(), path.c_str()) != 0) {
      const int error = errno;
      rename(old.c_str(), path.c_str());
      return CannotWrite(path, error);
    }
    is_made_ = false;
    RemoveParts(old);
    return {};
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  const std::string path_;
  bool is_made_ = false;
};

/// The index whose parts' hashes are known, and add up.
struct CheckedIndex {
  PlanIndex index;
  PlanHash hash;
};

/// The hash that 64 digits stand for.
PlanHash FromHex(const std::string& digits) {
  PlanHash hash;
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  for (size_t i = 0; i < hash.size(); ++i)
    hash[i] = static_cast<std::byte>(value(digits[2 * i]) * 16 + value(digits[2 * i + 1]));
  return hash;
}

Result<CheckedIndex> ReadIndex(const std::string& folder, std::vector<std::string>* warnings) {
  const std::string path = folder + "/" + kIndexName;
  std::error_code unknown;  // a path whose stat fails cannot be read either
  if (fs::symlink_status(path, unknown).type() == fs::file_type::not_found) {
    return Rejected(fmt::format("a folder without {}, expected the file of a plan, or the folder "
                                "of one in shards",
                                kIndexName),
                    folder);
  }
  Result<PlanIndex> index = ReadWith(ReadPlanIndex, path, warnings);
  if (!index.ok()) return index.status();
  std::vector<PlanHash> parts;
  for (const ShardEntry& entry : index->shards) parts.push_back(FromHex(entry.hash));
  const PlanHash hash = HashParts(index->header, index->channels, parts);
  if (ToHex(hash) != index->plan_hash) {
    return Rejected(
        "the index was changed: its header and shards do not have the hash that it says", path);
  }
  return CheckedIndex{.index = *std::move(index), .hash = hash};
}

Result<PlanShard> ReadPart(const std::string& folder, const PlanIndex& index, NodeId node,
                           std::vector<std::string>* warnings) {
  const std::string path = folder + "/" + ShardFileName(node);
  Result<PlanShard> shard = ReadWith(ReadShard, path, warnings);
  if (!shard.ok()) return shard;
  const Status status = CheckShard(index, node, *shard);
  if (!status.ok()) return Rejected(status.message(), path);
  const PlanHash hash = HashPart(shard->part, shard->part.programs().front(), shard->channels);
  if (ToHex(hash) == index.shards[node.index()].hash) return shard;
  return Rejected("not the shard that the index names: it was changed, or is another plan's", path);
}

/// All files of `plan`, to `folder`.
Status WriteParts(const Plan& plan, const ScratchFolder& folder, int interrupt_fd) {
  const ChannelsByNode channels(plan);
  PlanIndex index{.header = plan.header(),
                  .channels = static_cast<uint32_t>(plan.channels().size()),
                  .plan_hash = {},
                  .shards = std::vector<ShardEntry>(plan.header().nodes)};
  std::vector<PlanHash> parts(plan.header().nodes);
  for (const Program& program : plan.programs()) {
    if (IsInterrupted(interrupt_fd)) return Interrupted();
    const NodeId node = program.node;
    PREPOST_RETURN_IF_ERROR(WriteTo(folder.File(ShardFileName(node)), [&](std::ostream& out) {
      WriteShard(plan, program, channels.At(node), out);
    }));
    parts[node.index()] = HashPart(plan, program, channels.At(node));
    ShardEntry& entry = index.shards[node.index()];
    entry = {.ops = program.op_count, .afters = 0, .hash = ToHex(parts[node.index()])};
    for (const Op& op : plan.ops(program)) entry.afters += op.after_count;
  }
  index.plan_hash = ToHex(HashParts(index.header, index.channels, parts));
  return WriteTo(folder.File(kIndexName), [&](std::ostream& out) { WritePlanIndex(index, out); });
}

}  // namespace

bool IsPlanFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

Status CheckPlanFolder(const std::string& path) {
  std::error_code error;
  const fs::file_status target = fs::status(path, error);
  if (!fs::exists(target)) return {};
  if (!fs::is_directory(target)) return CannotWrite(path, ENOTDIR);
  // It could be exchanged for another one, but not be emptied.
  if (faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return CannotWrite(path, errno);
  fs::directory_iterator entry(path, error);
  if (error) return CannotWrite(path, error.value());
  if (entry == fs::directory_iterator()) return {};
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (IsPart(*entry)) continue;
    return Rejected(fmt::format("cannot write: the folder holds {}, which is no part of a plan",
                                entry->path().filename().string()),
                    path);
  }
  if (error) return CannotWrite(path, error.value());
  const Result<PlanIndex> index =
      ReadWith(ReadPlanIndex, path + "/" + kIndexName, /*warnings=*/nullptr);
  if (index.ok()) return {};
  return Rejected(
      "cannot write: the folder is not empty, and no plan: " + index.status().ToString(), path);
}

Status WritePlanFolder(const Plan& plan, const std::string& path, int interrupt_fd) {
  PREPOST_RETURN_IF_ERROR(CheckPlanFolder(path));
  const std::string real = RealPath(path);
  ScratchFolder folder(fmt::format("{}.{}.partial", real, RandomDigits()));
  PREPOST_RETURN_IF_ERROR(folder.Make());
  PREPOST_RETURN_IF_ERROR(WriteParts(plan, folder, interrupt_fd));
  if (IsInterrupted(interrupt_fd)) return Interrupted();
  return folder.Become(real);
}

Result<Plan> ReadPlanFolder(const std::string& path, std::vector<std::string>* warnings) {
  const Result<CheckedIndex> checked = ReadIndex(path, warnings);
  if (!checked.ok()) return checked.status();
  const PlanIndex& index = checked->index;
  PlanAssembler assembler(index);
  for (uint32_t node = 0; node < index.header.nodes; ++node) {
    const Result<PlanShard> shard = ReadPart(path, index, NodeId(node), warnings);
    if (!shard.ok()) return shard.status();
    assembler.Add(*shard);
  }
  Result<Plan> plan = std::move(assembler).Build();
  if (!plan.ok()) return Rejected(plan.status().message(), path);
  return plan;
}

Result<PlanOfNode> ReadPlanOfNode(const std::string& path, NodeId node,
                                  std::vector<std::string>* warnings) {
  const Result<CheckedIndex> checked = ReadIndex(path, warnings);
  if (!checked.ok()) return checked.status();
  const PlanIndex& index = checked->index;
  if (node.value >= index.header.nodes) {
    return Rejected(
        fmt::format("no node {}: the plan has nodes 0 to {}", node.value, index.header.nodes - 1));
  }
  const Result<PlanShard> shard = ReadPart(path, index, node, warnings);
  if (!shard.ok()) return shard.status();
  const Verdict verdict = VerifyShard(index, *shard);
  if (!verdict.ok()) {
    const Diagnostic& first = verdict.diagnostics.front();
    return Rejected(fmt::format("the shard fails verification: {}: {}: {}", first.where,
                                Name(first.rule), first.message),
                    path + "/" + ShardFileName(node));
  }
  return PlanOfNode{.plan = NodePlan(index, *shard), .hash = checked->hash};
}

}  // namespace prepost
