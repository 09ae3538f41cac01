// SPDX-License-Identifier: Apache-2.0
//
// SumProver: how a member and the leader of a group on several machines know that the other's sum
// of the message is the one that it has sent. The sum travels beside the data, so people on the
// path could change both. Every member can make these proofs, as all have the group's key: they
// keep out people on the path, and members only as far as these are not on it.
#ifndef PREPOST_RUNTIME_RUN_SUM_PROOF_H_
#define PREPOST_RUNTIME_RUN_SUM_PROOF_H_

#include <cstdint>
#include <vector>

#include "ir/ids.h"
#include "runtime/files/message_sum.h"
#include "runtime/group/group_key.h"
#include "runtime/group/hello.h"

namespace prepost {

/// A sum, and what makes it that of one node in one run: nonces of both ends, each fresh and chosen
/// by the end that relies on it.
struct ProvenSum {
  enum class Sender : uint8_t { kMember, kLeader };
  Sender sender = Sender::kMember;
  NodeId node;  ///< the member, whichever end sends
  NonceBytes member_nonce = {};
  NonceBytes leader_nonce = {};
  MessageSum sum;
};

class SumProver {
 public:
  SumProver(const GroupKey& key, const GroupTerms& terms) : key_(key), terms_(terms) {}

  MacBytes Prove(const ProvenSum& sum) const { return key_.Mac(Transcript(sum)); }
  /// In constant time.
  bool Verify(const MacBytes& proof, const ProvenSum& sum) const {
    return key_.Verify(proof, Transcript(sum));
  }

 private:
  std::vector<std::byte> Transcript(const ProvenSum& sum) const;

  GroupKey key_;
  GroupTerms terms_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_SUM_PROOF_H_
