// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/introduction.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/little_endian.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tests/support/loopback.h"

namespace prepost::introduction_test {
namespace {

using State = Introduction::State;

class IntroductionTest : public testing::Test {
 protected:
  static constexpr size_t kSaidBytes = 72;  ///< of a card, before its MAC
  static constexpr size_t kCardBytes = kSaidBytes + sizeof(MacBytes);

  void SetUp() override {
    int error = 0;
    const FileDescriptor listener =
        Listen(NumericAddress(test::LoopbackAddress(0))->WithPort(0), &error);
    ASSERT_TRUE(listener.valid()) << error;
    const TcpAddress address = LocalAddress(listener);
    ends_[0].fd = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(ends_[0].fd.get(), address.generic(), address.bytes), 0);
    pollfd ready = {.fd = listener.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&ready, 1, 10'000), 1);
    ends_[1].fd = FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(ends_[1].fd.valid());
    for (TcpSocket& end : ends_) end.key = *key_;
    ends_[0].is_connector = true;
  }

  /// Both go on until none does any more, or one has found something wrong.
  std::array<State, 2> Finish(Introduction& a, Introduction& b) {
    std::array<State, 2> states = {};
    for (int i = 0;
         i < 1000 && (i < 2 || states[0] == State::kTalking || states[1] == State::kTalking); ++i) {
      if (states[0] == State::kTalking) states[0] = a.Step();
      if (states[1] == State::kTalking) states[1] = b.Step();
      if (states[0] == State::kForged || states[1] == State::kForged) break;
      usleep(100);
    }
    return states;
  }

  /// What the first end says first, taken off its way.
  std::array<std::byte, kCardBytes> TakeCard(Introduction& first) const {
    EXPECT_EQ(first.Step(), State::kTalking);
    std::array<std::byte, kCardBytes> card;
    EXPECT_EQ(recv(ends_[1].fd.get(), card.data(), card.size(), MSG_WAITALL),
              static_cast<ssize_t>(card.size()));
    return card;
  }
  void Send(int end, std::span<const std::byte> bytes) const {
    EXPECT_EQ(send(ends_[static_cast<size_t>(end)].fd.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  /// The MAC of a member that says something else than it is; of a card `kind` is 0.
  MacBytes MacOf(uint8_t kind, char end, std::span<const std::byte> nonces,
                 std::span<const std::byte> said) const {
    constexpr std::string_view kLabel = "prepost introduction";
    std::vector<std::byte> bytes(kLabel.size() + 2 + nonces.size() + said.size());
    ByteWriter writer(bytes);
    writer.PutBytes(std::as_bytes(std::span(kLabel)));
    writer.Put(kind);
    writer.Put(static_cast<uint8_t>(end));
    writer.PutBytes(nonces);
    writer.PutBytes(said);
    return key_->Mac(bytes);
  }

  const Result<GroupKey> key_ = GroupKey::FromSecret("0123456789abcdef", "");
  std::array<TcpSocket, 2> ends_;
};

TEST_F(IntroductionTest, TwoEndsOfOneMachineMayReadEachOther) {
  Introduction a(ends_[0], true), b(ends_[1], true);
  EXPECT_EQ(Finish(a, b), (std::array{State::kDone, State::kDone}));
  for (const Introduction* it : {&a, &b}) {
    EXPECT_TRUE(it->local().can_read);
    EXPECT_TRUE(it->local().is_read);
    EXPECT_EQ(it->local().process, getpid());
  }
}

// Catches files that get lost, or that one end uses and the other does not.
TEST_F(IntroductionTest, BytesGoThroughMemoryThatBothHaveHandedOver) {
  for (const bool has_both : {true, false}) {
    SCOPED_TRACE(has_both);
    SetUp();
    Introduction a(ends_[0], true, {.stream = *ShmStream::Make(4096)});
    Introduction b(ends_[1], true, {.stream = has_both ? *ShmStream::Make(8192) : nullptr});
    EXPECT_EQ(Finish(a, b), (std::array{State::kDone, State::kDone}));
    EXPECT_TRUE(a.local().can_read && b.local().can_read);
    const std::unique_ptr<ShmStream> from = a.TakeStream(), to = b.TakeStream();
    EXPECT_EQ(from != nullptr, has_both);
    EXPECT_EQ(to != nullptr, has_both);
    if (!has_both) continue;
    std::array<char, 6> word = {"hello"}, got = {};
    const iovec out = {word.data(), word.size()}, in = {got.data(), got.size()};
    to->Arm();
    EXPECT_EQ(from->Write(std::span(&out, 1)).bytes, word.size());
    pollfd bell = {.fd = to->bell_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&bell, 1, 10'000), 1);
    EXPECT_EQ(to->Read(std::span(&in, 1)).bytes, word.size());
    EXPECT_EQ(word, got);
  }
}

// Whatever each of the two hands over. Catches a stage that is taken for a stream or the other way
// round, and one that its owner uses and the peer has not mapped.
TEST_F(IntroductionTest, StagesAreHandedOverByWhoHasOne) {
  const std::vector<std::byte> block(1000, std::byte{7});
  for (int has = 0; has < 16; ++has) {
    SCOPED_TRACE(has);
    SetUp();
    const auto own = [&](int end) {
      OwnMemory made;
      if ((has >> end & 1) != 0) made.stage = *BlockStage::Make();
      if ((has >> end & 4) != 0) made.stream = *ShmStream::Make(4096);
      return made;
    };
    OwnMemory of_a = own(0), of_b = own(1);
    const std::array stages = {of_a.stage, of_b.stage};
    Introduction a(ends_[0], true, std::move(of_a)), b(ends_[1], true, std::move(of_b));
    EXPECT_EQ(Finish(a, b), (std::array{State::kDone, State::kDone}));
    EXPECT_EQ(a.TakeStream() != nullptr, has >> 2 == 3);
    EXPECT_EQ(b.TakeStream() != nullptr, has >> 2 == 3);
    // A member without one maps none: it has not said that it wants to.
    const bool have_both = (has & 3) == 3;
    EXPECT_EQ(a.TakeStage(), have_both ? stages[0] : nullptr);
    EXPECT_EQ(b.TakeStage(), have_both ? stages[1] : nullptr);
    const std::unique_ptr<PeerStage> at_a = a.TakePeerStage(), at_b = b.TakePeerStage();
    EXPECT_EQ(at_a != nullptr, have_both);
    EXPECT_EQ(at_b != nullptr, have_both);
    if (!have_both) continue;
    const std::optional<uint32_t> place = stages[0]->Add(block);
    ASSERT_TRUE(place.has_value());
    EXPECT_TRUE(std::ranges::equal(at_b->At(*place).first(block.size()), block));
  }
}

TEST_F(IntroductionTest, OneThatDoesNotWantToEndsItForBoth) {
  Introduction a(ends_[0], true), b(ends_[1], false);
  EXPECT_EQ(Finish(a, b), (std::array{State::kDone, State::kDone}));
  EXPECT_FALSE(a.local().can_read || a.local().is_read || b.local().can_read || b.local().is_read);
  EXPECT_EQ(a.TakeWindow(), nullptr);
}

// By an attacker who has no key. Catches an end that is taken for its own peer, whose memory it
// then reads.
TEST_F(IntroductionTest, OwnCardSentBackIsForged) {
  Introduction a(ends_[0], true);
  const auto card = TakeCard(a);
  Send(1, card);
  EXPECT_EQ(a.Step(), State::kForged);
}

TEST_F(IntroductionTest, ChangedCardsAreForged) {
  for (const size_t offset : {0u, 16u, 24u, 33u, 71u, 72u, 103u}) {
    SCOPED_TRACE(offset);
    SetUp();
    Introduction a(ends_[0], true), b(ends_[1], true);
    auto card = TakeCard(a);
    card[offset] ^= std::byte{1};
    Send(0, card);
    EXPECT_EQ(b.Step(), State::kForged);
  }
}

// A member that lies: the number is that of another process, and everything else is as it should
// be. Catches numbers that are believed because who says them has the secret.
TEST_F(IntroductionTest, TheKernelSaysWhichProcessItIs) {
  Introduction a(ends_[0], true), b(ends_[1], true);
  auto card = TakeCard(a);
  ByteWriter writer{std::span<std::byte>(card).subspan(16, 8)};
  writer.Put(static_cast<uint64_t>(getppid()));
  const std::array<std::byte, 2 * sizeof(NonceBytes)> none = {};
  const std::span<const std::byte> said = std::span(card).first(kSaidBytes);
  std::ranges::copy(MacOf(0, 'C', none, said), card.begin() + kSaidBytes);
  Send(0, card);
  EXPECT_EQ(Finish(a, b), (std::array{State::kDone, State::kDone}));
  EXPECT_FALSE(b.local().can_read);
  EXPECT_FALSE(a.local().is_read);
  EXPECT_TRUE(a.local().can_read) << "the other end has said who it is";
}

// A member that lies about where its window is: the sign is not there.
TEST_F(IntroductionTest, TheSignMustStandInTheWindow) {
  static constexpr std::array<std::byte, 64> kElsewhere = {};
  Introduction a(ends_[0], true), b(ends_[1], true);
  auto card = TakeCard(a);
  ByteWriter writer{std::span<std::byte>(card).subspan(32, 8)};
  writer.Put(reinterpret_cast<uint64_t>(kElsewhere.data()));
  const std::array<std::byte, 2 * sizeof(NonceBytes)> none = {};
  const std::span<const std::byte> said = std::span(card).first(kSaidBytes);
  std::ranges::copy(MacOf(0, 'C', none, said), card.begin() + kSaidBytes);
  Send(0, card);
  EXPECT_EQ(Finish(a, b), (std::array{State::kDone, State::kDone}));
  EXPECT_FALSE(b.local().can_read);
}

// A member that lies gives the card of the other end as its own: its process, its name, its window,
// its nonce. Catches an end that reads its own memory for another member.
TEST_F(IntroductionTest, AnEndIsNotItsOwnPeer) {
  Introduction a(ends_[0], true);
  auto card = TakeCard(a);
  const std::span<const std::byte> said = std::span(card).first(kSaidBytes);
  const std::array<std::byte, 2 * sizeof(NonceBytes)> none = {};
  std::ranges::copy(MacOf(0, 'L', none, said), card.begin() + kSaidBytes);
  Send(1, card);
  EXPECT_EQ(a.Step(), State::kTalking);
  std::array<std::byte, 2 * sizeof(NonceBytes)> nonces;
  std::ranges::copy(said.last(sizeof(NonceBytes)), nonces.begin());
  std::ranges::copy(said.last(sizeof(NonceBytes)), nonces.begin() + sizeof(NonceBytes));
  std::array<std::byte, 1 + sizeof(MacBytes)> ready = {std::byte{1}};
  std::ranges::copy(MacOf(1, 'L', nonces, std::span(ready).first(1)), ready.begin() + 1);
  Send(1, ready);
  EXPECT_EQ(a.Step(), State::kTalking);
  std::array<std::byte, 2 * ready.size()> heard;  // that it is ready, and its verdict
  ASSERT_EQ(recv(ends_[1].fd.get(), heard.data(), heard.size(), MSG_WAITALL),
            static_cast<ssize_t>(heard.size()));
  EXPECT_EQ(heard[ready.size()], std::byte{0});
}

}  // namespace
}  // namespace prepost::introduction_test
