// SPDX-License-Identifier: Apache-2.0
//
// SmallDisk: a file system of one mebibyte that only the commands of a test see, so that no
// privilege is needed. For tests of what happens when the disk is full.
#ifndef PREPOST_TESTS_SUPPORT_SMALL_DISK_H_
#define PREPOST_TESTS_SUPPORT_SMALL_DISK_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.h"

namespace prepost::test {

class SmallDisk {
 public:
  /// `path`: a new folder, where the file system is. Every command has one of its own.
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    EXPECT_TRUE(std::filesystem::create_directory(path_)) << path_;
  }

  const std::string& path() const { return path_; }

  /// For Command. What is left on the disk is printed behind the command's error.
  std::vector<std::string> wrapper() const {
    return {"/usr/bin/env",
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "/bin/sh",
            "-c",
            "mount -t tmpfs -o size=1m tmpfs \"$0\" || exit; \"$@\"; code=$?; "
            "find \"$0\" -mindepth 1 >&2; exit $code",
            path_};
  }

  /// Why this machine allows no such thing; empty if it does.
  std::string Obstacle() const {
    Command probe({"--help"}, wrapper());
    return probe.Wait() == 0 ? "" : "cannot mount a small file system: " + probe.err();
  }

 private:
  std::string path_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_SMALL_DISK_H_
