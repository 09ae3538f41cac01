// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/block_stage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "runtime/transport/shm/handed_memory.h"

namespace prepost {
namespace {

constexpr size_t kBlock = BlockStage::kBlockBytesMax;

std::vector<std::byte> Filled(size_t bytes, uint8_t value) {
  return std::vector<std::byte>(bytes, std::byte{value});
}

TEST(BlockStageTest, ABlockIsThereOnceForAllItsReceivers) {
  const auto stage = *BlockStage::Make();
  const auto peer = *PeerStage::Take(FileDescriptor(dup(stage->memory_fd())));
  const std::vector<std::byte> first = Filled(kBlock, 1), second = Filled(5000, 2);
  const auto place = stage->Add(first);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(stage->Add(first), place);
  const auto other = stage->Add(second);
  ASSERT_TRUE(other.has_value());
  EXPECT_NE(other, place);
  EXPECT_EQ(stage->free_places(), BlockStage::kPlaces - 2);
  EXPECT_TRUE(std::ranges::equal(peer->At(*place), first));
  EXPECT_TRUE(std::ranges::equal(peer->At(*other).first(second.size()), second));
  stage->Remove(*place);
  EXPECT_TRUE(stage->Has(first)) << "one receiver does not have it yet";
  stage->Remove(*place);
  EXPECT_FALSE(stage->Has(first)) << "its memory may have changed since";
  EXPECT_EQ(stage->free_places(), BlockStage::kPlaces - 1);
}

// Blocks are where they are: a part of another one's memory is another block.
TEST(BlockStageTest, BlocksAreToldApartByPlaceAndSize) {
  const auto stage = *BlockStage::Make();
  const std::vector<std::byte> memory = Filled(10'000, 3);
  const std::span<const std::byte> all(memory);
  EXPECT_TRUE(stage->Add(all.first(5000)).has_value());
  EXPECT_FALSE(stage->Has(all.first(5001)));
  EXPECT_FALSE(stage->Has(all.subspan(1, 5000)));
}

TEST(BlockStageTest, FullIsNoErrorAndPlacesComeAgain) {
  const auto stage = *BlockStage::Make();
  const std::vector<std::byte> memory = Filled(BlockStage::kPlaces + 1, 4);
  std::set<uint32_t> places;
  for (uint32_t i = 0; i < BlockStage::kPlaces; ++i)
    places.insert(stage->Add(std::span(memory).subspan(i, 1)).value());
  EXPECT_EQ(places.size(), BlockStage::kPlaces);
  EXPECT_EQ(stage->Add(std::span(memory).last(1)), std::nullopt);
  EXPECT_TRUE(stage->Add(std::span(memory).first(1)).has_value()) << "it is there";
  stage->Remove(7);
  EXPECT_EQ(stage->Add(std::span(memory).last(1)), 7u);
}

// By a peer that wants this process to read beyond a file's end, or somebody else's file.
TEST(BlockStageTest, WhatIsNoStageIsRefused) {
  EXPECT_FALSE(PeerStage::Take({}).ok());
  EXPECT_FALSE(PeerStage::Take(FileDescriptor(open("/dev/zero", O_RDWR | O_CLOEXEC))).ok());
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, BlockStage::kPlaces * kBlock - 4096,
                               BlockStage::kPlaces * kBlock + 4096}) {
    EXPECT_FALSE(PeerStage::Take(MakeHandedMemory("other", bytes, /*is_backed=*/false)->file).ok())
        << bytes;
  }
  const FileDescriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), static_cast<off_t>(BlockStage::kPlaces * kBlock)), 0);
  EXPECT_FALSE(PeerStage::Take(unsealed).ok()) << "it might shrink";
}

TEST(BlockStageTest, NobodyElseWritesThere) {
  const auto stage = *BlockStage::Make();
  EXPECT_EQ(mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_SHARED, stage->memory_fd(), 0),
            MAP_FAILED);
  const std::byte byte{1};
  EXPECT_LT(pwrite(stage->memory_fd(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace prepost
