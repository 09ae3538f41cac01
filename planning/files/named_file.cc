// SPDX-License-Identifier: Apache-2.0
#include "planning/files/named_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <streambuf>
#include <utility>
#include <vector>

#include "ir/base/input_buffer.h"
#include "planning/text/messages.h"
#include "runtime/base/interrupt.h"
#include "runtime/files/temporary_file.h"

namespace prepost {
namespace {

/// A stream that can be read only once, such as stdin or a pipe, of which reading its beginning
/// takes nothing away.
class ReplayBuffer final : public std::streambuf {
 public:
  /// Reads from `source`, which outlives it.
  explicit ReplayBuffer(std::streambuf& source) : source_(source) {}

  /// What is read until EndPreview() is read again afterwards. The stream seems to end after
  /// kPreviewBytesMax.
  void BeginPreview();
  void EndPreview();
  static constexpr size_t kPreviewBytesMax = size_t{1} << 20;

 protected:
  int_type underflow() override;

 private:
  std::streambuf& source_;
  std::vector<char> bytes_;  ///< the get area
  bool is_preview_ = false;
};

void ReplayBuffer::BeginPreview() {
  bytes_.assign(gptr(), egptr());
  setg(bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size());
  is_preview_ = true;
}

void ReplayBuffer::EndPreview() {
  setg(bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size());
  is_preview_ = false;
}

ReplayBuffer::int_type ReplayBuffer::underflow() {
  constexpr size_t kPreviewStep = 4096, kStep = size_t{1} << 16;
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  if (is_preview_ && bytes_.size() >= kPreviewBytesMax) return traits_type::eof();
  const size_t kept = is_preview_ ? bytes_.size() : 0;
  const size_t wanted = is_preview_ ? kPreviewStep : kStep;
  bytes_.resize(kept + wanted);
  const std::streamsize got =
      source_.sgetn(bytes_.data() + kept, static_cast<std::streamsize>(wanted));
  bytes_.resize(kept + (got > 0 ? static_cast<size_t>(got) : 0));
  setg(bytes_.data(), bytes_.data() + kept, bytes_.data() + bytes_.size());
  return bytes_.size() > kept ? traits_type::to_int_type(*gptr()) : traits_type::eof();
}

constexpr const char* kStandardStream = "-";
constexpr size_t kKeptBytesMax = size_t{64} << 20;

Status CannotRead(const std::string& path, int error) {
  return Rejected(fmt::format("cannot read: {}", std::strerror(error)), path);
}
Status CannotWrite(const std::string& path, int error) {
  return Rejected(fmt::format("cannot write: {}", std::strerror(error)), path);
}

/// A device, pipe or socket: it is written to as it is, without renaming.
bool IsSpecial(const std::filesystem::file_status& status) {
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

/// Where a file is written and what then becomes of it. A link stays a link: what it points to is
/// replaced.
struct Destination {
  std::string path;
  std::string temporary;
};
Destination DestinationOf(const std::string& path) {
  std::error_code unknown;
  // What a link points to is only replaced where the system lets this process follow the link,
  // which another user may have made (fs.protected_symlinks); canonical() reads it in any case. One
  // who puts a link there between the two still chooses what is replaced.
  const bool is_found = std::filesystem::exists(path, unknown);
  const std::filesystem::path target =
      is_found ? std::filesystem::canonical(path, unknown) : std::filesystem::path(path);
  const std::filesystem::path final_path = unknown ? std::filesystem::path(path) : target;
  return {.path = final_path, .temporary = final_path.parent_path() / TemporaryName()};
}

constexpr mode_t kFileMode = 0666;  ///< less what the umask takes

/// What is written to an open file.
class FileBuffer final : public std::streambuf {
 public:
  explicit FileBuffer(int file) : file_(file), bytes_(size_t{1} << 16) { Empty(); }
  /// Of the first write that failed, an errno value; 0: none.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type byte) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(byte, traits_type::eof()))
      return sputc(traits_type::to_char_type(byte));
    return traits_type::not_eof(byte);
  }
  int sync() override {
    for (const char* next = pbase(); next < pptr() && error_ == 0;) {
      const ssize_t put = write(file_, next, static_cast<size_t>(pptr() - next));
      if (put >= 0) next += put;
      if (put < 0 && errno != EINTR) error_ = errno;
    }
    Empty();
    return error_ == 0 ? 0 : -1;
  }

 private:
  void Empty() { setp(bytes_.data(), bytes_.data() + bytes_.size()); }

  const int file_;
  int error_ = 0;
  std::vector<char> bytes_;
};

using ReadFunction = std::function<Status(std::istream&, const std::string&)>;

/// Stdin, pipes and devices: what was read of them is gone.
bool ComesOnce(const std::string& path) {
  std::error_code unknown;  // a path whose stat fails cannot be opened either
  const std::filesystem::file_status file = std::filesystem::status(path, unknown);
  return path == kStandardStream || (IsSpecial(file) && !std::filesystem::is_directory(file));
}

/// The input of a path that can be read only once.
struct OnceInput {
  InputBuffer file;
  ReplayBuffer buffer{file};

  template <typename File>  // a path or stdin
  explicit OnceInput(const File& opened) : file(opened) {}
};

/// Those that are open between a preview and the reading, by path. Like stdin itself there is one
/// of each for the whole process.
std::map<std::string, OnceInput>& OnceInputs() {
  static std::map<std::string, OnceInput> inputs;
  return inputs;
}

/// By path, what KeepInput() has read.
std::map<std::string, std::string>& KeptInputs() {
  static std::map<std::string, std::string> inputs;
  return inputs;
}

Result<OnceInput*> OpenOnce(const std::string& path) {
  const auto [input, is_new] = path == kStandardStream
                                   ? OnceInputs().try_emplace(path, STDIN_FILENO)
                                   : OnceInputs().try_emplace(path, path);
  const Status status = input->second.file.status(NameOfInput(path));
  if (status.ok()) return &input->second;
  OnceInputs().erase(input);
  return status;
}

}  // namespace

std::string NameOfFile(const std::string& path) {
  const std::filesystem::path file(path);
  return file.has_filename() ? file.filename() : file.parent_path().filename();
}

std::string NameOfInput(const std::string& path) {
  return path == kStandardStream ? "<stdin>" : path;
}

Status WithInput(const std::string& path, const ReadFunction& read) {
  if (path.empty()) return {StatusCode::kUsage, "expected the name of a file, found ''"};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return CannotRead(path, EISDIR);
  if (const auto kept = KeptInputs().find(path); kept != KeptInputs().end()) {
    std::istringstream in(kept->second);
    return read(in, NameOfInput(path));
  }
  if (ComesOnce(path)) {
    const Result<OnceInput*> input = OpenOnce(path);
    if (!input.ok()) return input.status();
    std::istream in(&(*input)->buffer);
    Status status = read(in, NameOfInput(path));
    const Status unread = (*input)->file.status(NameOfInput(path));
    if (!unread.ok()) status = unread;  // it has seen an end where there is none
    if (path != kStandardStream) OnceInputs().erase(path);
    return status;
  }
  InputBuffer file(path);
  PREPOST_RETURN_IF_ERROR(file.status(path));
  std::istream in(&file);
  const Status status = read(in, path);
  const Status unread = file.status(path);
  return unread.ok() ? status : unread;
}

Status WithPreview(const std::string& path, const ReadFunction& read) {
  if (!ComesOnce(path) || KeptInputs().contains(path)) return WithInput(path, read);
  const Result<OnceInput*> input = OpenOnce(path);
  if (!input.ok()) return input.status();
  ReplayBuffer& buffer = (*input)->buffer;
  buffer.BeginPreview();
  std::istream in(&buffer);
  const Status status = read(in, NameOfInput(path));
  buffer.EndPreview();
  const Status unread = (*input)->file.status(NameOfInput(path));
  return unread.ok() ? status : unread;
}

Status KeepInput(const std::string& path) {
  if (!ComesOnce(path) || KeptInputs().contains(path)) return {};
  return WithText(path, kKeptBytesMax, [&](const std::string& text, const std::string&) -> Status {
    KeptInputs()[path] = text;
    return {};
  });
}

Status WithText(const std::string& path, size_t bytes_max,
                const std::function<Status(const std::string&, const std::string&)>& read) {
  return WithInput(path, [&](std::istream& in, const std::string& name) -> Status {
    std::string text;
    std::array<char, 1 << 16> part;
    while (in.read(part.data(), part.size()) || in.gcount() > 0) {
      text.append(part.data(), static_cast<size_t>(in.gcount()));
      if (text.size() > bytes_max)
        return Rejected(fmt::format("the file has more than {} bytes", bytes_max), name);
    }
    return read(text, name);
  });
}

namespace {

/// To a device or pipe, unless something else has its name when it is opened.
Status WriteSpecial(const std::string& path, const std::function<void(std::ostream&)>& write) {
  struct stat before = {}, now = {};
  if (stat(path.c_str(), &before) != 0) return CannotWrite(path, errno);
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || fstat(file.get(), &now) != 0) return CannotWrite(path, errno);
  if (S_ISREG(now.st_mode) || !IsSameFile(before, now))
    return Rejected("cannot write: it was replaced meanwhile", path);
  FileBuffer buffer(file.get());
  std::ostream out(&buffer);
  write(out);
  out.flush();
  if (out) return {};
  return CannotWrite(path, buffer.error() != 0 ? buffer.error() : EIO);
}

}  // namespace

Status WriteFile(const std::string& path, const std::function<void(std::ostream&)>& write,
                 OnInterrupt on_interrupt) {
  if (path == kStandardStream) {
    write(std::cout);
    std::cout.flush();
    return std::cout ? Status() : CannotWrite("<stdout>", errno);
  }
  std::error_code
      unknown;  // a path whose stat fails cannot be opened either, which is reported below
  const std::filesystem::file_status target = std::filesystem::status(path, unknown);
  if (std::filesystem::is_directory(target)) return CannotWrite(path, EISDIR);
  if (IsSpecial(target)) return WriteSpecial(path, write);
  const Destination destination = DestinationOf(path);
  std::optional<InterruptSignals> signals;
  if (on_interrupt == OnInterrupt::kLeaveNothing) {
    Result<InterruptSignals> held = InterruptSignals::Hold();
    if (!held.ok()) return held.status();
    signals.emplace(*std::move(held));
  }
  const Ticker ticker("writing " +
                      path);  // after the signals are held, so that its thread holds them too
  TemporaryFile file;
  int error = file.Create(destination.temporary, kFileMode);
  if (error != 0) return CannotWrite(path, error);
  FileBuffer buffer(file.fd());
  std::ostream out(&buffer);
  write(out);
  out.flush();
  error = buffer.error() == 0 && !out ? EIO : buffer.error();
  const bool is_interrupted = signals && IsInterrupted(signals->fd());
  if (error == 0 && !is_interrupted) error = file.GiveName();
  if (error == 0 && !is_interrupted &&
      std::rename(destination.temporary.c_str(), destination.path.c_str()) != 0)
    error = errno;
  if (error == 0 && !is_interrupted) return {};
  unlink(destination.temporary.c_str());
  return is_interrupted ? Interrupted() : CannotWrite(path, error);
}

Status CheckWritable(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::file_status target = std::filesystem::status(path, unknown);
  if (std::filesystem::is_directory(target)) return CannotWrite(path, EISDIR);
  if (path == kStandardStream || IsSpecial(target)) return {};
  const auto [final_path, temporary] = DestinationOf(path);
  struct stat about = {};
  if (lstat(final_path.c_str(), &about) != 0 && errno != ENOENT) return CannotWrite(path, errno);
  const Result<InterruptSignals> signals = InterruptSignals::Hold();  // while the file is there
  if (!signals.ok()) return signals.status();
  TemporaryFile file;
  if (const int error = file.Create(temporary, kFileMode); error != 0)
    return CannotWrite(path, error);
  unlink(temporary.c_str());
  return IsInterrupted(signals->fd()) ? Interrupted() : Status();
}

std::string SuffixOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const size_t dot = path.find_last_of('.');
  const bool has_suffix = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  return has_suffix ? path.substr(dot + 1) : "";
}

}  // namespace prepost
