// SPDX-License-Identifier: Apache-2.0
//
// VerbsSpy: stands between an mlx5 device and what is behind it, keeps the commands that go by,
// makes the n-th call that can fail do so, changes commands that make objects, and takes the device
// from the machine.
#ifndef PREPOST_TESTS_SUPPORT_VERBS_SPY_H_
#define PREPOST_TESTS_SUPPORT_VERBS_SPY_H_

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backends/mlx5/verbs.h"

namespace prepost::test {

/// What the spy saw; outlives it.
struct SpyNotes {
  uint64_t calls = 0;                                 ///< that can fail
  uint64_t umems = 0;                                 ///< that are registered
  uint64_t fail_at = 0;                               ///< this one does, counted from 1; 0: none
  std::vector<std::vector<std::byte>> commands = {};  ///< inputs
  std::function<void(mlx5::Output)> change = {};      ///< inputs that make objects, on their way
  std::vector<mlx5::DeviceEvent> events = {};         ///< of the device, besides its own
  bool is_gone = false;                               ///< as the kernel says it of a device
};

class VerbsSpy final : public mlx5::Verbs {
 public:
  VerbsSpy(std::unique_ptr<mlx5::Verbs> verbs, SpyNotes& notes)
      : verbs_(std::move(verbs)), notes_(notes) {}

  int GeneralCommand(mlx5::Input in, mlx5::Output out) override {
    return Command(in, [&] { return verbs_->GeneralCommand(in, out); });
  }
  int AllocUar(mlx5::UarKind kind, mlx5::Uar* uar) override {
    return Call([&] { return verbs_->AllocUar(kind, uar); });
  }
  int FreeUar(mlx5::Uar uar) override { return verbs_->FreeUar(uar); }
  int RegisterUmem(std::span<std::byte> memory, mlx5::Umem* umem) override {
    const int error = Call([&] { return verbs_->RegisterUmem(memory, umem); });
    if (error == 0) ++notes_.umems;
    return error;
  }
  int DeregisterUmem(mlx5::Umem umem) override {
    --notes_.umems;
    return verbs_->DeregisterUmem(umem);
  }
  int CreateObject(mlx5::Input in, mlx5::Output out, mlx5::Object* object) override {
    std::vector<std::byte> changed(in.begin(), in.end());
    if (notes_.change) notes_.change(changed);
    return Command(changed, [&] { return verbs_->CreateObject(changed, out, object); });
  }
  int ModifyObject(mlx5::Object object, mlx5::Input in, mlx5::Output out) override {
    return Command(in, [&] { return verbs_->ModifyObject(object, in, out); });
  }
  int QueryObject(mlx5::Object object, mlx5::Input in, mlx5::Output out) override {
    return Command(in, [&] { return verbs_->QueryObject(object, in, out); });
  }
  int DestroyObject(mlx5::Object object) override { return verbs_->DestroyObject(object); }
  int QueryEqn(uint32_t* eqn) override {
    return Call([&] { return verbs_->QueryEqn(eqn); });
  }
  int AllocPd(mlx5::ProtectionDomain* pd) override {
    return Call([&] { return verbs_->AllocPd(pd); });
  }
  int FreePd(mlx5::ProtectionDomain pd) override { return verbs_->FreePd(pd); }
  int RegisterMemory(mlx5::ProtectionDomain pd, std::span<const std::byte> memory,
                     nic::Access access, mlx5::MemoryRegion* region) override {
    return Call([&] { return verbs_->RegisterMemory(pd, memory, access, region); });
  }
  int DeregisterMemory(mlx5::MemoryRegion region) override {
    return verbs_->DeregisterMemory(region);
  }
  int QueryPort(uint8_t port, mlx5::PortAttributes* attributes) override {
    return Call([&] { return verbs_->QueryPort(port, attributes); });
  }
  int QueryGid(uint8_t port, uint32_t index, mlx5::GidEntry* entry) override {
    return Call([&] { return verbs_->QueryGid(port, index, entry); });
  }
  int ResolveMac(mlx5::ProtectionDomain pd, uint8_t port, uint32_t gid_index,
                 const mlx5::Gid& remote, mlx5::MacAddress* mac) override {
    return Call([&] { return verbs_->ResolveMac(pd, port, gid_index, remote, mac); });
  }
  int OpenEventChannel(mlx5::EventChannel* channel) override {
    return Call([&] { return verbs_->OpenEventChannel(channel); });
  }
  int CloseEventChannel(mlx5::EventChannel channel) override {
    return verbs_->CloseEventChannel(channel);
  }
  int Subscribe(mlx5::EventChannel channel, mlx5::Object object, mlx5::prm::EventType type,
                uint64_t cookie) override {
    return Call([&] { return verbs_->Subscribe(channel, object, type, cookie); });
  }
  int TakeEvent(mlx5::EventChannel channel, uint64_t* cookie) override {
    return notes_.is_gone ? EIO : verbs_->TakeEvent(channel, cookie);
  }
  int TakeDeviceEvent(mlx5::EventChannel channel, mlx5::DeviceEvent* event) override {
    if (notes_.events.empty()) return verbs_->TakeDeviceEvent(channel, event);
    *event = notes_.events.back();
    notes_.events.pop_back();
    return 0;
  }
  void StoreDoorbell(mlx5::Uar uar, uint64_t bytes) override { verbs_->StoreDoorbell(uar, bytes); }
  void StoreArm(mlx5::Uar uar, uint64_t bytes) override { verbs_->StoreArm(uar, bytes); }

 private:
  template <typename Do>
  int Call(Do call) {
    return ++notes_.calls == notes_.fail_at ? ENOMEM : call();
  }
  template <typename Do>
  int Command(mlx5::Input in, Do call) {
    notes_.commands.emplace_back(in.begin(), in.end());
    return Call(call);
  }

  std::unique_ptr<mlx5::Verbs> verbs_;
  SpyNotes& notes_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_VERBS_SPY_H_
