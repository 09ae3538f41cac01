// SPDX-License-Identifier: Apache-2.0
//
// Lanes of one tree in one thread, over pairs of sockets.
#include "runtime/session/eager_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/little_endian.h"
#include "runtime/group/eager_tree.h"
#include "tests/support/random.h"
#include "tests/support/tcp_disturbance.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::pair<FileDescriptor, FileDescriptor> Pair() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<std::byte> Contents(uint32_t number, size_t bytes) {
  std::vector<std::byte> contents(bytes);
  for (size_t i = 0; i < bytes; ++i) contents[i] = std::byte(number * 31 + i * 7 + i / 251);
  return contents;
}

/// All lanes of a tree below node 0.
class Lanes {
 public:
  explicit Lanes(uint32_t nodes, TcpHook* hook = nullptr) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    const EagerTree tree(nodes, NodeId(0));
    std::map<uint32_t, std::vector<TcpSocket>> sockets;
    for (uint32_t node = 1; node < nodes; ++node) {
      const NodeId parent = *tree.ParentOf(NodeId(node));
      auto [up, down] = Pair();
      sockets[node].push_back({.peer = parent, .fd = std::move(up)});
      sockets[parent.value].push_back({.peer = NodeId(node), .fd = std::move(down)});
    }
    for (uint32_t node = 0; node < nodes; ++node) {
      auto lane = EagerLane::Make({.self = NodeId(node),
                                   .parent = tree.ParentOf(NodeId(node)),
                                   .counts_messages = true,
                                   .hook = hook,
                                   .epoll = epoll_.get(),
                                   .token = node * kEagerLinksMax},
                                  std::move(sockets[node]));
      EXPECT_TRUE(lane.ok()) << lane.status().ToString();
      lanes_.push_back(*std::move(lane));
    }
  }

  EagerLane& operator[](size_t node) { return *lanes_[node]; }
  size_t size() const { return lanes_.size(); }
  /// One turn of all; the first error.
  Status Turn() {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const uint64_t token = events[size_t(i)].data.u64;
      lanes_[token / kEagerLinksMax]->Hear(token % kEagerLinksMax, events[size_t(i)].events);
    }
    for (const auto& lane : lanes_) PREPOST_RETURN_IF_ERROR(lane->Service());
    return {};
  }

 private:
  FileDescriptor epoll_;
  std::vector<std::unique_ptr<EagerLane>> lanes_;
};

TEST(EagerLaneTest, EveryNodeHasAllMessagesInOrderThoughSomeTakeTheirTime) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  test::TcpDisturbance hook(seed);
  for (const uint32_t nodes : {2u, 5u, 9u}) {
    Lanes lanes(nodes, nodes == 5 ? nullptr : &hook);
    constexpr size_t kMessages = 300;
    std::vector<std::pair<uint32_t, size_t>> sent;  // numbers have gaps, where plans move messages
    std::vector<size_t> taken(nodes, 0);
    uint32_t number = uint32_t(0) - 100;  // they wrap
    taken[0] = kMessages;
    size_t turns = 0;
    while (*std::ranges::min_element(taken) < kMessages || sent.size() < kMessages) {
      ASSERT_LT(++turns, 2'000'000u);
      while (sent.size() < kMessages) {
        const size_t bytes =
            random.Below(4) == 0 ? random.Below(kEagerBytesMax + 1) : random.Below(200);
        if (!lanes[0].HasRoom(bytes)) break;
        lanes[0].Append(number, Contents(number, bytes));
        sent.emplace_back(number, bytes);
        number += 1 + uint32_t(random.Below(3));
        if (random.Below(8) == 0) break;
      }
      const Status status = lanes.Turn();
      ASSERT_TRUE(status.ok()) << status.ToString();
      for (uint32_t node = 1; node < nodes; ++node) {
        if (random.Below(3) != 0) continue;
        for (auto front = lanes[node].front(); front && front->is_whole;
             front = lanes[node].front()) {
          ASSERT_LT(taken[node], sent.size());
          const auto& [expected, bytes] = sent[taken[node]];
          ASSERT_EQ(front->number, expected);
          ASSERT_EQ(front->bytes, bytes);
          std::vector<std::byte> memory(front->bytes);
          lanes[node].Take(memory);
          ASSERT_EQ(memory, Contents(expected, bytes));
          lanes[node].set_have(++taken[node]);
        }
      }
    }
    for (int i = 0; i < 100'000 && lanes[0].have_below() < kMessages; ++i)
      ASSERT_TRUE(lanes.Turn().ok());
    EXPECT_EQ(lanes[0].have_below(), kMessages) << "that all have all is reported";
  }
}

TEST(EagerLaneTest, AMemberThatTakesNothingStopsTheRootAndMemoryIsBounded) {
  Lanes lanes(3);
  uint32_t number = 0;
  uint64_t bytes = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    while (lanes[0].HasRoom(1000)) {
      lanes[0].Append(number, Contents(number, 1000));
      ++number;
      bytes += 1000;
    }
    ASSERT_TRUE(lanes.Turn().ok());
  }
  EXPECT_LT(bytes, uint64_t{8} << 20) << "logs and the kernel's buffers";
  EXPECT_GT(bytes, uint64_t{512} << 10);
  // A child without room says so, and is not taken for a silent one.
  for (int tick = 0; tick < 5; ++tick) {
    EXPECT_FALSE(lanes[0].Tick(milliseconds(50)));
    std::this_thread::sleep_for(milliseconds(20));
    lanes[1].Tick(milliseconds(50));
    lanes[2].Tick(milliseconds(50));
    ASSERT_TRUE(lanes.Turn().ok());
    ASSERT_TRUE(lanes.Turn().ok());
  }
}

TEST(EagerLaneTest, AChildThatReadsButDoesNotSaySoIsSilent) {
  Lanes lanes(2);
  lanes[0].Append(0, Contents(0, 10));
  ASSERT_TRUE(lanes.Turn().ok());
  EXPECT_TRUE(lanes[0].is_engaged());
  EXPECT_TRUE(lanes[1].is_engaged());
  EXPECT_FALSE(lanes[0].Tick(milliseconds(1)));
  EXPECT_EQ(lanes[0].Tick(milliseconds(0)), NodeId(1)) << "nothing has come since";
  EXPECT_FALSE(lanes[1].Tick(milliseconds(100'000)));  // says it
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(lanes.Turn().ok());
  EXPECT_FALSE(lanes[0].Tick(milliseconds(0)));
  EXPECT_FALSE(lanes[0].is_engaged());
  EXPECT_FALSE(lanes[1].is_engaged());
}

/// One lane, with a stranger at the other end of its connection.
struct Alone {
  explicit Alone(std::optional<NodeId> parent) {
    auto [own, other] = Pair();
    peer = std::move(other);
    std::vector<TcpSocket> sockets;
    sockets.push_back({.peer = NodeId(1), .fd = std::move(own)});
    lane = *EagerLane::Make({.self = NodeId(0), .parent = parent, .epoll = epoll.get()},
                            std::move(sockets));
  }
  void Write(std::vector<std::pair<uint64_t, size_t>> numbers) const {
    std::vector<std::byte> bytes;
    for (const auto& [number, size] : numbers) {
      for (size_t i = 0; i < size; ++i) bytes.push_back(std::byte(number >> (8 * i)));
    }
    EXPECT_EQ(send(peer.get(), bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
  }
  std::string Error() {
    const Status status = lane->Service();
    return status.ok() ? "" : status.ToString();
  }

  FileDescriptor epoll{epoll_create1(EPOLL_CLOEXEC)};
  FileDescriptor peer;
  std::unique_ptr<EagerLane> lane;
};

TEST(EagerLaneTest, HeadersThatNoRootWritesAreRefused) {
  {
    Alone alone(NodeId(1));
    alone.Write({{7, 4}, {kEagerBytesMax + 1, 4}});
    EXPECT_THAT(alone.Error(), HasSubstr("for message 7, 65537 bytes, which is none"));
  }
  {
    Alone alone(NodeId(1));
    alone.Write({{7, 4}, {0, 4}, {7, 4}, {0, 4}});
    EXPECT_THAT(alone.Error(), HasSubstr("which is none")) << "no message comes twice";
  }
  {
    Alone alone(NodeId(1));
    alone.Write({{7, 4}, {0, 4}, {6, 4}, {0, 4}});
    EXPECT_THAT(alone.Error(), HasSubstr("which is none")) << "nor after a later one";
  }
}

TEST(EagerLaneTest, ReportsThatNoChildMakesAreRefused) {
  {
    Alone alone(std::nullopt);
    alone.Write({{0, 8}, {1, 8}});
    EXPECT_THAT(alone.Error(), HasSubstr("that it cannot have got")) << "nothing was sent";
  }
  {
    Alone alone(std::nullopt);
    alone.Write({{5, 8}, {0, 8}, {4, 8}, {0, 8}});
    EXPECT_THAT(alone.Error(), HasSubstr("that it cannot have got")) << "messages do not go back";
  }
}

TEST(EagerLaneTest, AConnectionThatEndsIsNamed) {
  Alone alone(NodeId(1));
  alone.Write({{0, 4}, {3, 4}, {0x616263, 3}});
  alone.peer.Close();
  alone.lane->Hear(0, EPOLLIN | EPOLLRDHUP);
  EXPECT_THAT(alone.Error(), HasSubstr("lost its connection to node 1"));
  EXPECT_EQ(alone.lane->lost_peer(), NodeId(1));
}

}  // namespace
}  // namespace prepost
