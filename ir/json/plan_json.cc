// SPDX-License-Identifier: Apache-2.0
#include "ir/json/plan_json.h"

#include <fmt/format.h>

#include <ostream>

#include "ir/json/json_fields.h"
#include "ir/json/json_reader.h"
#include "ir/json/plan_forms.h"

namespace prepost {
namespace {

constexpr const char* kPlanFormat = "prepost.plan";
constexpr uint32_t kPlanMajor = 1;
constexpr uint32_t kPlanMinor = 2;
constexpr uint32_t kMinorOfMulticasts = 1;  ///< in columns
constexpr uint32_t kMinorOfRows = 0;        ///< rows are all that version 1.0 has

/// The forms of a plan file and the plan that they fill.
class PlanReader {
 public:
  explicit PlanReader(std::vector<std::string>* warnings) {
    using Need = JsonForm::Need;
    channel_.OnBegin([this] { reading_channel_ = {}; }).OnEnd([this]() -> Status {
      builder_.AddChannel(reading_channel_);
      return {};
    });
    fields_.AddAll(&channel_, reading_channel_);
    op_.OnBegin([this] {
      reading_op_ = {};
      reading_after_.clear();
    });
    fields_.AddAll(&op_, reading_op_);
    op_.Scalars("after", [this](const JsonScalar& scalar) { return ReadAfter(scalar); })
        .OnEnd([this] { return AddOp(); });
    program_.OnBegin([this] { builder_.BeginProgram(NodeId(0)); })
        .Scalar("node", [this](const JsonScalar& scalar) { return ReadNode(scalar); })
        .Objects("ops", &op_, Need::kOptional)
        .Object("columns", op_columns_.form(), Need::kOptional)
        .OneOf("ops", "columns");
    plan_.Scalar("format", ExpectString(kPlanFormat))
        .Scalar("version", ExpectVersion(kPlanMajor, kPlanMinor, warnings));
    fields_.AddAll(&plan_, builder_.header());
    plan_.ObjectOrObjects("channels", channel_columns_.form(), &channel_)
        .Objects("programs", &program_);
  }

  Result<Plan> Read(std::istream& in, const std::string& name) {
    PREPOST_RETURN_IF_ERROR(ReadJson(in, name, &plan_));
    for (size_t i = 0; i < channel_columns_.size(); ++i)
      builder_.AddChannel(channel_columns_.channel(i));
    return std::move(builder_).Build();
  }

 private:
  Status ReadAfter(const JsonScalar& scalar) {
    uint32_t id = 0;
    PREPOST_RETURN_IF_ERROR(ReadUint32(&id)(scalar));
    reading_after_.push_back(OpId(id));
    return {};
  }

  Status ReadNode(const JsonScalar& scalar) {
    uint32_t node = 0;
    PREPOST_RETURN_IF_ERROR(ReadUint32(&node)(scalar));
    builder_.SetNode(NodeId(node));
    return {};
  }

  Status AddOp() {
    PREPOST_RETURN_IF_ERROR(count_.Add(1, reading_after_.size()));
    builder_.AddOp(reading_op_, reading_after_);
    return {};
  }

  PlanBuilder builder_{PlanHeader{}};
  JsonForm plan_, channel_, program_, op_;
  FieldForms fields_;
  ChannelColumns channel_columns_{ChannelColumns::Ids::kPositions};
  EntryCount count_;
  OpColumns op_columns_{&builder_, &count_};
  Channel reading_channel_;
  Op reading_op_;
  std::vector<OpId> reading_after_;
};

void WriteChannels(const Plan& plan, JsonWriter& json) {
  json.BeginArray();
  for (const Channel& channel : plan.channels()) {
    json.Line(4).BeginObject();
    WriteFields(channel, json);
    json.EndObject();
  }
  json.EndArray();
}

void WriteOps(const Plan& plan, const Program& program, JsonWriter& json) {
  json.BeginArray();
  for (const Op& op : plan.ops(program)) {
    json.Line(4).BeginObject();
    WriteFields(op, json);
    json.Key("after").BeginArray();
    for (const OpId before : plan.after(op)) json.Value(before.value);
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace

Result<Plan> ReadPlan(std::istream& in, const std::string& name,
                      std::vector<std::string>* warnings) {
  return PlanReader(warnings).Read(in, name);
}

void WritePlan(const Plan& plan, std::ostream& stream, PlanEncoding encoding) {
  const bool is_columns = encoding == PlanEncoding::kColumns;
  const uint32_t minor = !IsPlainMulticast(plan) ? kPlanMinor
                         : is_columns            ? kMinorOfMulticasts
                                                 : kMinorOfRows;
  JsonWriter json(stream, JsonWriter::Style::kSpaced);
  json.BeginObject().Format(kPlanFormat, kPlanMajor, minor);
  WriteFields(plan.header(), json);
  json.Line(2).Key("channels");
  is_columns ? WriteChannelColumns(plan.channels(), std::nullopt, json) : WriteChannels(plan, json);
  json.Line(2).Key("programs").BeginArray();
  for (const Program& program : plan.programs()) {
    json.Line(2).BeginObject().Field("node", program.node.value);
    json.Key(is_columns ? "columns" : "ops");
    is_columns ? WriteOpColumns(plan, program, json) : WriteOps(plan, program, json);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace prepost
