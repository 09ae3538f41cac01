// SPDX-License-Identifier: Apache-2.0
//
// Wrong bytes: programs that were lowered, linked and written into the rings of emulated NICs, of
// which one WQE is then damaged; and wrong objects: programs of which a ring, a retry count, the
// mode or the name of an op is changed before they are armed. The validator refuses each, or the
// NICs and their hosts notice, or it does no harm: then it is of a kind of which that is said here
// why, and many orders of events deliver. A damage that the validator lets pass and that shows in
// any run fails the test, unless its kind says that the validator need not see it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "prepost/backends/emulated/armed_group.h"
#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/nic/decode.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/backends/nic/object_table.h"
#include "prepost/backends/nic/op_labels.h"
#include "prepost/compiler/schedule.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/transfer.h"

namespace prepost {
namespace {

using nic::kWqebbBytes;
using nic::LoadBigEndian;
using nic::Opcode;
using nic::StoreBigEndian;

constexpr std::byte kSignal{8};  ///< in a WQE's flags

/// What is damaged: one WQE of one queue.
struct Site {
  nic::QueueObjects* node = nullptr;
  nic::QpObject* qp = nullptr;
  bool receive = false;
  size_t index = 0;
  test::Random* random = nullptr;

  std::byte* at(size_t i) const {
    return receive ? qp->rq.data() + i * nic::kReceiveStrideBytes : qp->sq.data() + i * kWqebbBytes;
  }
  std::byte* wqe() const { return at(index); }
  size_t count() const {
    return receive ? qp->rq.size() / nic::kReceiveStrideBytes : qp->sq.size() / kWqebbBytes;
  }
  Opcode opcode() const { return OpcodeAt(index); }
  Opcode OpcodeAt(size_t i) const { return static_cast<Opcode>(at(i)[nic::control::kOpcode]); }
  bool is(Opcode wanted) const { return !receive && opcode() == wanted; }
  bool is_send() const { return is(Opcode::kSend) || is(Opcode::kSendImm); }
  bool is_loopback() const { return qp->peer == node->node; }
  bool is_last() const { return index + 1 == count(); }
  uint32_t ring() const { return receive ? qp->rq_wqes : qp->sq_wqebbs; }
  bool is_in_parts() const { return count() > ring(); }
  /// The last WQE of half a ring, of a send queue in parts.
  bool ends_part() const {
    return !receive && is_in_parts() && !is_last() && (index + 1) % (ring() / 2) == 0;
  }
  bool is_signaled() const { return wqe()[nic::control::kFlags] == kSignal; }
  bool has_data() const {
    if (receive) return LoadBigEndian<uint32_t>(wqe() + nic::data::kByteCount) != 0;
    return is(Opcode::kSendImm) && wqe()[nic::control::kSegments] == std::byte{2};
  }
  std::byte* data() const { return receive ? wqe() : wqe() + nic::kSegmentBytes; }
};

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

struct Kind {
  const char* name;
  bool (*apply)(const Site& site);  ///< false: there is nothing of this kind at this site
  /// Why some of this kind do no harm; null: all of it must be refused by the validator.
  const char* harmless = nullptr;
  /// Why the hosts refuse some that the validator need not; null: none.
  const char* seen_by_host = nullptr;
};

const Kind kKinds[] = {
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

/// One entry of a program's table of objects, or of its head.
struct ObjectKind {
  const char* name;
  /// False: there is nothing of this kind in `node`, one of `program`'s.
  bool (*apply)(nic::QueueProgram& program, nic::NodeProgram& node, test::Random& random);
  const char* harmless = nullptr;  ///< as of Kind
};

template <typename T>
T& PickFrom(std::vector<T>& items, test::Random& random) {
  return items[random.Below(items.size())];
}

/// Another power of two, or none.
bool Resize(uint32_t* ring, bool up) {
  if (*ring <= 1 && !up) return false;
  if (*ring == 0) return false;
  *ring = up ? *ring * 2 : *ring / 2;
  return true;
}

const ObjectKind kObjectKinds[] = {
    {"ring of sends halved",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       return Resize(&PickFrom(node.qps, random).sq_wqebbs, /*up=*/false);
     },
     "was longer than its queue's last part, or every WQE that now ends one is signaled"},
    {"ring of sends doubled",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       return Resize(&PickFrom(node.qps, random).sq_wqebbs, /*up=*/true);
     },
     "is longer than it must be"},
    {"ring of receives halved",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       return Resize(&PickFrom(node.qps, random).rq_wqes, /*up=*/false);
     },
     "is written in parts, and what finds no receive is retried"},
    {"ring of receives doubled",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       return Resize(&PickFrom(node.qps, random).rq_wqes, /*up=*/true);
     },
     "is longer than it must be"},
    {"ring of sends beyond 2^14",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       PickFrom(node.qps, random).sq_wqebbs = 1u << 15;
       return true;
     },
     "the queue is shorter than 2^15"},
    {"ring of a CQ halved",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       return Resize(&PickFrom(node.cqs, random).entries, /*up=*/false);
     }},
    {"ring of a CQ doubled",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       return Resize(&PickFrom(node.cqs, random).entries, /*up=*/true);
     },
     "is longer than it must be"},
    {"ring of a CQ of one",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       return std::exchange(PickFrom(node.cqs, random).entries, 1) != 1;
     }},
    {"ring of a CQ beyond 2^22",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       nic::CompletionQueue& cq = PickFrom(node.cqs, random);
       cq.entries = 1u << 23;
       return cq.role != nic::CompletionQueue::Role::kIdle;
     }},
    {"CQEs that the host expects",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       PickFrom(node.cqs, random).completions += random.Coin() ? 1 : ~0u;
       return true;
     }},
    {"RNR retries",
     [](nic::QueueProgram& program, nic::NodeProgram&, test::Random&) {
       program.rnr_retry = program.rnr_retry == 0 ? nic::kRnrRetryForEver : 0;
       return true;
     }},
    {"mode of the program",
     [](nic::QueueProgram& program, nic::NodeProgram&, test::Random&) {
       program.mode = program.mode == nic::LoweringMode::kInline ? nic::LoweringMode::kManaged
                                                                 : nic::LoweringMode::kInline;
       return true;
     }},
    {"mode of a queue",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       nic::QueuePair& qp = PickFrom(node.qps, random);
       qp.managed = !qp.managed;
       return true;
     }},
    {"size of a block in the head",
     [](nic::QueueProgram& program, nic::NodeProgram&, test::Random&) {
       ++program.message.block_bytes;
       return true;
     }},
    {"op of a send or WAIT",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       std::vector<nic::SendEntry>& sends = PickFrom(node.qps, random).sends;
       if (sends.empty()) return false;
       PickFrom(sends, random).op.value += 1 + static_cast<uint32_t>(random.Below(3));
       return true;
     },
     "stands in no byte; from the plan it is set again"},
    {"op of a receive",
     [](nic::QueueProgram&, nic::NodeProgram& node, test::Random& random) {
       std::vector<nic::ReceiveEntry>& receives = PickFrom(node.qps, random).receives;
       if (receives.empty()) return false;
       PickFrom(receives, random).op = nic::kNoOp;
       return true;
     },
     "stands in no byte; from the plan it is set again"},
};

/// A program on fresh emulated NICs, whose bytes can be damaged before they start.
class Trial {
 public:
  /// `transfer` is where the message is: its addresses stand in the bytes.
  Trial(const Plan& plan, const nic::QueueProgram& program, const test::Transfer& transfer,
        uint64_t seed)
      : plan_(plan),
        transfer_(transfer),
        random_(seed),
        buffers_{transfer_.message(), transfer_.buffers()},
        fabric_(plan.header().nodes,
                {.scheduler = emulated::SchedulerMode::kAdversarial, .seed = seed}) {
    for (const std::span<std::byte> buffer : transfer_.buffers()) {
      std::ranges::fill(buffer, std::byte{0xee});
    }
    auto group =
        emulated::ArmedGroup::Make(fabric_, plan, program, std::span(&buffers_, 1), {.epoch = 5});
    PREPOST_CHECK(group.ok());
    group_.emplace(*std::move(group));
    for (nic::ArmedNode& node : group_->nodes()) PREPOST_CHECK(node.Arm().ok());
  }

  /// The bytes in the rings, those of later parts, and the NICs' objects.
  std::vector<nic::QueueObjects> Objects() const {
    std::vector<nic::QueueObjects> all;
    for (const nic::ArmedNode& node : group_->nodes()) {
      all.push_back(group_->Objects(node.program().node));
    }
    return all;
  }

  /// Runs with `objects`' bytes in the rings. Hosts look at any time. Ok when every node ends with
  /// the message and nothing was wrong on the way.
  Status Run(const std::vector<nic::QueueObjects>& objects) {
    Overwrite(objects);
    for (nic::ArmedNode& node : group_->nodes()) node.Start();
    bool is_idle = false;
    for (size_t done = 0; done != group_->nodes().size(); is_idle = !RunSome()) {
      const uint64_t written = WqesWritten();
      done = 0;
      for (nic::ArmedNode& node : group_->nodes()) {
        const Result<bool> is_done = node.Poll(std::chrono::milliseconds(0), /*wake_fd=*/-1);
        if (!is_done.ok()) return is_done.status();
        done += *is_done ? 1 : 0;
      }
      Overwrite(objects);  // the NICs stand still meanwhile
      if (is_idle && WqesWritten() == written && done != group_->nodes().size()) {
        return group_->Stuck();
      }
    }
    fabric_.RunUntilIdle();
    PREPOST_RETURN_IF_ERROR(group_->Check());
    for (size_t node = 0; node < plan_.header().nodes; ++node) {
      if (NodeId::FromIndex(node) == plan_.header().root) continue;
      if (!std::ranges::equal(transfer_.buffers()[node], transfer_.message())) {
        return Rejected(fmt::format("node {} has other bytes", node));
      }
    }
    return {};
  }

 private:
  bool RunSome() { return fabric_.RunSome(1 + random_.Below(kStepsMax)); }

  uint64_t WqesWritten() const {
    uint64_t sum = 0;
    for (const nic::ArmedNode& node : group_->nodes()) sum += node.wqes_written();
    return sum;
  }

  /// Puts `objects`' bytes wherever hosts have written by now.
  void Overwrite(const std::vector<nic::QueueObjects>& objects) {
    for (size_t node = 0; node < objects.size(); ++node) {
      const nic::ArmedNode& armed = group_->nodes()[node];
      for (size_t i = 0; i < objects[node].qps.size(); ++i) {
        const nic::QpId id = nic::QpId::FromIndex(i);
        const nic::QueueFeed::Progress progress = armed.feed().progress(id);
        const nic::QpObject& from = objects[node].qps[i];
        CopyLast(from.sq, progress.sends_written, kWqebbBytes, armed.qp(id).sq);
        CopyLast(from.rq, progress.receives_written, nic::kReceiveStrideBytes, armed.qp(id).rq);
      }
    }
  }
  /// The last of the first `written` entries, as many as fit the ring. Entry 0 is at its start.
  static void CopyLast(std::span<const std::byte> entries, size_t written, size_t stride,
                       std::span<std::byte> ring) {
    const size_t slots = ring.size() / stride;
    for (size_t i = written - std::min(written, slots); i < written; ++i) {
      std::memcpy(ring.data() + i % slots * stride, entries.data() + i * stride, stride);
    }
  }

  static constexpr uint64_t kStepsMax = 100;

  const Plan& plan_;
  const test::Transfer& transfer_;
  test::Random random_;
  emulated::MessageBuffers buffers_;
  emulated::Fabric fabric_;
  std::optional<emulated::ArmedGroup> group_;
};

nic::ValidationReport Judge(const Plan& plan, const std::vector<nic::QueueObjects>& objects) {
  nic::Validator validator(plan);
  for (const nic::QueueObjects& node : objects) validator.Add(node);
  return validator.Finish();
}

struct Tally {
  int refused = 0;           ///< by the validator
  int refused_and_seen = 0;  ///< of these, those of which one run went wrong, too
  int seen_only = 0;         ///< by NICs and hosts
  int harmless = 0;
};

/// All sites of all nodes.
std::vector<Site> SitesOf(std::vector<nic::QueueObjects>& objects, test::Random& random) {
  std::vector<Site> sites;
  for (nic::QueueObjects& node : objects) {
    for (nic::QpObject& qp : node.qps) {
      for (const bool receive : {false, true}) {
        Site site{.node = &node, .qp = &qp, .receive = receive, .random = &random};
        for (; site.index < site.count(); ++site.index) sites.push_back(site);
      }
    }
  }
  return sites;
}

class ByteMutation : public testing::Test {
 protected:
  /// Damages of every kind at some sites of the plan.
  void Mutate(const Plan& plan, const nic::LowerOptions& options, uint64_t seed) {
    constexpr int kPerKind = 10;
    const nic::QueueProgram program = *nic::Lower(plan, options);
    const test::Transfer transfer(plan.header());
    const std::vector<nic::QueueObjects> right = Trial(plan, program, transfer, seed).Objects();
    ASSERT_TRUE(Trial(plan, program, transfer, seed).Run(right).ok());
    ASSERT_TRUE(Judge(plan, right).ok()) << Judge(plan, right).ToStatus().ToString();
    test::Random random(seed);
    for (const Kind& kind : kKinds) {
      std::vector<nic::QueueObjects> wrong = right;
      std::vector<Site> sites = SitesOf(wrong, random);
      random.Shuffle(sites);
      int made = 0;
      for (size_t i = 0; i < sites.size() && made < kPerKind; ++i) {
        if (!kind.apply(sites[i])) continue;
        ++made;
        Count(plan, program, transfer, kind, wrong, random);
        if (HasFailure()) return;
        // Put right again what was damaged.
        *sites[i].qp = right[sites[i].node->node.index()].qps[PositionOf(sites[i])];
      }
    }
  }

  /// Every kind of wrong object at some nodes.
  void MutateObjects(const Plan& plan, const nic::LowerOptions& options, uint64_t seed) {
    constexpr int kPerKind = 4, kTries = 20;
    const nic::QueueProgram right = *nic::Lower(plan, options);
    const test::Transfer transfer(plan.header());
    test::Random random(seed);
    for (const ObjectKind& kind : kObjectKinds) {
      int made = 0;
      for (int i = 0; i < kTries && made < kPerKind; ++i) {
        nic::QueueProgram wrong = right;
        if (!kind.apply(wrong, PickFrom(wrong.nodes, random), random)) continue;
        ++made;
        CountObject(plan, right, wrong, transfer, kind, random);
        if (HasFailure()) return;
      }
    }
  }

  void CountObject(const Plan& plan, const nic::QueueProgram& right, nic::QueueProgram wrong,
                   const test::Transfer& transfer, const ObjectKind& kind, test::Random& random) {
    object_kinds_of_[std::string(nic::Name(right.mode))].insert(kind.name);
    Tally& tally = tallies_[kind.name];
    const Result<nic::ValidationReport> report = nic::ValidateProgram(plan, wrong);
    if (!report.ok() || !report->ok()) {
      ++tally.refused;
      return;
    }
    ASSERT_NE(kind.harmless, nullptr) << kind.name << ": the validator lets it pass";
    if (std::string_view(kind.name).starts_with("op of")) {
      nic::LabelOps(plan, &wrong);
      ASSERT_EQ(wrong, right) << kind.name;
    }
    constexpr int kRuns = 4;
    for (int run = 0; run < kRuns; ++run) {
      Trial trial(plan, wrong, transfer, random.Below(1u << 30));
      const Status status = trial.Run(trial.Objects());
      ASSERT_TRUE(status.ok()) << kind.name
                               << ": the validator lets it pass: " << status.ToString();
    }
    ++tally.harmless;
  }

  static size_t PositionOf(const Site& site) {
    return static_cast<size_t>(site.qp - site.node->qps.data());
  }

  void Count(const Plan& plan, const nic::QueueProgram& program, const test::Transfer& transfer,
             const Kind& kind, const std::vector<nic::QueueObjects>& wrong, test::Random& random) {
    Tally& tally = tallies_[kind.name];
    kinds_of_[fmt::format("{} {}", plan.header().algorithm, nic::Name(program.mode))].insert(
        kind.name);
    const nic::ValidationReport report = Judge(plan, wrong);
    if (!report.ok()) {
      ++tally.refused;
      if (!Trial(plan, program, transfer, random.Below(1u << 30)).Run(wrong).ok()) {
        ++tally.refused_and_seen;
      }
      return;
    }
    ASSERT_NE(kind.harmless, nullptr) << kind.name << ": the validator lets it pass";
    constexpr int kRuns = 12;
    for (int run = 0; run < kRuns; ++run) {
      const uint64_t seed = random.Below(1u << 30);
      const Status status = Trial(plan, program, transfer, seed).Run(wrong);
      if (status.ok()) continue;
      ASSERT_NE(kind.seen_by_host, nullptr)
          << kind.name << ": the validator lets it pass, with seed " << seed << ": "
          << status.ToString();
      ++tally.seen_only;
      return;
    }
    ++tally.harmless;
  }

  void ExpectAllKinds() {
    std::cout << fmt::format("{:<32} {:>8} {:>15} {:>9} {:>9}\n", "damage", "refused",
                             "and seen in run", "seen only", "harmless");
    std::vector<const char*> names;
    for (const Kind& kind : kKinds) names.push_back(kind.name);
    for (const ObjectKind& kind : kObjectKinds) names.push_back(kind.name);
    for (const char* name : names) {
      const Tally& it = tallies_[name];
      std::cout << fmt::format("{:<32} {:>8} {:>15} {:>9} {:>9}\n", name, it.refused,
                               it.refused_and_seen, it.seen_only, it.harmless);
      EXPECT_GT(it.refused + it.seen_only + it.harmless, 0) << name << " never occurred";
    }
    EXPECT_EQ(object_kinds_of_.size(), 2u);
    for (const auto& [mode, kinds] : object_kinds_of_) {
      EXPECT_EQ(kinds.size(), std::size(kObjectKinds)) << mode;
    }
    EXPECT_EQ(kinds_of_.size(), 2 * test::SchedulesToRun().size());
    for (const auto& [plans, kinds] : kinds_of_) {
      EXPECT_GE(kinds.size(), kKindsMin) << plans;
      std::cout << fmt::format("{}: {} kinds\n", plans, kinds.size());
    }
  }

  static constexpr size_t kKindsMin = 15;
  std::map<std::string, Tally> tallies_;
  std::map<std::string, std::set<std::string>> kinds_of_;         // by schedule and mode
  std::map<std::string, std::set<std::string>> object_kinds_of_;  // by mode
};

/// Plans of one kind, each lowered both ways.
struct Shapes {
  uint32_t blocks;
  uint32_t ring;
  std::vector<const char*> ready;
};

TEST_F(ByteMutation, EveryDamageIsRefusedOrDoesNoHarm) {
  uint64_t seed = test::TestSeed();
  const Shapes whole{
      .blocks = 4, .ring = 32768, .ready = {"auto", "barrier", "channel", "window=1"}};
  const Shapes in_parts{.blocks = 30, .ring = 16, .ready = {"window=1", "retry"}};
  for (const Shapes& shapes : {whole, in_parts}) {
    for (const std::string& schedule : test::SchedulesToRun()) {
      for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
        for (const char* ready : shapes.ready) {
          ++seed;
          SCOPED_TRACE(fmt::format("{} {} {} seed {}", schedule, nic::Name(mode), ready, seed));
          const Plan plan = test::CompileOrDie({.nodes = 5,
                                                .root = NodeId(1),
                                                .message_bytes = shapes.blocks * 1000 - 77,
                                                .block_bytes = 1000,
                                                .algorithm = schedule,
                                                .ready = *ParseReady(ready)});
          const auto masters = seed % 2 == 0 ? nic::Masters::kNode : nic::Masters::kLane;
          const nic::DeviceProfile profile{.sq_wqebbs = shapes.ring, .rq_wqes = shapes.ring};
          const nic::LowerOptions options{.mode = mode, .masters = masters, .profile = profile};
          Mutate(plan, options, seed);
          if (!HasFailure()) MutateObjects(plan, options, seed);
          if (HasFailure()) return;
        }
      }
    }
  }
  std::cout << "seeds " << test::TestSeed() + 1 << " to " << seed << "\n";
  ExpectAllKinds();
}

}  // namespace
}  // namespace prepost
