// SPDX-License-Identifier: Apache-2.0
//
// The devices that the suite runs on: NICs in software from the table of engines, and cards.
#include "backends/emulated/fabric.h"
#include "backends/mlx5/cards.h"
#include "backends/registry.h"
#include "tests/conformance/cross_channel.h"
#include "tests/support/engines.h"
#include "tests/support/hardware_devices.h"

namespace prepost::test::devices_test {
namespace {

class EmulatedDevices : public DeviceUnderTest {
 public:
  explicit EmulatedDevices(emulated::EngineOptions options, const nic::DeviceFactory& make = {})
      : fabric_(2, options) {
    if (!make) return;
    EXPECT_TRUE(fabric_.MakeDevices(make).ok());
  }
  nic::Device& device(uint32_t node) override { return fabric_.device(NodeId(node)); }
  void Settle() override { fabric_.RunUntilIdle(); }

 private:
  emulated::Fabric fabric_;
};

Registration Emulated(const std::string& name, emulated::SchedulerMode scheduler,
                      const nic::DeviceFactory& make = {}) {
  return {name, [scheduler, make] {
            return std::make_unique<EmulatedDevices>(
                emulated::EngineOptions{.scheduler = scheduler, .seed = 17}, make);
          }};
}

/// Null: this was built without.
mlx5::VerbsLibrary* CardsOfMachine() {
  const auto* const cards = dynamic_cast<const mlx5::Cards*>(KindOfDevice("mlx5_0").kind);
  return cards == nullptr ? nullptr : &cards->library();
}

/// Cards, or why there are none. Not yet seen on hardware.
Registration OnHardware(const HardwareChoice& choice) {
  if (choice.device.empty()) {
    return {.name = choice.instance, .make = {}, .missing = choice.missing};
  }
  return {choice.instance, [name = choice.device]() -> std::unique_ptr<DeviceUnderTest> {
            auto devices = HardwareDevices::Open(*CardsOfMachine(), name);
            if (devices.ok()) return *std::move(devices);
            ADD_FAILURE() << devices.status().ToString();
            return nullptr;
          }};
}

std::vector<Registration> Registrations() {
  std::vector<Registration> all = {
      Emulated("emulated_random", emulated::SchedulerMode::kRandom),
      Emulated("emulated_adversarial", emulated::SchedulerMode::kAdversarial)};
  for (const Engine& engine : Engines()) {
    if (engine.nics)
      all.push_back(Emulated(engine.name, emulated::SchedulerMode::kRoundRobin, *engine.nics));
  }
  for (const HardwareChoice& choice : ChooseHardware(CardsOfMachine())) {
    all.push_back(OnHardware(choice));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Devices, CrossChannelTest, testing::ValuesIn(Registrations()),
                         [](const auto& registration) { return registration.param.name; });

}  // namespace
}  // namespace prepost::test::devices_test
