// SPDX-License-Identifier: Apache-2.0
//
// What the programs that measure sessions have in common: one process per member, whose options are
// those of a member.
#ifndef PREPOST_BENCH_SESSION_PROGRAM_H_
#define PREPOST_BENCH_SESSION_PROGRAM_H_

#include <errno.h>  // program_invocation_short_name
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "prepost/prepost.h"

namespace prepost::bench {

/// Ends the program with the message.
inline void Must(const Status& status) {
  if (status.ok()) return;
  std::cerr << program_invocation_short_name << ": " << status.ToString() << "\n";
  std::exit(1);
}

/// Of this process, in all.
inline double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Of member `self` of `members`, each HOST or HOST:PORT. `waiting`: "polling", "interrupt" or
/// "hybrid".
inline SessionOptions SessionOf(uint32_t self, const std::vector<std::string>& members,
                                const std::string& waiting) {
  SessionOptions options;
  options.self = self;
  for (const std::string& member : members) {
    const size_t colon = member.find(':');
    options.members.push_back({.host = member.substr(0, colon)});
    if (colon != std::string::npos)
      options.members.back().port = static_cast<uint16_t>(std::stoul(member.substr(colon + 1)));
  }
  options.secret = "only for measurements";
  options.waiting = waiting == "polling"     ? Waiting::kPolling
                    : waiting == "interrupt" ? Waiting::kInterrupt
                                             : Waiting::kHybrid;
  return options;
}

}  // namespace prepost::bench

#endif  // PREPOST_BENCH_SESSION_PROGRAM_H_
