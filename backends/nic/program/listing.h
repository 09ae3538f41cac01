// SPDX-License-Identifier: Apache-2.0
//
// Listing: a queue program for people. The bytes are linked, with each object's position as its
// number, and decoded again: what is shown is what a NIC would read, with operands by name and the
// op that each entry came from.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_LISTING_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_LISTING_H_

#include <string>
#include <vector>

#include "backends/nic/program/queue_program.h"
#include "ir/plan.h"

namespace prepost::nic {

/// One line for the program, and one per node, CQ, queue and WQE: all that there is to know, so
/// that ParseListing() (listing_parse.h) can read it back. `plan` is the plan that `program` was
/// lowered from. `has_bytes`: below each WQE its bytes, in lines that ParseListing() skips.
std::string List(const Plan& plan, const QueueProgram& program, bool has_bytes = false);

/// Of one QP, each entry as in a listing: "WAIT sends 3>2 blocks until CQE 0".
struct QueueTexts {
  std::vector<std::string> receives;
  std::vector<std::string> sends;
};
/// By QP.
std::vector<QueueTexts> TextsOf(const NodeProgram& program);

/// One line: QPs, CQs, WQEs, WAITs, doorbells.
std::string Summary(const NodeProgram& program);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_LISTING_H_
