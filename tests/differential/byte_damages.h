// SPDX-License-Identifier: Apache-2.0
//
// Wrong bytes: what can be damaged in one WQE of a queue, by kinds, each with why some of it does
// no harm, if so. byte_mutation_test.cc goes through them.
#ifndef PREPOST_TESTS_DIFFERENTIAL_BYTE_DAMAGES_H_
#define PREPOST_TESTS_DIFFERENTIAL_BYTE_DAMAGES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/nic/program/decode.h"
#include "backends/nic/validate/object_table.h"
#include "tests/support/random.h"

namespace prepost::test {

/// In a WQE's flags.
inline constexpr std::byte kSignal{8};

/// What is damaged: one WQE of one queue.
struct Site {
  nic::QueueObjects* node = nullptr;
  nic::QpObject* qp = nullptr;
  bool receive = false;
  size_t index = 0;
  Random* random = nullptr;

  std::byte* at(size_t i) const {
    return receive ? qp->rq.data() + i * nic::kReceiveStrideBytes
                   : qp->sq.data() + i * nic::kWqebbBytes;
  }
  std::byte* wqe() const { return at(index); }
  size_t count() const {
    return receive ? qp->rq.size() / nic::kReceiveStrideBytes : qp->sq.size() / nic::kWqebbBytes;
  }
  nic::Opcode opcode() const { return OpcodeAt(index); }
  nic::Opcode OpcodeAt(size_t i) const {
    return static_cast<nic::Opcode>(at(i)[nic::control::kOpcode]);
  }
  bool is(nic::Opcode wanted) const { return !receive && opcode() == wanted; }
  bool is_send() const { return is(nic::Opcode::kSend) || is(nic::Opcode::kSendImm); }
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
    if (receive) return nic::LoadBigEndian<uint32_t>(wqe() + nic::data::kByteCount) != 0;
    return is(nic::Opcode::kSendImm) && wqe()[nic::control::kSegments] == std::byte{2};
  }
  std::byte* data() const { return receive ? wqe() : wqe() + nic::kSegmentBytes; }
};

struct ByteDamage {
  const char* name;
  bool (*apply)(const Site& site);  ///< false: there is nothing of this kind at this site
  /// Why some of this kind do no harm; null: all of it must be refused by the validator.
  const char* harmless = nullptr;
  /// Why the hosts refuse some that the validator need not; null: none.
  const char* seen_by_host = nullptr;
};

std::span<const ByteDamage> ByteDamages();

}  // namespace prepost::test

#endif  // PREPOST_TESTS_DIFFERENTIAL_BYTE_DAMAGES_H_
