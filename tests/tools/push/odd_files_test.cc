// SPDX-License-Identifier: Apache-2.0
//
// File systems that keep less than ours, and callers that may do less: the calls of this file stand
// in for the C library's, for this whole program, and do as they do unless a test says otherwise.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runtime/files/message_file.h"
#include "tests/support/temp_folder.h"
#include "tools/push/file_attributes.h"
#include "tools/push/push_sink.h"
#include "tools/push/push_source.h"

namespace {

struct OddFiles {
  bool are_modes_refused = false;
  bool are_modes_ignored = false;
  bool are_times_refused = false;
  bool rounds_times = false;  ///< to two seconds, as FAT does
  enum class Times : uint8_t { kSet, kSetTogether, kIgnored };
  Times times = Times::kSet;  ///< kSetTogether: ignored where one of the two is left alone
  bool knows_no_room = false;
  off_t room = -1;  ///< as many bytes can be reserved, unless negative; of its own, not the disk's
};
OddFiles odd;

}  // namespace

extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (odd.room >= 0 && offset + bytes > odd.room) return ENOSPC;
  return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

extern "C" int fchmod(int fd, mode_t mode) noexcept {
  if (odd.are_modes_ignored) return 0;
  if (!odd.are_modes_refused) return static_cast<int>(syscall(SYS_fchmod, fd, mode));
  errno = EPERM;
  return -1;
}

extern "C" int futimens(int fd, const timespec times[2]) noexcept {
  if (odd.are_times_refused) {
    errno = EPERM;
    return -1;
  }
  if (odd.times == OddFiles::Times::kIgnored ||
      (odd.times == OddFiles::Times::kSetTogether && times[0].tv_nsec == UTIME_OMIT))
    return 0;
  timespec kept[2] = {times[0], times[1]};
  if (odd.rounds_times) kept[1] = {.tv_sec = times[1].tv_sec / 2 * 2, .tv_nsec = 0};
  return static_cast<int>(syscall(SYS_utimensat, fd, nullptr, kept, 0));
}

extern "C" int fstatvfs(int fd, struct statvfs* about) noexcept {
  if (statvfs(("/proc/self/fd/" + std::to_string(fd)).c_str(), about) != 0) return -1;
  if (odd.knows_no_room) about->f_bfree = about->f_bavail = 0;
  return 0;
}

namespace prepost::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OddFilesTest : public ::testing::Test {
 protected:
  OddFilesTest() {
    std::filesystem::create_directory(to_);
    for (const char* const name : {"x", "y"}) std::ofstream(folder_ / name) << "text of " << name;
  }
  ~OddFilesTest() override { odd = {}; }

  PushSource Source() const { return *PushSource::Open({folder_ / "x", folder_ / "y"}, ""); }

  /// What the target lacks is sent.
  Status Push(PushSinkOptions options = {}) {
    PushSource source = Source();
    options.target = to_;
    if (!options.unkept) {
      options.unkept = [this](const char* what, const std::string& path, int error) {
        AddUnkept(what, path, error, &unkept_);
        return Status();
      };
    }
    const auto there = PushSink::FilesThere(source.manifest(), options);
    if (!there.ok()) return there.status();
    there_ = there->size();
    if (there_ == source.manifest().size()) return {};
    auto sink = PushSink::Open(source.manifest(), options);
    if (!sink.ok()) return sink.status();
    std::vector<std::byte> piece(100);
    while (const size_t got = *source.Read(piece))
      PREPOST_RETURN_IF_ERROR((*sink)->Write(std::span(piece).first(got)));
    const auto sums = (*sink)->Finish();
    return sums.ok() ? (*sink)->Commit() : sums.status();
  }

  const test::TempFolder folder_;
  const std::string to_ = folder_ / "to";
  std::vector<Unkept> unkept_;
  size_t there_ = 0;
};

// Catches copies that are thrown away after all of them has come.
TEST_F(OddFilesTest, DataStayWhereModesAndTimesCannotBeKept) {
  ASSERT_EQ(chmod((folder_ / "x").c_str(), 0640), 0);
  odd = {.are_modes_refused = true, .are_times_refused = true};
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_EQ(test::ReadText(to_ + "/x"), "text of x");
  ASSERT_EQ(unkept_.size(), 2u);
  EXPECT_EQ(TextOf(unkept_[0]),
            "mode of 2 files, the first " + to_ + "/x (Operation not permitted)");
  EXPECT_THAT(TextOf(unkept_[1]), HasSubstr("time of 2 files"));
  // Nor where they are there, and only differ in these.
  odd.are_times_refused = false;
  ASSERT_EQ(Push().ToString(), "");
  std::filesystem::permissions(to_ + "/x", std::filesystem::perms(0600));
  unkept_.clear();
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_EQ(there_, 2u);
  EXPECT_THAT(TextOf(unkept_.at(0)), HasSubstr("mode of"));
  // Who wants it so has nothing instead.
  const Status strict =
      Push({.unkept = [](const char* what, const std::string&, int) { return Rejected(what); }});
  EXPECT_EQ(strict.message(), "mode");
}

// As exFAT through FUSE. Catches a mode that is lost and called kept.
TEST_F(OddFilesTest, ModesThatAreIgnoredAreNotKept) {
  ASSERT_EQ(chmod((folder_ / "x").c_str(), 0640), 0);
  ASSERT_EQ(chmod((folder_ / "y").c_str(), 0640), 0);
  odd = {.are_modes_ignored = true};
  ASSERT_EQ(Push().ToString(), "");
  ASSERT_EQ(unkept_.size(), 1u);
  EXPECT_EQ(TextOf(unkept_[0]),
            "mode of 2 files, the first " + to_ + "/x (Operation not supported)");
}

// Some file systems of FUSE say that they set a time, and do not. Catches a file that is sent again
// each time, and nobody knows why.
TEST_F(OddFilesTest, TimesThatAreNotSetAreSaid) {
  const std::array<timespec, 2> times = {timespec{.tv_sec = 1000}, timespec{.tv_sec = 1000}};
  for (const char* const name : {"x", "y"})
    ASSERT_EQ(utimensat(AT_FDCWD, (folder_ / name).c_str(), times.data(), 0), 0);
  odd.times = OddFiles::Times::kIgnored;
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_THAT(TextOf(unkept_.at(0)), HasSubstr("time of 2 files"));
  odd.times = OddFiles::Times::kSetTogether;
  unkept_.clear();
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_TRUE(unkept_.empty());
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_EQ(there_, 2u);
}

// Catches a file that is sent again each time, and a new one that is taken for it.
TEST_F(OddFilesTest, ATimeThatIsRoundedIsTheSame) {
  odd.rounds_times = true;
  for (const char* const name : {"x", "y"}) {
    const std::array<timespec, 2> times = {timespec{.tv_sec = 1001, .tv_nsec = 5},
                                           timespec{.tv_sec = 1001, .tv_nsec = 5}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder_ / name).c_str(), times.data(), 0), 0);
  }
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_EQ(there_, 0u);
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_EQ(there_, 2u);
  const std::array<timespec, 2> later = {timespec{.tv_sec = 1002}, timespec{.tv_sec = 1002}};
  ASSERT_EQ(utimensat(AT_FDCWD, (folder_ / "x").c_str(), later.data(), 0), 0);
  ASSERT_EQ(Push().ToString(), "");
  EXPECT_EQ(there_, 1u);
  std::vector<std::string> names;  // nothing is left of the trials
  for (const auto& entry : std::filesystem::directory_iterator(to_))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_THAT(names, ElementsAre("x", "y"));
}

// Some network file systems say so. Catches a file that is refused where there is room.
TEST_F(OddFilesTest, NoFreeBlocksAreNoAnswer) {
  odd = {.knows_no_room = true, .room = 1 << 20};
  EXPECT_TRUE(Push().ok());
  Result<PartialOutput> output = PartialOutput::Create(folder_ / "large", "large");
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->ReserveSpace(0, uint64_t{1} << 50).code(), StatusCode::kRejected);
  struct stat about = {};
  ASSERT_EQ(fstat(output->fd(), &about), 0);
  EXPECT_LE(about.st_blocks * 512, 1 << 20);
}

// Catches files that are all open at once.
TEST_F(OddFilesTest, MoreFilesThanMayBeOpen) {
  const test::TempFolder from;
  constexpr size_t kFiles = 300;
  std::vector<std::string> paths;
  for (size_t i = 0; i < kFiles; ++i) {
    paths.push_back(from / std::to_string(i));
    std::ofstream(paths.back()) << std::string(i, 'x');
  }
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  Result<PushSource> source = PushSource::Open(paths, "");
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  for (const bool is_given_up : {true, false}) {
    auto sink = PushSink::Open(source->manifest(), {.target = to_, .files_max = 100});
    ASSERT_TRUE(sink.ok()) << sink.status().ToString();
    ASSERT_EQ((*sink)->Write(std::vector<std::byte>(30'000, std::byte{'x'})).ToString(), "");
    EXPECT_LT(open_files(), 100);
    if (is_given_up) {
      sink->reset();
      EXPECT_TRUE(std::filesystem::is_empty(to_));
      continue;
    }
    ASSERT_EQ((*sink)->Write(std::vector<std::byte>(14'850, std::byte{'x'})).ToString(), "");
    ASSERT_TRUE((*sink)->Finish().ok());
    ASSERT_TRUE((*sink)->Commit().ok());
  }
  for (size_t i = 0; i < kFiles; ++i)
    ASSERT_EQ(test::ReadText(to_ + "/" + std::to_string(i)), std::string(i, 'x')) << i;
}

// Catches a file of a user's that is root's after it was replaced.
TEST_F(OddFilesTest, TheOwnerOfWhatIsReplacedStays) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  std::ofstream(to_ + "/x") << "older";
  ASSERT_EQ(chown((to_ + "/x").c_str(), 1234, 1235), 0);
  ASSERT_EQ(Push().ToString(), "");
  struct stat about = {};
  ASSERT_EQ(stat((to_ + "/x").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 1234u);
  EXPECT_EQ(about.st_gid, 1235u);
  ASSERT_EQ(stat((to_ + "/y").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0u);
  EXPECT_TRUE(unkept_.empty());
}

// Catches a file of another user's, who only had to know the name that would come to a folder such
// as /tmp, that is taken for the one that comes, or who is made the owner of that.
TEST_F(OddFilesTest, AStrangersFileInASharedFolderIsNotKept) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  ASSERT_EQ(chmod(to_.c_str(), 01777), 0);
  ASSERT_EQ(Push().ToString(), "");
  const std::string planted = to_ + "/x";
  struct stat about = {};
  ASSERT_EQ(stat(planted.c_str(), &about), 0);
  std::ofstream(planted) << std::string(static_cast<size_t>(about.st_size), '!');
  const timespec times[2] = {about.st_atim, about.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, planted.c_str(), times, 0), 0);
  ASSERT_EQ(chown(planted.c_str(), 1234, 1235), 0);
  ASSERT_EQ(Push().ToString(), "");
  ASSERT_EQ(stat(planted.c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0u);
  EXPECT_EQ(test::ReadText(planted), "text of x");
  ASSERT_EQ(unkept_.size(), 1u);
  EXPECT_EQ(unkept_[0].what, "owner");
}

// Catches a file that cannot be given its name in the last moment, when others have theirs.
TEST_F(OddFilesTest, WhatCannotBeReplacedIsSaidAtOnce) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may be another user";
  std::ofstream(to_ + "/x") << "a stranger's";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(to_.c_str(), 01777), 0);
  ASSERT_EQ(chown((to_ + "/x").c_str(), 1234, 1235), 0);
  PushSinkOptions options;
  options.target = to_;
  const PushSource source = Source();
  ASSERT_EQ(seteuid(65534), 0);
  const auto sink = PushSink::Open(source.manifest(), options);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_THAT(sink.status().ToString(),
              HasSubstr("/x: it is another user's (user 1234), and its folder has the sticky bit"));
}

// Mode 0400 and a user with rights of his own: the kernel shows the mask as the group's. Catches a
// group that may read the copy, and could not read the file.
TEST_F(OddFilesTest, TheMaskOfAnAclIsNotTheGroup) {
  const std::array<unsigned char, 44> acl = {
      2,  0, 0, 0,                           // version
      1,  0, 4, 0, 0xFF, 0xFF, 0xFF, 0xFF,   // its owner: read
      2,  0, 6, 0, 1,    0,    0,    0,      // user 1: read and write
      4,  0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,   // its group: nothing
      16, 0, 6, 0, 0xFF, 0xFF, 0xFF, 0xFF,   // mask
      32, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF};  // others
  if (setxattr((folder_ / "x").c_str(), "system.posix_acl_access", acl.data(), acl.size(), 0) != 0)
    GTEST_SKIP() << "no ACLs here";
  struct stat about = {};
  ASSERT_EQ(stat((folder_ / "x").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0460u);
  EXPECT_EQ(Source().manifest().at(0).mode, 0400u);
}

}  // namespace
}  // namespace prepost::tools
