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
// Example, node 1 of a chain of 3, one block:
//   <gpu id="1" ...>
//     <tb id="0" send="-1" recv="0" chan="0"><step s="0" type="r" ... depid="-1" hasdep="1"/></tb>
//     <tb id="1" send="2" recv="-1" chan="0"><step s="0" type="s" ... depid="0" deps="0"/></tb>
//
// Format: the loader of msccl-executor-nccl (src/misc/msccl/msccl_parser.cc). Linear.
#include "ir/exchange/msccl.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/exchange/xml_text.h"
#include "ir/text_writer.h"

namespace prepost {
namespace {

constexpr uint32_t kNoStep = 0xffffffff;

/// A step of a thread block; the nops that carry its further dependences have the numbers before.
struct Step {
  uint32_t op;      ///< of the program
  uint32_t number;  ///< within its thread block
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
      : ops_(plan.ops(program)), block_of_(*block_of_channel), place_(ops_.size()) {
    for (uint32_t id = 0; id < ops_.size(); ++id) {
      if (!ops_[id].is_credit()) AddStep(plan, id);
    }
    for (const ThreadBlock& block : blocks_) block_of_[block.channel.index()] = kNoStep;
  }

  std::span<const ThreadBlock> blocks() const { return blocks_; }
  uint32_t BlockOf(uint32_t op) const { return place_[op].first; }
  const Step& StepOf(uint32_t op) const {
    return blocks_[place_[op].first].steps[place_[op].second];
  }
  /// What step `op` waits for in other thread blocks: blocks of its `after`, those that a credit in
  /// it waited for, and the receive of its own block, unless a later step of that thread block is
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
    const auto cause = ops_[op].is_send() ? recv_of_.find(ops_[op].block) : recv_of_.end();
    const auto implies_cause = [&](uint32_t other) {
      return other >= cause->second && ops_[other].channel == ops_[cause->second].channel;
    };
    if (cause != recv_of_.end() && std::ranges::none_of(others, implies_cause))
      others.push_back(cause->second);
    std::ranges::sort(others);
    return others;
  }

 private:
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
    for (uint32_t before : dependences) {
      const auto [other, step] = place_[before];
      blocks_[other].steps[step].has_dependant = true;
    }
    if (!op.is_send()) recv_of_.try_emplace(op.block, id);
    const size_t nops = dependences.empty() ? 0 : dependences.size() - 1;
    of.next_number += static_cast<uint32_t>(nops);
    of.steps.push_back({.op = id, .number = of.next_number++});
  }

  std::span<const Op> ops_;
  std::vector<uint32_t>& block_of_;  // channel -> thread block; all kNoStep between nodes
  std::vector<ThreadBlock> blocks_;
  std::vector<std::pair<uint32_t, uint32_t>> place_;  // op -> thread block and step in it
  llvm::DenseMap<uint32_t, uint32_t> recv_of_;        // block -> its receive
};

class MscclWriter {
 public:
  MscclWriter(const Plan& plan, std::ostream& out)
      : plan_(plan), out_(out), block_of_(plan.channels().size(), kNoStep) {}

  void Run() {
    const PlanHeader& header = plan_.header();
    // The attributes that loaders refuse to do without; one size, as a plan is for one.
    out_.Put(
        "<algo name=\"{}\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"{}\" "
        "coll=\"broadcast\" inplace=\"1\" outofplace=\"1\" minBytes=\"{}\" maxBytes=\"{}\">\n",
        EscapeXml(header.algorithm), header.payload.blocks, header.nodes, header.payload.bytes,
        header.payload.bytes);
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
    std::optional<uint32_t> after;  ///< op of the same gpu
    bool has_dependant = false;
  };

  void WriteGpu(const Program& program) {
    const Gpu gpu(plan_, program, &block_of_);
    const uint32_t blocks = plan_.header().payload.blocks;
    const bool is_source = plan_.header().roles().IsSource(program.node);
    out_.Put("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"0\">\n",
             program.node.value, is_source ? blocks : 0, blocks);
    uint32_t id = 0;
    for (const ThreadBlock& block : gpu.blocks()) {
      const Channel& channel = plan_.channels()[block.channel.index()];
      BeginBlock(id++, block.sends ? int64_t{channel.to.value} : -1,
                 block.sends ? -1 : int64_t{channel.from.value});
      for (const Step& step : block.steps) WriteStep(gpu, program, step);
      out_.Put("    </tb>\n");
    }
    if (is_source) {
      BeginBlock(id, -1, -1);
      for (uint32_t b = 0; b < blocks; ++b) {
        Put(gpu, {.number = b, .type = "cpy", .source_offset = b, .target_offset = b, .count = 1});
      }
      out_.Put("    </tb>\n");
    }
    out_.Put("  </gpu>\n");
  }

  void BeginBlock(uint32_t id, int64_t send, int64_t recv) {
    out_.Put("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", id, send, recv);
  }

  void WriteStep(const Gpu& gpu, const Program& program, const Step& step) {
    const Op& op = plan_.ops(program)[step.op];
    const std::vector<uint32_t> dependences = gpu.Dependences(plan_, step.op);
    const uint32_t nops = dependences.empty() ? 0 : static_cast<uint32_t>(dependences.size()) - 1;
    for (uint32_t i = 0; i < nops; ++i)
      Put(gpu, {.number = step.number - nops + i, .type = "nop", .after = dependences[i]});
    const bool from_input =
        op.is_send() && plan_.header().roles().Contributes(program.node, op.block);
    StepText text{.number = step.number,
                  .type = op.is_send() ? "s" : "r",
                  .source = from_input ? "i" : "o",
                  .source_offset = op.block,
                  .target_offset = op.block,
                  .count = 1,
                  .has_dependant = step.has_dependant};
    if (!dependences.empty()) text.after = dependences.back();
    Put(gpu, text);
  }

  void Put(const Gpu& gpu, const StepText& step) {
    int64_t block = -1;
    int64_t number = -1;
    if (step.after) {
      block = gpu.BlockOf(*step.after);
      number = gpu.StepOf(*step.after).number;
    }
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
  PREPOST_RETURN_IF_ERROR(ExpectPlainMulticast(plan));
  if (plan.header().payload.bytes == 0) return Rejected("MSCCL has no form for an empty message");
  if (plan.header().payload.blocks > kMscclStepsMax) {
    return Rejected(
        fmt::format("{} blocks, an MSCCL thread block has at most {} steps; larger "
                    "blocks make fewer",
                    plan.header().payload.blocks, kMscclStepsMax));
  }
  std::vector<uint32_t> block_of(plan.channels().size(), kNoStep);
  for (const Program& program : plan.programs()) {
    const Gpu gpu(plan, program, &block_of);
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
  if (payload.bytes % payload.block_bytes != 0 && payload.blocks > 1)
    text += "; its chunks are equal, so the last block is not short";
  // Its scheduler compares the number of elements with the chunks before it takes an algorithm.
  if (payload.bytes % payload.blocks != 0) {
    text += fmt::format(
        "; NCCL takes it for no message of {} bytes, as they are no multiple of its {} chunks: "
        "other blocks divide them",
        payload.bytes, payload.blocks);
  }
  return text;
}

}  // namespace prepost
