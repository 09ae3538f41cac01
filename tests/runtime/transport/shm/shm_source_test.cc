// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/shm_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "runtime/base/file_descriptor.h"

namespace prepost::shm_source_test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBytes = 10'000;

std::byte ByteAt(uint64_t offset) { return static_cast<std::byte>(offset * 7 % 251); }

/// A memory file of `kBytes` bytes, which cannot shrink if `is_sealed`.
FileDescriptor MakeFile(bool is_sealed) {
  FileDescriptor fd(memfd_create("source", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::vector<std::byte> bytes(kBytes);
  for (uint64_t i = 0; i < kBytes; ++i) bytes[i] = ByteAt(i);
  EXPECT_TRUE(WriteExactly(fd.get(), 0, bytes, "source").ok());
  if (is_sealed) {
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  }
  EXPECT_EQ(IsSealed(fd.get()), is_sealed);
  return fd;
}

ShmSource MakeSource(const FileDescriptor& file, bool is_target_sealed) {
  return ShmSource::Make({.fd = file.get(), .bytes = kBytes, .is_target_sealed = is_target_sealed},
                         {})
      .value();
}

// Catches a copy from or to the wrong place, and one that ends before or behind its target, both
// ways to copy; at a page's edge and at the last byte.
TEST(ShmSourceTest, CopiesWhatLiesThere) {
  for (const bool is_sealed : {false, true}) {
    const FileDescriptor file = MakeFile(is_sealed);
    for (const bool is_target_sealed : {false, true}) {
      const ShmSource source = MakeSource(file, is_target_sealed);
      for (const uint64_t offset : {uint64_t{0}, uint64_t{4095}, kBytes - 1}) {
        const size_t wanted = static_cast<size_t>(std::min<uint64_t>(4100, kBytes - offset));
        std::vector<std::byte> target(wanted + 1, std::byte{0xff});
        const Result<size_t> copied = source.Copy(offset, std::span(target).first(wanted));
        ASSERT_TRUE(copied.ok()) << copied.status().ToString();
        EXPECT_EQ(*copied, wanted);
        for (size_t i = 0; i < wanted; ++i) ASSERT_EQ(target[i], ByteAt(offset + i)) << offset;
        EXPECT_EQ(target[wanted], std::byte{0xff});
      }
    }
  }
}

// Catches a source that is mapped although it can shrink: a SIGBUS.
TEST(ShmSourceTest, ASourceCutShortIsAnError) {
  const FileDescriptor file = MakeFile(/*is_sealed=*/false);
  const ShmSource source = MakeSource(file, /*is_target_sealed=*/true);
  ASSERT_EQ(ftruncate(file.get(), 5000), 0);
  std::vector<std::byte> target(1000);
  const Result<size_t> rest = source.Copy(4900, target);
  ASSERT_TRUE(rest.ok()) << rest.status().ToString();
  EXPECT_EQ(*rest, 100u);
  const Result<size_t> none = source.Copy(5000, target);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), StatusCode::kRejected);
  EXPECT_THAT(none.status().message(), HasSubstr("the copy there ends before it"));
}

// Catches memcpy to a target that can shrink: a SIGBUS.
TEST(ShmSourceTest, ATargetCutShortIsAnError) {
  const FileDescriptor file = MakeFile(/*is_sealed=*/true);
  const FileDescriptor target_file = MakeFile(/*is_sealed=*/false);
  const Mapping target =
      Mapping::OfFile(target_file.get(), kBytes, Mapping::Access::kReadWrite).value();
  const ShmSource source = MakeSource(file, /*is_target_sealed=*/false);
  ASSERT_EQ(ftruncate(target_file.get(), 0), 0);
  const Result<size_t> copied = source.Copy(0, target.bytes());
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.status().code(), StatusCode::kRejected);
  EXPECT_THAT(copied.status().message(), HasSubstr("the memory for it is gone"));
}

// Catches a failed read taken for the end of the file, or for bytes.
TEST(ShmSourceTest, AReadThatFailsIsAnError) {
  const FileDescriptor write_only(open("/dev/null", O_WRONLY | O_CLOEXEC));
  const ShmSource source = MakeSource(write_only, /*is_target_sealed=*/false);
  std::vector<std::byte> target(10);
  const Result<size_t> copied = source.Copy(0, target);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.status().code(), StatusCode::kRejected);
  EXPECT_THAT(copied.status().message(), HasSubstr("Bad file descriptor"));
}

// Catches a preparation that Ctrl-C cannot end.
TEST(ShmSourceTest, ACheckpointEndsTheTouching) {
  const FileDescriptor file = MakeFile(/*is_sealed=*/true);
  const Result<ShmSource> source =
      ShmSource::Make({.fd = file.get(), .bytes = kBytes, .is_target_sealed = true},
                      [] { return Status(StatusCode::kInterrupted, "stopped here"); });
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), StatusCode::kInterrupted);
  EXPECT_EQ(source.status().message(), "stopped here");
}

}  // namespace
}  // namespace prepost::shm_source_test
