// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/output_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::output_set_test {
namespace {

using test::TempFolder;

Result<OutputSet> Make(const std::string& folder) {
  return OutputSet::Create({.folder = folder, .name = "image", .nodes = 3, .root = NodeId(1)});
}

void Fill(const OutputSet& set) {
  for (NodeId node : {NodeId(0), NodeId(2)}) {
    test::WriteBytes(set.TemporaryPath(node), test::RandomBytes(10));
  }
}

TEST(OutputSetTest, CommitsEveryReceiversCopyAndNoRoot) {
  const TempFolder folder;
  {
    Result<OutputSet> set = Make(folder / "a/b");
    ASSERT_TRUE(set.ok()) << set.status().ToString();
    Fill(*set);
    ASSERT_TRUE(set->Commit().ok());
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "a/b/node-0/image"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a/b/node-2/image"));
  EXPECT_EQ(test::CountFiles(folder.path()), 2u);
}

// Catches temporary files and made folders that stay behind when a run fails.
TEST(OutputSetTest, LeavesNothingWithoutCommit) {
  const TempFolder folder;
  {
    Result<OutputSet> set = Make(folder / "a/b");
    ASSERT_TRUE(set.ok());
    Fill(*set);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(OutputSetTest, KeepsFoldersThatWereThere) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "a/node-0");
  test::WriteBytes(folder / "a/node-0/other", test::RandomBytes(1));
  { ASSERT_TRUE(Make(folder / "a").ok()); }
  EXPECT_TRUE(std::filesystem::exists(folder / "a/node-0/other"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a/node-2"));
}

// One copy is missing: catches a half-committed set.
TEST(OutputSetTest, FailedCommitLeavesNothing) {
  const TempFolder folder;
  {
    Result<OutputSet> set = Make(folder / "a");
    ASSERT_TRUE(set.ok());
    test::WriteBytes(set->TemporaryPath(NodeId(0)), test::RandomBytes(10));
    EXPECT_THAT(set->Commit().message(), ::testing::HasSubstr("node-2/image"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// The last of three copies cannot be named. Catches older files that are lost with the set, and names
// that only the moments in between have.
TEST(OutputSetTest, FailedCommitBringsOlderFilesBack) {
  const TempFolder folder;
  for (const char* const name : {"a", "b"})
    test::WriteBytes(folder / name, test::RandomBytes(20, /*seed=*/7));
  const std::string older = test::ReadText(folder / "a");
  Result<OutputSet> set = OutputSet::CreateIn(folder.path(), {"a", "new", "b", "last"});
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  for (uint32_t i = 0; i < 4; ++i)
    test::WriteBytes(set->TemporaryPath(NodeId(i)), test::RandomBytes(10));
  std::filesystem::create_directories(folder / "last/full");
  EXPECT_THAT(set->Commit().message(), ::testing::HasSubstr("last"));
  EXPECT_EQ(test::ReadText(folder / "a"), older);
  EXPECT_EQ(test::ReadText(folder / "b"), older);
  EXPECT_EQ(test::CountFiles(folder.path()), 2u);
  std::filesystem::remove_all(folder / "last");
  Result<OutputSet> again = OutputSet::CreateIn(folder.path(), {"a", "new"});
  ASSERT_TRUE(again.ok());
  for (uint32_t i = 0; i < 2; ++i)
    test::WriteBytes(again->TemporaryPath(NodeId(i)), test::RandomBytes(10));
  ASSERT_TRUE(again->Commit(/*sync=*/true).ok());
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), 10u);
  EXPECT_EQ(test::CountFiles(folder.path()), 3u);
}

/// The pid of a process that is gone.
pid_t DeadPid() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

// Catches temporary files of killed runs that pile up, and the removal of those of runs that live.
TEST(OutputSetTest, RemovesWhatKilledRunsHaveLeft) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "node-0");
  const auto path = [&](const std::string& name) { return folder / ("node-0/" + name); };
  const std::string dead = path(".prepost-" + std::to_string(DeadPid()) + ".partial");
  const std::string own = path(".prepost-" + std::to_string(getpid()) + ".partial");
  const std::string others[] = {path(".prepost-1.partial"),   path(".prepost-.partial"),
                                path(".prepost-x.partial"),   path(".prepost-1"),
                                path(".prepost--1.partial"),  path(".prepost-0.partial"),
                                path("prepost-1.partial"),    path(".prepost-999999999999.partial"),
                                path(".prepost-01.partial"),  path("i"),
                                path(".prepost-1.partial.x"), path("image")};
  for (const std::string& other : others) test::WriteBytes(other, test::RandomBytes(1));
  for (const std::string& stale : {dead, own}) test::WriteBytes(stale, test::RandomBytes(1));
  { ASSERT_TRUE(Make(folder.path()).ok()); }
  for (const std::string& stale : {dead, own}) EXPECT_FALSE(std::filesystem::exists(stale));
  for (const std::string& other : others) EXPECT_TRUE(std::filesystem::exists(other)) << other;
}

// Catches a temporary name that is longer than the final one can be.
TEST(OutputSetTest, TakesTheLongestName) {
  const TempFolder folder;
  const std::string name(255, 'x');
  Result<OutputSet> set =
      OutputSet::Create({.folder = folder.path(), .name = name, .nodes = 2, .root = NodeId(0)});
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  test::WriteBytes(set->TemporaryPath(NodeId(1)), test::RandomBytes(10));
  EXPECT_TRUE(set->Commit().ok());
  EXPECT_TRUE(std::filesystem::exists(folder / ("node-1/" + name)));
}

// Catches a link that is replaced by a file, and a copy that stays when the group fails after all.
TEST(OutputSetTest, OneCopyGoesWhereALinkPointsAndCanBeWithdrawn) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "disk");
  test::WriteBytes(folder / "disk/copy", test::RandomBytes(1));
  std::filesystem::create_symlink(folder / "disk/copy", folder / "link");
  Result<OutputSet> set = OutputSet::CreateOne(NodeId(2), folder / "link");
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  test::WriteBytes(set->TemporaryPath(NodeId(2)), test::RandomBytes(10));
  ASSERT_TRUE(set->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(std::filesystem::file_size(folder / "disk/copy"), 10u);
  set->Withdraw();
  EXPECT_TRUE(std::filesystem::is_empty(folder / "disk"));
}

// Catches what a killed node has left and nobody removes, and another machine's that somebody does.
TEST(OutputSetTest, OneCopyRemovesWhatThisMachinesDeadProcessesLeft) {
  const TempFolder folder;
  const auto create = [&] { return OutputSet::CreateOne(NodeId(1), folder / "copy"); };
  const std::string own = create()->TemporaryPath(NodeId(1));
  const size_t pid = own.find(std::to_string(getpid()), own.rfind('/'));
  const std::string tag = own.substr(own.rfind('-'));
  const std::string dead = own.substr(0, pid) + "999999999" + tag;  // above the kernel's limit
  const std::string living = own.substr(0, pid) + "1" + tag;
  const std::string elsewhere = own.substr(0, pid) + "999999999-0123456789abcdef.partial";
  for (const std::string& path : {own, dead, living, elsewhere}) {
    test::WriteBytes(path, test::RandomBytes(1));
  }
  ASSERT_TRUE(create().ok());
  EXPECT_FALSE(std::filesystem::exists(own));
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(living));
  EXPECT_TRUE(std::filesystem::exists(elsewhere));
}

// Catches a device that is replaced by a file.
TEST(OutputSetTest, OneCopyReplacesOnlyFiles) {
  const TempFolder folder;
  EXPECT_EQ(OutputSet::CreateOne(NodeId(1), "/dev/null").status().message(),
            "cannot write /dev/null: a device has this name");
  EXPECT_THAT(OutputSet::CreateOne(NodeId(1), folder.path()).status().message(),
              ::testing::HasSubstr("a folder has this name"));
}

TEST(OutputSetTest, RefusesPlacesThatCannotBeWritten) {
  const TempFolder folder;
  test::WriteBytes(folder / "file", test::RandomBytes(1));
  EXPECT_THAT(Make(folder / "file").status().message(), ::testing::HasSubstr("not a folder"));
  EXPECT_THAT(Make(folder / "file/x").status().message(), ::testing::HasSubstr("Not a directory"));
  std::filesystem::create_directories(folder / "b/node-2/image");
  EXPECT_THAT(Make(folder / "b").status().message(),
              ::testing::HasSubstr("a folder has this name"));
  EXPECT_FALSE(std::filesystem::exists(folder / "b/node-0"));
}

}  // namespace
}  // namespace prepost::output_set_test
