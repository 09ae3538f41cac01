// SPDX-License-Identifier: Apache-2.0
//
// CheckRounds: whether the transfers of a file of rounds can be those of their collective. Internal
// to compiler/rounds/.
#ifndef PREPOST_COMPILER_ROUNDS_ROUNDS_CHECK_H_
#define PREPOST_COMPILER_ROUNDS_ROUNDS_CHECK_H_

#include <cstdint>

#include "compiler/rounds/rounds_file.h"
#include "ir/base/status.h"
#include "ir/collective.h"

namespace prepost {

/// What neither the user nor the file says is found from the transfers.
struct RoundsExtent {
  uint32_t nodes = 0;
  Collective collective;
  uint32_t blocks = 0;  ///< of all parts

  Roles roles() const { return {collective, nodes, blocks}; }
};

/// Where nothing is combined: every node gets each block that it lacks once and no other twice, and
/// sends it in a later round; none gets what it has from the start. Where blocks are combined it is
/// the form alone that is checked, and that no node sends a block in the round in which it takes
/// it: what blocks are made of in the end the verifier finds. Errors: kRejected, with all that is
/// wrong, in the order of the file. Cost: sorting the transfers' blocks; memory for these and for
/// nodes, whatever the number of blocks.
Status CheckRounds(const RoundsFile& file, const RoundsExtent& extent);

}  // namespace prepost

#endif  // PREPOST_COMPILER_ROUNDS_ROUNDS_CHECK_H_
