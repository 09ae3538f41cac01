// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/message_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ir/base/count.h"
#include "runtime/base/memory_file.h"

namespace prepost {
namespace {

/// Between checkpoints while reserving; file systems that must touch every page do about 1 GB/s.
constexpr uint64_t kReserveStepBytes = uint64_t{64} << 20;
/// Between checkpoints while reading and writing.
constexpr uint64_t kCopyStepBytes = uint64_t{8} << 20;

Status FileError(const char* verb, const std::string& path, int error) {
  return SystemError(StatusCode::kRejected, fmt::format("cannot {} {}", verb, path), error);
}

const char* KindOfFile(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a folder";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    case S_IFIFO:
      return "a pipe";
    default:
      return "a socket";
  }
}

struct MessageFile {
  FileDescriptor file;
  uint64_t bytes = 0;
};

Result<MessageFile> OpenMessage(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return FileError("open input", path, errno);
  struct stat about = {};
  if (fstat(file.get(), &about) != 0) return FileError("look at input", path, errno);
  if (!S_ISREG(about.st_mode)) {
    return Rejected(
        fmt::format("input {} is {}, expected a regular file", path, KindOfFile(about.st_mode)));
  }
  char byte = 0;
  if (about.st_size == 0 && pread(file.get(), &byte, 1, 0) == 1) {
    return Rejected(
        fmt::format("input {} is made by the kernel as it is read and has no size, "
                    "expected a regular file: copy it to one",
                    path));
  }
  return MessageFile{.file = std::move(file), .bytes = static_cast<uint64_t>(about.st_size)};
}

std::string CannotReserve(uint64_t bytes, const std::string& name) {
  return fmt::format("cannot reserve {} for {}", Count(bytes, "byte"), name);
}

/// On the file system of an open file or folder.
Status CheckSpaceOf(int fd, const std::string& name, uint64_t bytes) {
  struct statvfs disk = {};
  if (fstatvfs(fd, &disk) != 0) return {};
  // Some that know no number report none as free, as full ones do.
  if (disk.f_bfree == 0 || disk.f_bfree >= bytes / disk.f_frsize) return {};
  const std::string free =
      fmt::format("{}, {} are free", CannotReserve(bytes, name), disk.f_bfree * disk.f_frsize);
  return SystemError(StatusCode::kRejected, free, ENOSPC);
}

/// What the call gives where it is not there or not allowed; with a true reason writing fails, too.
bool IsRefused(int error) {
  return error == EPERM || error == EACCES || error == ENOSYS || error == EAGAIN ||
         error == EOPNOTSUPP || error == EINVAL || error == ENODEV;
}

/// Where a file has a hole. 0 or an errno value.
int WriteZeros(int fd, uint64_t offset, uint64_t bytes) {
  const std::vector<std::byte> zeros(std::min<uint64_t>(bytes, size_t{1} << 20));
  while (bytes > 0) {
    const ssize_t put = pwrite(fd, zeros.data(), std::min<uint64_t>(bytes, zeros.size()),
                               static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<uint64_t>(put);
  }
  return 0;
}

}  // namespace

Result<uint64_t> MessageFileBytes(const std::string& path) {
  const Result<MessageFile> message = OpenMessage(path);
  if (!message.ok()) return message.status();
  return message->bytes;
}

Result<MappedInput> MappedInput::Open(const std::string& path) {
  Result<MessageFile> message = OpenMessage(path);
  if (!message.ok()) return message.status();
  MappedInput input;
  input.path_ = path;
  input.file_ = std::move(message->file);
  Result<Mapping> mapping = Mapping::OfFile(input.fd(), message->bytes, Mapping::Access::kRead);
  if (!mapping.ok()) return mapping.status();
  input.mapping_ = std::move(*mapping);
  return input;
}

Result<MappedInput> MappedInput::Empty() {
  MappedInput input;
  Result<FileDescriptor> file = MakeMemoryFile("prepost-empty", 0);
  if (!file.ok()) return file.status();
  input.file_ = *std::move(file);
  return input;
}

Status MappedInput::CheckStillWhole() const {
  struct stat about = {};
  if (fstat(fd(), &about) != 0) return FileError("look at input", path_, errno);
  const uint64_t now = static_cast<uint64_t>(about.st_size);
  if (now >= size_bytes()) return {};
  return Rejected(fmt::format("input {} was truncated meanwhile: it has {}, expected {}", path_,
                              Count(now, "byte"), size_bytes()));
}

Result<MessageSum> MappedInput::Sum(const Checkpoint& checkpoint) const {
  return SumFile(fd(), size_bytes(), fmt::format("input {}", path_), checkpoint);
}

Result<Mapping> MappedInput::Read(uint64_t offset, uint64_t bytes,
                                  const Checkpoint& checkpoint) const {
  Result<Mapping> memory = Mapping::Anonymous(bytes);
  if (!memory.ok()) return memory;
  for (uint64_t done = 0; done < bytes; done += kCopyStepBytes) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    const uint64_t step = std::min(bytes - done, kCopyStepBytes);
    PREPOST_RETURN_IF_ERROR(ReadExactly(fd(), offset + done, memory->bytes().subspan(done, step),
                                        fmt::format("input {}", path_)));
  }
  return memory;
}

Result<PartialOutput> PartialOutput::Create(const std::string& path, const std::string& name,
                                            mode_t mode) {
  return Make(path, name, mode, TemporaryFile::Named::kAtOnce);
}

Result<PartialOutput> PartialOutput::CreateUnnamed(const std::string& path, const std::string& name,
                                                   mode_t mode) {
  return Make(path, name, mode, TemporaryFile::Named::kWhenComplete);
}

Result<PartialOutput> PartialOutput::Make(const std::string& path, const std::string& name,
                                          mode_t mode, TemporaryFile::Named named) {
  PartialOutput output;
  output.name_ = name;
  const int error = output.file_.Create(path, mode, named);
  if (error != 0) return FileError("create", name, error);
  return output;
}

Status CheckFreeSpace(const std::string& folder, uint64_t bytes) {
  const FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return file.valid() ? CheckSpaceOf(file.get(), "files in " + folder, bytes) : Status();
}

Status PartialOutput::NameAndClose() {
  PREPOST_RETURN_IF_ERROR(GiveName());
  const int error = file_.Close();
  return error == 0 ? Status() : FileError("write", name_, error);
}

Status PartialOutput::GiveName() {
  const int error = file_.GiveName();
  if (error == ESTALE) {
    return Rejected(fmt::format(
        "cannot write {}: its temporary file was removed or replaced meanwhile", name_));
  }
  return error == 0 ? Status() : FileError("write", name_, error);
}

Status PartialOutput::Reserve(uint64_t bytes, const Checkpoint& checkpoint) {
  PREPOST_RETURN_IF_ERROR(ReserveSpace(0, bytes, checkpoint));
  Result<Mapping> mapping = Mapping::OfFile(fd(), bytes, Mapping::Access::kReadWrite);
  if (!mapping.ok()) return mapping.status();
  mapping_ = std::move(*mapping);
  return {};
}

/// Checks the free space first, so that a hopeless request does not fill the disk for a while.
Status PartialOutput::ReserveSpace(uint64_t offset, uint64_t bytes, const Checkpoint& checkpoint) {
  PREPOST_RETURN_IF_ERROR(CheckSpaceOf(fd(), name_, bytes));
  for (const uint64_t end = offset + bytes; offset < end;) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    const uint64_t step = std::min(end - offset, kReserveStepBytes);
    int error = posix_fallocate(fd(), static_cast<off_t>(offset), static_cast<off_t>(step));
    if (error == EINTR) continue;
    if (IsRefused(error)) error = WriteZeros(fd(), offset, step);
    if (error != 0) return SystemError(StatusCode::kRejected, CannotReserve(bytes, name_), error);
    offset += step;
  }
  return {};
}

Status PartialOutput::Write(std::span<const std::byte> copy, const Checkpoint& checkpoint) {
  PREPOST_CHECK(copy.size() == bytes().size());
  for (uint64_t offset = 0; offset < copy.size(); offset += kCopyStepBytes) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    const uint64_t step = std::min(copy.size() - offset, kCopyStepBytes);
    PREPOST_RETURN_IF_ERROR(WriteExactly(fd(), offset, copy.subspan(offset, step), name_));
  }
  return {};
}

Result<MessageSum> PartialOutput::Sum(const Checkpoint& checkpoint) const {
  return SumFile(fd(), bytes().size(), name_, checkpoint);
}

}  // namespace prepost
