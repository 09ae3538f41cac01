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

bool IsSame(const PlanHash& a, const PlanHash& b, size_t begin, size_t end) {
  return std::ranges::equal(std::span(a).subspan(begin, end - begin),
                            std::span(b).subspan(begin, end - begin));
}

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

bool SameGroup(const PlanHash& a, const PlanHash& b) { return IsSame(a, b, 0, kTermsHalf); }

std::string_view TermsDifference(const PlanHash& own, const PlanHash& other) {
  if (!IsSame(own, other, kTermsHalf, kRootOffset)) return "its members in another order";
  if (!IsSame(own, other, kRootOffset, kRestOffset)) return "another root";
  return own == other ? "" : "other options or another plan";
}

NodeId RootOf(const PlanHash& terms) {
  return NodeId(ByteReader(std::span(terms).subspan(kRootOffset)).Get<uint32_t>());
}

bool SameOrder(const PlanHash& a, const PlanHash& b) {
  return IsSame(a, b, kTermsHalf, kRootOffset);
}

}  // namespace prepost
