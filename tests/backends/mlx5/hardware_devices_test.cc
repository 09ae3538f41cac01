// SPDX-License-Identifier: Apache-2.0
//
// Which cards the tests of devices take, on machines that have some.
#include "tests/support/hardware_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_library.h"

namespace prepost::test::hardware_devices_test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::string Missing(std::vector<FakeDevice> devices) {
  FakeLibrary library(std::move(devices));
  const std::vector<HardwareChoice> choices = ChooseHardware(&library);
  EXPECT_THAT(choices, SizeIs(1));
  EXPECT_EQ(choices[0].instance, "hardware");
  EXPECT_EQ(choices[0].device, "");
  return choices[0].missing;
}

// A card that could be tested and is skipped would never be noticed.
TEST(HardwareDevicesTest, EveryCardThatCanOffloadIsTaken) {
  FakeLibrary library({{.name = "mlx5_0"},
                       {.name = "mlx5_1", .options = {.cross_channel = false}},
                       {.name = "rxe0", .is_mlx5 = false},
                       {.name = "mlx5-2"}});
  const std::vector<HardwareChoice> choices = ChooseHardware(&library);
  ASSERT_THAT(choices, SizeIs(2));
  EXPECT_EQ(choices[0].device, "mlx5_0");
  EXPECT_EQ(choices[0].instance, "hardware0_mlx5_0");
  EXPECT_EQ(choices[1].device, "mlx5-2");
  EXPECT_EQ(choices[1].instance, "hardware1_mlx5_2");
}

// The skip says what the survey says, of every device.
TEST(HardwareDevicesTest, WithoutSuchACardTheReasonIsGiven) {
  EXPECT_EQ(Missing({}), "libibverbs finds no RDMA device");
  EXPECT_EQ(Missing({{.name = "mlx5_0", .options = {.is_active = false}},
                     {.name = "mlx5_1", .refusal = "cannot open device mlx5_1 with DEVX: no"},
                     {.name = "rxe0", .is_mlx5 = false}}),
            "mlx5_0: port 1 is not active; mlx5_1: cannot open device mlx5_1 with DEVX: no; rxe0: "
            "not an mlx5 device");
  const std::vector<HardwareChoice> choices = ChooseHardware(nullptr);
  ASSERT_THAT(choices, SizeIs(1));
  EXPECT_EQ(choices[0].missing, "this prepost was built without libmlx5");
}

// Both ends are opens of one card, and reach each other.
TEST(HardwareDevicesTest, CardIsOpenedTwice) {
  FakeLibrary library({{.name = "mlx5_0", .options = {.is_ethernet = true}}});
  auto devices =
      HardwareDevices::Open(library, "mlx5_0", [&library] { library.fabric().RunUntilIdle(); });
  ASSERT_TRUE(devices.ok()) << devices.status().ToString();
  nic::Device& near = (*devices)->device(0);
  nic::Device& far = (*devices)->device(1);
  TestQueue sender(near, {.sq_wqebbs = 4});
  TestQueue receiver(far, {.rq_wqes = 4});
  Connect(near, sender, far, receiver);
  receiver.Receive();
  sender.Send();
  sender.Ring();
  (*devices)->Settle();
  EXPECT_THAT(receiver.Received(), SizeIs(1));
  EXPECT_EQ(HardwareDevices::Open(library, "mlx5_9").status().message(),
            "there is no RDMA device mlx5_9");
  devices->reset();
  EXPECT_THAT(library.fabric().engine().misuses(), IsEmpty());
}

}  // namespace
}  // namespace prepost::test::hardware_devices_test
