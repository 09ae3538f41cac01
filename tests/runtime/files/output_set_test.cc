// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/output_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/files/node_buffer.h"
#include "runtime/files/temporary_file.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::output_set_test {
namespace {

using test::TempFolder;

Result<OutputSet> Make(const std::string& folder) {
  return OutputSet::Create(
      {.folder = folder, .name = "image", .nodes = 3, .roles = Roles({.root = NodeId(1)}, 3, 1)});
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

// The last of three copies cannot be named. Catches older files that are lost with the set, and
// names that only the moments in between have.
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

/// A temporary name with `pid` in place of this process's.
std::string WithPid(const std::string& name, pid_t pid) {
  const std::string own = std::to_string(getpid());
  return std::string(name).replace(name.find(own), own.size(), std::to_string(pid));
}

// Catches temporary files of killed runs that pile up, and the removal of those of runs that live,
// here or on another machine, and of what only looks like one.
TEST(OutputSetTest, RemovesWhatKilledRunsHaveLeft) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "node-0");
  const auto path = [&](const std::string& name) { return folder / ("node-0/" + name); };
  const std::string own = TemporaryName();
  std::string elsewhere = WithPid(own, DeadPid());
  elsewhere.replace(elsewhere.find('-', std::string(".prepost-").size()) + 1, 4, "~~~~");
  std::string earlier = own;  // of a process that had our pid
  earlier.replace(earlier.rfind('-') + 1, 4, "~~~~");
  const std::string dead = WithPid(own, DeadPid());
  const std::string kept[] = {own,
                              WithPid(own, 1),
                              elsewhere,
                              "x" + dead,
                              dead + "x",
                              dead.substr(1),
                              ".prepost-1.partial",
                              ".prepost-.partial",
                              ".prepost-",
                              ".partial",
                              "image"};
  for (const std::string& name : kept) test::WriteBytes(path(name), test::RandomBytes(1));
  for (const std::string& name : {dead, earlier})
    test::WriteBytes(path(name), test::RandomBytes(1));
  { ASSERT_TRUE(Make(folder.path()).ok()); }
  for (const std::string& name : {dead, earlier})
    EXPECT_FALSE(std::filesystem::exists(path(name))) << name;
  for (const std::string& name : kept) EXPECT_TRUE(std::filesystem::exists(path(name))) << name;
}

// Two runs with one process id, as those of two containers have, that write to one folder at the
// same time. Catches a run that ends well with the other's bytes.
TEST(OutputSetTest, RunsOfOneProcessIdKeepApart) {
  const TempFolder folder;
  std::vector<OutputSet> sets;
  std::vector<NodeBuffer> copies;
  for (uint64_t run = 0; run < 2; ++run) {
    Result<OutputSet> set = Make(folder.path());
    ASSERT_TRUE(set.ok()) << set.status().ToString();
    sets.push_back(*std::move(set));
    for (const NodeId node : {NodeId(0), NodeId(2)}) {
      Result<NodeBuffer> copy = NodeBuffer::Open(node, 1000, &sets.back());
      ASSERT_TRUE(copy.ok() && copy->Reserve().ok()) << copy.status().ToString();
      std::ranges::copy(test::RandomBytes(1000, run), copy->bytes().begin());
      copies.push_back(*std::move(copy));
    }
  }
  for (const uint64_t run : {uint64_t{0}, uint64_t{1}}) {
    for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(copies[2 * run + i].GiveName().ok());
    ASSERT_TRUE(sets[run].Commit().ok());
    test::WriteBytes(folder / "expected", test::RandomBytes(1000, run));
    for (const char* const name : {"node-0/image", "node-2/image"})
      EXPECT_EQ(test::ReadText(folder / name), test::ReadText(folder / "expected")) << run;
  }
  // The first one finds that its transfer has failed after all, and takes back what is its own.
  sets[0].Withdraw();
  EXPECT_EQ(test::ReadText(folder / "node-0/image"), test::ReadText(folder / "expected"));
  EXPECT_EQ(test::CountFiles(folder.path()), 3u);
}

// Catches what a link points to being taken for what has the link's name.
TEST(OutputSetTest, LinksAreReplacedAndWhatTheyPointToStays) {
  const TempFolder folder;
  test::WriteBytes(folder / "victim", test::RandomBytes(7));
  std::filesystem::create_directories(folder / "to/elsewhere");
  std::filesystem::create_symlink("../victim", folder / "to/a");
  std::filesystem::create_symlink("elsewhere", folder / "to/b");
  std::filesystem::create_symlink("nowhere", folder / "to/c");
  Result<OutputSet> set = OutputSet::CreateIn(folder / "to", {"a", "b", "c"});
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  for (uint32_t i = 0; i < 3; ++i)
    test::WriteBytes(set->TemporaryPath(NodeId(i)), test::RandomBytes(10));
  ASSERT_TRUE(set->Commit().ok());
  EXPECT_EQ(std::filesystem::file_size(folder / "victim"), 7u);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "to/elsewhere"));
  for (const char* const name : {"to/a", "to/b", "to/c"})
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / name)));
}

// Catches a temporary name that is longer than the final one can be.
TEST(OutputSetTest, TakesTheLongestName) {
  const TempFolder folder;
  const std::string name(255, 'x');
  Result<OutputSet> set = OutputSet::Create({.folder = folder.path(),
                                             .name = name,
                                             .nodes = 2,
                                             .roles = Roles({.root = NodeId(0)}, 2, 1)});
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
