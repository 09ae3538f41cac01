// SPDX-License-Identifier: Apache-2.0
//
// Queue programs as files, for people and for other tools: JSON with every entry by name beside its
// bytes, and raw bytes.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_QUEUE_PROGRAM_FILE_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_QUEUE_PROGRAM_FILE_H_

#include <string>

#include "backends/nic/program/queue_program.h"

namespace prepost::nic {

/// One JSON object, deterministic:
///   { "format": "prepost.queues", "version": "1.0", "mode": "inline", "message": {...},
///   "rnr_retry": 0, "nodes": [
///     { "node": 0, "final_cq": 3, "cqs": [ { "role": "sends", "qp": 0, "completions": 2,
///     "entries": 2 }, ... ],
///       "qps": [ { "peer": 1, "lane": 0, "loopback": false, "managed": false, "sq_wqebbs": 4,
///                  "rq_wqes": 0, "send_cq": 1, "recv_cq": 0,
///                  "rq": { "entries": [...], "bytes": "hex", "relocations": [ [offset, "kind",
///                  target], ... ] }, "sq": { the same } }, ... ] }, ... ] }
/// Bytes are before relocation, op ids are of the plan; "op" is null for entries that no op asked
/// for.
std::string ToJson(const QueueProgram& program);

/// Raw: little-endian 32-bit words and the queues' bytes.
///   "PPQ2", nodes, then per node: node, CQs, QPs, final CQ
///     per CQ: role (0 sends, 1 receives, 2 final, 3 idle), QP, completions,
///       entries of its ring
///     per QP: peer, lane, loopback, managed, SQ ring, RQ ring, send CQ, recv CQ, then its RQ and
///       its SQ: bytes, relocations, the bytes, and per relocation: offset, kind (0..8 as in
///       encode.h), target
std::string ToBinary(const QueueProgram& program);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_QUEUE_PROGRAM_FILE_H_
