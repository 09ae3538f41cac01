// SPDX-License-Identifier: Apache-2.0
//
// Every field is hashed as 64 bits, little-endian, every list and text with its length before it,
// so that two plans give the same bytes only if they are equal. A plan's hash is that of its header
// and of its parts' hashes, one per node: so it can be made of the index of a sharded plan, and
// each part be checked by itself.
#include "runtime/files/plan_hash.h"

#include <fmt/format.h>
#include <sodium.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/little_endian.h"

namespace prepost {
namespace {

constexpr size_t kFieldBytes = 8;

class Hasher {
 public:
  Hasher() { crypto_generichash_init(&state_, nullptr, 0, sizeof(PlanHash)); }

  template <typename... Fields>
  void Add(Fields... fields) {
    std::array<std::byte, sizeof...(fields) * kFieldBytes> bytes;
    ByteWriter writer(bytes);
    (writer.Put(static_cast<uint64_t>(fields)), ...);
    Update(bytes);
  }
  void AddText(const std::string& text) {
    Add(text.size());
    Update(std::as_bytes(std::span(text)));
  }
  void AddHash(const PlanHash& hash) { Update(hash); }
  PlanHash Finish() {
    PlanHash hash;
    crypto_generichash_final(&state_, reinterpret_cast<unsigned char*>(hash.data()), hash.size());
    return hash;
  }

 private:
  void Update(std::span<const std::byte> bytes) {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }

  crypto_generichash_state state_;
};

void AddHeader(const PlanHeader& header, Hasher& hasher) {
  hasher.AddText(Name(header.collective.kind));
  hasher.AddText(header.algorithm);
  hasher.Add(header.nodes, header.collective.root.value, header.payload.bytes,
             header.payload.block_bytes, header.payload.blocks);
  hasher.Add(static_cast<uint8_t>(header.ready.mode), header.ready.window,
             header.send_window.has_value(), header.send_window.value_or(0), header.rounds,
             header.ports);
}

}  // namespace

PlanHash HashPart(const Plan& plan, const Program& program,
                  std::span<const PlacedChannel> channels) {
  Hasher hasher;
  hasher.Add(program.node.value, channels.size());
  for (const auto& [id, channel] : channels)
    hasher.Add(id.value, channel.from.value, channel.to.value, channel.lane);
  const std::span<const Op> ops = plan.ops(program);
  hasher.Add(ops.size());
  for (const Op& op : ops) {
    hasher.Add(static_cast<uint8_t>(op.kind), op.channel.value, op.block, op.round, op.grants,
               op.after_count);
    for (const OpId after : plan.after(op)) hasher.Add(after.value);
  }
  return hasher.Finish();
}

PlanHash HashParts(const PlanHeader& header, size_t channels, std::span<const PlanHash> parts) {
  Hasher hasher;
  AddHeader(header, hasher);
  hasher.Add(channels, parts.size());
  for (const PlanHash& part : parts) hasher.AddHash(part);
  return hasher.Finish();
}

PlanHash HashPlan(const Plan& plan) {
  const ChannelsByNode channels(plan);
  std::vector<PlanHash> parts(plan.header().nodes);
  for (const Program& program : plan.programs())
    parts[program.node.index()] = HashPart(plan, program, channels.At(program.node));
  return HashParts(plan.header(), plan.channels().size(), parts);
}

std::string ToHex(const PlanHash& hash) {
  std::string text;
  for (const std::byte byte : hash) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

PlanHash HashRolledPlan(const RolledPlan& plan) {
  Hasher hasher;
  hasher.AddText("rolled");
  hasher.AddText(Name(plan.collective.kind));
  hasher.AddText(plan.algorithm);
  hasher.Add(plan.nodes, plan.collective.root.value, plan.block_bytes);
  hasher.Add(static_cast<uint8_t>(plan.ready.mode), plan.ready.window, plan.ready_blocks_min,
             plan.send_window.has_value(), plan.send_window.value_or(0),
             plan.send_window_blocks_min);
  hasher.Add(plan.rounds.per_block, plan.rounds.constant, plan.rounds.divisor);
  return hasher.Finish();
}

}  // namespace prepost
