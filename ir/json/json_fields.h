// SPDX-License-Identifier: Apache-2.0
//
// JSON of what has a list of fields (plan_fields.h): read as keys of a JsonForm, and written.
// Internal to ir/.
#ifndef PREPOST_IR_JSON_JSON_FIELDS_H_
#define PREPOST_IR_JSON_JSON_FIELDS_H_

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/json/json_reader.h"
#include "ir/json/json_word.h"
#include "ir/json/json_writer.h"
#include "ir/plan_fields.h"

namespace prepost {

/// Reads fields. Lives longer than the reading, as does what is read.
class FieldForms {
 public:
  /// Makes every field of `it` a key of `*form`.
  template <typename It>
  void AddAll(JsonForm* form, It&& it) {
    VisitFields(it, [&](const PlanField& field, auto& value) { Add(form, field, &value); });
  }
  template <typename Value>
  void Add(JsonForm* form, const PlanField& field, Value* value) {
    const JsonForm::Need need =
        field.if_absent ? JsonForm::Need::kOptional : JsonForm::Need::kRequired;
    if constexpr (HasFields<Value>) {
      JsonForm* const object = &objects_.emplace_back();
      AddAll(object, *value);
      form->Object(field.key, object, need);
    } else if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
      form->Scalars(
          field.key,
          [field, value](const JsonScalar& scalar) -> Status {
            if (value->size() == kBlocksMax)
              return Rejected(fmt::format("more than {} elements", kBlocksMax));
            return ReadUint64(&value->emplace_back(), field.max, field.min)(scalar);
          },
          need, /*least=*/1);
    } else {
      form->Scalar(field.key, ReaderOf(field, value), need);
    }
  }

 private:
  using ReadScalar = JsonForm::ReadScalar;

  template <typename Value>
  static ReadScalar ReaderOf(const PlanField& field, Value* out) {
    if constexpr (std::is_same_v<Value, std::string>) {
      return ReadString(out);
    } else if constexpr (std::is_same_v<Value, std::optional<uint32_t>>) {
      return ReadOptionalUint32(out);
    } else if constexpr (std::is_same_v<Value, uint64_t>) {
      return ReadUint64(out, field.max, field.min);
    } else if constexpr (std::is_enum_v<Value> && !std::is_same_v<Value, Lane>) {
      return ReadWord(out);
    } else {
      return [field, out](const JsonScalar& scalar) -> Status {
        uint64_t number = 0;
        if (scalar.is_null() && field.null_value) {
          number = *field.null_value;
        } else {
          PREPOST_RETURN_IF_ERROR(ReadUint64(&number, field.max, field.min)(scalar));
        }
        SetNumber(out, number);
        return {};
      };
    }
  }

  std::deque<JsonForm> objects_;
};

template <typename It>
void WriteFields(const It& it, JsonWriter& json);

/// As a key of the object that is open; nothing where files leave it out.
template <typename Value>
void WriteField(const PlanField& field, const Value& value, JsonWriter& json) {
  if (IsAbsent(field, value)) return;
  if (field.starts_line) json.Line(2);
  json.Key(field.key);
  if constexpr (HasFields<const Value>) {
    json.BeginObject();
    WriteFields(value, json);
    json.EndObject();
  } else if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
    json.Numbers(value, std::identity());
  } else {
    const FieldValue plain = ValueOf(field, value);
    if (const auto* number = std::get_if<uint64_t>(&plain)) {
      json.Value(*number);
    } else if (const auto* text = std::get_if<std::string_view>(&plain)) {
      json.Value(*text);
    } else {
      json.Literal("null");
    }
  }
}

/// All of `it`, as keys of the object that is open.
template <typename It>
void WriteFields(const It& it, JsonWriter& json) {
  VisitFields(it,
              [&](const PlanField& field, const auto& value) { WriteField(field, value, json); });
}

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_FIELDS_H_
