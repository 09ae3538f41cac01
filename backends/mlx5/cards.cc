// SPDX-License-Identifier: Apache-2.0
#include "backends/mlx5/cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backends/mlx5/survey.h"
#include "backends/nic/host/nic_player_device.h"
#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/lower.h"

namespace prepost::mlx5 {
namespace {

uint32_t EntriesOf(uint8_t log) { return uint32_t{1} << std::min<uint8_t>(log, 31); }

/// What fits both `profile` and the card called `name` that reports these capabilities.
nic::DeviceProfile Narrowed(nic::DeviceProfile profile, const std::string& name,
                            const Capabilities& capabilities) {
  profile.name = name;
  profile.sq_wqebbs = std::min(profile.sq_wqebbs, EntriesOf(capabilities.log_max_qp_sz));
  profile.rq_wqes = std::min(profile.rq_wqes, EntriesOf(capabilities.log_max_qp_sz));
  profile.cq_entries = std::min(profile.cq_entries, EntriesOf(capabilities.log_max_cq_sz));
  profile.cross_channel = profile.cross_channel && capabilities.cross_channel;
  profile.cq_ignore_overrun = profile.cq_ignore_overrun && capabilities.cq_ignore_overrun;
  return profile;
}

}  // namespace

Result<std::vector<ListedDevice>> Cards::List() const {
  const Result<std::vector<SurveyedDevice>> found = Survey(library_);
  if (!found.ok()) return found.status();
  if (found->empty()) return EnvironmentError("libibverbs finds no RDMA device");
  std::vector<ListedDevice> cards;
  for (const SurveyedDevice& device : *found) {
    if (!device.is_mlx5) continue;
    cards.push_back({.name = device.name,
                     .is_hardware = true,
                     .can_offload = device.can_offload,
                     .why = device.why});
  }
  return cards;
}

Result<std::unique_ptr<Mlx5Device>> Cards::OpenCard(const std::string& name,
                                                    const Mlx5Options& options) const {
  const auto failed = [&](const Status& why) {
    return Status(why.code(),
                  fmt::format("device {}: {} (see prepost devices)", name, why.message()));
  };
  Result<std::unique_ptr<Verbs>> verbs = library_.Open(name);
  if (!verbs.ok()) return failed(verbs.status());
  Result<std::unique_ptr<Mlx5Device>> card = Mlx5Device::Open(*std::move(verbs), options);
  if (!card.ok()) return failed(card.status());
  return card;
}

Result<std::unique_ptr<PlayerDevice>> Cards::Open(const std::string& name,
                                                  const DeviceOptions& options) const {
  Result<std::unique_ptr<Mlx5Device>> card =
      OpenCard(name, {.needs_cross_channel = options.needs_offload});
  if (!card.ok()) return card.status();
  const Capabilities& capabilities = (*card)->capabilities();
  nic::LowerOptions lower = options.lower != nullptr ? *options.lower : nic::LowerOptions();
  lower.profile = Narrowed(lower.profile, name, capabilities);
  const nic::DeviceProfile limits = Narrowed({}, name, capabilities);
  return std::unique_ptr<PlayerDevice>(
      std::make_unique<nic::NicPlayerDevice>(*std::move(card), limits, std::move(lower)));
}

}  // namespace prepost::mlx5
