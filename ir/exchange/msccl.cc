// SPDX-License-Identifier: Apache-2.0
//
// An MSCCL gpu runs thread blocks side by side. Each has one peer to send to or receive from, and
// plays its steps in order; a step may wait for one step of another thread block (depid, deps), and
// for more through nop steps before it. That is a plan: a channel is a thread block of its sender
// that sends and one of its receiver that receives, in the channel's order; an `after` entry is a
// dependence, unless the op is of the same thread block. Credits go: NCCL's own FIFOs pace the
// senders. A receiving thread block waits for nothing but its sender, so each FIFO drains whatever
// its depth, and a plan that cannot deadlock does not in MSCCL.
//
// The root sends from its input buffer and copies it to its output buffer in a thread block of its
// own; everyone else receives into and sends from the output buffer. A block is a chunk.
//
// Of other collectives a block lies where docs/plan.md says: in the input until something of it has
// come, then in the output or, where it is not wanted, in a chunk of scratch of its own. A combine
// is an rrc, which adds what comes to the source and leaves the sum at the target. A range of
// blocks is a step for each, at both ends.
//
// Example, node 1 of a chain of 3, one block:
//   <gpu id="1" ...>
//     <tb id="0" send="-1" recv="0" chan="0"><step s="0" type="r" ... depid="-1" hasdep="1"/></tb>
//     <tb id="1" send="2" recv="-1" chan="0"><step s="0" type="s" ... depid="0" deps="0"/></tb>
//
// Format: the loader of msccl-executor-nccl (src/misc/msccl/msccl_parser.cc). Linear.
#include "ir/exchange/msccl.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/base/text_writer.h"
#include "ir/exchange/xml_text.h"

namespace prepost {
namespace {

constexpr uint32_t kNoStep = 0xffffffff;

/// A chunk of a gpu's buffer.
struct Chunk {
  const char* buffer = "o";
  uint32_t offset = 0;
};

/// A step of another thread block of the gpu.
struct StepRef {
  uint32_t block;
  uint32_t number;
};

/// A step of a thread block, one for each block of an op; the nops that carry its further
/// dependences have the numbers before.
struct Step {
  uint32_t op;  ///< of the program
  uint32_t number = 0;
  Chunk source, target;
  llvm::SmallVector<StepRef, 1> after;
  bool has_dependant = false;
};
struct ThreadBlock {
  ChannelId channel;
  bool sends = false;
  uint32_t next_number = 0;
  std::vector<Step> steps;
};

/// The thread blocks of one node, in order of their first op.
class Gpu {
 public:
  Gpu(const Plan& plan, const Program& program, std::vector<uint32_t>* block_of_channel)
      : ops_(plan.ops(program)),
        block_of_(*block_of_channel),
        place_(ops_.size()),
        roles_(plan.header().roles()),
        input_(roles_.Contributed(program.node)),
        output_(roles_.Wanted(program.node)) {
    for (uint32_t id = 0; id < ops_.size(); ++id) {
      if (!ops_[id].is_credit()) AddStep(plan, id);
    }
    for (const ThreadBlock& block : blocks_) block_of_[block.channel.index()] = kNoStep;
  }

  std::span<const ThreadBlock> blocks() const { return blocks_; }
  uint32_t input_chunks() const { return input_.count * roles_.blocks_per_part(); }
  uint32_t output_chunks() const { return output_.count * roles_.blocks_per_part(); }
  uint32_t scratch_chunks() const { return scratch_chunks_; }
  /// Wanted blocks that are there and do not come: from where to where they are copied.
  std::vector<std::pair<Chunk, Chunk>> Copies() const {
    std::vector<std::pair<Chunk, Chunk>> copies;
    for (uint32_t i = 0; i < output_chunks(); ++i) {
      const uint32_t block = output_.At(i / roles_.blocks_per_part()) * roles_.blocks_per_part() +
                             i % roles_.blocks_per_part();
      if (input_.Has(roles_.PartOf(block)) && place_of_.count(block) == 0)
        copies.emplace_back(ChunkIn("i", input_, block), Chunk{.buffer = "o", .offset = i});
    }
    return copies;
  }

 private:
  /// The ops that `op` waits for in other thread blocks: those of its `after`, those that a credit
  /// in it waited for, and the receive of its own block, unless a later one of that thread block is
  /// among them. Rising.
  std::vector<uint32_t> Dependences(const Plan& plan, uint32_t op) const {
    std::vector<uint32_t> others;
    std::vector<uint32_t> open = {op};
    llvm::SmallDenseSet<uint32_t> seen;
    while (!open.empty()) {
      const Op& it = ops_[open.back()];
      open.pop_back();
      for (OpId before : plan.after(it)) {
        if (!seen.insert(before.value).second) continue;
        const Op& earlier = ops_[before.index()];
        if (earlier.is_credit()) {
          if (earlier.is_send()) open.push_back(before.value);
        } else if (earlier.channel != ops_[op].channel) {
          others.push_back(before.value);
        }
      }
    }
    for (uint32_t i = 0; ops_[op].is_send() && i < ops_[op].count; ++i) {
      const auto cause = recv_of_.find(ops_[op].block + i);
      const auto implies_cause = [&](uint32_t other) {
        return other >= cause->second && ops_[other].channel == ops_[cause->second].channel;
      };
      // What has come since then was written later than this send.
      if (cause != recv_of_.end() && cause->second < op &&
          std::ranges::none_of(others, implies_cause))
        others.push_back(cause->second);
    }
    std::ranges::sort(others);
    return others;
  }

  void AddStep(const Plan& plan, uint32_t id) {
    const Op& op = ops_[id];
    uint32_t& block = block_of_[op.channel.index()];
    if (block == kNoStep) {
      block = static_cast<uint32_t>(blocks_.size());
      blocks_.push_back({.channel = op.channel, .sends = op.is_send()});
    }
    ThreadBlock& of = blocks_[block];
    place_[id] = {block, static_cast<uint32_t>(of.steps.size())};
    const std::vector<uint32_t> dependences = Dependences(plan, id);
    for (uint32_t i = 0; i < op.count; ++i) {
      Step step{.op = id};
      for (uint32_t before : dependences) {
        if (const std::optional<StepRef> ref = Refer(before, op, i)) step.after.push_back(*ref);
      }
      std::tie(step.source, step.target) = Move(op, op.block + i);
      of.next_number += std::max(static_cast<uint32_t>(step.after.size()), 1U) - 1;
      step.number = of.next_number++;
      of.steps.push_back(std::move(step));
      if (!op.is_send()) recv_of_[op.block + i] = id;
    }
  }

  /// The step of `before` that the step of block `i` of `op` waits for. Ops of the same range go
  /// block by block, as a FIFO may be shorter than the range; otherwise the first waits for all of
  /// it.
  std::optional<StepRef> Refer(uint32_t before, const Op& op, uint32_t i) {
    const auto [block, first] = place_[before];
    const bool is_same_range = ops_[before].block == op.block && ops_[before].count == op.count;
    if (!is_same_range && i != 0) return std::nullopt;
    Step& step = blocks_[block].steps[first + (is_same_range ? i : ops_[before].count - 1)];
    step.has_dependant = true;
    return StepRef{.block = block, .number = step.number};
  }

  Chunk ChunkIn(const char* buffer, const PartRow& row, uint32_t block) const {
    return {.buffer = buffer,
            .offset = row.PlaceOf(roles_.PartOf(block)) * roles_.blocks_per_part() +
                      block % roles_.blocks_per_part()};
  }

  /// Where an op finds a block, and where it leaves it.
  std::pair<Chunk, Chunk> Move(const Op& op, uint32_t block) {
    const auto found = place_of_.find(block);
    const bool has_come = found != place_of_.end();
    const bool is_wanted = output_.Has(roles_.PartOf(block));
    Chunk now;
    if (has_come) {
      now = found->second;
    } else if (input_.Has(roles_.PartOf(block))) {
      now = ChunkIn("i", input_, block);
    }
    if (op.is_send()) return {now, {.buffer = "o", .offset = now.offset}};
    Chunk target = now;
    if (is_wanted) {
      target = ChunkIn("o", output_, block);
    } else if (!has_come) {
      target = {.buffer = "s", .offset = scratch_chunks_++};
    }
    place_of_[block] = target;
    return {op.is_combine() ? now : target, target};
  }

  std::span<const Op> ops_;
  std::vector<uint32_t>& block_of_;  // channel -> thread block; all kNoStep between nodes
  std::vector<ThreadBlock> blocks_;
  std::vector<std::pair<uint32_t, uint32_t>> place_;  // op -> thread block and its first step there
  llvm::DenseMap<uint32_t, uint32_t> recv_of_;        // block -> its last receive
  const Roles roles_;
  const PartRow input_, output_;
  llvm::DenseMap<uint32_t, Chunk> place_of_;  // block that something has come of -> where it lies
  uint32_t scratch_chunks_ = 0;
};

/// How many times a rank's own count NCCL takes for the size of a call.
uint32_t SizeMultiplier(const PlanHeader& header) {
  const CollectiveKind kind = header.collective.kind;
  const bool is_multiple = kind == CollectiveKind::kReduceScatter ||
                           kind == CollectiveKind::kAllgather || kind == CollectiveKind::kAlltoall;
  return is_multiple ? header.nodes : 1;
}

/// The chunks that the size of a call is cut into.
uint32_t ChunksOf(const PlanHeader& header) {
  return SizeMultiplier(header) * header.roles().blocks_per_part();
}

const char* CollOf(CollectiveKind kind) {
  if (kind == CollectiveKind::kMulticast) return "broadcast";
  if (kind == CollectiveKind::kReduceScatter) return "reducescatter";
  return Name(kind);
}

class MscclWriter {
 public:
  MscclWriter(const Plan& plan, std::ostream& out)
      : plan_(plan), out_(out), block_of_(plan.channels().size(), kNoStep) {}

  void Run() {
    const PlanHeader& header = plan_.header();
    const uint64_t bytes = header.payload.bytes * SizeMultiplier(header);
    // The attributes that loaders refuse to do without; one size, as a plan is for one.
    out_.Put(
        "<algo name=\"{}\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"{}\" "
        "coll=\"{}\" inplace=\"{}\" outofplace=\"1\" minBytes=\"{}\" maxBytes=\"{}\">\n",
        EscapeXml(header.algorithm), ChunksOf(header), header.nodes, CollOf(header.collective.kind),
        header.collective.kind == CollectiveKind::kMulticast ? 1 : 0, bytes, bytes);
    std::vector<const Program*> programs;
    for (const Program& program : plan_.programs()) programs.push_back(&program);
    std::ranges::sort(programs, {}, [](const Program* program) { return program->node; });
    for (const Program* program : programs) WriteGpu(*program);
    out_.Put("</algo>\n");
  }

 private:
  struct StepText {
    uint32_t number;
    const char* type;
    const char* source = "i";
    int64_t source_offset = -1;
    const char* target = "o";
    int64_t target_offset = -1;
    uint32_t count = 0;
    std::optional<StepRef> after;
    bool has_dependant = false;
  };

  void WriteGpu(const Program& program) {
    const Gpu gpu(plan_, program, &block_of_);
    out_.Put("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n",
             program.node.value, gpu.input_chunks(), gpu.output_chunks(), gpu.scratch_chunks());
    uint32_t id = 0;
    for (const ThreadBlock& block : gpu.blocks()) {
      const Channel& channel = plan_.channels()[block.channel.index()];
      BeginBlock(id++, block.sends ? int64_t{channel.to.value} : -1,
                 block.sends ? -1 : int64_t{channel.from.value});
      for (const Step& step : block.steps) WriteStep(program, step);
      out_.Put("    </tb>\n");
    }
    const std::vector<std::pair<Chunk, Chunk>> copies = gpu.Copies();
    for (uint32_t begin = 0; begin < copies.size(); begin += kMscclStepsMax) {
      BeginBlock(id++, -1, -1);
      for (uint32_t i = begin; i < std::min<size_t>(copies.size(), begin + kMscclStepsMax); ++i) {
        Put({.number = i - begin,
             .type = "cpy",
             .source_offset = copies[i].first.offset,
             .target_offset = copies[i].second.offset,
             .count = 1});
      }
      out_.Put("    </tb>\n");
    }
    out_.Put("  </gpu>\n");
  }

  void BeginBlock(uint32_t id, int64_t send, int64_t recv) {
    out_.Put("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", id, send, recv);
  }

  void WriteStep(const Program& program, const Step& step) {
    const Op& op = plan_.ops(program)[step.op];
    for (uint32_t i = 0; i + 1 < step.after.size(); ++i) {
      Put({.number = step.number - static_cast<uint32_t>(step.after.size()) + 1 + i,
           .type = "nop",
           .after = step.after[i]});
    }
    StepText text{.number = step.number,
                  .type = op.is_send()      ? "s"
                          : op.is_combine() ? "rrc"
                                            : "r",
                  .source = step.source.buffer,
                  .source_offset = step.source.offset,
                  .target = step.target.buffer,
                  .target_offset = step.target.offset,
                  .count = 1,
                  .has_dependant = step.has_dependant};
    if (!step.after.empty()) text.after = step.after.back();
    Put(text);
  }

  void Put(const StepText& step) {
    const int64_t block = step.after ? int64_t{step.after->block} : -1;
    const int64_t number = step.after ? int64_t{step.after->number} : -1;
    out_.Put(
        "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
        "cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
        step.number, step.type, step.source, step.source_offset, step.target, step.target_offset,
        step.count, block, number, step.has_dependant ? 1 : 0);
  }

  const Plan& plan_;
  TextWriter out_;
  std::vector<uint32_t> block_of_;
};

}  // namespace

Status CheckMsccl(const Plan& plan) {
  const CombineOp op = plan.header().combine.op;
  if (op == CombineOp::kUser || op == CombineOp::kUserOrdered)
    return Rejected("MSCCL has no form for an operation of the caller's");
  if (plan.header().payload.is_uneven())
    return Rejected("MSCCL has no form for parts of sizes of their own: its chunks are equal");
  if (plan.header().payload.bytes == 0) return Rejected("MSCCL has no form for an empty message");
  const bool is_multicast = plan.header().collective.kind == CollectiveKind::kMulticast;
  if (is_multicast && plan.header().payload.blocks > kMscclStepsMax) {
    return Rejected(
        fmt::format("{} blocks, an MSCCL thread block has at most {} steps; larger "
                    "blocks make fewer",
                    plan.header().payload.blocks, kMscclStepsMax));
  }
  if (plan.header().nodes > kMscclGpusMax) {
    return Rejected(fmt::format("{} nodes, MSCCL's loader has room for {} gpus",
                                plan.header().nodes, kMscclGpusMax));
  }
  std::vector<uint32_t> block_of(plan.channels().size(), kNoStep);
  for (const Program& program : plan.programs()) {
    const Gpu gpu(plan, program, &block_of);
    uint64_t elements = 2;  // <algo> and <gpu>
    for (const ThreadBlock& block : gpu.blocks()) elements += 1 + block.next_number;
    if (elements > kMscclElementsMax) {
      return Rejected(
          fmt::format("node {} makes {} elements of XML, MSCCL's loader has room for {} of a gpu; "
                      "larger blocks "
                      "make fewer",
                      program.node.value, elements, kMscclElementsMax));
    }
    const auto sends = std::ranges::count_if(gpu.blocks(), &ThreadBlock::sends);
    const auto recvs = static_cast<std::ptrdiff_t>(gpu.blocks().size()) - sends;
    if (std::max(sends, recvs) > std::ptrdiff_t{kMscclPeersMax}) {
      return Rejected(fmt::format("node {} {} {} peers, an MSCCL gpu at most {} on a channel",
                                  program.node.value, sends > recvs ? "sends to" : "receives from",
                                  std::max(sends, recvs), kMscclPeersMax));
    }
    for (const ThreadBlock& block : gpu.blocks()) {
      if (block.next_number > kMscclStepsMax) {
        const Channel& channel = plan.channels()[block.channel.index()];
        return Rejected(
            fmt::format("{}>{} at node {} makes {} steps, an MSCCL thread block has at "
                        "most {}; larger blocks make fewer",
                        channel.from.value, channel.to.value, program.node.value, block.next_number,
                        kMscclStepsMax));
      }
    }
  }
  return {};
}

void WriteMsccl(const Plan& plan, std::ostream& out) { MscclWriter(plan, out).Run(); }

std::string MscclLosses(const Plan& plan) {
  const Payload& payload = plan.header().payload;
  std::string text =
      "MSCCL has no rounds and no credits (its FIFOs pace the senders), and a send is over when it "
      "has left, not when it has arrived";
  if (!plan.header().combine.is_none())
    text +=
        fmt::format("; that it is {}, NCCL is told with the call", ToString(plan.header().combine));
  if (payload.bytes % payload.block_bytes != 0 && payload.blocks > payload.parts)
    text += "; its chunks are equal, so the last block is not short";
  // Its scheduler compares the number of elements with the chunks before it takes an algorithm.
  if (const uint32_t chunks = ChunksOf(plan.header()); payload.bytes % chunks != 0) {
    text += fmt::format(
        "; NCCL takes it for no message of {} bytes, as they are no multiple of its {} chunks: "
        "other blocks divide them",
        payload.bytes, chunks);
  }
  return text;
}

}  // namespace prepost
