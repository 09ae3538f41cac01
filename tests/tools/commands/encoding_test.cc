// SPDX-License-Identifier: Apache-2.0
//
// The encodings of a plan from outside: what each command that writes plans takes, that every
// command that reads them gets the same plan, and that nothing is left behind by what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::encoding_test {
namespace {

using test::Command;
using ::testing::HasSubstr;

class EncodingTest : public ::testing::Test {
 protected:
  EncodingTest() {
    std::ofstream(folder_ / "image") << "thirty bytes and not one more.";
    for (const std::string encoding : {"rows", "columns", "shards"}) {
      std::vector<std::string> arguments = Compile();
      arguments.insert(arguments.end(), {"--encoding", encoding, "-o", folder_ / encoding});
      Command compile(arguments);
      EXPECT_EQ(compile.Wait(), 0) << compile.err();
    }
  }
  static std::vector<std::string> Compile() {
    return {"compile", "--nodes", "5", "--message-bytes", "30", "--block-bytes", "10"};
  }
  /// What `command`, with the plan in an encoding for its first argument, prints.
  std::string OutputOf(std::vector<std::string> arguments, const std::string& encoding) {
    arguments.insert(arguments.begin() + 1, folder_ / encoding);
    Command command(arguments);
    EXPECT_EQ(command.Wait(), 0) << arguments[0] << " " << encoding << ": " << command.err();
    std::string text = command.out();
    for (size_t at = 0; (at = text.find(folder_ / encoding)) != std::string::npos;)
      text.replace(at, (folder_ / encoding).size(), "PLAN");
    return text;
  }
  void ExpectRefused(const std::vector<std::string>& arguments, int code, const std::string& text) {
    test::ExpectRefused(arguments, code, text, folder_);
  }

  test::TempFolder folder_;
};

// Catches a command that reads files only, or that is not given what the file says.
TEST_F(EncodingTest, AllCommandsReadAllEncodings) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"verify"},
                                             {"stats", "--json"},
                                             {"draw"},
                                             {"lower", "--node", "1", "--list"},
                                             {"export", "--format", "goal"},
                                             {"explain", "1/2"}}) {
    const std::string rows = OutputOf(arguments, "rows");
    EXPECT_FALSE(rows.empty());
    EXPECT_EQ(OutputOf(arguments, "columns"), rows);
    EXPECT_EQ(OutputOf(arguments, "shards"), rows);
  }
  for (const std::string encoding : {"columns", "shards"}) {
    OutputOf({"run", "--input", folder_ / "image", "--executor", "cpu", "--transport", "shm"},
             encoding);
    Command diff({"diff", folder_ / "rows", folder_ / encoding});
    EXPECT_EQ(diff.Wait(), 0) << diff.out() << diff.err();
  }
}

// Few ops: rows; many: columns. Catches the one that is read by people written for machines.
TEST_F(EncodingTest, AutoGoesByTheOps) {
  Command small(Compile()), large({"compile", "--nodes", "101", "--message-bytes", "10000",
                                   "--block-bytes", "10", "--ready", "barrier"});
  ASSERT_EQ(small.Wait() + large.Wait(), 0) << small.err() << large.err();
  EXPECT_EQ(small.out(), test::ReadText(folder_ / "rows"));
  EXPECT_THAT(large.out(), HasSubstr("\"version\": \"1.1\""));
  EXPECT_THAT(large.out(), HasSubstr("\"columns\""));
}

TEST_F(EncodingTest, RefusesWhatDoesNotGoTogether) {
  const auto with = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = Compile();
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  ExpectRefused(with({"--encoding", "column"}), 2, "did you mean 'columns'?");
  ExpectRefused(with({"--encoding", "shards"}), 2, "writes a folder: name it with -o");
  ExpectRefused(with({"--encoding", "columns", "--dump"}), 2, "--dump writes none");
  ExpectRefused(with({"--encoding", "shards", "-o", folder_ / "image"}), 1, "Not a directory");
  ExpectRefused(with({"--encoding", "shards", "-o", folder_.path()}), 1, "is no part of a plan");
  ExpectRefused(with({"--encoding", "shards", "-o", folder_ / "none/plan"}), 1, "No such file");
  ExpectRefused({"compile", "--nodes", "5", "--message-bytes", "any", "--encoding", "rows"}, 2,
                "for plans of one message size");
}

// Damage is named by file, and without the plan's other nodes' files a node still begins.
TEST_F(EncodingTest, NamesTheShardThatIsWrong) {
  const std::string shards = folder_ / "shards", two = shards + "/node-00002.json";
  std::filesystem::copy_file(shards + "/node-00001.json", two,
                             std::filesystem::copy_options::overwrite_existing);
  ExpectRefused({"stats", shards}, 1, two + ": the shard of node 1, expected that of node 2");
  std::filesystem::remove(two);
  ExpectRefused({"stats", shards}, 1, two + ": cannot read: No such file");
  ExpectRefused({"node", shards, "--node", "2", "--peers", "none"}, 1, two + ": cannot read");
  ExpectRefused({"node", shards, "--node", "7", "--peers", "none"}, 1, "no node 7");
}

// What people name by mistake: a part instead of the folder, a folder that is none.
TEST_F(EncodingTest, NamesTheFolderThatIsMeant) {
  const std::string shards = folder_ / "shards";
  for (const std::string part : {"/index.json", "/node-00001.json"}) {
    const std::string hint = shards + part +
                             ": one file of a plan in shards: name the folder that it is in, " +
                             shards + "\n";
    ExpectRefused({"stats", shards + part}, 1, hint);
    ExpectRefused({"verify", shards + part}, 1, hint);
    ExpectRefused({"compare", shards + part}, 1, hint);
    ExpectRefused({"run", shards + part, "--input", folder_ / "image"}, 1, hint);
    ExpectRefused({"node", shards + part, "--node", "1", "--peers", "none"}, 1, hint);
  }
  const std::string empty = folder_ / "empty";
  std::filesystem::create_directory(empty);
  const std::string missing = empty + ": a folder without index.json, expected the file";
  ExpectRefused({"verify", empty}, 1, missing);
  ExpectRefused({"run", empty, "--input", folder_ / "image"}, 1, missing);
  ExpectRefused({"node", empty, "--node", "1", "--peers", "none"}, 1, missing);
}

// Ctrl-C when some of many files are written. Catches a folder that stays, in part or as a whole.
TEST_F(EncodingTest, AnInterruptedFolderIsGone) {
  const size_t before = test::CountFiles(folder_.path());
  const std::string path = folder_ / "large";
  Command compile({"compile", "--nodes", "5000", "--message-bytes", "30", "--block-bytes", "10",
                   "--algorithm", "chain", "--encoding", "shards", "-o", path});
  const auto is_begun = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path();
      if (name.starts_with(path + ".") && name.ends_with(".partial"))
        return std::filesystem::exists(name + "/node-00100.json");
    }
    return false;
  };
  ASSERT_TRUE(compile.WaitUntil(is_begun)) << "it was written too fast: " << compile.err();
  kill(compile.pid(), SIGINT);
  EXPECT_EQ(compile.Wait(), 130);
  EXPECT_EQ(compile.err(), "prepost: interrupted\n");
  EXPECT_EQ(test::CountFiles(folder_.path()), before);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(is_begun());
}

}  // namespace
}  // namespace prepost::encoding_test
