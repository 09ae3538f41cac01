// SPDX-License-Identifier: Apache-2.0
//
// Ops as columns: what a program of three ops says, with one array per field:
//
//   "op": "rss",            a letter each, r, s and c, for recv, send and combine
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
#include <type_traits>

#include "ir/plan_fields.h"

namespace prepost {
namespace {

using Need = JsonForm::Need;

/// By kind.
constexpr std::string_view kLetters = "src";

Status CheckLength(const char* column, size_t length, const char* other, size_t expected) {
  if (length == expected) return {};
  return Rejected(fmt::format("'{}' has {} elements, expected {}, as '{}' has", column, length,
                              expected, other));
}

/// A line of the object that is open.
JsonWriter& Column(std::string_view key, JsonWriter& json) { return json.Line(4).Key(key); }

/// The columns of numbers of what `range` has. One that may be absent is where all its elements are
/// what absence says.
template <typename It, typename Range>
void WriteColumns(const Range& range, JsonWriter& json) {
  ListColumns(std::type_identity<It>(), [&](const PlanField& field, auto get) {
    const auto number_of = [&](const It& it) { return static_cast<uint32_t>(NumberOf(get(it))); };
    const auto is_usual = [&](const It& it) { return IsAbsent(field, get(it)); };
    if (field.if_absent && std::ranges::all_of(range, is_usual)) return;
    Column(field.key, json);
    if (!field.null_value) {
      json.Numbers(range, number_of);
      return;
    }
    json.Numbers(range, [&](const It& it) {
      const uint32_t number = number_of(it);
      return number == field.null_value ? std::nullopt : std::optional(number);
    });
  });
}

}  // namespace

template <typename It>
void FieldColumns<It>::AddTo(JsonForm* form) {
  size_t at = 0;
  ListColumns(std::type_identity<It>(), [&](const PlanField& field, auto) {
    PREPOST_CHECK(at < columns_.size());
    form->Uint32s(field.key,
                  {.out = &columns_[at++],
                   .value_max = static_cast<uint32_t>(field.max),
                   .null_value = field.null_value},
                  field.if_absent ? Need::kOptional : Need::kRequired);
  });
}

template <typename It>
Status FieldColumns<It>::CheckLengths(const char* other, size_t expected) const {
  Status status;
  size_t at = 0;
  ListColumns(std::type_identity<It>(), [&](const PlanField& field, auto) {
    const size_t length = columns_[at++].size();
    const bool is_absent = field.if_absent && length == 0;
    if (status.ok() && !is_absent) status = CheckLength(field.key, length, other, expected);
  });
  return status;
}

template <typename It>
It FieldColumns<It>::At(size_t i) const {
  It it;
  size_t at = 0;
  ListColumns(std::type_identity<It>(), [&](const PlanField&, auto get) {
    const std::vector<uint32_t>& column = columns_[at++];
    if (i < column.size()) SetNumber(&get(it), column[i]);
  });
  return it;
}

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
  columns_.AddTo(&form_);
  form_.OnEnd([this, ids]() -> Status {
    if (ids == Ids::kListed) PREPOST_RETURN_IF_ERROR(CheckLength("id", id_.size(), "from", size()));
    return columns_.CheckLengths("from", size());
  });
}

void WriteChannelColumns(std::span<const Channel> channels,
                         std::optional<std::span<const uint32_t>> ids, JsonWriter& json) {
  json.BeginObject();
  if (ids) Column("id", json).Numbers(*ids, std::identity());
  WriteColumns<Channel>(channels, json);
  json.EndObject();
}

OpColumns::OpColumns(PlanBuilder* builder, EntryCount* count) : builder_(builder), count_(count) {
  form_
      .OnBegin([this] {
        kinds_.clear();
        columns_.Clear();
        after_count_.clear();
        after_.clear();
      })
      .Letters("op", [this](const JsonScalar& scalar) { return ReadKinds(scalar); });
  columns_.AddTo(&form_);
  form_.Uint32s("after_count", {.out = &after_count_}, Need::kOptional)
      .Uint32s("after", {.out = &after_}, Need::kOptional)
      .OnEnd([this] { return AddOps(); });
}

Status OpColumns::ReadKinds(const JsonScalar& scalar) {
  const std::string expected =
      fmt::format("expected a string of letters {} (send), {} (recv) and {} (combine)", kLetters[0],
                  kLetters[1], kLetters[2]);
  if (scalar.kind != JsonScalar::Kind::kString)
    return Rejected(expected + ", found " + scalar.Describe());
  kinds_.reserve(scalar.text.size());
  for (const char letter : scalar.text) {
    const size_t kind = kLetters.find(letter);
    if (kind == std::string_view::npos)
      return Rejected(fmt::format("{}, found another at {}", expected, kinds_.size()));
    kinds_.push_back(static_cast<OpKind>(kind));
  }
  return {};
}

Status OpColumns::CheckLengths() const {
  PREPOST_RETURN_IF_ERROR(columns_.CheckLengths("op", kinds_.size()));
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
    Op op = columns_.At(i);
    op.kind = kinds_[i];
    builder_->AddOp(op, after);
  }
  return {};
}

void WriteOpColumns(const Plan& plan, const Program& program, JsonWriter& json) {
  const std::span<const Op> ops = plan.ops(program);
  std::string kinds;
  kinds.reserve(ops.size());
  for (const Op& op : ops) kinds += kLetters[static_cast<size_t>(op.kind)];
  json.BeginObject();
  Column("op", json).Value(kinds);
  WriteColumns<Op>(ops, json);
  if (std::ranges::any_of(ops, [](const Op& op) { return op.after_count != 0; })) {
    Column("after_count", json).Numbers(ops, [](const Op& op) { return op.after_count; });
    std::vector<uint32_t> after;
    for (const Op& op : ops)
      for (const OpId before : plan.after(op)) after.push_back(before.value);
    Column("after", json).Numbers(after, std::identity());
  }
  json.EndObject();
}

template class FieldColumns<Channel>;
template class FieldColumns<Op>;

}  // namespace prepost
