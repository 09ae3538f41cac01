// SPDX-License-Identifier: Apache-2.0
//
// The fields of a plan's header, its channels and its ops, each written down once. VisitFields()
// shows them, with what they are called, to a visitor, in the order of files; the JSON of plans in
// all encodings, of indices and of rolled plans, hashes, ==, diffs, GraphML and the page are
// visitors. A field that is added to a struct and to its list here is in all of them, and the
// schemas' test asks for it there. What says a choice of them, such as a trace's header or a plan's
// text for people, names its own.
//
//   VisitFields(header, [](const PlanField& field, auto& value) { ... });
//
// `value` has the field's own type; Payload and Ready have lists of their own, and are objects in
// files. Where a field is a column, ListFields() gives it of any op or channel:
//
//   ListFields(std::type_identity<Op>(), [](const PlanField& field, auto get) { get(op) ... });
//
// An op's `after` is no field, but a slice of its plan.
#ifndef PREPOST_IR_PLAN_FIELDS_H_
#define PREPOST_IR_PLAN_FIELDS_H_

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/plan.h"

// Version 14 knows no concepts, and breaks lists of fields.
// clang-format off
namespace prepost {

struct PlanField {
  const char* key;                          ///< in files
  const char* name = key;                   ///< for people
  uint64_t min = 0, max = UINT32_MAX;       ///< of a number: what readers accept
  std::optional<uint32_t> null_value = {};  ///< of a number: what null stands for
  std::optional<uint64_t> if_absent = {};   ///< of a number: with this value the key is left out
  /// Hashed when it is absent, too; others are not, so that plans without them keep their hashes.
  bool is_always_hashed = false;
  bool starts_line = false;  ///< in files
  bool is_content = true;    ///< false: says nothing about what the plan does
  bool is_of_size = false;   ///< not in rolled plans, which are for all sizes
};

/// T, const or not.
template <typename Given, typename T>
concept Maybe = std::same_as<std::remove_const_t<Given>, T>;

template <Maybe<Payload> It, typename Visit>
void VisitFields(It& payload, Visit&& visit) {
  visit(
      PlanField{
          .key = "bytes", .name = "message bytes", .max = kMessageBytesMax, .is_of_size = true},
      payload.bytes);
  visit(PlanField{.key = "block_bytes", .name = "block bytes", .min = 1, .max = kMessageBytesMax},
        payload.block_bytes);
  visit(PlanField{.key = "blocks", .max = kBlocksMax, .is_of_size = true}, payload.blocks);
  visit(PlanField{.key = "parts", .min = 1, .max = kBlocksMax, .if_absent = 1, .is_of_size = true},
        payload.parts);
  visit(PlanField{.key = "part_bytes",
                  .name = "part bytes",
                  .max = kMessageBytesMax,
                  .if_absent = 0,
                  .is_of_size = true},
        payload.part_bytes);
}

template <Maybe<Combine> It, typename Visit>
void VisitFields(It& combine, Visit&& visit) {
  visit(PlanField{.key = "op"}, combine.op);
  visit(PlanField{.key = "type"}, combine.type);
}

template <Maybe<Ready> It, typename Visit>
void VisitFields(It& ready, Visit&& visit) {
  visit(PlanField{.key = "mode"}, ready.mode);
  visit(PlanField{.key = "window", .if_absent = 0, .is_always_hashed = true}, ready.window);
}

template <Maybe<PlanHeader> It, typename Visit>
void VisitFields(It& header, Visit&& visit) {
  visit(PlanField{.key = "generator", .is_content = false}, header.generator);
  visit(PlanField{.key = "collective", .starts_line = true}, header.collective.kind);
  visit(PlanField{.key = "algorithm"}, header.algorithm);
  visit(PlanField{.key = "nodes", .max = kNodesMax}, header.nodes);
  visit(PlanField{.key = "root"}, header.collective.root);
  visit(PlanField{.key = "helpers", .max = kNodesMax, .if_absent = 0}, header.collective.helpers);
  visit(PlanField{.key = "message", .starts_line = true}, header.payload);
  visit(PlanField{.key = "combine", .if_absent = 0}, header.combine);
  visit(PlanField{.key = "scratch", .max = kNoScratch, .if_absent = 0, .is_of_size = true},
        header.scratch);
  visit(PlanField{.key = "ready", .starts_line = true}, header.ready);
  visit(PlanField{.key = "send_window", .name = "send window"}, header.send_window);
  visit(PlanField{.key = "rounds", .starts_line = true, .is_of_size = true}, header.rounds);
  visit(PlanField{.key = "ports",
                  .if_absent = 1,
                  .is_always_hashed = true,
                  .starts_line = true,
                  .is_of_size = true},
        header.ports);
}

/// A channel's name comes first: see Channel.
template <typename Each>
void ListFields(std::type_identity<Channel>, Each&& each) {
  each(PlanField{.key = "from"}, [](auto& it) -> auto& { return it.from; });
  each(PlanField{.key = "to"}, [](auto& it) -> auto& { return it.to; });
  each(PlanField{.key = "lane", .max = NumberOf(Lane::kCredits)},
       [](auto& it) -> auto& { return it.lane; });
  each(PlanField{.key = "fabric", .if_absent = 0}, [](auto& it) -> auto& { return it.fabric; });
}

template <typename Each>
void ListFields(std::type_identity<Op>, Each&& each) {
  each(PlanField{.key = "op"}, [](auto& it) -> auto& { return it.kind; });
  each(PlanField{.key = "channel"}, [](auto& it) -> auto& { return it.channel; });
  each(PlanField{.key = "block", .max = kNoBlock - 1, .null_value = kNoBlock},
       [](auto& it) -> auto& { return it.block; });
  each(PlanField{.key = "count", .min = 1, .max = kBlocksMax, .if_absent = 1},
       [](auto& it) -> auto& { return it.count; });
  each(PlanField{.key = "grants", .if_absent = 0, .is_always_hashed = true},
       [](auto& it) -> auto& { return it.grants; });
  each(PlanField{.key = "scratch",
                 .max = kNoScratch - 1,
                 .null_value = kNoScratch,
                 .if_absent = kNoScratch},
       [](auto& it) -> auto& { return it.scratch; });
  each(PlanField{.key = "round", .max = std::numeric_limits<uint32_t>::max() - 1},
       [](auto& it) -> auto& { return it.round; });
}

template <typename It, typename Visit>
  requires Maybe<It, Channel> || Maybe<It, Op>
void VisitFields(It& it, Visit&& visit) {
  ListFields(std::type_identity<std::remove_const_t<It>>(),
             [&](const PlanField& field, auto get) { visit(field, get(it)); });
}

/// The number that a value is in columns and hashes.
template <typename Value>
  requires std::integral<Value> || std::is_enum_v<Value>
uint64_t NumberOf(Value value) {
  return static_cast<uint64_t>(value);
}
template <typename Tag>
uint64_t NumberOf(Id<Tag> id) {
  return id.value;
}
/// The value of a number that it may have.
template <typename Value>
void SetNumber(Value* out, uint64_t number) {
  *out = static_cast<Value>(number);
}
template <typename Tag>
void SetNumber(Id<Tag>* out, uint64_t number) {
  out->value = static_cast<uint32_t>(number);
}
template <typename Value>
concept IsNumber = requires(Value value) { NumberOf(value); };

/// Whether files leave out a field with this value.
template <typename Value>
bool IsAbsent(const PlanField& field, const Value& value) {
  if constexpr (std::is_same_v<Value, Combine>) return value.is_none();
  if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) return value.empty();
  if constexpr (IsNumber<Value>) return field.if_absent == NumberOf(value);
  return false;
}

/// Whether the field came later than the others: what has nothing of it is as if it did not exist,
/// also where fields that may be absent are shown.
inline bool IsLater(const PlanField& field) {
  return field.if_absent.has_value() && !field.is_always_hashed;
}

/// A value as files have it: null, a number, or a string.
using FieldValue = std::variant<std::monostate, uint64_t, std::string_view>;

template <typename Value>
FieldValue ValueOf(const PlanField& field, const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<Value, std::optional<uint32_t>>) {
    return value ? FieldValue(uint64_t{*value}) : FieldValue();
  } else if constexpr (std::is_enum_v<Value> && !std::is_same_v<Value, Lane>) {
    return Name(value);
  } else {
    return field.null_value == NumberOf(value) ? FieldValue() : FieldValue(NumberOf(value));
  }
}

/// The columns of numbers, those that may be absent behind the others: all fields but an op's kind.
template <typename It, typename Each>
void ListColumns(std::type_identity<It> type, Each&& each) {
  for (const bool may_be_absent : {false, true}) {
    ListFields(type, [&](const PlanField& field, auto get) {
      if constexpr (!std::is_same_v<std::invoke_result_t<decltype(get), It&>, OpKind&>) {
        if (field.if_absent.has_value() == may_be_absent) each(field, get);
      }
    });
  }
}

/// T has a list of fields.
template <typename T>
concept HasFields = requires(T& it) { VisitFields(it, [](const PlanField&, auto&) {}); };

/// What the header says about the plan, with the payload's fields among the others: for exports.
template <typename Visit>
void VisitContent(const PlanHeader& header, const Visit& visit) {
  VisitFields(header, [&](const PlanField& field, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const Payload&>) {
      VisitFields(value, visit);
    } else if (field.is_content) {
      visit(field, value);
    }
  });
}

/// A value for people; none of an optional one that is not there. Numbers of a list stand between
/// blanks.
template <typename Value>
std::optional<std::string> PlainText(const PlanField& field, const Value& value) {
  if constexpr (std::is_same_v<Value, Ready>) {
    return ToString(value);
  } else if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
    std::string text;
    for (const uint64_t number : value) text += (text.empty() ? "" : " ") + std::to_string(number);
    return text.empty() ? std::nullopt : std::optional(text);
  } else if constexpr (std::is_same_v<Value, Combine>) {
    return value.is_none() ? std::nullopt : std::optional(ToString(value));
  } else {
    const FieldValue plain = ValueOf(field, value);
    if (const auto* number = std::get_if<uint64_t>(&plain)) return std::to_string(*number);
    const auto* text = std::get_if<std::string_view>(&plain);
    return text != nullptr ? std::optional<std::string>(*text) : std::nullopt;
  }
}

}  // namespace prepost

#endif  // PREPOST_IR_PLAN_FIELDS_H_
