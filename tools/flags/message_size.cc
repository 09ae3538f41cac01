// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/message_size.h"

#include <CLI/CLI.hpp>

#include "ir/plan.h"
#include "runtime/files/message_file.h"
#include "tools/flags/command.h"
#include "tools/flags/number_check.h"

namespace prepost::tools {

Result<uint64_t> ParseMessageBytes(const std::string& flag, const std::string& text) {
  const Result<uint64_t> bytes = ParseSize(text);
  if (!bytes.ok()) return Status(StatusCode::kUsage, flag + ": " + bytes.status().message());
  const Status status = MakeMessage(*bytes, kMessageBytesMax).status();
  if (!status.ok()) return Status(StatusCode::kUsage, flag + ": " + status.message());
  return *bytes;
}

void MessageSize::AddTo(CLI::App& command, bool takes_any) {
  takes_any_ = takes_any;
  CLI::Option* bytes =
      command
          .add_option("--message-bytes", bytes_,
                      takes_any ? "Size of the message, such as 10MiB, or any for one plan that "
                                  "serves every size"
                                : "Size of the message, such as 10MiB")
          ->type_name("M")
          ->group("The multicast");
  command.add_option("--message", path_, "Take the size of this file")
      ->type_name("FILE")
      ->check(NameOf("a file"))
      ->group("The multicast")
      ->excludes(bytes);
}

Result<std::optional<uint64_t>> MessageSize::Bytes() const {
  if (!bytes_.empty()) {
    const Result<uint64_t> bytes = ParseMessageBytes("--message-bytes", bytes_);
    if (!bytes.ok()) return bytes.status();
    return std::optional(*bytes);
  }
  if (path_.empty()) return std::optional<uint64_t>();
  const Result<uint64_t> bytes = MessageFileBytes(path_);
  if (!bytes.ok()) return Rejected(bytes.status().message(), "--message");
  return std::optional(*bytes);
}

}  // namespace prepost::tools
