// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/sealing/sealed_stream.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/random_bytes.h"

namespace prepost::sealed_stream_test {
namespace {

using Bytes = std::vector<std::byte>;
constexpr size_t kRecordMax = SealedStream::kRecordBytesMax;

/// Both ends of a connection, over one socket pair or over two, which somebody has between them.
class SealedStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    const GroupKey key = GroupKey::FromSecret("a secret of 20 bytes", "").value();
    bounce_ = BounceBuffer::Make(kRecordMax).value();
    for (const size_t end : {size_t{0}, size_t{1}}) {
      std::array<int, 2> pair;
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
      fds_[end] = FileDescriptor(pair[0]);
      between_[end] = FileDescriptor(pair[1]);
      // One with a bounce buffer, one without.
      ends_[end] = std::make_unique<SealedStream>(
          std::make_unique<LinkSeal>(key, SealCipher::kChaCha20Poly1305, end == 0), kRecordMax,
          end == 0 ? bounce_.get() : nullptr);
    }
  }

  Io Send(size_t end, Bytes& bytes, size_t from = 0) {
    // In two parts, as a record and its block are.
    const size_t half = (bytes.size() - from) / 2;
    const std::array<iovec, 2> parts = {
        iovec{bytes.data() + from, half},
        iovec{bytes.data() + from + half, bytes.size() - from - half}};
    return ends_[end]->Send(fds_[end].get(), parts);
  }
  Io Receive(size_t end, Bytes& bytes, size_t from, size_t wanted) {
    const iovec part = {bytes.data() + from, wanted};
    return ends_[end]->Receive(fds_[end].get(), std::span(&part, 1));
  }
  /// What is under way to the other end of `end`, as it is on the wire.
  Bytes Intercept(size_t end) {
    Bytes bytes(1 << 20);
    const ssize_t got = recv(between_[end].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  }
  /// As much as the other end has room for.
  size_t PassSome(size_t to, std::span<const std::byte> bytes) {
    const ssize_t sent = send(between_[to].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  void PassOn(size_t to, const Bytes& bytes) { EXPECT_EQ(PassSome(to, bytes), bytes.size()); }

  std::array<FileDescriptor, 2> fds_, between_;
  std::unique_ptr<BounceBuffer> bounce_;
  std::array<std::unique_ptr<SealedStream>, 2> ends_;
};

// Writers, readers and the network each move what they like at a time. Catches bytes that are lost,
// doubled or swapped where a record, a piece and a read end at different places.
TEST_F(SealedStreamTest, BytesArriveInOrderWhateverThePieces) {
  test::Random random(test::TestSeed());
  for (int round = 0; round < 40; ++round) {
    const size_t from = random.Below(2);
    Bytes sent = test::RandomBytes(1 + random.Below(300'000), random.Below(1000));
    Bytes received(sent.size());
    size_t written = 0, read = 0;
    Bytes wire;
    while (read < sent.size()) {
      if (written < sent.size() && random.Below(2) == 0) {
        Bytes piece(sent.begin() + ptrdiff_t(written),
                    sent.begin() + ptrdiff_t(std::min<size_t>(written + 1 + random.Below(100'000),
                                                              sent.size())));
        const Io io = Send(from, piece);
        if (io.outcome == Io::Outcome::kMoved) written += io.bytes;
      } else if (ends_[from]->has_unsent()) {
        ends_[from]->Flush(fds_[from].get());
      }
      const Bytes more = Intercept(from);
      wire.insert(wire.end(), more.begin(), more.end());
      const size_t passed = PassSome(
          1 - from, std::span(wire).first(std::min<size_t>(random.Below(90'000), wire.size())));
      wire.erase(wire.begin(), wire.begin() + ptrdiff_t(passed));
      const size_t wanted = std::min<size_t>(1 + random.Below(random.Below(2) == 0 ? 20 : 80'000),
                                             sent.size() - read);
      const Io io = Receive(1 - from, received, read, wanted);
      if (io.outcome == Io::Outcome::kMoved) {
        read += io.bytes;
      } else {
        ASSERT_EQ(io.outcome, Io::Outcome::kWouldBlock);
      }
    }
    ASSERT_EQ(received, sent);
    EXPECT_EQ(ends_[1 - from]->received(), 0u);
    EXPECT_EQ(ends_[from]->wire_written(), ends_[1 - from]->wire_read());
  }
}

// Catches an end that keeps more than a record for a socket that takes nothing.
TEST_F(SealedStreamTest, WhatASocketDoesNotTakeIsBounded) {
  Bytes bytes(1 << 20, std::byte{3});
  size_t sent = 0;
  for (Io io; io.outcome == Io::Outcome::kMoved; sent += io.bytes) io = Send(0, bytes);
  EXPECT_TRUE(ends_[0]->has_unsent());
  EXPECT_EQ(Send(0, bytes).outcome, Io::Outcome::kWouldBlock);
  EXPECT_LT(sent, ends_[0]->wire_written() + kRecordMax + 1);
  Bytes read(sent), wire;
  for (size_t done = 0; done < sent;) {
    ends_[0]->Flush(fds_[0].get());
    const Bytes more = Intercept(0);
    wire.insert(wire.end(), more.begin(), more.end());
    wire.erase(wire.begin(), wire.begin() + ptrdiff_t(PassSome(1, wire)));
    const Io io = Receive(1, read, done, sent - done);
    if (io.outcome == Io::Outcome::kMoved) done += io.bytes;
  }
  EXPECT_EQ(read, Bytes(sent, std::byte{3}));
  EXPECT_FALSE(ends_[0]->has_unsent());
}

/// What becomes of two records of 5000 bytes, a third one behind them, when somebody changes them.
class TamperTest : public SealedStreamTest {
 protected:
  /// How many bytes are handed out before kForged.
  size_t ReadAfter(size_t from, const std::function<void(std::vector<Bytes>& records)>& change) {
    SetUp();
    std::vector<Bytes> records;
    for (uint64_t i = 0; i < 3; ++i) {
      Bytes plain = test::RandomBytes(5000, i);
      EXPECT_EQ(Send(from, plain).bytes, plain.size());
      records.push_back(Intercept(from));
      EXPECT_EQ(records.back().size(), plain.size() + SealedStream::kOverheadBytes);
    }
    change(records);
    for (const Bytes& record : records) PassOn(1 - from, record);
    Bytes read(20'000, std::byte{0xee});
    size_t done = 0;
    Io io;
    while ((io = Receive(1 - from, read, done, 3000)).outcome == Io::Outcome::kMoved)
      done += io.bytes;
    EXPECT_EQ(io.outcome, Io::Outcome::kForged);
    EXPECT_EQ(Receive(1 - from, read, done, 3000).outcome, Io::Outcome::kForged) << "for good";
    EXPECT_TRUE(std::all_of(read.begin() + ptrdiff_t(done), read.end(),
                            [](std::byte byte) { return byte == std::byte{0xee}; }));
    return done;
  }
};

// Catches bytes that are handed out before their record has proved authentic.
TEST_F(TamperTest, NothingOfAChangedRecordIsHandedOut) {
  for (const size_t from : {size_t{0}, size_t{1}}) {
    for (const size_t byte : {0u, 1u, 2u, 3u, 4u, 2000u, 5003u, 5004u, 5019u}) {
      SCOPED_TRACE(byte);
      // A length that becomes longer waits for as much; three records are there.
      EXPECT_EQ(ReadAfter(from, [&](auto& records) { records[1][byte] ^= std::byte{0x01}; }),
                5000u);
    }
    EXPECT_EQ(ReadAfter(from, [](auto& records) { records.erase(records.begin()); }), 0u);
    EXPECT_EQ(ReadAfter(from, [](auto& records) { records.insert(records.begin(), records[0]); }),
              5000u);
    EXPECT_EQ(ReadAfter(from, [](auto& records) { std::swap(records[1], records[2]); }), 5000u);
    EXPECT_EQ(ReadAfter(from, [](auto& records) { records[1].erase(records[1].begin() + 9); }),
              5000u);
  }
}

// Memory that a truncated file was mapped into: an error, not a signal, either way.
TEST_F(SealedStreamTest, MemoryThatIsGoneIsAnError) {
  void* const gone = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  const iovec part = {gone, 4096};
  EXPECT_EQ(ends_[0]->Send(fds_[0].get(), std::span(&part, 1)).outcome, Io::Outcome::kBadMemory);
  Bytes bytes = test::RandomBytes(4096, 1);
  EXPECT_EQ(Send(1, bytes).bytes, 4096u);
  PassOn(0, Intercept(1));
  EXPECT_EQ(ends_[0]->Receive(fds_[0].get(), std::span(&part, 1)).outcome, Io::Outcome::kBadMemory);
  munmap(gone, 4096);
  Bytes received(4096);  // nothing of it is lost
  EXPECT_EQ(Receive(0, received, 0, 4096).bytes, 4096u);
  EXPECT_EQ(received, bytes);
}

}  // namespace
}  // namespace prepost::sealed_stream_test
