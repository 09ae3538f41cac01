// SPDX-License-Identifier: Apache-2.0
//
// With n members, q = ceil(log2 n), m bytes of a part (of the whole where there is one), a: hop,
// o: overhead of a message, B: rate, b: block, t: turn, C: combine_rate, S: the lower of B and C:
//
//   allreduce       doubling   q (a + t m/B + m/C)                              n a power of two
//                   halving    2 q a + 2 t m (n-1)/n / B + m (n-1)/n / C
//                   ring       2 (n-1) (a + b/C) + m (n-1)/n (1/S + 1/B) + 2 m/b o    b <= m/n
//   reduce_scatter  halving    q a + m (n-1) (t/B + 1/C)
//                   ring       (n-1) (a + b/C) + m (n-1) / S + m (n-1)/b o
//   allgather       halving    q a + t m (n-1) / B
//                   ring       (n-1) a + m (n-1) / B + m (n-1)/b o
//   reduce          binomial_tree      q (a + m/B + m/C + (k-1) o)                 k = m/b
//                   binomial_pipeline  (k - 1 + q) (b/S + o) + q (a + b/C)
//   gather, scatter direct     a + (n-1) (o + max(m/B, (k-1) o))
//                   binomial   q a + m (n-1) / B
//   alltoall        pairwise   a + (n-1) (o + max(m/B, (k-1) o))
//                   bruck      q a + q n/2 m (t/B + 1/C)     parts are copied on their way
//
// A ring and a pipeline combine a block while the next one comes, and are no faster than either;
// halving combines what has come. A schedule whose messages are ranges of blocks takes the same
// with blocks of any size, but that shares of an allreduce, m/n above, are whole blocks.
#include "compiler/choice/collective_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "compiler/choice/stream_cost.h"

namespace prepost {
namespace {

/// Parts of an alltoall from which on they are too many for a port's queue, if all come at once.
constexpr uint64_t kIncastMin = uint64_t{64} << 10;

/// `bytes` rounded up to whole elements, one at least.
uint64_t Whole(uint64_t bytes, const CollectiveSize& size) {
  const uint64_t element = std::max<uint64_t>(SizeOf(size.combine.type), 1);
  return std::max<uint64_t>((bytes + element - 1) / element, 1) * element;
}

class Chooser {
 public:
  Chooser(const CollectiveSize& size, const CollectiveParameters& parameters)
      : size_(size),
        at_(parameters),
        n_(size.members),
        q_(n_ == 1 ? 0 : static_cast<uint32_t>(std::bit_width(n_ - 1))),
        m_(static_cast<double>(size.bytes)) {}

  /// The best first.
  std::vector<CollectiveChoice> Choose() {
    AddAll();
    // Of equals the first of the table.
    std::ranges::stable_sort(found_, {}, &CollectiveChoice::seconds);
    return std::move(found_);
  }

 private:
  void AddAll() {
    switch (size_.kind) {
      case CollectiveKind::kMulticast:
        Add("binomial_pipeline", kStreamBlockMax, 0);
        break;
      case CollectiveKind::kReduce:
        AddReduces();
        break;
      case CollectiveKind::kAllreduce:
        AddAllreduces();
        break;
      case CollectiveKind::kReduceScatter:
        if (!size_.is_deterministic) {
          Add("halving", Whole(size_.bytes, size_),
              q_ * at_.hop + (n_ - 1) * m_ * (Turns() + Sums()));
        }
        AddRings(size_.bytes, m_ * (n_ - 1), 1, Sums());
        break;
      case CollectiveKind::kAllgather:
        Add("halving", std::max<uint64_t>(size_.bytes, 1), q_ * at_.hop + (n_ - 1) * m_ * Turns());
        AddRings(size_.bytes, m_ * (n_ - 1), 1, 0);
        break;
      case CollectiveKind::kGather:
      case CollectiveKind::kScatter:
        Add("direct", StraightBlock(), StraightSeconds());
        Add("binomial", std::max<uint64_t>(size_.bytes, 1), q_ * at_.hop + (n_ - 1) * m_ * Wire());
        break;
      case CollectiveKind::kAlltoall:
        Add("pairwise", StraightBlock(), StraightSeconds());
        Add("bruck", std::max<uint64_t>(size_.bytes, 1),
            q_ * (at_.hop + n_ / 2.0 * m_ * (Turns() + Sums())));
        for (CollectiveChoice& it : found_) {
          if (it.algorithm == "pairwise" && size_.bytes >= kIncastMin)
            it.send_window = size_.bytes < kStreamBlockMax ? 2 : 1;
        }
        break;
      case CollectiveKind::kBarrier:
        Add("dissemination", 1, q_ * at_.hop);
        break;
    }
    const bool goes_by_multicast =
        size_.kind == CollectiveKind::kReduce || size_.kind == CollectiveKind::kAllreduce;
    if (found_.empty() && goes_by_multicast)
      AddPipelines(size_.algorithm.c_str(), size_.algorithm == "chain" ? n_ - 1 : q_,
                   size_.kind == CollectiveKind::kAllreduce ? 2 : 1);
  }

  double Wire() const { return 1 / at_.rate; }
  double Turns() const { return at_.turn / at_.rate; }
  double Sums() const { return 1 / at_.combine_rate; }

  void Add(const char* algorithm, uint64_t block_bytes, double seconds) {
    if (!size_.algorithm.empty() && size_.algorithm != algorithm) return;
    const auto known = std::ranges::find(found_, algorithm, &CollectiveChoice::algorithm);
    if (known != found_.end() && seconds >= known->seconds) return;
    CollectiveChoice& it = known == found_.end() ? found_.emplace_back() : *known;
    it = {.algorithm = algorithm,
          .block_bytes = size_.block_bytes == 0 ? block_bytes : size_.block_bytes,
          .seconds = seconds};
  }

  /// Those to choose from, the largest first; or the one that is given, no larger than `bytes`.
  std::vector<uint64_t> BlocksFor(uint64_t bytes) const {
    if (size_.block_bytes != 0) return {std::max<uint64_t>(std::min(size_.block_bytes, bytes), 1)};
    std::vector<uint64_t> blocks;
    for (uint64_t block = kStreamBlockMax; block >= kStreamBlockMin; block /= 2)
      blocks.push_back(block);
    return blocks;
  }

  /// How many `block` bytes make of a part.
  double BlocksOf(uint64_t block) const {
    return static_cast<double>(std::max<uint64_t>((size_.bytes + block - 1) / block, 1));
  }
  /// Where it is one unless the size of blocks is given.
  double BlocksGiven() const { return size_.block_bytes == 0 ? 1 : BlocksOf(size_.block_bytes); }

  /// Of parts that go straight to who wants them. A short one has as many blocks as the longest,
  /// which are empty messages then: where sizes differ, a part is one.
  uint64_t StraightBlock() const {
    if (size_.block_bytes != 0) return size_.block_bytes;
    return size_.is_uneven ? std::max<uint64_t>(size_.bytes, 1) : kStreamBlockMax;
  }
  /// Nothing waits for the blocks of a part, so a host starts the next ones while the port carries
  /// one.
  double StraightSeconds() const {
    const double more = (BlocksOf(StraightBlock()) - 1) * at_.block_overhead;
    return at_.hop + (n_ - 1) * (at_.block_overhead + std::max(m_ * Wire(), more));
  }

  bool IsChain() const { return size_.is_deterministic || size_.combine.is_ordered(); }

  /// `passes`: how often each block goes around, of shares of `share` bytes; `bytes`: what a port
  /// carries in each.
  void AddRings(uint64_t share, double bytes, uint32_t passes, double sums) {
    for (const uint64_t block : BlocksFor(share)) {
      const uint64_t whole = Whole(std::min(block, share), size_);
      const auto b = static_cast<double>(whole);
      Add("ring", whole,
          passes * (n_ - 1) * (at_.hop + b * sums) +
              bytes * (std::max(Wire(), sums) + (passes - 1) * Wire() +
                       passes * at_.block_overhead / b));
    }
  }

  void AddReduces() {
    if (IsChain()) return AddPipelines("chain", n_ - 1, 1);
    Add("binomial_tree", Whole(size_.bytes, size_),
        q_ * (at_.hop + m_ * (Wire() + Sums()) + (BlocksGiven() - 1) * at_.block_overhead));
    AddPipelines("binomial_pipeline", q_, 1);
  }

  void AddAllreduces() {
    if (IsChain()) return AddPipelines("chain", n_ - 1, 2);
    const uint64_t share = Whole((size_.bytes + n_ - 1) / n_, size_);
    const double moved = Halved();
    if (std::has_single_bit(n_))
      Add("doubling", Whole(size_.bytes, size_), q_ * (at_.hop + m_ * (Turns() + Sums())));
    Add("halving", share, 2 * q_ * at_.hop + moved * (2 * Turns() + Sums()));
    AddRings(size_.block_bytes == 0 ? share : size_.bytes, Circled(share), 2, Sums());
  }

  /// At most, of `count` of the members' shares in the message, which are whole blocks where these
  /// are given.
  double BytesOf(uint32_t count) const {
    if (size_.block_bytes == 0) return m_ * count / n_;
    const double blocks = std::ceil(count * BlocksGiven() / n_);
    return std::min(blocks * static_cast<double>(size_.block_bytes), m_);
  }

  /// What a member sends while the shares that it has become one.
  double Halved() const {
    double moved = 0;
    for (uint32_t have = n_; have > 1; have -= have / 2) moved += BytesOf(have / 2);
    return moved;
  }

  /// What a port carries while shares go around, or what one block waits for on its way.
  double Circled(uint64_t share) const {
    if (size_.block_bytes == 0) return static_cast<double>(share) * (n_ - 1);
    const auto block = static_cast<double>(std::min(size_.block_bytes, size_.bytes));
    return std::max(BytesOf(n_ - 1), block * (n_ - 1));
  }

  /// A multicast backwards, and forwards again where there are two passes.
  void AddPipelines(const char* algorithm, double hops, uint32_t passes) {
    for (const uint64_t block : BlocksFor(size_.bytes)) {
      if (size_.block_bytes == 0 && block > size_.bytes && block > kStreamBlockMin) continue;
      const auto b = static_cast<double>(block);
      const double blocks = std::max(m_ / b, 1.0);
      const double per_byte = std::max(Wire(), Sums()) + (passes - 1) * Wire();
      Add(algorithm, Whole(block, size_),
          (blocks - 1 + hops) * (std::min(b, m_) * per_byte + passes * at_.block_overhead) +
              passes * hops * at_.hop + hops * b * Sums());
    }
  }

  const CollectiveSize& size_;
  const CollectiveParameters& at_;
  const uint32_t n_;
  const uint32_t q_;
  const double m_;
  std::vector<CollectiveChoice> found_;  ///< of each schedule the best so far
};

}  // namespace

const char* DeterministicAlgorithm(CollectiveKind kind) {
  if (kind == CollectiveKind::kReduceScatter) return "ring";
  return kind == CollectiveKind::kReduce || kind == CollectiveKind::kAllreduce ? "chain" : nullptr;
}

CollectiveChoice ChooseCollective(const CollectiveSize& size,
                                  const CollectiveParameters& parameters) {
  const std::vector<CollectiveChoice> candidates = CollectiveCandidates(size, parameters);
  return candidates.empty() ? CollectiveChoice() : candidates.front();
}

std::vector<CollectiveChoice> CollectiveCandidates(const CollectiveSize& size,
                                                   const CollectiveParameters& parameters) {
  return Chooser(size, parameters).Choose();
}

}  // namespace prepost
