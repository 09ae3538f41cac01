// SPDX-License-Identifier: Apache-2.0
//
// Queue programs as files: the JSON is parseable and says what the program says; the raw form has
// the documented words.
#include "backends/nic/program/queue_program_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/nic/program/encode.h"
#include "backends/nic/program/lower.h"
#include "compiler/compile.h"

namespace prepost::nic::queue_program_file_test {
namespace {

QueueProgram Example() {
  Spec spec;
  spec.nodes = 3;
  spec.message_bytes = 190;
  spec.block_bytes = 100;
  spec.algorithm = "chain";
  spec.ready = *ParseReady("window=1");
  return *Lower(*Compile(spec));
}

TEST(QueueProgramFileTest, JsonSaysWhatTheProgramSays) {
  const QueueProgram program = Example();
  const nlohmann::json json = nlohmann::json::parse(ToJson(program));
  EXPECT_EQ(json["format"], "prepost.queues");
  ASSERT_EQ(json["nodes"].size(), 3u);
  const nlohmann::json& qp = json["nodes"][1]["qps"][0];
  const QueuePair& expected = program.nodes[1].qps[0];
  EXPECT_EQ(qp["rq"]["entries"].size(), expected.receives.size());
  EXPECT_EQ(qp["sq"]["entries"].size(), expected.sends.size());
  EXPECT_EQ(qp["rq"]["bytes"].get<std::string>().size(),
            2 * kReceiveStrideBytes * expected.receives.size());
  EXPECT_EQ(ToJson(program), ToJson(Example()));
}

class BinaryReader {
 public:
  explicit BinaryReader(const std::string& bytes) : bytes_(bytes) {}
  uint32_t Word() {
    uint32_t value = 0;
    for (uint32_t shift = 0; shift < 32; shift += 8) {
      value |= uint32_t{static_cast<uint8_t>(bytes_.at(at_++))} << shift;
    }
    return value;
  }
  void Skip(size_t bytes) { at_ += bytes; }
  bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

TEST(QueueProgramFileTest, BinaryHasTheDocumentedWords) {
  const QueueProgram program = Example();
  const std::string bytes = ToBinary(program);
  BinaryReader in(bytes);
  EXPECT_EQ(in.Word(), 0x32515050u);  // "PPQ2"
  ASSERT_EQ(in.Word(), program.nodes.size());
  for (const NodeProgram& node : program.nodes) {
    EXPECT_EQ(in.Word(), node.node.value);
    ASSERT_EQ(in.Word(), node.cqs.size());
    ASSERT_EQ(in.Word(), node.qps.size());
    EXPECT_EQ(in.Word(), node.final_cq.value);
    in.Skip(16 * node.cqs.size());
    for (const QueuePairImage& image : Encode(node)) {
      in.Skip(32);
      for (const QueueImage* queue : {&image.rq, &image.sq}) {
        ASSERT_EQ(in.Word(), queue->bytes.size());
        ASSERT_EQ(in.Word(), queue->relocations.size());
        in.Skip(queue->bytes.size() + 12 * queue->relocations.size());
      }
    }
  }
  EXPECT_TRUE(in.AtEnd());
}

}  // namespace
}  // namespace prepost::nic::queue_program_file_test
