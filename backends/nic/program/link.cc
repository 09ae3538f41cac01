// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/link.h"

#include <fmt/format.h>

#include <utility>

namespace prepost::nic {
namespace {

/// Bytes that a relocation touches.
size_t Width(RelocationKind kind) {
  switch (kind) {
    case RelocationKind::kEpoch:
      return 1;
    case RelocationKind::kWqeIndex:
      return 2;
    case RelocationKind::kQpn:
      return 3;
    case RelocationKind::kCqn:
    case RelocationKind::kWaitIndex:
    case RelocationKind::kLkey:
    case RelocationKind::kEnableQpn:
    case RelocationKind::kEnableIndex:
      return 4;
    case RelocationKind::kAddress:
      return 8;
  }
  PREPOST_CHECK(false);
  return 0;
}

/// How many objects `bindings` has of the kind that the relocation's target names.
size_t Targets(RelocationKind kind, const Bindings& bindings) {
  switch (kind) {
    case RelocationKind::kQpn:
    case RelocationKind::kEnableQpn:
      return bindings.qpns.size();
    case RelocationKind::kWqeIndex:
    case RelocationKind::kEnableIndex:
      return bindings.sq_bases.size();
    case RelocationKind::kCqn:
      return bindings.cqns.size();
    case RelocationKind::kWaitIndex:
      return bindings.cq_bases.size();
    case RelocationKind::kLkey:
    case RelocationKind::kAddress:
    case RelocationKind::kEpoch:
      return 1;
  }
  PREPOST_CHECK(false);
  return 0;
}

void Apply(const Relocation& relocation, const Bindings& bindings, std::byte* at) {
  const size_t target = relocation.target;
  switch (relocation.kind) {
    case RelocationKind::kWqeIndex:
      StoreBigEndian(
          at, static_cast<uint16_t>(LoadBigEndian<uint16_t>(at) + bindings.sq_bases[target]));
      return;
    case RelocationKind::kQpn: {
      const uint32_t qpn = bindings.qpns[target];
      StoreBigEndian(at, static_cast<uint16_t>(qpn >> 8));
      StoreBigEndian(at + 2, static_cast<uint8_t>(qpn));
      return;
    }
    case RelocationKind::kCqn:
      StoreBigEndian(at, bindings.cqns[target]);
      return;
    case RelocationKind::kWaitIndex:
      StoreBigEndian(at, (LoadBigEndian<uint32_t>(at) + bindings.cq_bases[target]) & kCqIndexMask);
      return;
    case RelocationKind::kLkey:
      StoreBigEndian(at, bindings.lkey);
      return;
    case RelocationKind::kAddress:
      StoreBigEndian(at, LoadBigEndian<uint64_t>(at) + bindings.address);
      return;
    case RelocationKind::kEpoch:
      StoreBigEndian(at, bindings.epoch);
      return;
    case RelocationKind::kEnableQpn:
      StoreBigEndian(at, bindings.qpns[target]);
      return;
    case RelocationKind::kEnableIndex:
      StoreBigEndian(at, (LoadBigEndian<uint32_t>(at) + bindings.sq_bases[target]) & kWqIndexMask);
      return;
  }
}

}  // namespace

Result<std::vector<std::byte>> Link(QueueImage image, const Bindings& bindings) {
  std::vector<std::byte> bytes = std::move(image.bytes);
  for (const Relocation& relocation : image.relocations) {
    if (relocation.offset > bytes.size() ||
        bytes.size() - relocation.offset < Width(relocation.kind)) {
      return Rejected(fmt::format("relocation {} at byte {} lies outside of the queue's {} bytes",
                                  Name(relocation.kind), relocation.offset, bytes.size()));
    }
    if (relocation.target >= Targets(relocation.kind, bindings)) {
      return Rejected(fmt::format("relocation {} at byte {} names object {}, there are {}",
                                  Name(relocation.kind), relocation.offset, relocation.target,
                                  Targets(relocation.kind, bindings)));
    }
    Apply(relocation, bindings, bytes.data() + relocation.offset);
  }
  return bytes;
}

}  // namespace prepost::nic
