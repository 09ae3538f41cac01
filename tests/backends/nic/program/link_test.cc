// SPDX-License-Identifier: Apache-2.0
//
// The linker: every kind of relocation, modular bases, and images that do not fit their bindings.
#include "backends/nic/program/link.h"

#include <gtest/gtest.h>

#include "tests/support/golden_wqes.h"

namespace prepost::nic::link_test {
namespace {

Bindings TwoOfEach() {
  return {.qpns = {0x11, 0xabcdef},
          .cqns = {0x21, 0x123456},
          .sq_bases = {0, 0xfff0},
          .cq_bases = {0, 0xfffffe},
          .lkey = 0x99,
          .address = 0x7f0000000000,
          .epoch = 0xe7};
}

std::string LinkOne(std::vector<std::byte> bytes, Relocation relocation) {
  const auto linked = Link({std::move(bytes), {relocation}}, TwoOfEach());
  return linked.ok() ? test::HexWords(*linked) : linked.status().ToString();
}

std::vector<std::byte> Bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(LinkTest, EveryKind) {
  using K = RelocationKind;
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0x20, 0}), {1, K::kWqeIndex, 1}), "00001000");  // modulo 2^16
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 2}), {0, K::kQpn, 1}), "abcdef02");  // leaves the size alone
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 0}), {0, K::kCqn, 1}), "00123456");
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 5}), {0, K::kWaitIndex, 1}), "00000003");  // modulo 2^24
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 0}), {0, K::kLkey, 0}), "00000099");
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 0, 0, 0, 0x10, 0}), {0, K::kAddress, 0}), "00007f00 00001000");
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 5}), {0, K::kEpoch, 0}), "e7000005");
}

TEST(LinkTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 0}), {2, RelocationKind::kCqn, 0}),
            "relocation cqn at byte 2 lies outside of the queue's 4 bytes");
  EXPECT_EQ(LinkOne(Bytes({0, 0, 0, 0}), {0, RelocationKind::kCqn, 2}),
            "relocation cqn at byte 0 names object 2, there are 2");
}

}  // namespace
}  // namespace prepost::nic::link_test
