// SPDX-License-Identifier: Apache-2.0
//
// StandIn: what is behind Verbs where there is no card. It plays kernel and firmware: it decodes
// the command mailboxes bit by bit, refuses what they would refuse and some that they would let
// pass, and makes queues on a software NIC over the memory that the host registered. Nothing but
// these bytes, the host's memory and two 8-byte stores gets from the host to that NIC.
//
// It is stricter than hardware: any bit that a command does not take, an opt_param_mask, CQ entries
// that are not invalid, doorbell records that disagree with what they count, rings outside of
// registered pages or in each other's memory, and addresses of another kind of link are refused; a
// doorbell on the wrong page, an arming that disagrees with its doorbell record, a QP that is
// destroyed while it may be at work, and whatever is left when it goes are reported as misuse of
// the NIC.
#ifndef PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_H_
#define PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backends/mlx5/prm.h"
#include "backends/mlx5/stand_in/stand_in_forms.h"
#include "backends/mlx5/verbs.h"
#include "backends/nic/nic_model.h"

namespace prepost::mlx5 {

/// The capabilities that it reports.
struct StandInOptions {
  bool cross_channel = true;
  bool cq_ignore_overrun = true;
  uint8_t log_max_qp_sz = 15;
  uint8_t log_max_cq_sz = 22;
  bool is_ethernet = false;
  bool force_loopback = true;  ///< with Ethernet
  bool has_blue_flame = true;
  bool is_active = true;
  bool needs_grh = false;
  bool tells_errors = true;  ///< events of errors can be subscribed to
  uint8_t mtu = 5;
};

class StandIn final : public Verbs {
 public:
  /// `nic` must outlive it. InfiniBand reaches NICs of nodes below 49150 only: there are no more
  /// LIDs.
  StandIn(nic::NicModel& nic, const StandInOptions& options) : nic_(nic), options_(options) {}
  /// Reports what is left as misuse, and takes it from the NIC.
  ~StandIn() override;

  int GeneralCommand(Input in, Output out) override;
  int AllocUar(UarKind kind, Uar* uar) override;
  int FreeUar(Uar uar) override;
  int RegisterUmem(std::span<std::byte> memory, Umem* umem) override;
  int DeregisterUmem(Umem umem) override;
  int CreateObject(Input in, Output out, Object* object) override;
  int ModifyObject(Object object, Input in, Output out) override;
  int QueryObject(Object object, Input in, Output out) override;
  int DestroyObject(Object object) override;
  int QueryEqn(uint32_t* eqn) override;
  int AllocPd(ProtectionDomain* pd) override;
  int FreePd(ProtectionDomain pd) override;
  int RegisterMemory(ProtectionDomain pd, std::span<const std::byte> memory, nic::Access access,
                     MemoryRegion* region) override;
  int DeregisterMemory(MemoryRegion region) override;
  int QueryPort(uint8_t port, PortAttributes* attributes) override;
  int QueryGid(uint8_t port, uint32_t index, GidEntry* entry) override;
  int ResolveMac(ProtectionDomain pd, uint8_t port, uint32_t gid_index, const Gid& remote,
                 MacAddress* mac) override;
  int OpenEventChannel(EventChannel* channel) override;
  int CloseEventChannel(EventChannel channel) override;
  int Subscribe(EventChannel channel, Object object, prm::EventType type, uint64_t cookie) override;
  int TakeEvent(EventChannel channel, uint64_t* cookie) override;
  int TakeDeviceEvent(EventChannel channel, DeviceEvent* event) override;
  void StoreDoorbell(Uar uar, uint64_t bytes) override;
  void StoreArm(Uar uar, uint64_t bytes) override;

  /// Why the last command or call was refused, in words; hardware does not report it.
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Refusal {
    prm::Status status = prm::Status::kBadParameter;
    std::string why;
  };
  using Verdict = std::optional<Refusal>;  // none: fine

  /// By the type of event: what it comes with.
  using Cookies = std::map<prm::EventType, uint64_t>;
  /// A queue's: rings and doorbell record.
  struct Memory {
    uint32_t umem = 0;
    uint32_t record_umem = 0;
    std::span<std::byte> rings;
    std::span<std::byte> record;

    /// A word of the record.
    uint32_t Load(size_t word) const;
  };
  struct CqEntry {
    uint32_t cqn = 0;
    uint32_t uar_page = 0;
    Memory memory;
    uint8_t events = 0;  // completion events that have been taken
    Cookies cookies = {};
  };
  struct QpEntry {
    uint32_t qpn = 0;
    uint32_t uar_page = 0;
    uint32_t pd = 0;
    uint16_t sq_base = 0;
    Memory memory;
    Cookies cookies = {};
  };

  static void* HandleOf(uint32_t id) { return reinterpret_cast<void*>(uintptr_t{id}); }
  static uint32_t IdOf(const void* handle) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle));
  }
  static Refusal Bad(std::string why);
  static Verdict Outcome(const Status& status);
  int CheckForm(stand_in::Call call, Input in, Output out);
  int Answer(Output out, const Verdict& verdict);
  int Refuse(int error, std::string why);
  Verdict Slice(const char* what, uint64_t umem, uint64_t offset, uint64_t bytes,
                uint64_t alignment, std::span<std::byte>* slice) const;
  Verdict CheckApart(const Memory& memory) const;
  Verdict CheckUar(uint64_t page) const;
  Verdict QueryHcaCap(Input in, Output out) const;
  Verdict CreateCq(Input in, Output out, Object* object);
  Verdict CreateQp(Input in, Output out, Object* object);
  Verdict CheckQpContext(Input in) const;
  Verdict QpSizes(Input in, nic::QpConfig* config) const;
  Verdict CheckQpCqs(Input in) const;
  Verdict ChangeQp(const QpEntry& qp, prm::Command command, Input in);
  Verdict ResetToInit(const QpEntry& qp, Input in);
  Verdict InitToReceive(uint32_t qpn, Input in);
  Verdict FindRemote(Input in, uint32_t qpn, NodeId* remote) const;
  Verdict FindRemoteByGid(Input in, NodeId* remote) const;
  Verdict ReceiveToSend(uint32_t qpn, Input in);
  Verdict QueryQp(const QpEntry& qp, Output out);
  Verdict QueryCq(const CqEntry& cq, Output out);
  bool IsChannel(EventChannel channel) const;
  Cookies* CookiesOf(Object object, prm::EventType type);
  void SortErrors();
  void SortError(const nic::ErrorEvent& error);
  static void Queue(const Cookies& cookies, prm::EventType type, std::deque<uint64_t>* events);
  CqEntry* FindCq(uint64_t cqn);
  QpEntry* FindQp(uint64_t qpn);
  const CqEntry* FindCq(uint64_t cqn) const;
  bool IsUmemUsed(uint32_t id) const;
  std::string Leftovers() const;

  nic::NicModel& nic_;
  StandInOptions options_;
  uint32_t next_ = 0x21;  // the next handle, and number where numbers are ours
  // By handle.
  std::map<uint32_t, Uar> uars_;
  std::map<uint32_t, std::span<std::byte>> umems_;
  std::map<uint32_t, ProtectionDomain> pds_;
  struct Registered {
    uint32_t pd = 0;
    uint32_t key = 0;
  };
  std::map<uint32_t, Registered> regions_;
  std::map<uint32_t, CqEntry> cqs_;
  std::map<uint32_t, QpEntry> qps_;
  uint32_t channel_ = 0;  // handle; 0: none
  // What the NIC has reported and nobody has taken.
  std::deque<uint64_t> object_events_;  // cookies
  std::deque<DeviceEvent> device_events_;
  std::string last_refusal_;
};

/// An Mlx5Device with a stand-in of its own behind it. Errors: those of Mlx5Device::Open().
Result<std::unique_ptr<nic::Device>> OpenOnStandIn(nic::NicModel& nic,
                                                   const StandInOptions& options);

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_H_
