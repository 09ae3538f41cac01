// SPDX-License-Identifier: Apache-2.0
#include "bench/provenance.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

namespace prepost {
namespace {

std::string Commit() {
  const std::unique_ptr<FILE, int (*)(FILE*)> git(
      popen("git -C '" PREPOST_SOURCE_DIR "' describe --always --dirty 2>/dev/null", "r"), pclose);
  std::array<char, 128> line = {};
  if (!git || std::fgets(line.data(), line.size(), git.get()) == nullptr) return "unknown";
  const std::string commit(line.data());
  return commit.substr(0, commit.find('\n'));
}

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

std::string Provenance() {
  utsname system = {};
  uname(&system);
  return fmt::format("commit {}, {} cores ({}), {} {}", Commit(),
                     std::thread::hardware_concurrency(), Processor(), system.sysname,
                     system.release);
}

}  // namespace prepost
