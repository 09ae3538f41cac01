// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "tests/support/machine.h"

namespace prepost::test {
namespace {

class Memory {
 public:
  Memory(const PlanHeader& header, std::span<const std::byte> message) : message_(header.payload) {
    bytes_.assign(header.nodes, std::vector<std::byte>(message_.bytes, std::byte{0xee}));
    std::ranges::copy(message, bytes_[header.collective.root.index()].begin());
  }

  std::span<std::byte> Block(NodeId node, uint32_t block) {
    const uint64_t begin = std::min(message_.bytes, message_.BlockOffset(block));
    return std::span(bytes_[node.index()]).subspan(begin, message_.BlockSize(block));
  }
  std::vector<std::vector<std::byte>> Take() && { return std::move(bytes_); }

 private:
  Payload message_;
  std::vector<std::vector<std::byte>> bytes_;
};

}  // namespace

Result<std::vector<std::vector<std::byte>>> Deliver(const Plan& plan,
                                                    std::span<const std::byte> message,
                                                    Random& random) {
  PREPOST_CHECK(message.size() == plan.header().payload.bytes);
  const Result<Machine> machine = Machine::Make(plan);
  PREPOST_RETURN_IF_ERROR(machine.status());
  Memory memory(plan.header(), message);
  std::vector<std::deque<std::vector<std::byte>>> wires(machine->channel_count());
  Machine::State state = machine->Initial();
  for (std::vector<Event> events = machine->Allowed(state); !events.empty();
       events = machine->Allowed(state)) {
    const Event event = random.Pick(events);
    machine->Take(&state, event);
    if (event.step == Step::kPost || event.step == Step::kCombine) continue;
    const Machine::End& send = machine->sends(event.channel)[event.index];
    if (event.step == Step::kStart) {
      std::vector<std::byte>& bytes = wires[event.channel].emplace_back();
      if (send.block == kNoBlock) continue;
      const std::span<const std::byte> block = memory.Block(send.node, send.block);
      bytes.assign(block.begin(), block.end());
      continue;
    }
    const Machine::End& recv = machine->recvs(event.channel)[event.index];
    if (recv.block != send.block) {
      return Rejected(fmt::format("node {} gets block {}, expected {}", recv.node.value, send.block,
                                  recv.block));
    }
    if (recv.block != kNoBlock) {
      std::ranges::copy(wires[event.channel].front(), memory.Block(recv.node, recv.block).begin());
    }
    wires[event.channel].pop_front();
  }
  if (!machine->IsComplete(state)) return Rejected("nothing can happen, but not all is done");
  return std::move(memory).Take();
}

}  // namespace prepost::test
