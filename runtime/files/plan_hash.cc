// SPDX-License-Identifier: Apache-2.0
//
// Every field is hashed as 64 bits, little-endian, every list and text with its length before it,
// so that two plans give the same bytes only if they are equal. A plan's hash is that of its header
// and of its parts' hashes, one per node: so it can be made of the index of a sharded plan, and
// each part be checked by itself.
#include "runtime/files/plan_hash.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/plan_fields.h"
#include "ir/rolled/rolled_fields.h"
#include "runtime/base/little_endian.h"

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
  template <typename It>
  void AddFields(const It& it) {
    VisitFields(it, [this](const PlanField& field, const auto& value) {
      if constexpr (HasFields<decltype(value)>) {
        if (!this->AddPresence(field, value)) return;
        this->AddFields(value);
      } else if (field.is_content) {
        this->AddField(field, value);
      }
    });
  }
  template <typename It>
  void AddColumns(const It& it) {
    ListColumns(std::type_identity<It>(),
                [&](const PlanField& field, auto get) { AddField(field, get(it)); });
  }
  void AddHash(const PlanHash& hash) { Update(hash); }
  PlanHash Finish() {
    Flush();
    PlanHash hash;
    crypto_generichash_final(&state_, reinterpret_cast<unsigned char*>(hash.data()), hash.size());
    return hash;
  }

 private:
  /// Whether the field is to be hashed: it is there, or its absence says something.
  template <typename Value>
  bool AddPresence(const PlanField& field, const Value& value) {
    if (!IsLater(field)) return true;
    if (IsAbsent(field, value)) return false;
    Add(UINT64_MAX);  // where files without it have a count or the next field
    AddText(field.key);
    return true;
  }
  template <typename Value>
  void AddField(const PlanField& field, const Value& value) {
    if (!AddPresence(field, value)) return;
    if constexpr (std::is_same_v<Value, std::string>) {
      AddText(value);
    } else if constexpr (std::is_same_v<Value, CollectiveKind> ||
                         std::is_same_v<Value, CombineOp> || std::is_same_v<Value, ElementType>) {
      AddText(Name(value));
    } else if constexpr (std::is_same_v<Value, std::optional<uint32_t>>) {
      Add(value.has_value(), value.value_or(0));
    } else if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
      Add(value.size());
      for (const uint64_t number : value) Add(number);
    } else if constexpr (std::is_same_v<Value, LinearInBlocks>) {
      Add(value.per_block, value.constant, value.divisor);
    } else {
      Add(NumberOf(value));
    }
  }
  /// Fields are small and many: they are gathered.
  void Update(std::span<const std::byte> bytes) {
    if (bytes.size() > gathered_.size() - size_) Flush();
    if (bytes.size() > gathered_.size()) return Hash(bytes);
    std::ranges::copy(bytes, gathered_.begin() + static_cast<ptrdiff_t>(size_));
    size_ += bytes.size();
  }
  void Flush() { Hash(std::span(gathered_).first(std::exchange(size_, 0))); }
  void Hash(std::span<const std::byte> bytes) {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }

  std::array<std::byte, 1024> gathered_;
  size_t size_ = 0;
  crypto_generichash_state state_;
};

}  // namespace

PlanHash HashPart(const Plan& plan, const Program& program,
                  std::span<const PlacedChannel> channels) {
  Hasher hasher;
  hasher.Add(program.node.value, channels.size());
  for (const auto& [id, channel] : channels) {
    hasher.Add(id.value);
    hasher.AddColumns(channel);
  }
  const std::span<const Op> ops = plan.ops(program);
  hasher.Add(ops.size());
  for (const Op& op : ops) {
    hasher.Add(static_cast<uint8_t>(op.kind));
    hasher.AddColumns(op);
    hasher.Add(op.after_count);
    for (const OpId after : plan.after(op)) hasher.Add(after.value);
  }
  return hasher.Finish();
}

PlanHash HashParts(const PlanHeader& header, size_t channels, std::span<const PlanHash> parts) {
  Hasher hasher;
  hasher.AddFields(header);
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
  hasher.AddFields(plan);
  return hasher.Finish();
}

}  // namespace prepost
