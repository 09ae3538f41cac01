// SPDX-License-Identifier: Apache-2.0
//
// Cards: the devices "mlx5_0", mlx5 NICs by the names that libibverbs gives them, preposted or
// driven by the CPU. Not yet seen on hardware.
#ifndef PREPOST_BACKENDS_MLX5_CARDS_H_
#define PREPOST_BACKENDS_MLX5_CARDS_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/mlx5/device.h"
#include "backends/mlx5/verbs.h"
#include "ir/base/status.h"
#include "runtime/device/device_kind.h"

namespace prepost::mlx5 {

class Cards final : public DeviceKind {
 public:
  /// `library`: where they are found. Must outlive this.
  explicit Cards(VerbsLibrary& library) : library_(library) {}

  /// mlx5 ones alone. Errors: those of VerbsLibrary::Devices(), or there is no RDMA device at all.
  Result<std::vector<ListedDevice>> List() const override;
  /// See DeviceKind. Queues fit both what the card reports and the user's profile.
  Result<std::unique_ptr<PlayerDevice>> Open(const std::string& name,
                                             const DeviceOptions& options) const override;
  std::string KindInGroup(const std::string&) const override { return "mlx5"; }

  /// The card itself. Errors (kEnvironment), with the name: there is no such card, no permission,
  /// no DEVX, no active port, a missing capability.
  Result<std::unique_ptr<Mlx5Device>> OpenCard(const std::string& name,
                                               const Mlx5Options& options = {}) const;
  VerbsLibrary& library() const { return library_; }

 private:
  VerbsLibrary& library_;
};

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_CARDS_H_
