// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/queue_names.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "runtime/base/little_endian.h"
#include "runtime/transport/tcp/tcp_links.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost::queue_names_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> TextBytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Learned {
  Status status;
  std::map<uint32_t, std::string> names;  // by end
};

Learned Exchange(const ChannelEnds& ends, std::vector<TcpSocket> sockets,
                 std::span<const std::vector<std::byte>> own, const std::string& over = "tests") {
  Learned learned;
  TcpLinks links(std::move(sockets));
  const Checkpoint checkpoint;
  learned.status = ExchangeQueueNames(
      {.node = ends.node(),
       .what = "queues",
       .links = links,
       .checkpoint = checkpoint,
       .answer_max = std::chrono::milliseconds(20'000)},
      {.over = over, .ends = ends, .own = own, .learn = [&](uint32_t end, auto name) {
         learned.names[end] = TextOf(name);
         return learned.names[end] == "bad" ? Rejected("it is bad") : Status();
       }});
  return learned;
}

class QueueNamesTest : public testing::Test {
 protected:
  QueueNamesTest()
      : plan_(Compile({.nodes = 5, .message_bytes = 100, .block_bytes = 10}).value()),
        mesh_(MakeTcpMesh(plan_).value()) {}

  const VerifiedPlan plan_;
  TcpMesh mesh_;
};

// Catches names that go to another end than the channel's other one.
TEST_F(QueueNamesTest, EachEndLearnsTheOtherEndOfItsChannel) {
  std::vector<ChannelEnds> ends;
  std::vector<std::vector<std::vector<std::byte>>> own(5);
  for (uint32_t node = 0; node < 5; ++node) {
    ends.emplace_back(plan_, NodeId(node));
    for (const ChannelEnd& end : ends.back().all()) {
      // What only receives of blocks say, as where an address is all that is needed.
      const bool is_named = end.lane == Lane::kCredits || !end.is_send;
      own[node].push_back(is_named ? TextBytes(fmt::format("{} {}", end.channel.value, end.is_send))
                                   : std::vector<std::byte>());
    }
  }
  std::vector<std::future<Learned>> nodes;
  for (uint32_t node = 0; node < 5; ++node) {
    nodes.push_back(std::async(std::launch::async, [&, node] {
      return Exchange(ends[node], std::move(mesh_[node]), own[node]);
    }));
  }
  for (uint32_t node = 0; node < 5; ++node) {
    const Learned learned = nodes[node].get();
    ASSERT_TRUE(learned.status.ok()) << learned.status.ToString();
    ASSERT_EQ(learned.names.size(), ends[node].size());
    for (const auto& [at, name] : learned.names) {
      const ChannelEnd& end = ends[node][at];
      const bool is_named = end.lane == Lane::kCredits || end.is_send;
      EXPECT_EQ(name, is_named ? fmt::format("{} {}", end.channel.value, !end.is_send) : "");
    }
  }
}

// Catches a record that is trusted: reads beyond its end, names of ends that are not there, and
// two.
TEST_F(QueueNamesTest, RecordsThatCannotBeAreErrorsWithThePeer) {
  const ChannelEnds ends(plan_, NodeId(1));
  const ChannelEnd& end = ends[0];
  const auto record = [&](uint32_t magic, const std::string& over, uint32_t count, uint32_t lane,
                          uint16_t length, const std::string& name, int times = 1) {
    std::vector<std::byte> bytes(4 + 9 + over.size() + 4 +
                                 static_cast<size_t>(times) * (7 + name.size()));
    ByteWriter out(bytes);
    out.Put(static_cast<uint32_t>(bytes.size() - 4));
    out.Put(magic);
    out.Put(uint32_t{2});
    out.Put(static_cast<uint8_t>(over.size()));
    out.PutBytes(TextBytes(over));
    out.Put(count);
    for (int i = 0; i < times; ++i) {
      out.Put(lane);
      out.Put(static_cast<uint8_t>(end.is_send ? 0 : 1));
      out.Put(length);
      out.PutBytes(TextBytes(name));
    }
    return bytes;
  };
  constexpr uint32_t kMagic = 0x50505155;
  const uint32_t lane_of_end = NumberOf(end.lane);
  struct Case {
    std::vector<std::byte> bytes;
    const char* why;
  };
  const Case cases[] = {
      {record(7, "tests", 1, lane_of_end, 3, "abc"), "does not play over tests"},
      {record(kMagic, "other", 1, lane_of_end, 3, "abc"), "does not play over tests"},
      {record(kMagic, "tests", 2, lane_of_end, 3, "abc"), "too short"},
      {record(kMagic, "tests", 1, lane_of_end, 900, "abc"), "too short"},
      {record(kMagic, "tests", 1, 77, 3, "abc"), "lane 77 is out of range"},
      {record(kMagic, "tests", 1, 1 - lane_of_end, 3, "abc"), "knows nothing of"},
      {record(kMagic, "tests", 2, lane_of_end, 3, "abc", 2), "two queues"},
      {record(kMagic, "tests", 1, lane_of_end, 3, "bad"), "it is bad"},
      {{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0x7f}}, "expected at most"},
      {{std::byte{3}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{1},
        std::byte{1}},
       "does not play"}};
  for (const Case& it : cases) {
    SCOPED_TRACE(it.why);
    std::vector<TcpSocket> sockets;
    std::vector<FileDescriptor> peers;
    for (const ChannelEnd& of : ends.all()) {
      if (std::ranges::find(sockets, of.peer, &TcpSocket::peer) != sockets.end()) continue;
      int pair[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
      sockets.push_back({.peer = of.peer, .fd = FileDescriptor(pair[0])});
      peers.emplace_back(pair[1]);
      const auto bytes = of.peer == end.peer ? it.bytes : record(kMagic, "tests", 0, 0, 0, "", 0);
      ASSERT_EQ(send(peers.back().get(), bytes.data(), bytes.size(), 0),
                static_cast<ssize_t>(bytes.size()));
    }
    const Learned learned =
        Exchange(ends, std::move(sockets), std::vector<std::vector<std::byte>>(ends.size()));
    ASSERT_FALSE(learned.status.ok());
    EXPECT_THAT(learned.status.message(), HasSubstr(it.why));
    EXPECT_THAT(learned.status.message(), HasSubstr(fmt::format("node {}", end.peer.value)));
  }
}

}  // namespace
}  // namespace prepost::queue_names_test
