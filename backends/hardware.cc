// SPDX-License-Identifier: Apache-2.0
#include "backends/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace prepost::tools {
namespace {

/// 2^log, as far as a limit can say that.
uint32_t EntriesOf(uint8_t log) { return uint32_t{1} << std::min<uint8_t>(log, 31); }

Result<std::unique_ptr<mlx5::Mlx5Device>> Open(const std::string& name, mlx5::VerbsLibrary* library,
                                               const mlx5::Mlx5Options& options) {
  if (library == nullptr) return EnvironmentError("this prepost was built without libmlx5");
  Result<std::unique_ptr<mlx5::Verbs>> verbs = library->Open(name);
  if (!verbs.ok()) return verbs.status();
  return mlx5::Mlx5Device::Open(*std::move(verbs), options);
}

}  // namespace

Result<std::unique_ptr<mlx5::Mlx5Device>> OpenHardware(const std::string& name,
                                                       mlx5::VerbsLibrary* library,
                                                       const mlx5::Mlx5Options& options) {
  Result<std::unique_ptr<mlx5::Mlx5Device>> device = Open(name, library, options);
  if (device.ok()) return device;
  return Status(device.status().code(), fmt::format("--device {}: {} (see prepost devices)", name,
                                                    device.status().message()));
}

nic::DeviceProfile Narrowed(nic::DeviceProfile profile, const std::string& name,
                            const mlx5::Capabilities& capabilities) {
  profile.name = name;
  profile.sq_wqebbs = std::min(profile.sq_wqebbs, EntriesOf(capabilities.log_max_qp_sz));
  profile.rq_wqes = std::min(profile.rq_wqes, EntriesOf(capabilities.log_max_qp_sz));
  profile.cq_entries = std::min(profile.cq_entries, EntriesOf(capabilities.log_max_cq_sz));
  profile.cross_channel = profile.cross_channel && capabilities.cross_channel;
  profile.cq_ignore_overrun = profile.cq_ignore_overrun && capabilities.cq_ignore_overrun;
  return profile;
}

}  // namespace prepost::tools
