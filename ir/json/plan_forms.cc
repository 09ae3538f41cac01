// SPDX-License-Identifier: Apache-2.0
//
// Ops as columns: what a program of three ops says, with one array per field:
//
//   "op": "rss",            a letter each, r and s, for recv and send
//   "channel": [0,1,2],
//   "block": [0,0,null],    null: a credit
//   "round": [0,1,1],
//   "grants": [0,0,1],      absent where all are 0
//   "after_count": [0,1,1], how many entries of "after" are each op's; both absent where all are 0
//   "after": [0,0]          those of the first op, of the second, ...
#include "ir/json/plan_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

namespace prepost {
namespace {

using Need = JsonForm::Need;

constexpr char kSendLetter = 's';
constexpr char kRecvLetter = 'r';

Status CheckLength(const char* column, size_t length, const char* other, size_t expected) {
  if (length == expected) return {};
  return Rejected(fmt::format("'{}' has {} elements, expected {}, as '{}' has", column, length,
                              expected, other));
}

}  // namespace

Status EntryCount::Add(uint64_t ops, uint64_t afters) {
  constexpr uint64_t kMax = UINT32_MAX - 1;
  if (ops > kMax - ops_) return Rejected(fmt::format("more than {} ops in all", kMax));
  if (afters > kMax - afters_)
    return Rejected(fmt::format("more than {} entries of 'after' in all", kMax));
  ops_ += ops;
  afters_ += afters;
  return {};
}

ChannelColumns::ChannelColumns(Ids ids) {
  if (ids == Ids::kListed) form_.Uint32s("id", {.out = &id_});
  form_.Uint32s("from", {.out = &from_})
      .Uint32s("to", {.out = &to_})
      .Uint32s("lane", {.out = &lane_})
      .OnEnd([this, ids]() -> Status {
        if (ids == Ids::kListed)
          PREPOST_RETURN_IF_ERROR(CheckLength("id", id_.size(), "from", from_.size()));
        PREPOST_RETURN_IF_ERROR(CheckLength("to", to_.size(), "from", from_.size()));
        return CheckLength("lane", lane_.size(), "from", from_.size());
      });
}

void WriteChannelColumns(std::span<const Channel> channels,
                         std::optional<std::span<const uint32_t>> ids, TextWriter& out) {
  out.Put("{{");
  if (ids) {
    out.Put("\n    \"id\": ");
    out.PutNumbers(*ids, std::identity());
    out.Put(",");
  }
  out.Put("\n    \"from\": ");
  out.PutNumbers(channels, [](const Channel& channel) { return channel.from.value; });
  out.Put(",\n    \"to\": ");
  out.PutNumbers(channels, [](const Channel& channel) { return channel.to.value; });
  out.Put(",\n    \"lane\": ");
  out.PutNumbers(channels, [](const Channel& channel) { return channel.lane; });
  out.Put(" }}");
}

OpColumns::OpColumns(PlanBuilder* builder, EntryCount* count) : builder_(builder), count_(count) {
  form_
      .OnBegin([this] {
        kinds_.clear();
        for (auto* column : {&channel_, &block_, &round_, &grants_, &after_count_, &after_})
          column->clear();
      })
      .Letters("op", [this](const JsonScalar& scalar) { return ReadKinds(scalar); })
      .Uint32s("channel", {.out = &channel_})
      .Uint32s("block", {.out = &block_, .value_max = kNoBlock - 1, .null_value = kNoBlock})
      .Uint32s("round", {.out = &round_})
      .Uint32s("grants", {.out = &grants_}, Need::kOptional)
      .Uint32s("after_count", {.out = &after_count_}, Need::kOptional)
      .Uint32s("after", {.out = &after_}, Need::kOptional)
      .OnEnd([this] { return AddOps(); });
}

Status OpColumns::ReadKinds(const JsonScalar& scalar) {
  const std::string expected =
      fmt::format("expected a string of letters {} (send) and {} (recv)", kSendLetter, kRecvLetter);
  if (scalar.kind != JsonScalar::Kind::kString)
    return Rejected(expected + ", found " + scalar.Describe());
  kinds_.reserve(scalar.text.size());
  for (const char letter : scalar.text) {
    if (letter != kSendLetter && letter != kRecvLetter)
      return Rejected(fmt::format("{}, found another at {}", expected, kinds_.size()));
    kinds_.push_back(letter == kSendLetter ? OpKind::kSend : OpKind::kRecv);
  }
  return {};
}

Status OpColumns::CheckLengths() const {
  PREPOST_RETURN_IF_ERROR(CheckLength("channel", channel_.size(), "op", kinds_.size()));
  PREPOST_RETURN_IF_ERROR(CheckLength("block", block_.size(), "op", kinds_.size()));
  PREPOST_RETURN_IF_ERROR(CheckLength("round", round_.size(), "op", kinds_.size()));
  if (!grants_.empty())
    PREPOST_RETURN_IF_ERROR(CheckLength("grants", grants_.size(), "op", kinds_.size()));
  if (!after_count_.empty())
    PREPOST_RETURN_IF_ERROR(CheckLength("after_count", after_count_.size(), "op", kinds_.size()));
  const uint64_t afters = std::accumulate(after_count_.begin(), after_count_.end(), uint64_t{0});
  if (afters != after_.size()) {
    return Rejected(fmt::format("'after' has {} elements, expected {}, the sum of 'after_count'",
                                after_.size(), afters));
  }
  return {};
}

Status OpColumns::AddOps() {
  PREPOST_RETURN_IF_ERROR(CheckLengths());
  PREPOST_RETURN_IF_ERROR(count_->Add(kinds_.size(), after_.size()));
  std::vector<OpId> after;
  size_t after_begin = 0;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const size_t after_end = after_begin + (after_count_.empty() ? 0 : after_count_[i]);
    after.clear();
    for (size_t j = after_begin; j < after_end; ++j) after.push_back(OpId(after_[j]));
    after_begin = after_end;
    builder_->AddOp({.channel = ChannelId(channel_[i]),
                     .block = block_[i],
                     .round = round_[i],
                     .grants = grants_.empty() ? 0 : grants_[i],
                     .kind = kinds_[i]},
                    after);
  }
  return {};
}

void WriteOpColumns(const Plan& plan, const Program& program, TextWriter& out) {
  const std::span<const Op> ops = plan.ops(program);
  std::string kinds;
  kinds.reserve(ops.size());
  for (const Op& op : ops) kinds += op.is_send() ? kSendLetter : kRecvLetter;
  out.Put("{{\n    \"op\": \"{}\",\n    \"channel\": ", kinds);
  out.PutNumbers(ops, [](const Op& op) { return op.channel.value; });
  out.Put(",\n    \"block\": ");
  out.PutNumbersOrNull(ops, [](const Op& op) {
    return op.is_credit() ? std::nullopt : std::optional<uint32_t>(op.block);
  });
  out.Put(",\n    \"round\": ");
  out.PutNumbers(ops, [](const Op& op) { return op.round; });
  if (std::ranges::any_of(ops, [](const Op& op) { return op.grants != 0; })) {
    out.Put(",\n    \"grants\": ");
    out.PutNumbers(ops, [](const Op& op) { return op.grants; });
  }
  if (std::ranges::any_of(ops, [](const Op& op) { return op.after_count != 0; })) {
    out.Put(",\n    \"after_count\": ");
    out.PutNumbers(ops, [](const Op& op) { return op.after_count; });
    std::vector<uint32_t> after;
    for (const Op& op : ops)
      for (const OpId before : plan.after(op)) after.push_back(before.value);
    out.Put(",\n    \"after\": ");
    out.PutNumbers(after, std::identity());
  }
  out.Put(" }}");
}

}  // namespace prepost
