// SPDX-License-Identifier: Apache-2.0
#include "tools/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

#include "prepost/ir/plan_json.h"
#include "prepost/ir/rolled_plan_json.h"
#include "prepost/ir/utf8.h"
#include "prepost/ir/verify.h"
#include "prepost/runtime/interrupt.h"
#include "prepost/runtime/plan_folder.h"
#include "tools/file_kind.h"
#include "tools/replay_buffer.h"
#include "tools/ticker.h"

namespace prepost::tools {
namespace {

constexpr const char* kStandardStream = "-";

Status CannotRead(const std::string& path, int error) {
  return Rejected(fmt::format("cannot read: {}", std::strerror(error)), path);
}
Status CannotWrite(const std::string& path, int error) {
  return Rejected(fmt::format("cannot write: {}", std::strerror(error)), path);
}

struct Unit {
  std::string_view name;
  uint64_t bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
    {"PiB", 1ull << 50},
    {"EiB", 1ull << 60},
    {"kB", 1'000},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"PB", 1'000'000'000'000'000},
    {"EB", 1'000'000'000'000'000'000},
};

/// Of the same warning, for each file of a folder, so many are printed.
constexpr size_t kWarningsOfAKind = 3;

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
  std::error_code unknown;  // what cannot be looked at cannot be opened either
  const std::filesystem::path target = std::filesystem::canonical(path, unknown);
  std::string final_path = unknown ? path : target.string();
  std::string temporary = fmt::format("{}.{}.partial", final_path, getpid());
  return {.path = std::move(final_path), .temporary = std::move(temporary)};
}

using ReadFunction = std::function<Status(std::istream&, const std::string&)>;

std::string NameOfInput(const std::string& path) {
  return path == kStandardStream ? "<stdin>" : path;
}

/// Stdin, pipes and devices: what was read of them is gone.
bool ComesOnce(const std::string& path) {
  std::error_code unknown;  // what cannot be looked at cannot be opened either
  const std::filesystem::file_status file = std::filesystem::status(path, unknown);
  return path == kStandardStream || (IsSpecial(file) && !std::filesystem::is_directory(file));
}

/// Of a path that comes once.
struct OnceInput {
  std::filebuf file;  ///< closed: stdin is read
  ReplayBuffer buffer;

  explicit OnceInput(bool is_stdin) : buffer(is_stdin ? *std::cin.rdbuf() : file) {}
};

/// Those that are open between a preview and the reading, by path. Like stdin itself there is one of
/// each for the whole process.
std::map<std::string, OnceInput>& OnceInputs() {
  static std::map<std::string, OnceInput> inputs;
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

/// The plan that `read` reads from the file; warnings go to stderr.
template <typename ReadPlanFunction>
auto ReadPlanWith(ReadPlanFunction read, const std::string& path)
    -> decltype(read(std::cin, path, nullptr)) {
  const Ticker ticker("reading " + path);
  auto plan = decltype(read(std::cin, path, nullptr))(Rejected("not read", path));
  const Status status = WithInput(path, [&](std::istream& in, const std::string& name) -> Status {
    std::vector<std::string> warnings;
    plan = read(in, name, &warnings);
    PrintWarnings(name, warnings);
    return plan.status();
  });
  if (!status.ok()) return status;
  return plan;
}

}  // namespace

void PrintMessage(const std::string& text) {
  std::cerr << fmt::format("prepost: {}\n", Printable(text));
}

void PrintNote(const std::string& text) { PrintMessage("note: " + text); }

void PrintWarnings(const std::string& name, const std::vector<std::string>& warnings) {
  std::map<std::string, size_t> seen;  // by kind: the text behind the place
  for (const std::string& warning : warnings) {
    const size_t colon = warning.rfind(": ");
    const std::string kind = warning.substr(colon == std::string::npos ? 0 : colon + 2);
    if (++seen[kind] <= kWarningsOfAKind)
      PrintMessage(fmt::format("warning: {}: {}", name, warning));
  }
  for (const auto& [kind, count] : seen) {
    if (count <= kWarningsOfAKind) continue;
    PrintMessage(
        fmt::format("warning: {}: {} more times: {}", name, count - kWarningsOfAKind, kind));
  }
}

Status WithInput(const std::string& path, const ReadFunction& read) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return CannotRead(path, EISDIR);
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
  if (!ComesOnce(path)) return WithInput(path, read);
  const Result<OnceInput*> input = OpenOnce(path);
  if (!input.ok()) return input.status();
  ReplayBuffer& buffer = (*input)->buffer;
  buffer.BeginPreview();
  std::istream in(&buffer);
  const Status status = read(in, NameOfInput(path));
  buffer.EndPreview();
  return status;
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

Result<Plan> ReadPlanFile(const std::string& path) {
  const Result<FileKind> kind = KindOf(path);
  if (!kind.ok()) return kind.status();
  if (*kind == FileKind::kRolledPlan) {
    return Rejected(
        fmt::format("a rolled plan, for every message size: prepost unroll {} --message-bytes N "
                    "makes the plan for one",
                    path),
        NameOfInput(path));
  }
  if (*kind == FileKind::kPlanPart) {
    const std::string folder = std::filesystem::path(path).parent_path();
    return Rejected(fmt::format("one file of a plan in shards: name the folder that it is in, {}",
                                folder.empty() ? "." : folder),
                    NameOfInput(path));
  }
  if (!IsPlanFolder(path)) return ReadPlanWith(ReadPlan, path);
  const Ticker ticker("reading " + path);
  std::vector<std::string> warnings;
  Result<Plan> plan = ReadPlanFolder(path, &warnings);
  PrintWarnings(path, warnings);
  return plan;
}

Result<RolledPlan> ReadRolledPlanFile(const std::string& path) {
  return ReadPlanWith(ReadRolledPlan, path);
}

Result<Plan> LoadPlan(const std::string& path) {
  Result<Plan> plan = ReadPlanFile(path);
  if (!plan.ok()) return plan;
  const Verdict verdict = [&] {
    const Ticker ticker("verifying " + path);
    return Verify(*plan);
  }();
  if (verdict.ok()) return plan;
  const Diagnostic& first = verdict.diagnostics.front();
  const std::string more = verdict.findings == 1
                               ? ""
                               : fmt::format("; {} more, see prepost verify", verdict.findings - 1);
  return Rejected(fmt::format("the plan fails verification: {}: {}: {}{}", first.where,
                              Name(first.rule), first.message, more),
                  path);
}

Status WriteFile(const std::string& path, const std::function<void(std::ostream&)>& write,
                 OnInterrupt on_interrupt) {
  if (path == kStandardStream) {
    write(std::cout);
    std::cout.flush();
    return std::cout ? Status() : CannotWrite("<stdout>", errno);
  }
  std::error_code
      unknown;  // a path that cannot be looked at cannot be opened either, which is reported below
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

Status CheckWord(const char* flag, const std::string& word, const std::vector<std::string>& words) {
  if (std::ranges::find(words, word) != words.end()) return {};
  return {StatusCode::kUsage, fmt::format("{}: unknown name '{}'{}; known are {}", flag, word,
                                          DidYouMean(word, words), fmt::join(words, ", "))};
}

std::string SuffixOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const size_t dot = path.find_last_of('.');
  const bool has_suffix = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  return has_suffix ? path.substr(dot + 1) : "";
}

Result<uint64_t> ParseSize(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error == std::errc()) {
    for (const Unit& unit : kUnits) {
      uint64_t bytes = 0;
      if (suffix == unit.name && !__builtin_mul_overflow(number, unit.bytes, &bytes)) return bytes;
    }
  }
  return Status(StatusCode::kUsage,
                fmt::format("'{}' is no size, expected bytes below 2^64 such as 65536, 64KiB or "
                            "1GB (units: kB, MB, GB, TB, PB, EB, KiB, MiB, GiB, TiB, PiB, EiB)",
                            text.substr(0, 40)));
}

}  // namespace prepost::tools
