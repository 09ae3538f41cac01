// SPDX-License-Identifier: Apache-2.0
//
// The one use of WAIT that ships with cards: the counters of NCCL's GIN over DOCA GPUNetIO
// (doca_gpunetio_dev_verbs_counter.cuh). A companion QP in loopback, of the same doorbell page,
// holds a WAIT on the send CQ of the main QP, for the CQE whose index is that of the main WQE, and
// behind it an ATOMIC_FA on a counter in local memory: the counter says how many puts are complete,
// and no host touches the companion meanwhile.
#include <cstring>

#include "tests/conformance/cross_channel.h"

namespace prepost::test::companion_test {
namespace {

constexpr size_t kCounterAt = 64, kBeforeAt = 128;

class Companion {
 public:
  Companion(nic::Device& device, TestQueue& main, TestQueue& receiver)
      : main_(main),
        receiver_(receiver),
        queue_(device, {.sq_wqebbs = 64, .cd_master = true, .takes_atomics = true},
               {.entries = 64, .ignore_overrun = true}) {
    Connect(device, queue_, device, queue_);
  }

  TestQueue& queue() { return queue_; }
  uint64_t NumberAt(size_t offset) {
    uint64_t number = 0;
    std::memcpy(&number, queue_.memory().data() + offset, sizeof number);
    return number;
  }
  /// A put of 8 bytes, and what counts it.
  void PutAndCount(uint64_t add) {
    main_.Rdma(nic::Opcode::kRdmaWrite, {receiver_.at(0), receiver_.key()}, {main_.data(0, 8)});
    queue_.Wait(main_.send_cq(), static_cast<uint32_t>(main_.posted() - 1));
    Count(kCounterAt, add);
  }
  void Count(size_t at, uint64_t add) {
    queue_.FetchAdd({queue_.at(at), queue_.key()}, add, queue_.data(kBeforeAt, 8));
  }

 private:
  TestQueue& main_;
  TestQueue& receiver_;
  TestQueue queue_;
};

// To the byte, as that code lays them out: WAIT of two segments, ATOMIC_FA of four, with CQEs.
TEST_P(CrossChannelTest, CompanionBytesOfTheTwoWqes) {
  MakePlain({.entries = 64, .ignore_overrun = true});
  Companion companion(tested_->device(0), *sender_, *receiver_);
  TestQueue& queue = companion.queue();
  companion.PutAndCount(0x0102030405060708);
  const std::span<const std::byte> ring = queue.qp().sq;
  std::vector<uint8_t> expected(128);
  const auto put = [&](size_t at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      expected[at + i] = static_cast<uint8_t>(value >> (8 * (bytes - 1 - i)));
  };
  const uint32_t qpn = queue.qp().number;
  put(0, 0x0000000f, 4);                  // opmod 0, index 0, WAIT
  put(4, qpn << 8 | 2, 4);                // two segments
  put(8, 0x08, 4);                        // a CQE always
  put(24, 0, 4);                          // until CQE 0
  put(28, sender_->send_cq().number, 4);  // of that CQ
  put(64, 0x00000112, 4);                 // index 1, ATOMIC_FA
  put(68, qpn << 8 | 4, 4);               // four segments
  put(72, 0x08, 4);
  put(80, queue.at(kCounterAt), 8);  // remote address
  put(88, queue.key(), 4);           // and key
  put(96, 0x0102030405060708, 8);    // what is added
  put(112, 8, 4);                    // the former value goes
  put(116, queue.key(), 4);
  put(120, queue.at(kBeforeAt), 8);  // here
  EXPECT_EQ(std::vector<uint8_t>(reinterpret_cast<const uint8_t*>(ring.data()),
                                 reinterpret_cast<const uint8_t*>(ring.data()) + 128),
            expected);
}

// Catches a WAIT that passes before the put is acknowledged, and an addition that is lost or done
// twice.
TEST_P(CrossChannelTest, CompanionCountsPutsThatAreComplete) {
  MakePlain({.entries = 64, .ignore_overrun = true});
  Companion companion(tested_->device(0), *sender_, *receiver_);
  for (int i = 0; i < 5; ++i) companion.PutAndCount(10);
  companion.queue().Ring();
  Settle();
  EXPECT_EQ(companion.NumberAt(kCounterAt), 0u);
  EXPECT_EQ(companion.queue().Sent().size(), 0u);
  sender_->Ring();
  Settle();
  EXPECT_EQ(companion.NumberAt(kCounterAt), 50u);
  EXPECT_EQ(companion.NumberAt(kBeforeAt), 40u);
  const std::vector<Cqe> cqes = companion.queue().Sent();
  ASSERT_EQ(cqes.size(), 10u);
  for (const Cqe& cqe : cqes) EXPECT_FALSE(cqe.is_error());
  EXPECT_EQ(std::memcmp(receiver_->memory().data(), sender_->memory().data(), 8), 0);
}

TEST_P(CrossChannelTest, AtomicsOnAPeer) {
  TestQueue near(tested_->device(0), {.sq_wqebbs = 8});
  TestQueue far(tested_->device(1), {.sq_wqebbs = 8, .takes_atomics = true});
  Connect(tested_->device(0), near, tested_->device(1), far);
  for (size_t i = 0; i < 3; ++i)
    near.FetchAdd({far.at(8), far.key()}, ~uint64_t{0}, near.data(8 * i, 8));
  // The fence holds it until the atomics are answered.
  near.Rdma(nic::Opcode::kRdmaRead, {far.at(8), far.key()}, {near.data(64, 8)},
            {.fence = nic::kFence});
  near.Ring();
  Settle();
  ASSERT_EQ(near.Sent().size(), 4u);
  const std::vector<int64_t> expected = {0, -1, -2};
  std::vector<int64_t> before(3);
  std::memcpy(before.data(), near.memory().data(), 24);
  EXPECT_EQ(before, expected);
  int64_t read = 0;
  std::memcpy(&read, near.memory().data() + 64, 8);
  EXPECT_EQ(read, -3);
}

TEST_P(CrossChannelTest, AtomicOnAPeerThatTakesNoneBreaksTheQueue) {
  TestQueue near(tested_->device(0), {.sq_wqebbs = 8});
  TestQueue far(tested_->device(1), {.sq_wqebbs = 8});
  Connect(tested_->device(0), near, tested_->device(1), far);
  near.FetchAdd({far.at(8), far.key()}, 1, near.data(0, 8));
  ExpectRefused(near);
}

TEST_P(CrossChannelTest, AtomicAtAnAddressThatIsNoneBreaksTheQueue) {
  MakePlain();
  Companion companion(tested_->device(0), *sender_, *receiver_);
  companion.Count(kCounterAt + 4, 1);
  ExpectRefused(companion.queue());
  EXPECT_EQ(companion.NumberAt(kCounterAt), 0u);
}

}  // namespace
}  // namespace prepost::test::companion_test
