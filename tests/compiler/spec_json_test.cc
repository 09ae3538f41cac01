// SPDX-License-Identifier: Apache-2.0
#include "compiler/spec_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace prepost::spec_json_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead =
    R"({"format": "prepost.spec", "version": "1.0", "collective": "multicast")";

Result<Spec> Read(const std::string& rest, const Spec& defaults = {}) {
  std::istringstream in(kHead + rest + "}");
  return ReadSpec(in, "s.json", defaults);
}

std::string ErrorOf(const std::string& rest) {
  const Result<Spec> spec = Read(rest);
  return spec.ok() ? "no error" : spec.status().ToString();
}

TEST(SpecJsonTest, RoundTripIsExact) {
  for (const char* ready : {"auto", "barrier", "channel", "window=7", "retry"}) {
    for (const char* send_window : {"auto", "none", "3"}) {
      const Spec spec{.nodes = 5,
                      .root = NodeId(4),
                      .message_bytes = uint64_t{1} << 61,
                      .block_bytes = uint64_t{1} << 40,
                      .algorithm = "chain",
                      .ready = *ParseReady(ready),
                      .send_window = *ParseSendWindow(send_window)};
      std::stringstream text;
      WriteSpec(spec, text);
      const Result<Spec> again = ReadSpec(text, "s.json");
      ASSERT_TRUE(again.ok()) << again.status().ToString();
      EXPECT_EQ(*again, spec) << ready << " " << send_window;
    }
  }
}

TEST(SpecJsonTest, AbsentKeysKeepTheDefaults) {
  const Spec defaults{.nodes = 3, .message_bytes = 9, .algorithm = "chain"};
  EXPECT_EQ(*Read("", defaults), defaults);
  EXPECT_EQ(Read(R"(, "nodes": 4)", defaults)->nodes, 4u);
}

TEST(SpecJsonTest, WhatIsLeftOpenStaysOpen) {
  const Spec open;
  std::stringstream text;
  WriteSpec(open, text);
  const Result<Spec> again = ReadSpec(text, "s.json");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(*again, open);
}

TEST(SpecJsonTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf(R"(, "algoritm": "chain")"),
              HasSubstr("/algoritm: unknown key, did you mean 'algorithm'?"));
  EXPECT_THAT(ErrorOf(R"(, "nodes": "8")"),
              HasSubstr("/nodes: expected an integer from 1 to 4294967295, found string \"8\""));
  EXPECT_THAT(ErrorOf(R"(, "block_bytes": 0)"),
              HasSubstr("/block_bytes: expected 1 or more, found 0"));
  EXPECT_THAT(ErrorOf(R"(, "block_bytes": -1)"),
              HasSubstr("/block_bytes: expected an integer from 1 to 4611686018427387904"));
  EXPECT_THAT(ErrorOf(R"(, "block_bytes": "64KiB")"),
              HasSubstr("/block_bytes: expected a number or \"auto\", found string \"64KiB\""));
  EXPECT_THAT(ErrorOf(R"(, "message_bytes": 4611686018427387905)"),
              HasSubstr("/message_bytes: 4611686018427387905 is too large"));
  EXPECT_THAT(ErrorOf(R"(, "ready": "windows=1")"),
              HasSubstr("/ready: unknown ready mode 'windows=1', did you mean"));
  EXPECT_THAT(ErrorOf(R"(, "ready": "window=0")"), HasSubstr("'0' is no window"));
  EXPECT_THAT(ErrorOf(R"(, "ready": "window=99999999999")"), HasSubstr("is no window"));
  EXPECT_THAT(ErrorOf(R"(, "send_window": 0)"),
              HasSubstr("/send_window: a send window is at least 1"));
  EXPECT_THAT(ErrorOf(R"(, "send_window": "many")"),
              HasSubstr("/send_window: expected a number of sends, null for none"));
}

Result<Spec> ReadAlltoall(const std::string& rest) {
  std::istringstream in(
      R"({"format": "prepost.spec", "version": "1.0", "collective": "alltoall", )" + rest + "}");
  return ReadSpec(in, "s.json");
}

// Rows and one list say the same, and are written so that they come back.
TEST(SpecJsonTest, SizesOfPartsInRowsOrInOneList) {
  const std::vector<uint64_t> sizes = {0, 3, 5, uint64_t{1} << 60};
  for (const char* text : {R"("part_bytes": [[0, 3], [5, 1152921504606846976]])",
                           R"("part_bytes": [0, 3, 5, 1152921504606846976])"}) {
    const Result<Spec> spec = ReadAlltoall(text);
    ASSERT_TRUE(spec.ok()) << spec.status().ToString();
    EXPECT_EQ(spec->part_bytes, sizes);
    EXPECT_EQ(WithImplied(*spec).message_bytes, uint64_t{1} << 60);
    std::stringstream written;
    WriteSpec(*spec, written);
    EXPECT_EQ(*ReadSpec(written, "w.json"), *spec);
  }
  const auto error_of = [](const std::string& rest) {
    return ReadAlltoall(rest).status().ToString();
  };
  EXPECT_THAT(error_of(R"("part_bytes": [[0, 3], [5]])"),
              HasSubstr("part_bytes: row 2 has 1 size, expected 2: there are 2 rows"));
  EXPECT_THAT(error_of(R"("part_bytes": [[0, 3], [5, -1]])"),
              HasSubstr("/part_bytes/1/1: expected an integer from 0 to"));
  EXPECT_THAT(error_of(R"("part_bytes": [[0, [3]]])"), HasSubstr("/part_bytes/0/1: "));
  EXPECT_THAT(error_of(R"("part_bytes": [])"), HasSubstr("/part_bytes: expected at least 1"));
}

// The flag's form and the object say the same.
TEST(SpecJsonTest, CombineAsTheFlagHasIt) {
  const auto read = [](const std::string& combine) {
    std::istringstream in(R"({"format": "prepost.spec", "version": "1.0",
                              "collective": "allreduce", "combine": )" +
                          combine + "}");
    return ReadSpec(in, "s.json");
  };
  const Combine sum = {.op = CombineOp::kSum, .type = ElementType::kFloat32};
  for (const char* form : {R"("sum:float32")", R"({"op": "sum", "type": "float32"})"}) {
    const Result<Spec> spec = read(form);
    ASSERT_TRUE(spec.ok()) << spec.status().ToString();
    EXPECT_EQ(spec->combine, sum);
  }
  constexpr const char* kForm = R"(expected "sum:float32" or { "op": "sum", "type": "float32" })";
  for (const auto& [wrong, why] :
       {std::pair(R"("sum")", "sum of no type"), std::pair(R"("sun:int8")", "did you mean 'sum'?"),
        std::pair("7", "found 7")}) {
    EXPECT_THAT(read(wrong).status().ToString(),
                testing::AllOf(HasSubstr("/combine: "), HasSubstr(why), HasSubstr(kForm)));
  }
}

TEST(SpecTest, SizesOfPartsAreChecked) {
  const Spec good{.collective = CollectiveKind::kAlltoall,
                  .nodes = 2,
                  .message_bytes = 5,
                  .part_bytes = {0, 3, 5, 5},
                  .algorithm = "pairwise"};
  EXPECT_TRUE(CheckSpec(good).ok());
  Spec spec = good;
  spec.message_bytes = 6;
  EXPECT_EQ(CheckSpec(spec).ToString(),
            "/message_bytes: 6 bytes, but the largest of the parts has 5");
  spec = good;
  spec.nodes = 3;
  EXPECT_THAT(CheckSpec(spec).ToString(),
              HasSubstr("/part_bytes: 4 sizes, but an alltoall of 3 nodes has 9 parts"));
  spec = good;
  spec.collective = CollectiveKind::kMulticast;
  spec.algorithm = "chain";
  EXPECT_EQ(CheckSpec(spec).ToString(),
            "/part_bytes: a multicast has one part, whose size is message_bytes");
  spec = {.collective = CollectiveKind::kReduceScatter,
          .combine = {.op = CombineOp::kSum, .type = ElementType::kInt32},
          .nodes = 2,
          .message_bytes = 8,
          .part_bytes = {8, 6},
          .algorithm = "ring"};
  EXPECT_EQ(CheckSpec(spec).ToString(),
            "/part_bytes/1: 6 bytes of part 1 are not a whole number of int32 (4 bytes each)");
}

TEST(SpecTest, ValuesAreChecked) {
  const Spec good{.nodes = 4, .message_bytes = 100};
  const auto error_of = [](const Spec& spec) { return CheckSpec(spec).ToString(); };
  EXPECT_TRUE(CheckSpec(good).ok());
  Spec spec = good;
  spec.nodes = 0;
  EXPECT_EQ(error_of(spec), "/nodes: a multicast has at least 1 node, found 0");
  spec = good;
  spec.nodes = kNodesMax + 1;
  EXPECT_THAT(error_of(spec), HasSubstr("/nodes: 1048577 nodes are too many"));
  spec = good;
  spec.root = NodeId(4);
  EXPECT_EQ(error_of(spec), "/root: root 4 is out of range, the nodes are 0 to 3");
  spec = good;
  spec.block_bytes = 0;
  EXPECT_THAT(error_of(spec), HasSubstr("/block_bytes: block size is 0 bytes, expected 1 or more"));
  spec = good;
  spec.message_bytes = UINT64_MAX;
  EXPECT_THAT(error_of(spec), HasSubstr("/message_bytes: message of 18446744073709551615 bytes"));
  spec = good;
  spec.block_bytes = UINT64_MAX;
  EXPECT_THAT(error_of(spec), HasSubstr("/block_bytes: block size of 18446744073709551615 bytes"));
  spec = good;
  spec.message_bytes = uint64_t{1} << 60;
  EXPECT_EQ(error_of(spec),
            "/block_bytes: message of 1152921504606846976 bytes in blocks of 1048576 makes "
            "1099511627776 blocks, the limit is 16777216");
  spec = good;
  spec.nodes = kNodesMax;
  spec.message_bytes = 1u << 30;
  EXPECT_THAT(error_of(spec), HasSubstr("transfers, the limit is"));
  spec = good;
  spec = good;
  spec.message_bytes.reset();
  EXPECT_EQ(error_of(spec), "/message_bytes: the size of the message is missing");
  spec = good;
  spec.algorithm = "binomial_pipelin";
  EXPECT_TRUE(error_of(spec).starts_with(
      "/algorithm: unknown algorithm 'binomial_pipelin', did you mean 'binomial_pipeline'?; known "
      "are sequential, chain, "));
}

}  // namespace
}  // namespace prepost::spec_json_test
