// SPDX-License-Identifier: Apache-2.0
//
// Push() to hosts that are this machine, through an agent that passes on what the receivers say or, as
// if their disk hung, does not. tests/tools/commands/push_test.py pushes to hosts of a network.
#include "tools/push/pusher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tools/push/push_source.h"

namespace prepost::tools {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// Hosts "a", "b" and "c".
class TestHosts {
 public:
  TestHosts() {
    std::signal(SIGPIPE, SIG_IGN);
    options_.agent = {"sh", folder_ / "agent"};
    options_.remote_command = PREPOST_COMMAND;
    for (const std::string name : {"a", "b", "c"}) {
      options_.hosts.push_back(
          {.name = name, .target = FilesOf(name), .address = "127.0.0.1", .label = name});
      SetFilter(name, "cat");
    }
    std::ofstream(folder_ / "agent") << "filter=\"" << folder_.path() << "/$1.filter\"\n"
                                     << "shift\n"
                                     << "\"$@\" | sh \"$filter\"\n";
  }

  PushOptions& options() { return options_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  /// Where the host's files are.
  std::string FilesOf(const std::string& host) const { return folder_ / host; }
  /// The command through which what the host's receiver says comes to the pusher.
  void SetFilter(const std::string& host, const std::string& command) const {
    std::ofstream(folder_ / (host + ".filter")) << "exec " << command << "\n";
  }

  /// The verdicts by host; "": ok.
  std::map<std::string, std::string> PushFile(const std::string& path) const {
    Result<PushSource> source = PushSource::Open({path}, "");
    EXPECT_TRUE(source.ok()) << source.status().ToString();
    const Result<PushReport> report = Push(*source, options_);
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    std::map<std::string, std::string> verdicts;
    if (!report.ok()) return verdicts;
    for (const HostVerdict& host : report->hosts)
      verdicts[host.host] = host.status.ok() ? "" : host.status.ToString();
    return verdicts;
  }

 private:
  const test::TempFolder folder_;
  PushOptions options_;
};

// A disk that hangs holds a receiver, which does not even say that it is alive, while its session
// answers the others. Catches a silence that only the steps before and after the transfer notice.
TEST(PusherTest, HostWhoseDiskHangsIsDropped) {
  for (const bool keep_going : {true, false}) {
    TestHosts hosts;
    // Longer than a busy machine keeps a receiver from saying that it is alive.
    hosts.options().silence_max = milliseconds(5000);
    hosts.options().keep_going = keep_going;
    hosts.SetFilter("b", "sed -u -e /alive/d -e /written/d");
    const std::string image = hosts / "image";
    std::ofstream(image) << std::string(40'000'000, 'x');
    auto verdicts = hosts.PushFile(image);
    EXPECT_EQ(verdicts["b"], "it has said nothing for 5 s: its disk may not answer");
    EXPECT_FALSE(std::filesystem::exists(hosts.FilesOf("b") + "/image"));
    for (const char* const other : {"a", "c"}) {
      const std::string copy = hosts.FilesOf(other) + "/image";
      if (keep_going) {
        EXPECT_EQ(verdicts[other], "");
        ASSERT_TRUE(std::filesystem::exists(copy));
        EXPECT_EQ(std::filesystem::file_size(copy), std::filesystem::file_size(image));
      } else {
        EXPECT_THAT(verdicts[other], HasSubstr("because b failed"));
        EXPECT_FALSE(std::filesystem::exists(copy));
      }
    }
  }
}

}  // namespace
}  // namespace prepost::tools
