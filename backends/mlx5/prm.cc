// SPDX-License-Identifier: Apache-2.0
#include "backends/mlx5/prm.h"

#include "backends/nic/wqe.h"
#include "ir/base/status.h"

namespace prepost::mlx5::prm {
namespace {

constexpr uint32_t kWordBits = 32;
constexpr size_t kWordBytes = kWordBits / 8;

uint64_t Mask(uint32_t width) { return width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

/// The part of a field that lies in one word.
struct Piece {
  size_t byte = 0;  // of the word
  uint32_t width = 0;
  uint32_t shift = 0;  // above the word's lowest bit
};

Piece PieceAt(uint32_t offset, uint32_t width) {
  const uint32_t in_word = offset % kWordBits;
  PREPOST_CHECK(width != 0 && in_word + width <= kWordBits);
  return {offset / kWordBits * kWordBytes, width, kWordBits - in_word - width};
}

}  // namespace

uint64_t Get(std::span<const std::byte> mailbox, Field field) {
  if (field.width > kWordBits) {
    const uint64_t high = Get(mailbox, {field.offset, field.width - kWordBits});
    return high << kWordBits | Get(mailbox, {field.offset + field.width - kWordBits, kWordBits});
  }
  const Piece piece = PieceAt(field.offset, field.width);
  PREPOST_CHECK(piece.byte + kWordBytes <= mailbox.size());
  return nic::LoadBigEndian<uint32_t>(mailbox.data() + piece.byte) >> piece.shift &
         Mask(piece.width);
}

void Set(std::span<std::byte> mailbox, Field field, uint64_t value) {
  PREPOST_CHECK((value & ~Mask(field.width)) == 0);
  if (field.width > kWordBits) {
    Set(mailbox, {field.offset, field.width - kWordBits}, value >> kWordBits);
    field = {field.offset + field.width - kWordBits, kWordBits};
    value &= Mask(kWordBits);
  }
  const Piece piece = PieceAt(field.offset, field.width);
  PREPOST_CHECK(piece.byte + kWordBytes <= mailbox.size());
  std::byte* at = mailbox.data() + piece.byte;
  const uint64_t kept = nic::LoadBigEndian<uint32_t>(at) & ~(Mask(piece.width) << piece.shift);
  nic::StoreBigEndian(at, static_cast<uint32_t>(kept | value << piece.shift));
}

const char* Name(Command command) {
  switch (command) {
    case Command::kQueryHcaCap:
      return "QUERY_HCA_CAP";
    case Command::kCreateCq:
      return "CREATE_CQ";
    case Command::kQueryCq:
      return "QUERY_CQ";
    case Command::kCreateQp:
      return "CREATE_QP";
    case Command::kRst2Init:
      return "RST2INIT";
    case Command::kInit2Rtr:
      return "INIT2RTR";
    case Command::kRtr2Rts:
      return "RTR2RTS";
    case Command::k2Err:
      return "2ERR";
    case Command::k2Rst:
      return "2RST";
    case Command::kQueryQp:
      return "QUERY_QP";
  }
  return "?";
}

const char* Name(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kInternalError:
      return "internal error";
    case Status::kBadOperation:
      return "bad operation";
    case Status::kBadParameter:
      return "bad parameter";
    case Status::kBadSystemState:
      return "bad system state";
    case Status::kBadResource:
      return "bad resource";
    case Status::kResourceBusy:
      return "resource busy";
    case Status::kLimit:
      return "limit exceeded";
    case Status::kBadResourceState:
      return "bad resource state";
    case Status::kBadIndex:
      return "bad index";
    case Status::kNoResources:
      return "no resources";
    case Status::kBadInputLength:
      return "bad input length";
    case Status::kBadOutputLength:
      return "bad output length";
  }
  return "?";
}

}  // namespace prepost::mlx5::prm
