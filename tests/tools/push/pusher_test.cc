// SPDX-License-Identifier: Apache-2.0
//
// Push() to hosts that are this machine, through an agent that passes on what the receivers say or,
// as if their disk hung, does not. tests/tools/commands/push_test.py pushes to hosts of a network.
#include "tools/push/pusher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/event_fd.h"
#include "tests/support/temp_folder.h"
#include "tools/push/push_protocol.h"
#include "tools/push/push_source.h"

namespace prepost::tools {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// Hosts "a", "b" and so on.
class TestHosts {
 public:
  explicit TestHosts(char count) {
    std::signal(SIGPIPE, SIG_IGN);
    options_.agent = {"sh", folder_ / "agent"};
    options_.remote_command = PREPOST_COMMAND;
    for (char i = 0; i < count; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
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
    TestHosts hosts(3);
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

// A host that has summed nothing, or something else. Catches "verified" where it is only claimed.
TEST(PusherTest, HostWhoseSumDiffersIsNotVerified) {
  for (const char* const claim : {"[]", "[\"0000\"]", "[7]"}) {
    TestHosts hosts(2);
    hosts.options().keep_going = true;
    hosts.SetFilter("b", fmt::format("sed -u -e 's/\"sums\":.*/\"sums\":{}}}}}/'", claim));
    const std::string image = hosts / "image";
    std::ofstream(image) << std::string(100'000, 'x');
    auto verdicts = hosts.PushFile(image);
    EXPECT_EQ(verdicts["a"], "");
    EXPECT_THAT(verdicts["b"], claim[1] == '7'
                                   ? HasSubstr("wrote nonsense")
                                   : HasSubstr("image has another sum there than here"));
    EXPECT_FALSE(std::filesystem::exists(hosts.FilesOf("b") + "/image"));
  }
}

// A host that is done before there was anything to do, and says nothing more. Catches a verdict
// that only repeats that, and a pusher that goes on listening to a connection that has ended.
TEST(PusherTest, HostThatSaysThatItIsDoneIsNotBelieved) {
  const std::string done = R"('{"done":{"unkept":[]}}')";
  for (const std::string& filter : {"sed -u -e 1i" + done, "echo " + done}) {
    TestHosts hosts(2);
    hosts.options().keep_going = true;
    hosts.SetFilter("b", filter);
    const std::string image = hosts / "image";
    std::ofstream(image) << std::string(100'000, 'x');
    auto verdicts = hosts.PushFile(image);
    EXPECT_EQ(verdicts["a"], "");
    EXPECT_EQ(verdicts["b"], "its receiver says that it is done when it cannot be") << filter;
  }
}

// A message that the session does not take, as none is taken by a group that has just failed.
// Catches an error of that in place of verdicts by host.
TEST(PusherTest, MessageThatCannotBeSentIsAFailureOfTheGroup) {
  TestHosts hosts(9);
  hosts.options().algorithm = "scatter_allgather";
  hosts.options().block_bytes = 1;  // more transfers than a plan may have
  const std::string image = hosts / "image";
  std::ofstream(image) << std::string(kPushMessageBytes, 'x');
  const auto verdicts = hosts.PushFile(image);
  EXPECT_EQ(verdicts.size(), 9u);
  for (const auto& [host, verdict] : verdicts)
    EXPECT_THAT(verdict, HasSubstr("because cannot send to group 1: ")) << host;
}

// Catches an open() that waits silently, with signals that are not looked at, and a pipe that seems
// to end before anything has come.
TEST(PusherTest, NamedPipeThatIsWrittenToLate) {
  for (const bool is_interrupted : {false, true}) {
    TestHosts hosts(2);
    const std::string pipe = hosts / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    Result<EventFd> interrupt = EventFd::Make();
    ASSERT_TRUE(interrupt.ok());
    hosts.options().interrupt_fd = interrupt->fd();
    std::vector<std::string> notes;
    std::thread writer;
    hosts.options().note = [&](const std::string& text) {
      notes.push_back(text);
      if (is_interrupted) {
        interrupt->Signal();
      } else if (!writer.joinable()) {
        writer = std::thread([&pipe] { std::ofstream(pipe) << "text"; });
      }
    };
    Result<PushSource> source = PushSource::Open({pipe}, "");
    ASSERT_TRUE(source.ok()) << source.status().ToString();
    const Result<PushReport> report = Push(*source, hosts.options());
    if (writer.joinable()) writer.join();
    EXPECT_EQ(notes, std::vector{"waits until somebody writes to the pipe " + pipe});
    if (is_interrupted) {
      EXPECT_EQ(report.status().code(), StatusCode::kInterrupted);
      continue;
    }
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    for (const HostVerdict& host : report->hosts) {
      EXPECT_TRUE(host.status.ok()) << host.status.ToString();
      std::ifstream copy(hosts.FilesOf(host.host) + "/pipe");
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(copy), {}), "text");
    }
  }
}

}  // namespace
}  // namespace prepost::tools
