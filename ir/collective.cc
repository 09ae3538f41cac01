// SPDX-License-Identifier: Apache-2.0
#include "ir/collective.h"

#include <algorithm>
#include <string_view>

#include "ir/base/status.h"

namespace prepost {
namespace {

using enum CollectiveKind;

}  // namespace

const char* Name(CollectiveKind kind) {
  switch (kind) {
    case kMulticast:
      return "multicast";
    case kReduce:
      return "reduce";
    case kAllreduce:
      return "allreduce";
    case kReduceScatter:
      return "reduce_scatter";
    case kAllgather:
      return "allgather";
    case kGather:
      return "gather";
    case kScatter:
      return "scatter";
    case kAlltoall:
      return "alltoall";
    case kBarrier:
      return "barrier";
  }
  PREPOST_CHECK(false);
  return "";
}

const char* ArticleOf(CollectiveKind kind) {
  constexpr std::string_view kVowels = "aeiou";
  return kVowels.find(*Name(kind)) == std::string_view::npos ? "a" : "an";
}

uint64_t PartsOf(CollectiveKind kind, uint32_t members) {
  switch (kind) {
    case kMulticast:
    case kReduce:
    case kAllreduce:
    case kBarrier:
      return 1;
    case kReduceScatter:
    case kAllgather:
    case kGather:
    case kScatter:
      return members;
    case kAlltoall:
      return uint64_t{members} * members;
  }
  PREPOST_CHECK(false);
  return 1;
}

Roles::Roles(const Collective& collective, uint32_t nodes, uint32_t blocks)
    : kind_(collective.kind),
      root_(collective.root),
      members_(nodes - std::min(nodes, collective.helpers)),
      // More parts than blocks are no plan; ranges are the caller's.
      parts_(static_cast<uint32_t>(std::min<uint64_t>(PartsOf(kind_, members_), blocks))),
      blocks_per_part_(std::max(1u, blocks / std::max(1u, parts_))) {}

PartRow Roles::Contributed(NodeId node) const {
  if (!IsSource(node)) return {};
  switch (kind_) {
    case kAllgather:
    case kGather:
      return {.first = node.value, .count = 1};
    case kAlltoall:
      return {.first = node.value * members_, .count = members_};
    default:
      return {.count = parts_};
  }
}

PartRow Roles::Wanted(NodeId node) const {
  if (!IsMember(node)) return {};
  switch (kind_) {
    case kReduce:
    case kGather:
      return {.count = IsRoot(node) ? parts_ : 0};
    case kReduceScatter:
    case kScatter:
      return {.first = node.value, .count = 1};
    case kAlltoall:
      return {.first = node.value, .step = members_, .count = members_};
    default:
      return {.count = parts_};
  }
}

PartRow Roles::NodesWanting(uint32_t part) const {
  switch (kind_) {
    case kReduce:
    case kGather:
      return {.first = root_.value, .count = part < parts_ ? 1u : 0u};
    case kReduceScatter:
    case kScatter:
      return {.first = part, .count = part < members_ ? 1u : 0u};
    case kAlltoall:
      return {.first = part % members_, .count = part / members_ < members_ ? 1u : 0u};
    default:
      return {.count = part < parts_ ? members_ : 0u};
  }
}

bool Roles::IsSource(NodeId node) const {
  return kind_ == kMulticast || kind_ == kScatter ? IsRoot(node) : IsMember(node);
}

bool Roles::IsTarget(NodeId node) const {
  if (kind_ == kReduce || kind_ == kGather) return IsRoot(node);
  return IsMember(node) && (kind_ != kMulticast || !IsRoot(node));
}

uint32_t MovingParts(const Collective& collective, uint32_t nodes) {
  const auto parts =
      static_cast<uint32_t>(PartsOf(collective.kind, nodes - std::min(nodes, collective.helpers)));
  const Roles roles(collective, nodes, parts);
  for (uint32_t part = parts; part-- > 1;) {
    for (uint32_t node = 0; node < nodes; ++node) {
      if (roles.Lacks(NodeId(node), part)) return part + 1;
    }
  }
  return 1;
}

}  // namespace prepost
