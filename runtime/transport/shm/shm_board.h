// SPDX-License-Identifier: Apache-2.0
//
// ShmBoard: what the node processes of one machine report to each other about their channels:
// counters in shared memory, with a mailbox and a bell per node. ShmEndpoint uses it. It moves no
// bytes of messages and does not know what a counter stands for.
#ifndef PREPOST_RUNTIME_TRANSPORT_SHM_SHM_BOARD_H_
#define PREPOST_RUNTIME_TRANSPORT_SHM_SHM_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"
#include "runtime/executor/playable.h"

namespace prepost {

/// To be made before the processes are forked; then each uses its copy of the object. A counter is
/// written by one thread, a mailbox emptied by one thread; any number read and ring.
///
/// Nothing of it has a name: it is gone with the last process, however that ends.
class ShmBoard {
 public:
  /// Each channel has two counters, each written at one of its ends and read at the other.
  enum class End : uint8_t { kFrom, kTo };
  struct Counter {
    ChannelId channel;
    End writer = End::kFrom;
  };

  /// How many files Make() opens: a bell per node.
  static size_t FilesNeeded(Playable plan) { return plan.header().nodes; }
  /// `plan` must outlive it. Errors: kEnvironment.
  static Result<ShmBoard> Make(Playable plan);

  /// Orders memory as if all loads and stores of counters, of all processes, came one after another
  /// (sequential consistency).
  uint32_t Load(Counter counter) const { return CellOf(counter).value.load(); }
  void Store(Counter counter, uint32_t value) { CellOf(counter).value.store(value); }
  /// Puts the counter into the mailbox of the node that reads it, unless it lies there already, and
  /// wakes the node if it is asleep. The reader finds what was stored before. Writer only. No lock;
  /// a system call only to wake.
  void Notify(Counter counter);

  /// Empties the mailbox of `node` and calls `visit` with each counter that was in it. Its cost is
  /// what it finds, however many channels the node has. Also ends the sleep of FallAsleep().
  template <typename Visitor>
  void TakeNews(NodeId node, Visitor visit);
  /// Before `node` waits on its bell. False if there is news: then it must not wait.
  bool FallAsleep(NodeId node);
  /// An eventfd that is written to when the node has news and is asleep. It is never read from:
  /// wait for its edges (EPOLLET).
  int bell(NodeId node) const { return bells_[node.index()].get(); }

 private:
  /// Counters in a mailbox are a chain of cell numbers. Values of MailboxHead besides those:
  static constexpr uint32_t kEmpty = 0xffffffff;
  static constexpr uint32_t kAsleep = 0xfffffffe;  ///< empty, and the node waits on its bell

  /// A cache line each, so that no two writers share one.
  struct alignas(64) Cell {
    std::atomic<uint32_t> value = 0;
    std::atomic<bool> is_told = false;  ///< in the mailbox
    std::atomic<uint32_t> next = kEmpty;
  };
  struct alignas(64) MailboxHead {
    std::atomic<uint32_t> first = kEmpty;
  };
  static_assert(std::atomic<uint32_t>::is_always_lock_free);

  ShmBoard(Playable plan, Mapping memory);

  static uint32_t CellNumber(Counter counter) {
    return 2 * counter.channel.value + static_cast<uint32_t>(counter.writer);
  }
  Cell& CellOf(Counter counter) const { return cells_[CellNumber(counter)]; }
  /// The cells' chain that was in the mailbox; its first cell or kEmpty.
  uint32_t TakeChain(NodeId node);

  Playable plan_;
  Mapping memory_;
  std::span<MailboxHead> mailboxes_;  ///< by node
  std::span<Cell> cells_;             ///< by CellNumber()
  std::vector<FileDescriptor> bells_;
};

template <typename Visitor>
void ShmBoard::TakeNews(NodeId node, Visitor visit) {
  for (uint32_t number = TakeChain(node); number != kEmpty;) {
    Cell& cell = cells_[number];
    const uint32_t next = cell.next.load(std::memory_order_relaxed);
    // Before the visitor reads the value: what is stored later is notified again.
    cell.is_told.exchange(false);
    visit(Counter{.channel = ChannelId(number / 2), .writer = static_cast<End>(number % 2)});
    number = next;
  }
}

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SHM_SHM_BOARD_H_
