// SPDX-License-Identifier: Apache-2.0
//
// `prepost probe` as a user sees it. The emulated NIC's answers are those of the rules in
// backends/emulated/engine.h: an experiment that asks something else than it says shows here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"

namespace prepost::probe_test {
namespace {

using test::Command;
using ::testing::HasSubstr;

const std::map<std::string, std::string> kEmulated = {
    {"U1",
     "with 1 CQE a WAIT for 0x0 passes, 0x1 holds, 0xffffff passes, 0xffffffff passes, 0x1000000 "
     "passes, 0x1000001 holds, 0x7fffff holds, 0x800000 holds, 0x800001 passes"},
    {"U2", "before its CQE the WAIT is refused (local QP operation error)"},
    {"U3", "after its CQE it is refused (local QP operation error)"},
    {"U4", "of 32 receives 32 held until their RECV_EN, 32 took their message after it"},
    {"U5", "after the doorbell the NOP holds, after SEND_EN it passes"},
    {"U6",
     "SEND_EN up to 3 passes and 3 NOPs run, SEND_EN up to 1 passes and 0 NOPs run, SEND_EN up to "
     "4 "
     "passes and 1 NOPs run"},
    {"U7", "its WAIT holds, after SEND_EN it holds, after the CQE it passes"},
    {"U8", "not answered: the NIC is software, its times say nothing"},
    {"U9", "not answered: the NIC is software, there is no driver to refuse"},
    {"U10", "before the WAIT's CQE 2 of 4 fetched and 2 CQEs, after it 4 of 4 fetched and 4 CQEs"}};

/// By device: what stands in front of the same NICs must not change their answers.
class ProbeCommandTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ProbeCommandTest, TableHasEveryQuestionWithTheEmulatedAnswers) {
  Command probe({"probe", "--device", GetParam()});
  ASSERT_EQ(probe.Wait(), 0) << probe.err();
  EXPECT_THAT(probe.out(), HasSubstr("question"));
  for (const auto& [id, seen] : kEmulated) {
    EXPECT_THAT(probe.out(), HasSubstr("\n" + id + "  "));
    EXPECT_THAT(probe.out(), HasSubstr("  " + seen + "\n"));
  }
}

TEST_P(ProbeCommandTest, JsonHasTheSame) {
  Command probe({"probe", "--device", GetParam(), "--json"});
  ASSERT_EQ(probe.Wait(), 0) << probe.err();
  const auto report = nlohmann::json::parse(probe.out());
  EXPECT_EQ(report["device"], GetParam());
  ASSERT_EQ(report["answers"].size(), kEmulated.size());
  for (const auto& answer : report["answers"]) {
    const std::string& seen = kEmulated.at(answer["id"]);
    EXPECT_EQ(answer["seen"], seen);
    EXPECT_EQ(answer["answered"], !seen.starts_with("not answered"));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ProbeCommandTest, ::testing::Values("emulated", "mlx5:emulated"),
                         [](const auto& device) {
                           return device.param == "emulated" ? "emulated" : "mlx5_emulated";
                         });

TEST(ProbeCommandErrorTest, UnknownDeviceIsAUsageError) {
  Command probe({"probe", "--device", "emulate"});
  EXPECT_EQ(probe.Wait(), 2);
  EXPECT_THAT(probe.err(), HasSubstr("did you mean"));
  EXPECT_EQ(probe.err_lines(), 1u);
}

// Catches a name that is taken for a software device's, and a card that is missing in silence.
TEST(ProbeCommandErrorTest, ACardThatIsNotThereIsAMissingEnvironment) {
  Command probe({"probe", "--device", "mlx5_99"});
  EXPECT_EQ(probe.Wait(), 3);
  EXPECT_THAT(probe.err(), HasSubstr("device mlx5_99: "));
  EXPECT_EQ(probe.out(), "");
  EXPECT_EQ(probe.err_lines(), 1u);
}

}  // namespace
}  // namespace prepost::probe_test
