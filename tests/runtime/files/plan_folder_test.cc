// SPDX-License-Identifier: Apache-2.0
//
// Sharded plans: exact round trips, what a node reads of them, and for every kind of wrong folder
// the file and the words of the error.
#include "runtime/files/plan_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "compiler/compile.h"
#include "ir/verify/verify_shard.h"
#include "runtime/base/event_fd.h"
#include "tests/support/plans.h"
#include "tests/support/temp_folder.h"

namespace prepost::plan_folder_test {
namespace {

using test::ReadText;
using test::TempFolder;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kNever = -1;

void Write(const Plan& plan, const std::string& path) {
  const Status status = WritePlanFolder(plan, path, kNever);
  ASSERT_TRUE(status.ok()) << status.ToString();
}

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Replaces the first `from` in the file by `to`.
void Change(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = ReadText(path);
  const size_t place = text.find(from);
  ASSERT_NE(place, std::string::npos) << from << " in " << text;
  WriteText(path, text.replace(place, from.size(), to));
}

std::string ErrorOf(const std::string& path) {
  const Result<Plan> plan = ReadPlanFolder(path, nullptr);
  return plan.ok() ? "no error" : plan.status().ToString();
}
std::string ErrorAt(const std::string& path, uint32_t node) {
  const Result<PlanOfNode> plan = ReadPlanOfNode(path, NodeId(node), nullptr);
  return plan.ok() ? "no error" : plan.status().ToString();
}

// Every schedule x ready mode. Catches a field that is lost, a channel that is, and a node that
// would be told apart from the others by its hash.
TEST(PlanFolderTest, GivesEveryPlanAndEveryNodesPart) {
  const TempFolder folder;
  for (const Spec& spec : test::SpecsForExecutors({.nodes_max = 6, .blocks_max = 3})) {
    if (spec.nodes % 2 == 0 && spec.nodes != 6) continue;  // 1, 3, 5, 6
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const std::string path = folder / "plan";
    Write(plan, path);
    const Result<Plan> read = ReadPlanFolder(path, nullptr);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    ASSERT_EQ(*read, plan);
    for (const Program& program : plan.programs()) {
      const Result<PlanOfNode> own = ReadPlanOfNode(path, program.node, nullptr);
      ASSERT_TRUE(own.ok()) << own.status().ToString();
      EXPECT_EQ(own->hash, HashPlan(plan));
      EXPECT_EQ(own->plan.header(), plan.header());
      const auto at_node = [&](const Channel& channel) {
        return channel.from == program.node || channel.to == program.node;
      };
      EXPECT_TRUE(std::ranges::all_of(own->plan.channels(), at_node));
      ASSERT_EQ(own->plan.programs().size(), 1u);
      EXPECT_EQ(own->plan.programs().front().node, program.node);
      const std::span<const Op> ops = own->plan.ops();
      ASSERT_EQ(ops.size(), program.op_count);
      for (size_t i = 0; i < ops.size(); ++i) {
        const Op& op = plan.ops(program)[i];
        EXPECT_EQ(own->plan.channels()[ops[i].channel.index()],
                  plan.channels()[op.channel.index()]);
        EXPECT_EQ(ops[i].block, op.block);
        EXPECT_TRUE(std::ranges::equal(own->plan.after(ops[i]), plan.after(op)));
      }
    }
  }
}

// Catches a table of all channels, or of all nodes: with 4 billion of them there would be no
// memory.
TEST(PlanFolderTest, ANodesPlanIsAsLargeAsItsShard) {
  PlanShard shard;
  shard.node = NodeId(7);
  for (const uint32_t id : {5u, UINT32_MAX - 1})
    shard.channels.push_back(
        {.id = ChannelId(id),
         .channel = {.from = NodeId(7), .to = NodeId(8), .lane = *LaneOf(id % 2)}});
  PlanBuilder part{PlanHeader{}};
  part.BeginProgram(NodeId(7));
  part.AddOp({.channel = ChannelId(UINT32_MAX - 1), .block = 3, .kind = OpKind::kSend});
  shard.part = std::move(part).Build();
  PlanIndex index;
  index.header.nodes = kNodesMax;
  index.channels = UINT32_MAX;
  const Plan plan = NodePlan(index, shard);
  EXPECT_EQ(plan.channels().size(), 2u);
  EXPECT_EQ(plan.programs().size(), 1u);
  EXPECT_EQ(plan.ops().front().channel, ChannelId(1));
}

// A node needs no other node's file, and is not disturbed by what is wrong with one.
TEST(PlanFolderTest, ANodeReadsItsOwnFileOnly) {
  const TempFolder folder;
  Write(test::PlanOf(3, 4), folder / "plan");
  std::filesystem::remove(folder / "plan/node-00000.json");
  WriteText(folder / "plan/node-00002.json", "{");
  EXPECT_EQ(ErrorAt(folder / "plan", 1), "no error");
  EXPECT_THAT(ErrorAt(folder / "plan", 0),
              EndsWith("plan/node-00000.json: cannot read: No such file or directory"));
  EXPECT_THAT(ErrorAt(folder / "plan", 3), HasSubstr("no node 3: the plan has nodes 0 to 2"));
}

// Missing, swapped, stale, changed: each is named.
TEST(PlanFolderTest, NamesTheFileThatIsWrong) {
  const TempFolder folder;
  const std::string path = folder / "plan";
  const auto fresh = [&] { Write(test::PlanOf(3, 4), path); };
  const std::string one = path + "/node-00001.json", two = path + "/node-00002.json";
  fresh();
  std::filesystem::remove(two);
  EXPECT_THAT(ErrorOf(path), StartsWith(two + ": cannot read: No such file"));
  fresh();
  std::filesystem::copy_file(one, two, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(ErrorOf(path), two + ": the shard of node 1, expected that of node 2");
  fresh();
  Write(test::PlanOf(3, 4, "chain"), folder / "other");
  std::filesystem::copy_file(folder / "other/node-00001.json", one,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(ErrorOf(path), StartsWith(one + ": "));
  EXPECT_THAT(ErrorAt(path, 1), StartsWith(one + ": "));
  fresh();
  Change(one, "\"round\": [", "\"round\": [ 7,");
  EXPECT_THAT(ErrorOf(path), AllOf(StartsWith(one + ":"), HasSubstr("/columns: 'round' has")));
  fresh();
  std::filesystem::resize_file(one, std::filesystem::file_size(one) / 2);
  EXPECT_THAT(ErrorOf(path),
              AllOf(StartsWith(one + ":"), HasSubstr("the file ends in the middle")));
  fresh();
  Change(path + "/index.json", "\"rounds\": ", "\"rounds\": 1");
  EXPECT_EQ(ErrorAt(path, 0), path +
                                  "/index.json: the index was changed: its header and shards do "
                                  "not have the hash that it says");
  fresh();
  Change(path + "/index.json", "node-00001.json", "../else.json");
  EXPECT_THAT(ErrorOf(path), HasSubstr("/shards/1/file: expected \"node-00001.json\""));
}

// Any one number of a shard or the index that changes: it is refused. Catches what no hash covers.
TEST(PlanFolderTest, NoDigitCanChange) {
  const TempFolder folder;
  const std::string path = folder / "plan";
  Write(*Compile(
            {.nodes = 3, .message_bytes = 30, .block_bytes = 10, .ready = *ParseReady("window=1")}),
        path);
  for (const char* const name : {"node-00001.json", "index.json"}) {
    const std::string file = path + "/" + name;
    const std::string text = ReadText(file);
    const size_t begin =
        text.find(name[0] == 'i' ? "\"nodes\"" : "\"node\"");  // behind the version
    for (size_t i = begin; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') continue;
      std::string changed = text;
      changed[i] = changed[i] == '1' ? '2' : '1';
      WriteText(file, changed);
      EXPECT_NE(ErrorOf(path), "no error") << name << " at " << i;
    }
    WriteText(file, text);
  }
  EXPECT_EQ(ErrorOf(path), "no error");
}

// Catches a half-written folder, a plan that is lost with the one that was to replace it, and other
// people's files that are.
TEST(PlanFolderTest, IsWrittenWholeOrNotAtAll) {
  const TempFolder folder;
  const std::string path = folder / "plan";
  Result<EventFd> interrupt = EventFd::Make();
  ASSERT_TRUE(interrupt.ok());
  interrupt->Signal();
  EXPECT_EQ(WritePlanFolder(test::PlanOf(3, 4), path, interrupt->fd()).code(),
            StatusCode::kInterrupted);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  Write(test::PlanOf(5, 4), path);
  EXPECT_FALSE(WritePlanFolder(test::PlanOf(3, 4), path, interrupt->fd()).ok());
  EXPECT_EQ(*ReadPlanFolder(path, nullptr), test::PlanOf(5, 4));
  Write(test::PlanOf(3, 4), path + "/");
  EXPECT_EQ(*ReadPlanFolder(path, nullptr), test::PlanOf(3, 4));
  EXPECT_EQ(test::CountFiles(folder.path()), 4u);  // node 3 and 4 are gone
  WriteText(path + "/letter.txt", "dear");
  EXPECT_EQ(WritePlanFolder(test::PlanOf(2, 4), path, kNever).ToString(),
            path + ": cannot write: the folder holds letter.txt, which is no part of a plan");
  EXPECT_EQ(*ReadPlanFolder(path, nullptr), test::PlanOf(3, 4));
}

// Somebody's files with names as ours must not be taken for an old plan, and go.
TEST(PlanFolderTest, LeavesAForeignFolderAlone) {
  const TempFolder folder;
  const std::string path = folder / "web";
  const auto refusal = [&] { return WritePlanFolder(test::PlanOf(2, 4), path, kNever).ToString(); };
  std::filesystem::create_directory(path);
  WriteText(path + "/index.json", "{ \"menu\": [] }");
  EXPECT_THAT(refusal(),
              ::testing::HasSubstr("cannot write: the folder is not empty, and no plan"));
  WriteText(path + "/node-modules.json", "{}");
  EXPECT_THAT(refusal(), ::testing::HasSubstr("holds node-modules.json, which is no part"));
  std::filesystem::remove(path + "/node-modules.json");
  std::filesystem::create_directory(path + "/node-00000.json");
  EXPECT_THAT(refusal(), ::testing::HasSubstr("holds node-00000.json, which is no part"));
  EXPECT_TRUE(std::filesystem::exists(path + "/index.json"));
  EXPECT_TRUE(std::filesystem::exists(path + "/node-00000.json"));
}

// Opening a pipe waits for its writer: catches a command that hangs, and a folder without an index
// that is called something else.
TEST(PlanFolderTest, RefusesWhatIsNoFile) {
  const TempFolder folder;
  const std::string path = folder / "plan";
  Write(test::PlanOf(3, 4), path);
  const std::string one = path + "/node-00001.json", index = path + "/index.json";
  std::filesystem::remove(one);
  ASSERT_EQ(mkfifo(one.c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf(path), one + ": cannot read: not a regular file");
  EXPECT_EQ(ErrorAt(path, 1), one + ": cannot read: not a regular file");
  std::filesystem::remove(index);
  EXPECT_EQ(ErrorOf(path), path +
                               ": a folder without index.json, expected the file of a plan, or "
                               "the folder of one in shards");
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);
  EXPECT_EQ(ErrorAt(path, 0), index + ": cannot read: not a regular file");
}

/// Takes the rights of a superuser from this process, if it has them, for as long as it lives.
class PlainUser {
 public:
  PlainUser() { EXPECT_EQ(is_superuser_ ? seteuid(kNobody) : 0, 0); }
  ~PlainUser() { EXPECT_EQ(is_superuser_ ? seteuid(0) : 0, 0); }
  PlainUser(const PlainUser&) = delete;
  PlainUser& operator=(const PlainUser&) = delete;

  static constexpr uid_t kNobody = 65534;

 private:
  const bool is_superuser_ = geteuid() == 0;
};

// Its name can be given to another folder, but what is in it cannot be removed: catches one that is
// replaced, and stays under a temporary name.
TEST(PlanFolderTest, LeavesAReadOnlyFolderAsItIs) {
  const TempFolder folder;
  const std::string path = folder / "plan";
  Write(test::PlanOf(3, 4), path);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(folder.path().c_str(), PlainUser::kNobody, gid_t(-1)), 0);
    ASSERT_EQ(chown(path.c_str(), PlainUser::kNobody, gid_t(-1)), 0);
  }
  ASSERT_EQ(chmod(path.c_str(), 0555), 0);
  {
    const PlainUser user;
    EXPECT_EQ(WritePlanFolder(test::PlanOf(2, 4), path, kNever).ToString(),
              path + ": cannot write: Permission denied");
  }
  EXPECT_EQ(*ReadPlanFolder(path, nullptr), test::PlanOf(3, 4));
  EXPECT_EQ(test::CountFiles(folder.path()), 4u);
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
}

/// The rules that node 1's shard of `plan` breaks.
std::vector<Rule> RulesBrokenAt1(const Plan& plan, const std::string& path) {
  Write(plan, path);
  std::ifstream index_file(path + "/index.json"), shard_file(path + "/node-00001.json");
  const PlanIndex index = *ReadPlanIndex(index_file, "index", nullptr);
  const PlanShard shard = *ReadShard(shard_file, "shard", nullptr);
  EXPECT_TRUE(CheckShard(index, NodeId(1), shard).ok());
  std::vector<Rule> rules;
  for (const Diagnostic& diagnostic : VerifyShard(index, shard).diagnostics) {
    EXPECT_THAT(diagnostic.where, ::testing::Not(StartsWith("/programs/0")));
    rules.push_back(diagnostic.rule);
  }
  return rules;
}

/// `plan`, whose ops at node 1 are those that `change` makes of them; `after` likewise.
Plan Changed(const Plan& plan, const std::function<void(Op*, std::vector<OpId>*)>& change) {
  PlanBuilder builder(plan.header());
  for (const Channel& channel : plan.channels()) builder.AddChannel(channel);
  for (const Program& program : plan.programs()) {
    builder.BeginProgram(program.node);
    for (const Op& given : plan.ops(program)) {
      Op op = given;
      std::vector<OpId> after(plan.after(given).begin(), plan.after(given).end());
      if (program.node == NodeId(1)) change(&op, &after);
      builder.AddOp(op, after);
    }
  }
  return std::move(builder).Build();
}

// What a node's own part does wrong is found without the others'. Catches a rule that is left out.
TEST(PlanFolderTest, ANodeVerifiesItsOwnPart) {
  const TempFolder folder;
  const VerifiedPlan plan = *Compile({.nodes = 3,
                                      .message_bytes = 40,
                                      .block_bytes = 10,
                                      .algorithm = "chain",
                                      .ready = *ParseReady("window=1"),
                                      .send_window = *ParseSendWindow("1")});
  const std::string path = folder / "plan";
  EXPECT_THAT(RulesBrokenAt1(plan, path), ::testing::IsEmpty());
  const auto broken = [&](const std::function<void(Op*, std::vector<OpId>*)>& change) {
    return RulesBrokenAt1(Changed(plan, change), path);
  };
  EXPECT_THAT(broken([](Op*, std::vector<OpId>* after) { after->clear(); }),
              AllOf(::testing::Contains(Rule::kCausal), ::testing::Contains(Rule::kReady),
                    ::testing::Contains(Rule::kWindow)));
  EXPECT_THAT(broken([](Op* op, std::vector<OpId>*) {
                if (op->block == 2) op->block = 1;
              }),
              ::testing::Contains(Rule::kValue));
  EXPECT_THAT(broken([](Op* op, std::vector<OpId>*) { op->round = 1; }),
              ::testing::Contains(Rule::kRounds));
  EXPECT_THAT(broken([](Op* op, std::vector<OpId>*) { op->round += 1000; }),
              ::testing::Contains(Rule::kRounds));
  EXPECT_THAT(broken([](Op* op, std::vector<OpId>*) {
                if (op->block == 2) op->block = 4;
              }),
              ::testing::Contains(Rule::kShape));
  EXPECT_THAT(broken([](Op* op, std::vector<OpId>*) {
                if (op->grants != 0) op->grants = 2;
              }),
              ::testing::Contains(Rule::kReady));
}

}  // namespace
}  // namespace prepost::plan_folder_test
