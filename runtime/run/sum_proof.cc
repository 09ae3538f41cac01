// SPDX-License-Identifier: Apache-2.0
//
// Why it holds: the MAC is over the nonce of the end that checks it, so that of an earlier run
// proves nothing; over which end has sent it and which node it is about, so none can be sent back
// or used for another node; and over the terms, so none is of another plan or message. Its label
// begins otherwise than those of hellos (hello.cc), which have the same key.
#include "runtime/run/sum_proof.h"

#include <span>
#include <string_view>

#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

using namespace std::string_view_literals;

/// By ProvenSum::Sender, of one size.
constexpr std::string_view kSumLabels[] = {"prepost sum of member"sv, "prepost sum of leader"sv};
static_assert(kSumLabels[0].size() == kSumLabels[1].size());

}  // namespace

std::vector<std::byte> SumProver::Transcript(const ProvenSum& sum) const {
  const std::string_view label = kSumLabels[static_cast<size_t>(sum.sender)];
  std::vector<std::byte> bytes(label.size() + 4 + sizeof(PlanHash) + 4 + 8 + 4 +
                               2 * sizeof(NonceBytes) + sizeof(MessageSum));
  ByteWriter writer(bytes);
  writer.PutBytes(std::as_bytes(std::span(label)));
  writer.Put(kProtocolVersion);
  writer.PutBytes(terms_.plan);
  writer.Put(static_cast<uint32_t>(terms_.carrier));
  writer.Put(terms_.message_bytes);
  writer.Put(sum.node.value);
  writer.PutBytes(sum.member_nonce);
  writer.PutBytes(sum.leader_nonce);
  writer.PutBytes(sum.sum.bytes);
  PREPOST_CHECK(writer.left() == 0);
  return bytes;
}

}  // namespace prepost
