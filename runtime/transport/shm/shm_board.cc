// SPDX-License-Identifier: Apache-2.0
//
// A mailbox is a chain of cells: the writer puts its cell first by compare-and-swap, and the reader
// takes the whole chain by one exchange, so a cell never comes back while somebody compares. A cell
// has one writer, so it is in a chain at most once; `is_told` says whether it is.
//
// Sleep is one more value of the chain's head. The reader falls asleep by changing kEmpty into
// kAsleep, which fails if there is news; whoever replaces kAsleep rings the bell, nobody else does.
// So no wake-up is lost or sent twice, and a node that is awake costs nobody a system call:
//
//     reader, node 1                     writer, node 0
//     takes the chain: empty
//                                        stores the value, puts the cell first: head 4
//     kEmpty -> kAsleep fails: head 4
//     takes the chain: cell 4
//     kEmpty -> kAsleep
//     waits on the bell                  stores, replaces kAsleep by 4, rings
//
// Wherever a process is killed or stopped, the others find whole values; that it is gone is the
// launcher's to notice.
#include "runtime/transport/shm/shm_board.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace prepost {

Result<ShmBoard> ShmBoard::Make(Playable plan) {
  if (plan.channels().size() > kAsleep / 2) {
    return EnvironmentError("this plan has too many channels for shared memory");
  }
  Result<Mapping> memory = Mapping::Shared(uint64_t{plan.header().nodes} * sizeof(MailboxHead) +
                                           2 * uint64_t{plan.channels().size()} * sizeof(Cell));
  if (!memory.ok()) return memory.status();
  ShmBoard board(plan, std::move(*memory));
  for (uint32_t node = 0; node < plan.header().nodes; ++node) {
    board.bells_.emplace_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!board.bells_.back().valid()) {
      return SystemError(StatusCode::kEnvironment, "cannot make the bell of a node", errno);
    }
  }
  return board;
}

ShmBoard::ShmBoard(Playable plan, Mapping memory) : plan_(plan), memory_(std::move(memory)) {
  auto* const mailboxes = reinterpret_cast<MailboxHead*>(memory_.bytes().data());
  mailboxes_ = {mailboxes, plan.header().nodes};
  cells_ = {reinterpret_cast<Cell*>(mailboxes + mailboxes_.size()), 2 * plan.channels().size()};
  std::uninitialized_default_construct(mailboxes_.begin(), mailboxes_.end());
  std::uninitialized_default_construct(cells_.begin(), cells_.end());
}

void ShmBoard::Notify(Counter counter) {
  Cell& cell = CellOf(counter);
  if (cell.is_told.exchange(true)) return;
  const Channel& channel = plan_.channels()[counter.channel.index()];
  const NodeId reader = counter.writer == End::kFrom ? channel.to : channel.from;
  std::atomic<uint32_t>& first = mailboxes_[reader.index()].first;
  uint32_t before = first.load();
  do {
    cell.next.store(before == kAsleep ? kEmpty : before, std::memory_order_relaxed);
  } while (!first.compare_exchange_weak(before, CellNumber(counter)));
  if (before != kAsleep) return;
  const uint64_t one = 1;
  const ssize_t written = write(bell(reader), &one, sizeof(one));
  PREPOST_CHECK(written == ssize_t{sizeof(one)} || errno == EAGAIN);  // EAGAIN: rung 2^64 times
}

uint32_t ShmBoard::TakeChain(NodeId node) {
  std::atomic<uint32_t>& first = mailboxes_[node.index()].first;
  if (first.load(std::memory_order_relaxed) == kEmpty) return kEmpty;
  const uint32_t chain = first.exchange(kEmpty);
  return chain == kAsleep ? kEmpty : chain;
}

bool ShmBoard::FallAsleep(NodeId node) {
  uint32_t expected = kEmpty;
  return mailboxes_[node.index()].first.compare_exchange_strong(expected, kAsleep);
}

}  // namespace prepost
