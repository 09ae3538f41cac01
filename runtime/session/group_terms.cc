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

constexpr size_t kTermsHalf = sizeof(PlanHash) / 2;

}  // namespace

PlanHash TermsOfGroup(uint64_t number, const std::vector<uint32_t>& members, NodeId root,
                      const PlanHash& plans, const std::string& options) {
  PlanHash terms;
  std::vector<uint64_t> group = {number};
  group.insert(group.end(), members.begin(), members.end());
  HashInto(std::span(terms).first(kTermsHalf), group, {});
  std::vector<std::byte> rest(plans.begin(), plans.end());
  const auto text = std::as_bytes(std::span(options));
  rest.insert(rest.end(), text.begin(), text.end());
  HashInto(std::span(terms).subspan(kTermsHalf), {root.value}, rest);
  return terms;
}

PlanHash DataTermsOfGroup(const PlanHash& terms, uint64_t generation) {
  PlanHash data = terms;
  HashInto(std::span(data).subspan(kTermsHalf), {generation},
           std::span<const std::byte>(terms).subspan(kTermsHalf));
  return data;
}

bool SameGroup(const PlanHash& a, const PlanHash& b) {
  return std::equal(a.begin(), a.begin() + kTermsHalf, b.begin());
}

}  // namespace prepost
