// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/path_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "ir/json/rate_text.h"
#include "runtime/transport/tcp/tcp_path.h"

namespace prepost::tools {

void PathFlags::AddTo(CLI::App& command) {
  command
      .add_option(
          "--streams", streams_,
          fmt::format("TCP connections, side by side, for what goes over a path with a round "
                      "trip of {} ms or more, 1 to {} [{}]",
                      PathOptions().long_path.count() / 1000, kStreamsMax, kLongStreams))
      ->type_name("N")
      ->check(WholeNumber(1, kStreamsMax));
  command
      .add_option("--pace", pace_,
                  "Send each other machine no more than this, such as 400Mbit/s; for paths that "
                  "drop what exceeds a rate [no limit]")
      ->type_name("RATE");
  command
      .add_option("--congestion", congestion_,
                  "The kernel's congestion control by name, such as bbr [the system's]")
      ->type_name("NAME")
      ->check(NameOf("a congestion control"));
}

Result<PathOptions> PathFlags::Options() const {
  PathOptions options = {.streams = streams_, .congestion = congestion_};
  if (!pace_.empty()) {
    const Result<double> pace = ParseRate(pace_);
    if (!pace.ok()) return UsageError("--pace: " + pace.status().message());
    options.pace = *pace;
  }
  const Status status = CheckPathOptions(options);
  if (status.ok()) return options;
  const bool is_pace = CheckPathOptions({.pace = options.pace}).ok();
  return UsageError((is_pace ? "--congestion: " : "--pace: ") + status.message());
}

}  // namespace prepost::tools
