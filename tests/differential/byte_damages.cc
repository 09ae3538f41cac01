// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/byte_damages.h"

#include <cstring>
#include <vector>

namespace prepost::test {
namespace {

using nic::kWqebbBytes;
using nic::LoadBigEndian;
using nic::Opcode;
using nic::StoreBigEndian;

template <typename T>
void Add(std::byte* at, T value, T mask = static_cast<T>(~T{0})) {
  StoreBigEndian(at, static_cast<T>((LoadBigEndian<T>(at) + value) & mask));
}

/// Exchanges two WQEs; each gets the index of its new place.
void Swap(const Site& site, size_t a, size_t b) {
  const size_t bytes = site.receive ? nic::kReceiveStrideBytes : kWqebbBytes;
  const std::vector<std::byte> before(site.at(a), site.at(a) + bytes);
  std::memcpy(site.at(a), site.at(b), bytes);
  std::memcpy(site.at(b), before.data(), bytes);
  if (site.receive) return;
  for (const size_t i : {a, b}) {
    StoreBigEndian(site.at(i) + nic::control::kWqeIndex,
                   static_cast<uint16_t>(site.qp->sq_base + i));
  }
}

void MakeNop(const Site& site) {
  site.wqe()[nic::control::kOpcode] = std::byte{0};
  site.wqe()[nic::control::kSegments] = std::byte{1};
  StoreBigEndian(site.wqe() + nic::control::kImmediate, uint32_t{0});
}

/// Puts the number of another object there; false when there is none.
template <typename Object>
bool PutOther(const Site& site, std::byte* at, const std::vector<Object>& objects) {
  std::vector<uint32_t> others;
  for (const Object& it : objects) {
    if (it.number != LoadBigEndian<uint32_t>(at)) others.push_back(it.number);
  }
  if (others.empty()) return false;
  StoreBigEndian(at, site.random->Pick(others));
  return true;
}

constexpr size_t kIndex = nic::kSegmentBytes + nic::coordination::kIndex;
constexpr size_t kNumber = nic::kSegmentBytes + nic::coordination::kNumber;

const ByteDamage kDamages[] = {
    {"WAIT for one CQE less",
     [](const Site& it) {
       if (it.is(Opcode::kWait)) Add<uint32_t>(it.wqe() + kIndex, nic::kCqIndexMask, 0xffffff);
       return it.is(Opcode::kWait);
     }},
    {"WAIT for one CQE more",
     [](const Site& it) {
       if (it.is(Opcode::kWait)) Add<uint32_t>(it.wqe() + kIndex, 1, 0xffffff);
       return it.is(Opcode::kWait);
     },
     "waits for more than it must, and that comes without it"},
    {"WAIT on another CQ",
     [](const Site& it) {
       return it.is(Opcode::kWait) && PutOther(it, it.wqe() + kNumber, it.node->cqs);
     }},
    {"WAIT lost",
     [](const Site& it) {
       if (!it.is(Opcode::kWait)) return false;
       MakeNop(it);
       return true;
     }},
    {"SEND_EN lost",
     [](const Site& it) {
       // The last of a part: its doorbell holds its first bytes, and gives the damage away.
       if (!it.is(Opcode::kSendEnable) || it.ends_part()) return false;
       MakeNop(it);
       return true;
     },
     "a later one of the same queue enables it too, and is there in time"},
    {"SEND_EN before its WAIT",
     [](const Site& it) {
       const bool follows = it.is(Opcode::kSendEnable) && it.index != 0 &&
                            it.OpcodeAt(it.index - 1) == Opcode::kWait;
       if (follows) Swap(it, it.index - 1, it.index);
       return follows;
     }},
    {"SEND_EN for one WQE more",
     [](const Site& it) {
       if (it.is(Opcode::kSendEnable)) Add<uint32_t>(it.wqe() + kIndex, 1, 0xffff);
       return it.is(Opcode::kSendEnable);
     }},
    {"SEND_EN for one WQE less",
     [](const Site& it) {
       if (it.is(Opcode::kSendEnable)) Add<uint32_t>(it.wqe() + kIndex, 0xffff, 0xffff);
       return it.is(Opcode::kSendEnable);
     },
     "the next one of the same queue enables it, and is there in time"},
    {"SEND_EN of another QP",
     [](const Site& it) {
       return it.is(Opcode::kSendEnable) && PutOther(it, it.wqe() + kNumber, it.node->qps);
     }},
    {"neighbours exchanged",
     [](const Site& it) {
       if (it.receive || it.is_last()) return false;
       if (std::memcmp(it.at(it.index) + kIndex, it.at(it.index + 1) + kIndex, 8) == 0)
         return false;
       Swap(it, it.index, it.index + 1);
       return true;
     },
     "two WAITs, or two SEND_ENs, between which nothing starts, or a send that waits for more",
     "the CQE of a signaled send that has moved names another WQE than the host expects"},
    {"receives exchanged",
     [](const Site& it) {
       if (!it.receive || it.is_last() || !it.has_data()) return false;
       Swap(it, it.index, it.index + 1);
       return true;
     }},
    {"size of a WQE",
     [](const Site& it) {
       if (!it.receive) it.wqe()[nic::control::kSegments] ^= std::byte{1};
       return !it.receive;
     }},
    {"its own index",
     [](const Site& it) {
       if (!it.receive) Add<uint16_t>(it.wqe() + nic::control::kWqeIndex, 1);
       return !it.receive;
     }},
    {"its own QPN",
     [](const Site& it) {
       if (!it.receive) it.wqe()[nic::control::kQpn + 2] ^= std::byte{1};
       return !it.receive;
     }},
    {"signal lost",
     [](const Site& it) {
       if (it.receive || !it.is_signaled() || it.is_loopback()) return false;
       it.wqe()[nic::control::kFlags] = std::byte{0};
       return true;
     }},
    {"signal added",
     [](const Site& it) {
       if (it.receive || it.is_signaled()) return false;
       it.wqe()[nic::control::kFlags] = kSignal;
       return true;
     }},
    {"final NOP not signaled",
     [](const Site& it) {
       if (!it.is(Opcode::kNop) || !it.is_last()) return false;
       it.wqe()[nic::control::kFlags] = std::byte{0};
       return true;
     }},
    {"key of a payload",
     [](const Site& it) {
       if (it.has_data()) Add<uint32_t>(it.data() + nic::data::kLkey, 1);
       return it.has_data();
     }},
    {"address sent from",
     [](const Site& it) {
       if (it.receive || !it.has_data()) return false;
       Add<uint64_t>(it.data() + nic::data::kAddress, it.random->Coin() ? 1 : ~uint64_t{0});
       return true;
     }},
    {"length sent",
     [](const Site& it) {
       if (it.receive || !it.has_data()) return false;
       Add<uint32_t>(it.data() + nic::data::kByteCount, it.random->Coin() ? 1 : 0xffffffff);
       return true;
     }},
    {"address received to",
     [](const Site& it) {
       if (!it.receive || !it.has_data()) return false;
       Add<uint64_t>(it.data() + nic::data::kAddress, it.random->Coin() ? 1 : ~uint64_t{0});
       return true;
     }},
    {"room received into",
     [](const Site& it) {
       if (!it.receive || !it.has_data()) return false;
       Add<uint32_t>(it.data() + nic::data::kByteCount, it.random->Coin() ? 1 : 0xffffffff);
       return true;
     }},
    {"immediate's block",
     [](const Site& it) {
       if (it.is(Opcode::kSendImm)) it.wqe()[nic::control::kImmediate + 3] ^= std::byte{1};
       return it.is(Opcode::kSendImm);
     }},
    {"immediate's epoch",
     [](const Site& it) {
       if (it.is(Opcode::kSendImm)) it.wqe()[nic::control::kImmediate] ^= std::byte{1};
       return it.is(Opcode::kSendImm);
     }},
    {"SEND_IMM that is a SEND",
     [](const Site& it) {
       if (!it.is(Opcode::kSendImm)) return false;
       it.wqe()[nic::control::kOpcode] = static_cast<std::byte>(Opcode::kSend);
       return true;
     }},
    {"send lost",
     [](const Site& it) {
       if (!it.is_send()) return false;
       MakeNop(it);
       return true;
     }},
    {"op_mod",
     [](const Site& it) {
       if (!it.receive) it.wqe()[nic::control::kOpMod] = std::byte{2};
       return !it.receive;
     }},
    {"fence",
     [](const Site& it) {
       if (!it.receive) it.wqe()[nic::control::kFlags] |= std::byte{nic::kFence};
       return !it.receive;
     }},
    {"reserved byte",
     [](const Site& it) {
       if (!it.receive) it.wqe()[9] = std::byte{1};
       return !it.receive;
     }},
    {"end of a part not signaled",
     [](const Site& it) {
       if (!it.ends_part()) return false;
       it.wqe()[nic::control::kFlags] = std::byte{0};
       return true;
     }},
    {"signal before the end of a part",
     [](const Site& it) {
       if (!it.ends_part() || it.at(it.index - 1)[nic::control::kFlags] == kSignal) return false;
       it.wqe()[nic::control::kFlags] = std::byte{0};
       it.at(it.index - 1)[nic::control::kFlags] = kSignal;
       return true;
     }},
    {"SEND_EN over the end of a part",
     [](const Site& it) {
       if (!it.is(Opcode::kSendEnable) || it.is_last()) return false;
       // Two that lowering makes of one where a part of their queue ends.
       if (it.OpcodeAt(it.index + 1) != Opcode::kSendEnable) return false;
       std::byte* next = it.at(it.index + 1);
       if (std::memcmp(it.wqe() + kNumber, next + kNumber, 4) != 0) return false;
       std::memcpy(it.wqe() + kIndex, next + kIndex, 4);
       MakeNop({it.node, it.qp, it.receive, it.index + 1, it.random});
       return true;
     }},
    {"WQE of the ring's last round",
     [](const Site& it) {
       if (it.receive || it.index < it.ring()) return false;
       std::memcpy(it.wqe(), it.at(it.index - it.ring()), kWqebbBytes);
       return true;
     }},
    {"receive of the ring's last round",
     [](const Site& it) {
       if (!it.receive || it.index < it.ring() || !it.has_data()) return false;
       std::memcpy(it.wqe(), it.at(it.index - it.ring()), nic::kReceiveStrideBytes);
       return true;
     }},
    {"bytes behind a WQE's segments",
     [](const Site& it) {
       if (!it.receive) it.wqe()[40 + it.random->Below(24)] ^= std::byte{0x5a};
       return !it.receive;
     },
     "no NIC reads what lies behind the segments of a WQE"},
};

}  // namespace

std::span<const ByteDamage> ByteDamages() { return kDamages; }

}  // namespace prepost::test
