// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/verbs/devices.h"
#include "backends/verbs/rdma_device.h"

namespace prepost::verbs {
namespace {

TEST(VerbsSelectionTest, SaysDevicePortGidAndPkey) {
  EXPECT_EQ(ParseSelection("rxe0").value(), (Selection{.device = "rxe0"}));
  EXPECT_EQ(ParseSelection("mlx5_0,port=2,gid=3,pkey=0x8001").value(),
            (Selection{.device = "mlx5_0", .port = 2, .gid_index = 3, .pkey = 0x8001}));
}

TEST(VerbsSelectionTest, RefusesWhatIsNone) {
  for (const char* const text :
       {"", ",port=1", "rxe0,port=0", "rxe0,port=256", "rxe0,gid=256", "rxe0,gid=-1", "rxe0,pkey=0",
        "rxe0,pkey=0x8000", "rxe0,pkey=70000", "rxe0,port", "rxe0,port=", "rxe0,mtu=1",
        "rxe0,,gid=1", "rxe0,gid=1x", "rxe0,", "rxe0,gid=1,gid=1"}) {
    const Result<Selection> selection = ParseSelection(text);
    ASSERT_FALSE(selection.ok()) << text;
    EXPECT_EQ(selection.status().code(), StatusCode::kUsage);
  }
}

TEST(VerbsDeviceTest, SaysWhatIsMissing) {
  const auto device = Devices().Open("verbs:none_of_this_name,gid=1", {});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), StatusCode::kEnvironment);
  EXPECT_THAT(device.status().message(), testing::HasSubstr("verbs:none_of_this_name,gid=1"));
  EXPECT_THAT(Devices().Open("verbs:x", {.needs_offload = true}).status().message(),
              testing::HasSubstr("starts nothing by itself"));
}

}  // namespace
}  // namespace prepost::verbs
