// SPDX-License-Identifier: Apache-2.0
//
// What a combine does to bytes: out[i] = own[i] op other[i] over the elements of a block.
#ifndef PREPOST_RUNTIME_EXECUTOR_COMBINE_BLOCKS_H_
#define PREPOST_RUNTIME_EXECUTOR_COMBINE_BLOCKS_H_

#include <cstddef>
#include <functional>

#include "ir/combine.h"

namespace prepost {

/// `out` may be `own` or `other`, or overlap neither; none needs an alignment. `elements` of the
/// type each. Operands keep their places: own first. The caller's own operations are such functions
/// too; they are called by the thread that plays the plan.
using CombineFunction = std::function<void(std::byte* out, const std::byte* own,
                                           const std::byte* other, size_t elements)>;

/// Copies blocks, which do not overlap: those that lie apart to where they lie next to each other,
/// or back, and what a node keeps of its own.
using CopyFunction = std::function<void(std::byte* to, const std::byte* from, size_t bytes)>;

/// Of a built-in operation (CHECK). Integers wrap around; floats are added and multiplied once per
/// element, without contraction, those of 16 bits in float32 and rounded to the nearest even; what
/// is no number is one quiet NaN, so that swapped operands give the same bytes. In min and max NaN
/// wins, the one with the greater bits of two, and -0 is below 0: any order gives the same bytes.
CombineFunction CombineFunctionOf(const Combine& combine);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_COMBINE_BLOCKS_H_
