// SPDX-License-Identifier: Apache-2.0
//
// The fields of a plan's header, its channels and its ops, each written down once. VisitFields()
// shows them, with what they are called, to a visitor, in the order of files; the JSON of plans in
// all encodings, of indices and of rolled plans, hashes, ==, diffs, GraphML and the page are
// visitors. A field that is added to a struct and to its list here is in all of them, and the
// schemas' test asks for it there.
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
#include <optional>
#include <string>
#include <type_traits>

#include "ir/plan.h"

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
  visit(PlanField{.key = "message", .starts_line = true}, header.payload);
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
}

template <typename Each>
void ListFields(std::type_identity<Op>, Each&& each) {
  each(PlanField{.key = "op"}, [](auto& it) -> auto& { return it.kind; });
  each(PlanField{.key = "channel"}, [](auto& it) -> auto& { return it.channel; });
  each(PlanField{.key = "block", .max = kNoBlock - 1, .null_value = kNoBlock},
       [](auto& it) -> auto& { return it.block; });
  each(PlanField{.key = "grants", .if_absent = 0, .is_always_hashed = true},
       [](auto& it) -> auto& { return it.grants; });
  each(PlanField{.key = "round"}, [](auto& it) -> auto& { return it.round; });
}

template <typename It, typename Visit>
  requires Maybe<It, Channel> || Maybe<It, Op>
void VisitFields(It& it, Visit&& visit) {
  ListFields(std::type_identity<std::remove_const_t<It>>(),
             [&](const PlanField& field, auto get) { visit(field, get(it)); });
}

/// Those that may be absent behind the others: the order of columns and hashes.
template <typename It, typename Each>
void ListColumns(std::type_identity<It> type, Each&& each) {
  for (const bool may_be_absent : {false, true}) {
    ListFields(type, [&](const PlanField& field, auto get) {
      if (field.if_absent.has_value() == may_be_absent) each(field, get);
    });
  }
}

/// The number that stands for a value in columns and hashes.
inline uint32_t NumberOf(uint32_t number) { return number; }
template <typename Tag>
uint32_t NumberOf(Id<Tag> id) {
  return id.value;
}
inline uint32_t NumberOf(OpKind kind) { return static_cast<uint32_t>(kind); }

/// Has a list of fields.
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

/// A value for people; none of an optional one that is not there.
template <typename Value>
std::optional<std::string> PlainText(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<Value, Ready>) {
    return ToString(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return Name(value);
  } else if constexpr (std::is_same_v<Value, NodeId>) {
    return std::to_string(value.value);
  } else if constexpr (std::is_same_v<Value, std::optional<uint32_t>>) {
    return value ? PlainText(*value) : std::nullopt;
  } else {
    return std::to_string(value);
  }
}

}  // namespace prepost

#endif  // PREPOST_IR_PLAN_FIELDS_H_
