// SPDX-License-Identifier: Apache-2.0
#include "ir/json/rolled_plan_json.h"

#include <fmt/format.h>

#include <ostream>

#include "ir/json/json_reader.h"
#include "ir/json/json_text.h"
#include "ir/json/json_word.h"

namespace prepost {
namespace {

constexpr uint32_t kRolledMajor = 1;
constexpr uint32_t kRolledMinor = 0;
/// Slots of all programs, about 100 bytes each in memory.
constexpr size_t kSlotsMax = size_t{1} << 26;

/// A number, or { "k": a, "plus": b, "over": m }.
class LinearForm {
 public:
  LinearForm() {
    using Need = JsonForm::Need;
    form_.Scalar("k", Read(&LinearInBlocks::per_block), Need::kOptional)
        .Scalar("plus", Read(&LinearInBlocks::constant), Need::kOptional)
        .Scalar("over", Read(&LinearInBlocks::divisor), Need::kOptional);
  }

  /// Makes `key` of `form` a linear number that goes to `out`.
  void AddTo(JsonForm& form, const std::string& key, std::function<LinearInBlocks*()> out,
             JsonForm::Need need = JsonForm::Need::kRequired) {
    place_ = std::move(out);
    form.ScalarOrObject(
        key,
        [this](const JsonScalar& scalar) {
          out_ = place_();
          *out_ = {};
          return ReadInt64(&out_->constant, -kLinearMax, kLinearMax)(scalar);
        },
        &form_.OnBegin([this] {
          out_ = place_();
          *out_ = {};
        }),
        need);
  }

 private:
  JsonForm::ReadScalar Read(int64_t LinearInBlocks::*field) {
    return [this, field](const JsonScalar& scalar) {
      return ReadInt64(&(out_->*field), -kLinearMax, kLinearMax)(scalar);
    };
  }

  JsonForm form_;
  std::function<LinearInBlocks*()> place_;
  LinearInBlocks* out_ = nullptr;
};

/// One end of a slot, "send" or "recv": a peer and an offset.
class TransferForm {
 public:
  /// `slot` gives the slot that is being read.
  void AddTo(JsonForm& form, const std::string& key, const std::string& peer,
             std::optional<RolledTransfer> RolledSlot::*end, std::function<RolledSlot*()> slot) {
    const auto transfer = [end, slot] { return &*(slot()->*end); };
    form_.OnBegin([end, slot] { (slot()->*end).emplace(); })
        .Scalar(peer, [transfer](const JsonScalar& scalar) {
          return ReadUint32(&transfer()->peer.value)(scalar);
        });
    offset_.AddTo(form_, "offset", [transfer] { return &transfer()->offset; });
    form.Object(key, &form_, JsonForm::Need::kOptional);
  }

 private:
  JsonForm form_;
  LinearForm offset_;
};

class RolledPlanReader {
 public:
  explicit RolledPlanReader(std::vector<std::string>* warnings) {
    using Need = JsonForm::Need;
    message_.Scalar("block_bytes", ReadUint64(&plan_.block_bytes, kMessageBytesMax, 1));
    ready_.Scalar("mode", ReadWord(&plan_.ready.mode, kReadyModes))
        .Scalar("window", ReadUint32(&plan_.ready.window), Need::kOptional)
        .Scalar("blocks_min", ReadUint32(&plan_.ready_blocks_min, kBlocksMax, 1), Need::kOptional);
    const auto slot = [this] { return &segment().slots.back(); };
    slot_.OnBegin([this] { segment().slots.emplace_back(); }).OnEnd([this]() -> Status {
      if (++slot_count_ <= kSlotsMax) return {};
      return Rejected(fmt::format("more than {} slots in all", kSlotsMax));
    });
    send_.AddTo(slot_, "send", "to", &RolledSlot::send, slot);
    recv_.AddTo(slot_, "recv", "from", &RolledSlot::recv, slot);
    segment_.OnBegin([this] { program().segments.emplace_back(); })
        .Scalar(
            "blocks_min",
            [this](const JsonScalar& s) { return ReadUint32(&segment().blocks_min)(s); },
            Need::kOptional)
        .Scalar(
            "blocks_max",
            [this](const JsonScalar& s) { return ReadUint32(&segment().blocks_max)(s); },
            Need::kOptional)
        .Scalar(
            "rounds_per_block",
            [this](const JsonScalar& s) { return ReadUint32(&segment().rounds_per_block)(s); },
            Need::kOptional)
        .Scalar("above", [this](const JsonScalar& s) { return ReadAbove(s); })
        .Objects("slots", &slot_);
    from_.AddTo(segment_, "from", [this] { return &segment().from; });
    to_.AddTo(segment_, "to", [this] { return &segment().to; });
    phase_.AddTo(
        segment_, "phase", [this] { return &segment().phase; }, Need::kOptional);
    program_.OnBegin([this] { plan_.programs.emplace_back(); })
        .Scalar("node",
                [this](const JsonScalar& s) { return ReadUint32(&program().node.value)(s); })
        .Objects("segments", &segment_);
    form_.Scalar("format", ExpectString(kRolledPlanFormat))
        .Scalar("version", ExpectVersion(kRolledMajor, kRolledMinor, warnings))
        .Scalar("generator", ReadString(&plan_.generator))
        .Scalar("collective", ReadWord(&plan_.collective.kind, kCollectiveKinds))
        .Scalar("algorithm", ReadString(&plan_.algorithm))
        .Scalar("nodes", ReadUint32(&plan_.nodes, kNodesMax))
        .Scalar("root", ReadUint32(&plan_.collective.root.value))
        .Object("message", &message_)
        .Object("ready", &ready_)
        .Scalar("send_window", ReadOptionalUint32(&plan_.send_window))
        .Scalar("send_window_blocks_min", ReadUint32(&plan_.send_window_blocks_min, kBlocksMax, 1),
                Need::kOptional);
    rounds_.AddTo(form_, "rounds", [this] { return &plan_.rounds; });
    form_.Objects("programs", &program_);
  }

  Result<RolledPlan> Read(std::istream& in, const std::string& name) {
    PREPOST_RETURN_IF_ERROR(ReadJson(in, name, &form_));
    if (const Status status = CheckRolled(plan_); !status.ok()) {
      return Rejected(status.message(), name + ": " + status.where());
    }
    return std::move(plan_);
  }

 private:
  RolledProgram& program() { return plan_.programs.back(); }
  Segment& segment() { return program().segments.back(); }

  Status ReadAbove(const JsonScalar& scalar) {
    std::string word;
    PREPOST_RETURN_IF_ERROR(ReadString(&word)(scalar));
    segment().clamps = word == "clamp";
    if (word == "clamp" || word == "skip") return {};
    return Rejected(fmt::format("expected \"clamp\" or \"skip\", found {}", scalar.Describe()));
  }

  RolledPlan plan_;
  size_t slot_count_ = 0;
  JsonForm form_, message_, ready_, program_, segment_, slot_;
  LinearForm rounds_, from_, to_, phase_;
  TransferForm send_, recv_;
};

std::string ToJson(const LinearInBlocks& linear) {
  if (linear.per_block == 0 && linear.divisor == 1) return fmt::to_string(linear.constant);
  std::string text = fmt::format("{{ \"k\": {}", linear.per_block);
  if (linear.constant != 0) text += fmt::format(", \"plus\": {}", linear.constant);
  if (linear.divisor != 1) text += fmt::format(", \"over\": {}", linear.divisor);
  return text + " }";
}

std::string ToJson(const char* key, const char* peer,
                   const std::optional<RolledTransfer>& transfer) {
  if (!transfer) return "";
  return fmt::format("\"{}\": {{ \"{}\": {}, \"offset\": {} }}", key, peer, transfer->peer.value,
                     ToJson(transfer->offset));
}

void WriteSlot(const RolledSlot& slot, std::ostream& out) {
  const std::string send = ToJson("send", "to", slot.send);
  const std::string recv = ToJson("recv", "from", slot.recv);
  const char* const comma = send.empty() || recv.empty() ? "" : ", ";
  out << (send.empty() && recv.empty() ? "      {}"
                                       : fmt::format("      {{ {}{}{} }}", send, comma, recv));
}

void WriteSegment(const Segment& segment, std::ostream& out) {
  out << fmt::format("    {{ \"from\": {}, \"to\": {}", ToJson(segment.from), ToJson(segment.to));
  if (segment.phase != LinearInBlocks{}) out << ", \"phase\": " << ToJson(segment.phase);
  if (segment.rounds_per_block != 1)
    out << fmt::format(", \"rounds_per_block\": {}", segment.rounds_per_block);
  if (segment.blocks_min != 1) out << fmt::format(", \"blocks_min\": {}", segment.blocks_min);
  if (segment.blocks_max != kBlocksMax)
    out << fmt::format(", \"blocks_max\": {}", segment.blocks_max);
  out << fmt::format(", \"above\": \"{}\", \"slots\": [", segment.clamps ? "clamp" : "skip");
  const char* separator = "\n";
  for (const RolledSlot& slot : segment.slots) {
    out << separator;
    WriteSlot(slot, out);
    separator = ",\n";
  }
  out << "] }";
}

}  // namespace

Result<RolledPlan> ReadRolledPlan(std::istream& in, const std::string& name,
                                  std::vector<std::string>* warnings) {
  return RolledPlanReader(warnings).Read(in, name);
}

void WriteRolledPlan(const RolledPlan& plan, std::ostream& out) {
  out << fmt::format("{{ \"format\": \"{}\", \"version\": \"{}.{}\", \"generator\": {},\n",
                     kRolledPlanFormat, kRolledMajor, kRolledMinor, QuoteJson(plan.generator))
      << fmt::format("  \"collective\": {}, \"algorithm\": {}, \"nodes\": {}, \"root\": {},\n",
                     QuoteJson(Name(plan.collective.kind)), QuoteJson(plan.algorithm), plan.nodes,
                     plan.collective.root.value)
      << fmt::format("  \"message\": {{ \"block_bytes\": {} }},\n", plan.block_bytes)
      << fmt::format("  \"ready\": {{ \"mode\": \"{}\"", Name(plan.ready.mode));
  if (plan.ready.window != 0) out << fmt::format(", \"window\": {}", plan.ready.window);
  if (plan.ready_blocks_min != 1) out << fmt::format(", \"blocks_min\": {}", plan.ready_blocks_min);
  out << fmt::format(" }}, \"send_window\": {}",
                     plan.send_window ? fmt::to_string(*plan.send_window) : "null");
  if (plan.send_window_blocks_min != 1)
    out << fmt::format(", \"send_window_blocks_min\": {}", plan.send_window_blocks_min);
  out << fmt::format(",\n  \"rounds\": {},\n  \"programs\": [", ToJson(plan.rounds));
  const char* program_separator = "\n";
  for (const RolledProgram& program : plan.programs) {
    out << program_separator
        << fmt::format("  {{ \"node\": {}, \"segments\": [", program.node.value);
    program_separator = ",\n";
    const char* separator = "\n";
    for (const Segment& segment : program.segments) {
      out << separator;
      WriteSegment(segment, out);
      separator = ",\n";
    }
    out << "] }";
  }
  out << "] }\n";
}

}  // namespace prepost
