// SPDX-License-Identifier: Apache-2.0
//
// BlockImmediate: the 32 bits that go beside a block over queue pairs.
#ifndef PREPOST_RUNTIME_DEVICE_BLOCK_IMMEDIATE_H_
#define PREPOST_RUNTIME_DEVICE_BLOCK_IMMEDIATE_H_

#include <cstdint>

namespace prepost {

/// The block's number, and an epoch that tells apart what came over the same queue before. The
/// receiving host checks both.
constexpr uint32_t BlockImmediate(uint8_t epoch, uint32_t block) {
  return uint32_t{epoch} << 24 | (block & 0xffffff);
}

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_BLOCK_IMMEDIATE_H_
