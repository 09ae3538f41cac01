// SPDX-License-Identifier: Apache-2.0
//
// Attacks on what members of one machine read of each other's memory, by an attacker between two of
// them who does not have the secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "prepost/prepost.h"
#include "runtime/transport/tcp/tcp_wire.h"
#include "tests/support/relayed_sessions.h"

namespace prepost::read_memory_test {
namespace {

using test::Bytes;
using test::GroupLog;
using test::Members;
using test::RelayedBytes;
using test::RelayedLink;
using test::RelayedSessions;
using ::testing::HasSubstr;

constexpr size_t kBytes = 8192;

bool CarriesBlocks(const RelayedLink& link) {
  return link.purpose == LinkPurpose::kData && link.lane == Lane::kBlocks;
}

void Put(RelayedBytes& out, const Record& record) {
  const size_t at = out.size();
  out.resize(at + kRecordBytes);
  EncodeRecord(record, std::span<std::byte, kRecordBytes>(out.data() + at, kRecordBytes));
}

/// What member 1 has got in the end: never `secret`, which only it has in memory.
void ExpectNothingOf(RelayedSessions& sessions, const std::vector<std::byte>& secret,
                     const char* cause) {
  sessions->Create(1, Members(2), 0, {.algorithm = "chain", .block_bytes = kBytes});
  ASSERT_TRUE(sessions->Wait(
      1, {1}, [](const GroupLog& log) { return !log.completed.empty() || !log.failures.empty(); }));
  const GroupLog log = sessions->LogOf(1, 1);
  for (const std::vector<std::byte>& message : log.messages)
    EXPECT_TRUE(message != secret) << "member 1 has read its own memory for somebody else";
  ASSERT_FALSE(log.failures.empty());
  EXPECT_THAT(log.failures.front(), HasSubstr(cause));
}

// What member 1 says comes back to it and, once that is as much as introductions were that were not
// authenticated (57 bytes), records that say where "the message" is.
TEST(ReadMemoryTest, OwnIntroductionSentBack) {
  const std::vector<std::byte> secret = Bytes(kBytes, 99);
  size_t said = 0;
  RelayedSessions sessions(2, {}, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
    if (!CarriesBlocks(link)) return;
    const RelayedBytes words = std::exchange(bytes, {});
    if (to_connector) return;
    link.send(true, words);
    said += words.size();
    if (said != 57) return;
    RelayedBytes records;
    Put(records, {.channel = kStartChannel, .block = 0, .bytes = kBytes});
    Put(records,
        {.channel = ChannelId(0xfffffffe), .bytes = reinterpret_cast<uint64_t>(secret.data())});
    Put(records, {.channel = ChannelId(0), .block = 0, .bytes = kBytes});
    link.send(true, records);
  });
  ExpectNothingOf(sessions, secret, "introduction");
}

}  // namespace
}  // namespace prepost::read_memory_test
