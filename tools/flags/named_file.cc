// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/named_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <streambuf>
#include <utility>
#include <vector>

#include "runtime/interrupt.h"
#include "tools/report/messages.h"

namespace prepost::tools {
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
  std::error_code unknown;  // a path whose stat fails cannot be opened either
  const std::filesystem::path target = std::filesystem::canonical(path, unknown);
  std::string final_path = unknown ? path : target.string();
  std::string temporary = fmt::format("{}.{}.partial", final_path, getpid());
  return {.path = std::move(final_path), .temporary = std::move(temporary)};
}

using ReadFunction = std::function<Status(std::istream&, const std::string&)>;

/// Stdin, pipes and devices: what was read of them is gone.
bool ComesOnce(const std::string& path) {
  std::error_code unknown;  // a path whose stat fails cannot be opened either
  const std::filesystem::file_status file = std::filesystem::status(path, unknown);
  return path == kStandardStream || (IsSpecial(file) && !std::filesystem::is_directory(file));
}

/// The input of a path that can be read only once.
struct OnceInput {
  std::filebuf file;  ///< closed: stdin is read
  ReplayBuffer buffer;

  explicit OnceInput(bool is_stdin) : buffer(is_stdin ? *std::cin.rdbuf() : file) {}
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
  const bool is_stdin = path == kStandardStream;
  const auto [input, is_new] = OnceInputs().try_emplace(path, is_stdin);
  errno = 0;
  if (is_new && !is_stdin &&
      input->second.file.open(path, std::ios::in | std::ios::binary) == nullptr) {
    const int error = errno;
    OnceInputs().erase(input);
    return CannotRead(path, error);
  }
  return &input->second;
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
    const Status status = read(in, NameOfInput(path));
    if (path != kStandardStream) OnceInputs().erase(path);
    return status;
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return CannotRead(path, errno);
  return read(in, path);
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
  return status;
}

Status KeepInput(const std::string& path) {
  if (!ComesOnce(path) || KeptInputs().contains(path)) return {};
  std::ostringstream bytes;
  PREPOST_RETURN_IF_ERROR(WithInput(path, [&](std::istream& in, const std::string&) -> Status {
    if (in.peek() != std::istream::traits_type::eof()) bytes << in.rdbuf();
    return {};
  }));
  KeptInputs()[path] = std::move(bytes).str();
  return {};
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
  if (IsSpecial(target)) {
    std::ofstream out(path, std::ios::binary);
    write(out);
    out.flush();
    return out ? Status() : CannotWrite(path, errno);
  }
  const Destination destination = DestinationOf(path);
  std::optional<InterruptSignals> signals;
  if (on_interrupt == OnInterrupt::kLeaveNothing) {
    Result<InterruptSignals> held = InterruptSignals::Hold();
    if (!held.ok()) return held.status();
    signals.emplace(*std::move(held));
  }
  const Ticker ticker("writing " +
                      path);  // after the signals are held, so that its thread holds them too
  errno = 0;
  std::ofstream out(destination.temporary, std::ios::binary | std::ios::trunc);
  if (!out) return CannotWrite(path, errno);
  write(out);
  out.close();
  Status status = out ? Status() : CannotWrite(path, errno != 0 ? errno : EIO);
  if (signals && IsInterrupted(signals->fd())) status = Interrupted();
  if (status.ok() && std::rename(destination.temporary.c_str(), destination.path.c_str()) != 0)
    status = CannotWrite(path, errno);
  if (!status.ok()) unlink(destination.temporary.c_str());
  return status;
}

Status CheckWritable(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::file_status target = std::filesystem::status(path, unknown);
  if (std::filesystem::is_directory(target)) return CannotWrite(path, EISDIR);
  if (path == kStandardStream || IsSpecial(target)) return {};
  const std::string temporary = DestinationOf(path).temporary;
  const Result<InterruptSignals> signals = InterruptSignals::Hold();  // while the file is there
  if (!signals.ok()) return signals.status();
  errno = 0;
  if (!std::ofstream(temporary, std::ios::binary | std::ios::trunc))
    return CannotWrite(path, errno);
  unlink(temporary.c_str());
  return IsInterrupted(signals->fd()) ? Interrupted() : Status();
}

std::string SuffixOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const size_t dot = path.find_last_of('.');
  const bool has_suffix = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  return has_suffix ? path.substr(dot + 1) : "";
}

}  // namespace prepost::tools
