// SPDX-License-Identifier: Apache-2.0
//
// Parts of sizes of their own, from outside: compiled, verified, described, run, simulated,
// exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/random.h"
#include "tests/support/temp_folder.h"

namespace prepost::parts_test {
namespace {

using test::Command;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Matrix = std::vector<std::vector<uint64_t>>;  // [from][to]

class PartsTest : public testing::Test {
 protected:
  /// A file of a row a line.
  std::string Write(const Matrix& sizes) const {
    std::ofstream out(folder_ / "sizes.txt");
    for (const auto& row : sizes) {
      for (const uint64_t bytes : row) out << bytes << " ";
      out << "\n";
    }
    return folder_ / "sizes.txt";
  }

  const test::TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

// Against what the matrix says: sizes drawn, a quarter of them 0, over both transports.
TEST_F(PartsTest, EveryOutputIsWhatTheMatrixSays) {
  test::Random random(test::TestSeed());
  for (const uint32_t nodes : {2u, 5u, 9u}) {
    for (const char* algorithm : {"pairwise", "bruck"}) {
      SCOPED_TRACE(std::to_string(nodes) + " " + algorithm);
      Matrix sizes(nodes, std::vector<uint64_t>(nodes));
      std::vector<std::vector<std::string>> parts(nodes, std::vector<std::string>(nodes));
      std::string input;
      for (uint32_t from = 0; from < nodes; ++from) {
        for (uint32_t to = 0; to < nodes; ++to) {
          sizes[from][to] = random.Below(4) == 0 ? 0 : random.Below(9000);
          for (uint64_t i = 0; i < sizes[from][to]; ++i)
            parts[from][to] += static_cast<char>(random.Below(256));
          input += parts[from][to];
        }
      }
      std::ofstream(folder_ / "in", std::ios::binary) << input;
      test::OutputOf({"compile", "--collective", "alltoall", "--algorithm", algorithm,
                      "--part-bytes", Write(sizes), "--block-bytes",
                      random.Below(2) == 0 ? "auto" : "4KiB", "-o", plan_});
      const std::string out = folder_ / "out";
      std::filesystem::remove_all(out);
      test::OutputOf({"run", plan_, "--input", folder_ / "in", "--output-dir", out, "--transport",
                      random.Below(2) == 0 ? "tcp" : "shm"});
      for (uint32_t to = 0; to < nodes; ++to) {
        std::string expected;
        for (uint32_t from = 0; from < nodes; ++from) expected += parts[from][to];
        EXPECT_EQ(test::ReadText(out + "/node-" + std::to_string(to) + "/in"), expected) << to;
      }
    }
  }
}

// Catches a command that takes all parts for equal, or refuses them.
TEST_F(PartsTest, EveryCommandTakesThem) {
  const std::string sizes = Write({{0, 3, 5}, {1, 0, 0}, {7, 2, 4}});
  test::OutputOf({"compile", "--collective", "alltoall", "--part-bytes", sizes, "-o", plan_});
  EXPECT_THAT(test::OutputOf({"verify", plan_}), HasSubstr("valid: pairwise, 3 nodes, 9 blocks"));
  EXPECT_THAT(test::OutputOf({"stats", plan_}),
              AllOf(HasSubstr("9 parts of 0 to 7 bytes, 22 in all"),
                    HasSubstr("most bytes at node 2: 2 blocks, 9 bytes"),
                    HasSubstr("most bytes at node 0: 2 blocks, 8 bytes")));
  EXPECT_THAT(test::OutputOf({"explain", plan_, ":2"}),
              HasSubstr("block 2: 5 bytes, 0 to 4 of part 2\n  from node 0, for node 2"));
  const Json run = Json::parse(
      test::OutputOf({"simulate", plan_, "--profile", "fractus", "--json", "--executor", "cpu"}));
  EXPECT_EQ(run["part_bytes"], Json({0, 3, 5, 1, 0, 0, 7, 2, 4}));
  EXPECT_THAT(test::OutputOf({"export", plan_, "--format", "goal"}),
              AllOf(HasSubstr("send 5b to 2"), HasSubstr("send 7b to 0")));
  EXPECT_THAT(test::OutputOf({"export", plan_, "--format", "graphml"}),
              HasSubstr("<data key=\"graph_part_bytes\">0 3 5 1 0 0 7 2 4</data>"));
  test::ExpectRefused({"export", plan_, "--format", "msccl"}, 1,
                      "MSCCL has no form for parts of sizes of their own: its chunks are equal",
                      folder_);
  for (const char* view : {"spacetime", "graph"})
    test::OutputOf({"draw", plan_, "--view", view, "-o", folder_ / "a.svg"});
  EXPECT_NE(test::ReadText(folder_ / "a.svg").find("9 parts of at most 7 bytes"),
            std::string::npos);
  const std::string shards = folder_ / "shards";
  test::OutputOf({"compile", "--collective", "alltoall", "--part-bytes", sizes, "--encoding",
                  "shards", "-o", shards});
  EXPECT_THAT(test::OutputOf({"diff", plan_, shards}), HasSubstr("same"));
}

// Who sees many rounds learns what they are of.
TEST_F(PartsTest, StatsTellEmptyBlocks) {
  test::OutputOf({"compile", "--collective", "allgather", "--algorithm", "ring", "--block-bytes",
                  "10", "--part-bytes", "40,0,15", "-o", plan_});
  EXPECT_THAT(test::OutputOf({"stats", plan_}),
              HasSubstr("12 of the 24 block transfers are empty: each part has as many blocks as "
                        "the largest\n"));
  const Json stats = Json::parse(test::OutputOf({"stats", plan_, "--json"}));
  EXPECT_EQ(stats["empty_block_transfers"], 12);
  test::OutputOf({"compile", "--collective", "allgather", "--algorithm", "ring", "--block-bytes",
                  "20", "--part-bytes", "40,21,39", "-o", plan_});
  EXPECT_THAT(test::OutputOf({"stats", plan_}), testing::Not(HasSubstr("empty")));
}

// Other sizes are another plan: who shares its hash plays the same.
TEST_F(PartsTest, SizesTellPlansApart) {
  const std::string other = folder_ / "other.json";
  const auto compile = [](const std::string& sizes, const std::string& path) {
    test::OutputOf({"compile", "--collective", "allgather", "--algorithm", "ring", "--block-bytes",
                    "7", "--part-bytes", sizes, "-o", path});
  };
  compile("7,0,3", plan_);
  compile("7,1,3", other);
  Command diff({"diff", plan_, other});
  EXPECT_EQ(diff.Wait(), 1);
  EXPECT_THAT(diff.out(), AllOf(HasSubstr("different sizes of parts"), HasSubstr("part bytes")));
  // Equal sizes are none of their own.
  compile("7,7,7", plan_);
  test::OutputOf({"compile", "--collective", "allgather", "--algorithm", "ring", "--nodes", "3",
                  "--block-bytes", "7", "--message-bytes", "7", "-o", other});
  EXPECT_EQ(test::ReadText(plan_), test::ReadText(other));
}

TEST_F(PartsTest, SaysWhatIsWrong) {
  const auto expect = [this](std::vector<std::string> flags, int code, const std::string& words) {
    flags.insert(flags.begin(), {"compile", "--collective"});
    test::ExpectRefused(flags, code, words, folder_);
  };
  expect({"alltoall", "--part-bytes", "0,1;2"}, 2,
         "--part-bytes: row 2 has 1 size, expected 2: there are 2 rows");
  expect({"alltoall", "--part-bytes", Write({{1, 2}, {3}})}, 1,
         "sizes.txt:2: row 2 has 1 size, expected 2");
  expect({"alltoall", "--part-bytes", "0,1,2"}, 1,
         "--part-bytes: 3 sizes, but an alltoall of 1 node has 1 part, and one of 2 nodes has 4");
  expect({"alltoall", "--nodes", "2", "--part-bytes", "0,1,2"}, 1,
         "--part-bytes: 3 sizes, but an alltoall of 2 nodes has 4 parts");
  expect({"gather", "--nodes", "2", "--part-bytes", "0,1,2"}, 1,
         "--part-bytes: 3 sizes, but a gather of 2 nodes has 2 parts: one for each node");
  expect({"reduce", "--part-bytes", "1,2"}, 1,
         "--part-bytes: a reduce has one part, whose size is message_bytes");
  expect({"gather", "--part-bytes", "1,x"}, 2, "--part-bytes: 'x' is no size");
  expect({"gather", "--part-bytes", std::string(60, '0') + "5,7"}, 2, "0...' is no size");
  expect({"gather", "--part-bytes", "none.txt"}, 2, "and there is no such file");
  std::ofstream(folder_ / "bad") << "0 3 5\n\n1 0 0\n7 2";
  expect({"alltoall", "--part-bytes", folder_ / "bad"}, 1,
         "bad:4: row 3 has 2 sizes, expected 3: there are 3 rows");
  std::ofstream(folder_ / "bad") << "1 2\n3 4k\n";
  expect({"alltoall", "--part-bytes", folder_ / "bad"}, 1, "bad:2: '4k' is no size");
  expect({"gather", "--part-bytes", "1,2", "--message-bytes", "3"}, 1,
         "--message-bytes: 3 bytes, but the largest of the parts has 2");
  expect({"gather", "--part-bytes", "3EB,3EB,3EB"}, 1,
         "--part-bytes: 3 times 3000000000000000000 bytes are above the limit");
}

}  // namespace
}  // namespace prepost::parts_test
