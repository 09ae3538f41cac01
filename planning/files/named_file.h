// SPDX-License-Identifier: Apache-2.0
//
// The files that arguments name: reading them ("-": stdin; pipes, too), and writing them so that
// nothing is left half-written ("-": stdout).
#ifndef PREPOST_PLANNING_FILES_NAMED_FILE_H_
#define PREPOST_PLANNING_FILES_NAMED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "planning/text/messages.h"

namespace prepost {

/// What messages call `path`: "<stdin>" for "-".
std::string NameOfInput(const std::string& path);

/// "plan.json" of "plans/plan.json"; "-" is itself.
std::string NameOfFile(const std::string& path);

/// Opens `path` ("-": stdin) and calls `read` with the stream and the name to use in messages.
Status WithInput(const std::string& path,
                 const std::function<Status(std::istream&, const std::string&)>& read);

/// As WithInput(), to see how a file begins: of stdin and pipes, whose bytes come only once,
/// nothing is taken, and only the first MiB is shown.
Status WithPreview(const std::string& path,
                   const std::function<Status(std::istream&, const std::string&)>& read);

/// For a command that reads `path` often: where it comes only once it is read to its end and kept
/// for the rest of the process, and the functions here give it again each time, then on any thread.
/// No other thread may be here meanwhile. Errors (kRejected): more than 64 MiB.
Status KeepInput(const std::string& path);

/// Reads all of `path` ("-": stdin), at most `bytes_max`, and calls `read` with it and the name to
/// use in messages.
Status WithText(const std::string& path, size_t bytes_max,
                const std::function<Status(const std::string& text, const std::string&)>& read);

/// What a signal that comes while a file is written does: nothing is left of the file, or it comes
/// too late; for that the caller holds signals (InterruptSignals).
enum class OnInterrupt : uint8_t { kLeaveNothing, kFinish };

/// Writes what `write` gives to `path` ("-": stdout) through a temporary name in the same folder
/// that is renamed when complete, so that a failure or an interruption (kInterrupted) leaves
/// nothing behind and an old file untouched. A link stays a link.
Status WriteFile(const std::string& path, const std::function<void(std::ostream&)>& write,
                 OnInterrupt on_interrupt = OnInterrupt::kLeaveNothing);

/// Whether WriteFile() to `path` can begin: for commands whose results take long to make. Leaves
/// nothing behind. To be called while no signals are held.
Status CheckWritable(const std::string& path);

/// What follows the last '.' of the file's name; empty where there is none.
std::string SuffixOf(const std::string& path);

/// What `read`, a Result<T>(std::istream&, name, std::vector<std::string>* warnings), makes of the
/// file `path`. Errors: its own; kRejected: the file cannot be read.
template <typename Read>
auto ReadWith(Read read, const std::string& path)
    -> decltype(read(std::declval<std::istream&>(), path, nullptr)) {
  auto result =
      decltype(read(std::declval<std::istream&>(), path, nullptr))(Rejected("not read", path));
  const Status status = WithInput(path, [&](std::istream& in, const std::string& name) -> Status {
    std::vector<std::string> warnings;
    result = read(in, name, &warnings);
    PrintWarnings(name, warnings);
    return result.status();
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace prepost

#endif  // PREPOST_PLANNING_FILES_NAMED_FILE_H_
