// SPDX-License-Identifier: Apache-2.0
//
// BlockPlaces: where the blocks of a node's ops lie in its memory: in its input, its output or its
// scratch buffers (docs/plan.md, "Where a block lies"). Of a multicast every block has one place,
// at its offset in the message; this is for the other collectives.
#ifndef PREPOST_RUNTIME_EXECUTOR_BLOCK_PLACES_H_
#define PREPOST_RUNTIME_EXECUTOR_BLOCK_PLACES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost {

enum class MemoryRoom : uint8_t {
  kInput,
  kOutput,
  kScratch,
  kStaging  ///< of ops whose blocks lie apart, and which send or receive them next to each other
};

struct BlockPlace {
  MemoryRoom room = MemoryRoom::kInput;
  uint64_t offset = 0;

  friend bool operator==(const BlockPlace&, const BlockPlace&) = default;
};

/// What an op does with one of its blocks.
struct BlockWork {
  uint64_t bytes = 0;
  BlockPlace reads;   ///< a send; a combine: its own operand
  BlockPlace lands;   ///< a receive: where the bytes come
  BlockPlace writes;  ///< a combine: the result; a plain receive: `lands`
};

/// Where an op sends or receives its blocks, one after the other.
struct OpPlace {
  uint64_t bytes = 0;
  BlockPlace at;  ///< of the first; kStaging: they lie apart
};

/// Of an alltoall whose parts have sizes of their own: bytes, by member. Where they lie may overlap
/// in the input alone.
struct UnevenParts {
  struct Part {
    uint64_t bytes = 0;
    uint64_t offset = 0;
  };
  std::vector<Part> sent;      ///< in the input
  std::vector<Part> received;  ///< in the output
};

/// Where the parts of a row lie that are one after the other, as in a node's input or output. A
/// value.
class RowPlaces {
 public:
  /// `payload` must outlive it.
  RowPlaces(const PartRow& row, const Payload& payload);

  /// Of a block whose part the row has.
  uint64_t OffsetOf(uint32_t block) const;
  /// Of all its parts.
  uint64_t bytes() const;

 private:
  PartRow row_;
  const Payload* payload_;
  uint32_t blocks_per_part_;
  std::vector<uint64_t> begins_;  // of parts of sizes of their own, and the end of the last
};

/// Of one node's program, whole. Needs a verified plan, or a part of one that was verified alone.
/// Linear in ops and their blocks.
class BlockPlaces {
 public:
  BlockPlaces(const PlanHeader& header, NodeId node, std::span<const Op> ops);
  /// Of an alltoall whose parts are one block each, which go from their member straight to the
  /// other.
  BlockPlaces(const PlanHeader& header, NodeId node, std::span<const Op> ops,
              const UnevenParts& parts);

  /// One for each block of an op that combines or is staged (PlaceOf()); none of another, whose
  /// blocks are where that says.
  std::span<const BlockWork> Of(uint32_t op) const {
    return std::span(work_).subspan(begin_[op], begin_[op + 1] - begin_[op]);
  }
  const OpPlace& PlaceOf(uint32_t op) const { return op_places_[op]; }
  /// Of all ops whose blocks lie apart, which have their own bytes of it each.
  uint64_t staging_bytes() const { return staging_bytes_; }
  /// Blocks that the node contributes and wants and that no op of its receives: from where to where
  /// they are copied.
  struct Copy {
    uint64_t bytes = 0;
    uint64_t input_offset = 0;
    uint64_t output_offset = 0;
  };
  std::span<const Copy> copies() const { return copies_; }
  /// Whether a combine may change what a send before it is still to read, if input and output are
  /// the same memory.
  bool exchanges() const { return exchanges_; }

 private:
  void EndOp(const Op& op);

  std::vector<size_t> begin_;  // op -> its first
  std::vector<BlockWork> work_;
  std::vector<OpPlace> op_places_;
  uint64_t staging_bytes_ = 0;
  std::vector<Copy> copies_;
  bool exchanges_ = false;
};

/// Bytes of a node's memory: its input and output have its parts one after the other.
struct NodeBytes {
  uint64_t input = 0;
  uint64_t output = 0;
  uint64_t scratch = 0;
};
NodeBytes NodeBytesOf(const PlanHeader& header, NodeId node);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_BLOCK_PLACES_H_
