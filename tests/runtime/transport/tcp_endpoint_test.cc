// SPDX-License-Identifier: Apache-2.0
//
// What is TCP's own; endpoint_test.cc has what all transports promise.
#include "runtime/transport/tcp_endpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "runtime/mapping.h"
#include "tests/support/two_blocks.h"

namespace prepost::tcp_endpoint_test {
namespace {

using ::testing::HasSubstr;

class TcpEndpointTest : public test::TwoBlocksTest {
 protected:
  TcpEndpointTest() { Connect({.transport = TransportKind::kTcp}); }
};

TEST_F(TcpEndpointTest, NamesALostPeer) {
  nodes_->Drop(NodeId(1));
  EXPECT_EQ(Failure(0).message(), "node 0 lost its connection to node 1");
  EXPECT_EQ(node(0).lost_peer(), NodeId(1));
}

TEST_F(TcpEndpointTest, RefusesABlockThatIsNotNext) {
  PostRecv(0);
  PostSend(1);
  ASSERT_TRUE(node(0).Flush().ok());
  EXPECT_THAT(
      Failure(1).message(),
      HasSubstr("from node 0 for 0>1 lane 0, block 1, 1000 bytes; expected 0>1 lane 0, block 0"));
  EXPECT_FALSE(node(1).lost_peer().has_value());
}

// Junk on a socket: catches use of a channel number that nobody checked.
TEST_F(TcpEndpointTest, RefusesRecordsThatMakeNoSense) {
  const Record start = {
      .channel = kStartChannel, .block = 0, .bytes = plan_.header().message.bytes};
  const auto refuses_all = [this](const std::vector<Record>& records, const char* expected) {
    Connect({.transport = TransportKind::kTcp});
    const int credits = nodes_->files(NodeId(1))[1];
    for (const Record& record : records) {
      std::array<std::byte, kRecordBytes> bytes;
      EncodeRecord(record, bytes);
      ASSERT_EQ(send(credits, bytes.data(), bytes.size(), 0), ssize_t{kRecordBytes});
    }
    EXPECT_THAT(Failure(0).message(), HasSubstr(expected));
  };
  const auto refuses = [&](const Record& record, const char* expected) {
    refuses_all({start, record}, expected);
  };
  refuses_all({{.channel = ChannelId(0)}}, "expected the start of a message");
  refuses_all({{.channel = kStartChannel, .block = 0, .bytes = 1}}, "expected the start");
  refuses(start, "expected the start of a message");
  refuses({.channel = ChannelId(7)}, "expected a channel between the two");
  refuses({.channel = ChannelId(0), .block = 0, .bytes = 1000},
          "expected the note of the oldest undelivered send");
  refuses({.channel = ChannelId(3), .block = 3}, "expected a credit that the plan has");
}

// The memory of a file that was truncated: an error, not a signal.
TEST_F(TcpEndpointTest, SendFromATruncatedFileIsAnError) {
  Connect({.transport = TransportKind::kTcp, .in_files = true});
  ASSERT_EQ(truncate(nodes_->input().path().c_str(), 0), 0);
  PostSend(0);
  EXPECT_THAT(Failure(0).message(), HasSubstr("the memory of block 0 is gone"));
}

}  // namespace
}  // namespace prepost::tcp_endpoint_test
