// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hardware_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <thread>
#include <utility>

#include "backends/mlx5/survey.h"

namespace prepost::test {
namespace {

/// Hardware does not say that it has nothing left to do. By then retries have ended, too.
constexpr std::chrono::milliseconds kSettles{300};
constexpr uint8_t kAckTimeout = 8;  // 1 ms, retried 7 times

}  // namespace

std::vector<HardwareChoice> ChooseHardware(mlx5::VerbsLibrary* library) {
  std::vector<HardwareChoice> choices;
  if (library == nullptr)
    return {{.instance = "hardware", .missing = "this prepost was built without libmlx5"}};
  const auto found = mlx5::Survey(*library);
  if (!found.ok()) return {{.instance = "hardware", .missing = found.status().message()}};
  std::string missing = found->empty() ? "libibverbs finds no RDMA device" : "";
  for (const mlx5::SurveyedDevice& device : *found) {
    if (!device.can_offload) {
      missing += fmt::format("{}{}: {}", missing.empty() ? "" : "; ", device.name, device.why);
      continue;
    }
    std::string word = device.name;
    std::ranges::replace_if(
        word, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    choices.push_back({.instance = fmt::format("hardware{}_{}", choices.size(), word),
                       .device = device.name,
                       .missing = {}});
  }
  if (choices.empty())
    choices.push_back({.instance = "hardware", .device = {}, .missing = missing});
  return choices;
}

Result<std::unique_ptr<HardwareDevices>> HardwareDevices::Open(mlx5::VerbsLibrary& library,
                                                               const std::string& device,
                                                               std::function<void()> settle) {
  std::unique_ptr<HardwareDevices> opened(new HardwareDevices(std::move(settle)));
  for (int node = 0; node < 2; ++node) {
    Result<std::unique_ptr<mlx5::Verbs>> verbs = library.Open(device);
    if (!verbs.ok()) return verbs.status();
    Result<std::unique_ptr<mlx5::Mlx5Device>> made =
        mlx5::Mlx5Device::Open(*std::move(verbs), {.ack_timeout = kAckTimeout});
    if (!made.ok()) return made.status();
    opened->devices_.push_back(*std::move(made));
  }
  return opened;
}

void HardwareDevices::Settle() {
  if (settle_) return settle_();
  std::this_thread::sleep_for(kSettles);
}

}  // namespace prepost::test
