// SPDX-License-Identifier: Apache-2.0
//
// QueueObjects: one node's queues as a NIC is handed them: bytes, and the objects whose numbers
// stand in them. It is what translation validation reads, and knows nothing of how the bytes were
// made.
#ifndef PREPOST_BACKENDS_NIC_HOST_QUEUE_OBJECTS_H_
#define PREPOST_BACKENDS_NIC_HOST_QUEUE_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/ids.h"
#include "ir/plan.h"

namespace prepost::nic {

struct CqObject {
  uint32_t number = 0;
  uint32_t base = 0;         ///< producer counter when the run starts, 24 bits
  uint32_t entries = 1;      ///< of its ring
  uint32_t completions = 0;  ///< CQEs that the host expects of the run

  friend bool operator==(const CqObject&, const CqObject&) = default;
};

/// What a host does before it rings for WQE `wqe` of a send queue, or for a SEND_EN that enables
/// it: it posts `receives` of the QP at position `qp`, counted from the start of the run.
struct PostedFirst {
  uint32_t wqe = 0;
  uint32_t qp = 0;
  uint32_t receives = 0;

  friend bool operator==(const PostedFirst&, const PostedFirst&) = default;
};

struct QpObject {
  uint32_t number = 0;
  NodeId peer;                ///< the node itself: loopback
  Lane lane = Lane::kBlocks;  ///< no meaning for a loopback QP
  uint32_t peer_qpn = 0;      ///< what it is connected to
  bool cd_master = false;     ///< may hold WAIT and SEND_EN
  bool managed = false;       ///< cd_slave_send
  uint16_t sq_base = 0;       ///< index of its first WQE
  /// Rings. A queue that is longer is written by halves: a half when the one that stood there
  /// before has completed.
  uint32_t sq_wqebbs = 1;
  uint32_t rq_wqes = 0;
  uint32_t send_cqn = 0;
  uint32_t recv_cqn = 0;
  /// All WQEs of the run in order, linked: kWqebbBytes and kReceiveStrideBytes each.
  std::vector<std::byte> sq = {};
  std::vector<std::byte> rq = {};
  std::vector<PostedFirst> posted_first = {};  ///< rising in `wqe`

  friend bool operator==(const QpObject&, const QpObject&) = default;
};

struct QueueObjects {
  NodeId node;
  std::vector<CqObject> cqs;
  std::vector<QpObject> qps;  ///< loopback QPs last
  uint32_t final_cqn = 0;     ///< where the host waits for the last CQE
  uint64_t message_address = 0;
  uint32_t lkey = 0;
  uint8_t epoch = 0;

  friend bool operator==(const QueueObjects&, const QueueObjects&) = default;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_QUEUE_OBJECTS_H_
