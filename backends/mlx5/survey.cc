// SPDX-License-Identifier: Apache-2.0
#include "backends/mlx5/survey.h"

#include <fmt/format.h>

#include <utility>

#include "backends/mlx5/device.h"

namespace prepost::mlx5 {
namespace {

Result<std::unique_ptr<Mlx5Device>> Open(VerbsLibrary& library, const DeviceEntry& entry) {
  if (!entry.is_mlx5) return EnvironmentError("not an mlx5 device");
  Result<std::unique_ptr<Verbs>> verbs = library.Open(entry.name);
  if (!verbs.ok()) return verbs.status();
  return Mlx5Device::Open(*std::move(verbs));
}

}  // namespace

Result<std::vector<SurveyedDevice>> Survey(VerbsLibrary& library) {
  const Result<std::vector<DeviceEntry>> entries = library.Devices();
  if (!entries.ok()) return entries.status();
  std::vector<SurveyedDevice> devices;
  for (const DeviceEntry& entry : *entries) {
    const Result<std::unique_ptr<Mlx5Device>> device = Open(library, entry);
    if (!device.ok()) {
      devices.push_back({entry.name, entry.is_mlx5, false, device.status().message()});
      continue;
    }
    const Capabilities& has = (*device)->capabilities();
    devices.push_back(
        {entry.name, true, true,
         fmt::format("cross-channel; queues of up to {} entries, CQs of up to {}",
                     uint64_t{1} << has.log_max_qp_sz, uint64_t{1} << has.log_max_cq_sz)});
  }
  return devices;
}

}  // namespace prepost::mlx5
