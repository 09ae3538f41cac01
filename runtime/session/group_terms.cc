// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/group_terms.h"

#include <sodium.h>

#include <algorithm>
#include <span>

#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

/// BLAKE2b of `fields`, 64 bits each, and `text`: half of a PlanHash.
void HashInto(std::span<std::byte> half, const std::vector<uint64_t>& fields,
              std::span<const std::byte> text) {
  std::vector<std::byte> bytes(fields.size() * sizeof(uint64_t) + text.size());
  ByteWriter writer(bytes);
  for (const uint64_t field : fields) writer.Put(field);
  writer.PutBytes(text);
  crypto_generichash(reinterpret_cast<unsigned char*>(half.data()), half.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
}

/// A PlanHash is which group it is 16 | the order of its members 4 | its root 4 | the rest 8.
constexpr size_t kTermsHalf = sizeof(PlanHash) / 2;
constexpr size_t kWordBytes = sizeof(uint32_t);
constexpr size_t kRootOffset = kTermsHalf + kWordBytes;
constexpr size_t kRestOffset = kRootOffset + kWordBytes;

}  // namespace

PlanHash TermsOfGroup(uint64_t number, const std::vector<uint32_t>& members, NodeId root,
                      const PlanHash& plans, const std::string& options) {
  PlanHash terms;
  const std::vector<uint64_t> order(members.begin(), members.end());
  std::vector<uint64_t> group = order;
  std::ranges::sort(group);
  group.push_back(number);
  HashInto(std::span(terms).first(kTermsHalf), group, {});
  PlanHash whole;
  HashInto(whole, order, {});
  std::ranges::copy_n(whole.begin(), kWordBytes, terms.begin() + kTermsHalf);
  ByteWriter(std::span(terms).subspan(kRootOffset)).Put(root.value);
  std::vector<std::byte> rest(plans.begin(), plans.end());
  const auto text = std::as_bytes(std::span(options));
  rest.insert(rest.end(), text.begin(), text.end());
  HashInto(whole, {}, rest);
  std::ranges::copy_n(whole.begin(), sizeof(terms) - kRestOffset, terms.begin() + kRestOffset);
  return terms;
}

PlanHash DataTermsOfGroup(const PlanHash& terms, uint64_t generation) {
  PlanHash data = terms;
  HashInto(std::span(data).subspan(kTermsHalf), {generation},
           std::span<const std::byte>(terms).subspan(kTermsHalf));
  return data;
}

bool SameGroup(const PlanHash& a, const PlanHash& b) {
  return std::ranges::equal(std::span(a).first(kTermsHalf), std::span(b).first(kTermsHalf));
}

Refusal TermsDifference(const PlanHash& own, const PlanHash& other) {
  if (OrderOf(own) != OrderOf(other)) return Refusal::kOtherOrder;
  if (RootOf(own) != RootOf(other)) return Refusal::kOtherRoot;
  return own == other ? Refusal::kNone : Refusal::kOtherPlan;
}

NodeId RootOf(const PlanHash& terms) {
  return NodeId(ByteReader(std::span(terms).subspan(kRootOffset)).Get<uint32_t>());
}

uint32_t OrderOf(const PlanHash& terms) {
  return ByteReader(std::span(terms).subspan(kTermsHalf)).Get<uint32_t>();
}

}  // namespace prepost
