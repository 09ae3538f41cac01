// SPDX-License-Identifier: Apache-2.0
#include "ir/json/rolled_plan_json.h"

#include <fmt/format.h>

#include <ostream>

#include "ir/json/json_fields.h"
#include "ir/rolled/rolled_fields.h"

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
        .Scalar("version", ExpectVersion(kRolledMajor, kRolledMinor, warnings));
    VisitFields(plan_, [this](const PlanField& field, auto& value) {
      if constexpr (std::is_same_v<decltype(value), LinearInBlocks&>) {
        rounds_.AddTo(form_, field.key, [&value] { return &value; });
      } else {
        header_.Add(&form_, field, &value);
      }
    });
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
  JsonForm form_, program_, segment_, slot_;
  FieldForms header_;
  LinearForm rounds_, from_, to_, phase_;
  TransferForm send_, recv_;
};

void WriteLinear(const LinearInBlocks& linear, JsonWriter& json) {
  if (linear.per_block == 0 && linear.divisor == 1) {
    json.Value(linear.constant);
    return;
  }
  json.BeginObject().Field("k", linear.per_block);
  if (linear.constant != 0) json.Field("plus", linear.constant);
  if (linear.divisor != 1) json.Field("over", linear.divisor);
  json.EndObject();
}

void WriteTransfer(const char* key, const char* peer, const std::optional<RolledTransfer>& transfer,
                   JsonWriter& json) {
  if (!transfer) return;
  json.Key(key).BeginObject().Field(peer, transfer->peer.value).Key("offset");
  WriteLinear(transfer->offset, json);
  json.EndObject();
}

void WriteSegment(const Segment& segment, JsonWriter& json) {
  json.BeginObject().Key("from");
  WriteLinear(segment.from, json);
  json.Key("to");
  WriteLinear(segment.to, json);
  if (segment.phase != LinearInBlocks{}) {
    json.Key("phase");
    WriteLinear(segment.phase, json);
  }
  if (segment.rounds_per_block != 1) json.Field("rounds_per_block", segment.rounds_per_block);
  if (segment.blocks_min != 1) json.Field("blocks_min", segment.blocks_min);
  if (segment.blocks_max != kBlocksMax) json.Field("blocks_max", segment.blocks_max);
  json.Field("above", segment.clamps ? "clamp" : "skip").Key("slots").BeginArray();
  for (const RolledSlot& slot : segment.slots) {
    json.Line(6).BeginObject();
    WriteTransfer("send", "to", slot.send, json);
    WriteTransfer("recv", "from", slot.recv, json);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

Result<RolledPlan> ReadRolledPlan(std::istream& in, const std::string& name,
                                  std::vector<std::string>* warnings) {
  return RolledPlanReader(warnings).Read(in, name);
}

void WriteRolledPlan(const RolledPlan& plan, std::ostream& stream) {
  JsonWriter json(stream, JsonWriter::Style::kSpaced);
  json.BeginObject().Format(kRolledPlanFormat, kRolledMajor, kRolledMinor);
  VisitFields(plan, [&json](const PlanField& field, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const LinearInBlocks&>) {
      if (field.starts_line) json.Line(2);
      json.Key(field.key);
      WriteLinear(value, json);
    } else {
      WriteField(field, value, json);
    }
  });
  json.Line(2).Key("programs").BeginArray();
  for (const RolledProgram& program : plan.programs) {
    json.Line(2).BeginObject().Field("node", program.node.value).Key("segments").BeginArray();
    for (const Segment& segment : program.segments) {
      json.Line(4);
      WriteSegment(segment, json);
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace prepost
