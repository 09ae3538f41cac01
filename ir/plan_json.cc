// SPDX-License-Identifier: Apache-2.0
#include "prepost/ir/plan_json.h"

#include <fmt/format.h>

#include <limits>
#include <ostream>

#include "prepost/ir/json_reader.h"
#include "prepost/ir/json_text.h"
#include "prepost/ir/json_word.h"
#include "prepost/ir/text_writer.h"

namespace prepost {
namespace {

constexpr const char* kFormat = "prepost.plan";
constexpr uint32_t kMajor = 1;
constexpr uint32_t kMinor = 0;
/// Ops and `after` entries are counted in 32 bits; a reader stops before that.
constexpr size_t kEntriesMax = std::numeric_limits<uint32_t>::max() - 1;

/// The forms of a plan file and the plan that they fill.
class PlanReader {
 public:
  explicit PlanReader(std::vector<std::string>* warnings) {
    using Need = JsonForm::Need;
    PlanHeader& header = builder_.header();
    message_.Scalar("bytes", ReadUint64(&header.message.bytes, kMessageBytesMax))
        .Scalar("block_bytes", ReadUint64(&header.message.block_bytes, kMessageBytesMax))
        .Scalar("blocks", ReadUint32(&header.message.blocks, kBlocksMax));
    ready_.Scalar("mode", ReadWord(&header.ready.mode, kReadyModes))
        .Scalar("window", ReadUint32(&header.ready.window), Need::kOptional);
    channel_.OnBegin([this] { reading_channel_ = {}; })
        .Scalar("from", ReadUint32(&reading_channel_.from.value))
        .Scalar("to", ReadUint32(&reading_channel_.to.value))
        .Scalar("lane", ReadUint32(&reading_channel_.lane))
        .OnEnd([this]() -> Status {
          builder_.AddChannel(reading_channel_);
          return {};
        });
    op_.OnBegin([this] {
         reading_op_ = {};
         reading_after_.clear();
       })
        .Scalar("op", ReadWord(&reading_op_.kind, kOpKinds))
        .Scalar("channel", ReadUint32(&reading_op_.channel.value))
        .Scalar("block", [this](const JsonScalar& scalar) { return ReadBlock(scalar); })
        .Scalar("grants", ReadUint32(&reading_op_.grants), Need::kOptional)
        .Scalar("round", ReadUint32(&reading_op_.round))
        .Scalars("after", [this](const JsonScalar& scalar) { return ReadAfter(scalar); })
        .OnEnd([this] { return AddOp(); });
    program_.OnBegin([this] { builder_.BeginProgram(NodeId(0)); })
        .Scalar("node", [this](const JsonScalar& scalar) { return ReadNode(scalar); })
        .Objects("ops", &op_);
    plan_.Scalar("format", ExpectString(kFormat))
        .Scalar("version", ExpectVersion(kMajor, kMinor, warnings))
        .Scalar("generator", ReadString(&header.generator))
        .Scalar("collective", ReadString(&header.collective))
        .Scalar("algorithm", ReadString(&header.algorithm))
        .Scalar("nodes", ReadUint32(&header.nodes, kNodesMax))
        .Scalar("root", ReadUint32(&header.root.value))
        .Object("message", &message_)
        .Object("ready", &ready_)
        .Scalar("send_window", ReadOptionalUint32(&header.send_window))
        .Scalar("rounds", ReadUint32(&header.rounds))
        .Scalar("ports", ReadUint32(&header.ports), Need::kOptional)
        .Objects("channels", &channel_)
        .Objects("programs", &program_);
  }

  Result<Plan> Read(std::istream& in, const std::string& name) {
    PREPOST_RETURN_IF_ERROR(ReadJson(in, name, &plan_));
    return std::move(builder_).Build();
  }

 private:
  Status ReadBlock(const JsonScalar& scalar) {
    reading_op_.block = kNoBlock;
    if (scalar.is_null()) return {};
    return ReadUint32(&reading_op_.block, kNoBlock - 1)(scalar);
  }

  Status ReadAfter(const JsonScalar& scalar) {
    uint32_t id = 0;
    PREPOST_RETURN_IF_ERROR(ReadUint32(&id)(scalar));
    if (after_count_ == kEntriesMax)
      return Rejected(fmt::format("more than {} entries of 'after' in all", kEntriesMax));
    ++after_count_;
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
    if (op_count_ == kEntriesMax)
      return Rejected(fmt::format("more than {} ops in all", kEntriesMax));
    ++op_count_;
    builder_.AddOp(reading_op_, reading_after_);
    return {};
  }

  PlanBuilder builder_{PlanHeader{}};
  JsonForm plan_, message_, ready_, channel_, program_, op_;
  Channel reading_channel_;
  Op reading_op_;
  std::vector<OpId> reading_after_;
  size_t op_count_ = 0;
  size_t after_count_ = 0;
};

void WriteHeader(const PlanHeader& header, TextWriter& out) {
  out.Put("{{ \"format\": \"{}\", \"version\": \"{}.{}\", \"generator\": {},\n", kFormat, kMajor,
          kMinor, QuoteJson(header.generator));
  out.Put("  \"collective\": {}, \"algorithm\": {}, \"nodes\": {}, \"root\": {},\n",
          QuoteJson(header.collective), QuoteJson(header.algorithm), header.nodes,
          header.root.value);
  out.Put("  \"message\": {{ \"bytes\": {}, \"block_bytes\": {}, \"blocks\": {} }},\n",
          header.message.bytes, header.message.block_bytes, header.message.blocks);
  out.Put("  \"ready\": {{ \"mode\": \"{}\"", Name(header.ready.mode));
  if (header.ready.window != 0) out.Put(", \"window\": {}", header.ready.window);
  out.Put(" }}, \"send_window\": {},\n",
          header.send_window ? fmt::to_string(*header.send_window) : "null");
  out.Put("  \"rounds\": {},\n", header.rounds);
  if (header.ports != 1) out.Put("  \"ports\": {},\n", header.ports);
}

void WriteOp(const Plan& plan, const Op& op, TextWriter& out) {
  out.Put("    {{ \"op\": \"{}\", \"channel\": {}, \"block\": ", Name(op.kind), op.channel.value);
  if (op.is_credit()) {
    out.Put("null");
  } else {
    out.Put("{}", op.block);
  }
  if (op.grants != 0) out.Put(", \"grants\": {}", op.grants);
  out.Put(", \"round\": {}, \"after\": [", op.round);
  const char* separator = "";
  for (OpId before : plan.after(op)) {
    out.Put("{}{}", separator, before.value);
    separator = ", ";
  }
  out.Put("] }}");
}

}  // namespace

Result<Plan> ReadPlan(std::istream& in, const std::string& name,
                      std::vector<std::string>* warnings) {
  return PlanReader(warnings).Read(in, name);
}

void WritePlan(const Plan& plan, std::ostream& stream) {
  TextWriter out(stream);
  WriteHeader(plan.header(), out);
  out.Put("  \"channels\": [");
  const char* separator = "\n";
  for (const Channel& channel : plan.channels()) {
    out.Put("{}    {{ \"from\": {}, \"to\": {}, \"lane\": {} }}", separator, channel.from.value,
            channel.to.value, channel.lane);
    separator = ",\n";
  }
  out.Put("],\n  \"programs\": [");
  const char* program_separator = "\n";
  for (const Program& program : plan.programs()) {
    out.Put("{}  {{ \"node\": {}, \"ops\": [", program_separator, program.node.value);
    program_separator = ",\n";
    separator = "\n";
    for (const Op& op : plan.ops(program)) {
      out.Put("{}", separator);
      WriteOp(plan, op, out);
      separator = ",\n";
    }
    out.Put("] }}");
  }
  out.Put("] }}\n");
}

}  // namespace prepost
