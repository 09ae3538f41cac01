// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/shm_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/mapping.h"
#include "tests/support/random.h"
#include "tests/support/shared_memory.h"

namespace prepost {
namespace {

constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | 0x0010 /* F_SEAL_FUTURE_WRITE */ | F_SEAL_SEAL;
/// Where a stream's memory has its numbers: as many bytes as it has written, which of them is at
/// the ring's beginning, and how many it has read.
constexpr size_t kWritten = 0, kOrigin = 8, kRead = 64;

using test::CopyOf;

struct Ends {
  explicit Ends(size_t a_bytes = kPage, size_t b_bytes = kPage)
      : a(*ShmStream::Make(a_bytes)), b(*ShmStream::Make(b_bytes)) {
    a_memory = CopyOf(a->memory_fd());
    test::Join(*a, *b);
  }
  std::unique_ptr<ShmStream> a, b;
  FileDescriptor a_memory;
};

bool IsRung(const ShmStream& end) {
  std::byte ring;
  return recv(end.bell_fd(), &ring, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

Io Move(ShmStream& end, bool writes, std::span<std::byte> memory) {
  const std::array<iovec, 2> parts = {
      iovec{memory.data(), memory.size() / 3},
      iovec{memory.data() + memory.size() / 3, memory.size() - memory.size() / 3}};
  return writes ? end.Write(parts) : end.Read(parts);
}

// In two threads, of which each sleeps when there is nothing to do. Catches bytes that are lost at
// the ring's end, and a sleeper that nobody wakes.
TEST(ShmStreamTest, AllBytesArriveInOrderAndWhoSleepsIsWoken) {
  Ends ends(2 * kPage);
  constexpr size_t kBytes = 3'000'000;
  const auto byte_at = [](uint64_t i) { return std::byte(i * 7 + i / 251); };
  const auto wait = [](ShmStream& end, bool reads) {
    end.Arm();
    while (reads ? !end.has_arrivals() : !end.has_room()) {
      std::byte ring;
      ASSERT_EQ(recv(end.bell_fd(), &ring, 1, 0), 1);
      if (!reads) break;
    }
    end.Disarm();
  };
  std::thread writer([&] {
    test::Random random(test::TestSeed());
    uint64_t done = 0;
    while (done < kBytes) {
      std::vector<std::byte> some(std::min<uint64_t>(1 + random.Below(9000), kBytes - done));
      for (size_t i = 0; i < some.size(); ++i) some[i] = byte_at(done + i);
      const Io io = Move(*ends.a, /*writes=*/true, some);
      if (io.outcome == Io::Outcome::kWouldBlock) {
        wait(*ends.a, /*reads=*/false);
      } else {
        done += io.bytes;
      }
    }
  });
  test::Random random(test::TestSeed() + 1);
  uint64_t done = 0;
  while (done < kBytes) {
    std::vector<std::byte> some(1 + random.Below(9000));
    const Io io = Move(*ends.b, /*writes=*/false, some);
    if (io.outcome == Io::Outcome::kWouldBlock) {
      wait(*ends.b, /*reads=*/true);
      continue;
    }
    ASSERT_EQ(io.outcome, Io::Outcome::kMoved);
    for (size_t i = 0; i < io.bytes; ++i) ASSERT_EQ(some[i], byte_at(done + i)) << done + i;
    done += io.bytes;
  }
  writer.join();
}

TEST(ShmStreamTest, OnlyWhoSleepsIsWokenAndOnce) {
  Ends ends;
  std::vector<std::byte> some(10);
  Move(*ends.a, true, some);
  EXPECT_FALSE(IsRung(*ends.b));
  ends.b->Arm();
  EXPECT_TRUE(ends.b->has_arrivals());
  for (int i = 0; i < 3; ++i) Move(*ends.a, true, some);
  std::array<std::byte, 8> rings;
  EXPECT_EQ(recv(ends.b->bell_fd(), rings.data(), rings.size(), MSG_DONTWAIT), 1);
  ends.b->Arm();
  Move(*ends.a, true, some);
  EXPECT_TRUE(IsRung(*ends.b)) << "it has heard that, and is about to sleep again";
  EXPECT_TRUE(ends.b->HearBell());
  ends.b->Disarm();
  ends.b->Arm();
  Move(*ends.a, true, some);
  EXPECT_TRUE(IsRung(*ends.b)) << "it sleeps again";
  EXPECT_TRUE(ends.b->HearBell());
  EXPECT_FALSE(IsRung(*ends.b));
}

TEST(ShmStreamTest, AWriterWithoutRoomIsWokenWhenThereIsSome) {
  Ends ends;
  std::vector<std::byte> some(3000);
  EXPECT_EQ(Move(*ends.a, true, some).bytes, 3000u);
  EXPECT_EQ(Move(*ends.a, true, some).bytes, kPage - 3000);
  EXPECT_EQ(Move(*ends.a, true, some).outcome, Io::Outcome::kWouldBlock);
  EXPECT_FALSE(ends.a->has_room());
  Move(*ends.b, false, std::span(some).first(10));
  EXPECT_TRUE(ends.a->has_room());
  EXPECT_FALSE(IsRung(*ends.a)) << "for so little it would be woken again and again";
  Move(*ends.b, false, some);
  EXPECT_TRUE(IsRung(*ends.a));
}

/// Memory as a hostile process makes it: sealed, but with numbers of its own.
struct Hostile {
  explicit Hostile(size_t bytes, int seals = kSeals)
      : file(memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    memory = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    EXPECT_NE(memory, MAP_FAILED);
    if (seals != 0) {
      EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
    }
    size = bytes;
  }
  ~Hostile() { munmap(memory, size); }
  void Set(size_t place, uint64_t value) const { std::memcpy(memory + place, &value, 8); }

  FileDescriptor file;
  std::byte* memory;
  size_t size;
};

TEST(ShmStreamTest, NumbersThatCannotBeAreNotBelieved) {
  std::vector<std::byte> some(100);
  for (const uint64_t written : {uint64_t{kPage + 1}, uint64_t{1} << 63, UINT64_MAX}) {
    const auto own = *ShmStream::Make(kPage);
    Hostile other(2 * kPage);
    ASSERT_TRUE(own->Take(CopyOf(other.file.get())));
    other.Set(kWritten, written);
    EXPECT_EQ(Move(*own, false, some).outcome, Io::Outcome::kForged) << written;
  }
  for (const uint64_t origin : {uint64_t{1}, uint64_t{1} << 63, UINT64_MAX}) {
    const auto own = *ShmStream::Make(kPage);
    Hostile other(2 * kPage);
    ASSERT_TRUE(own->Take(CopyOf(other.file.get())));
    other.Set(kOrigin, origin);
    other.Set(kWritten, kPage);
    std::vector<std::byte> all(kPage);
    EXPECT_EQ(Move(*own, false, all).bytes, kPage) << "anything, but from the ring";
  }
  const auto own = *ShmStream::Make(kPage);
  Hostile other(2 * kPage);
  ASSERT_TRUE(own->Take(CopyOf(other.file.get())));
  EXPECT_EQ(Move(*own, true, some).bytes, 100u);
  other.Set(kRead, 101);
  EXPECT_EQ(Move(*own, true, some).outcome, Io::Outcome::kForged) << "more than was written";
  other.Set(kRead, 50);
  EXPECT_EQ(Move(*own, true, some).bytes, 100u);
  other.Set(kRead, 49);
  EXPECT_EQ(Move(*own, true, some).outcome, Io::Outcome::kForged) << "it goes back";
}

// Catches short messages of which each is in other lines of the caches, or pages, than the one
// before.
TEST(ShmStreamTest, AnEmptyStreamBeginsItsRingAgain) {
  const Ends ends;
  const Mapping memory = *Mapping::OfFile(ends.a_memory.get(), 2 * kPage, Mapping::Access::kRead);
  for (int i = 1; i < 100; ++i) {
    std::vector<std::byte> sent(50, std::byte(i)), got(50);
    EXPECT_EQ(Move(*ends.a, true, sent).bytes, 50u);
    EXPECT_EQ(memory.bytes()[kPage], std::byte(i)) << "the ring's first byte";
    EXPECT_EQ(Move(*ends.b, false, got).bytes, 50u);
    EXPECT_EQ(got, sent);
  }
}

TEST(ShmStreamTest, OnlySealedMemoryOfASizeThatItHasIsTaken) {
  const auto own = *ShmStream::Make(kPage);
  for (const size_t bytes :
       {size_t{0}, kPage, 3 * kPage + 1, 4 * kPage, kPage + 2 * ShmStream::kRingBytesMax}) {
    if (bytes == 0) continue;
    EXPECT_FALSE(own->Take(CopyOf(Hostile(bytes).file.get()))) << bytes;
  }
  EXPECT_FALSE(own->Take(CopyOf(Hostile(2 * kPage, 0).file.get()))) << "it might shrink";
  EXPECT_FALSE(own->Take(CopyOf(Hostile(2 * kPage, F_SEAL_SHRINK).file.get())));
  EXPECT_FALSE(own->Take(FileDescriptor(open("/dev/zero", O_RDWR | O_CLOEXEC))));
  EXPECT_FALSE(own->Take({}));
}

// Catches a peer that writes what its other end says.
TEST(ShmStreamTest, NobodyElseWritesAnEndsMemory) {
  const auto own = *ShmStream::Make(kPage);
  EXPECT_EQ(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, own->memory_fd(), 0),
            MAP_FAILED);
  std::byte byte{1};
  EXPECT_LT(pwrite(own->memory_fd(), &byte, 1, 0), 0);
  EXPECT_NE(ftruncate(own->memory_fd(), 0), 0);
}

TEST(ShmStreamTest, ABellThatIsGoneSaysSo) {
  Ends ends;
  EXPECT_TRUE(ends.a->HearBell());
  ends.b.reset();
  EXPECT_FALSE(ends.a->HearBell());
  std::vector<std::byte> some(10);
  EXPECT_EQ(Move(*ends.a, true, some).bytes, 10u);  // without a signal
}

}  // namespace
}  // namespace prepost
