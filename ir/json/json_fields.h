// SPDX-License-Identifier: Apache-2.0
//
// JSON of what has a list of fields (plan_fields.h): read as keys of a JsonForm, and written.
// Internal to ir/.
#ifndef PREPOST_IR_JSON_JSON_FIELDS_H_
#define PREPOST_IR_JSON_JSON_FIELDS_H_

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>

#include "ir/json/json_reader.h"
#include "ir/json/json_text.h"
#include "ir/json/json_word.h"
#include "ir/plan_fields.h"
#include "ir/text_writer.h"

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
    } else {
      form->Scalar(field.key, ReaderOf(field, value), need);
    }
  }

 private:
  using ReadScalar = JsonForm::ReadScalar;

  static ReadScalar ReaderOf(const PlanField&, std::string* out) { return ReadString(out); }
  static ReadScalar ReaderOf(const PlanField& field, uint32_t* out) {
    const ReadScalar read =
        ReadUint32(out, static_cast<uint32_t>(field.max), static_cast<uint32_t>(field.min));
    if (!field.null_value) return read;
    return [read, out, null_value = *field.null_value](const JsonScalar& scalar) {
      if (!scalar.is_null()) return read(scalar);
      *out = null_value;
      return Status();
    };
  }
  static ReadScalar ReaderOf(const PlanField& field, uint64_t* out) {
    return ReadUint64(out, field.max, field.min);
  }
  static ReadScalar ReaderOf(const PlanField&, std::optional<uint32_t>* out) {
    return ReadOptionalUint32(out);
  }
  template <typename Tag>
  static ReadScalar ReaderOf(const PlanField& field, Id<Tag>* out) {
    return ReaderOf(field, &out->value);
  }
  static ReadScalar ReaderOf(const PlanField&, CollectiveKind* out) {
    return ReadWord(out, kCollectiveKinds);
  }
  static ReadScalar ReaderOf(const PlanField&, ReadyMode* out) {
    return ReadWord(out, kReadyModes);
  }
  static ReadScalar ReaderOf(const PlanField&, OpKind* out) { return ReadWord(out, kOpKinds); }
  static ReadScalar ReaderOf(const PlanField&, Lane* out) { return ReadLane(out); }

  std::deque<JsonForm> objects_;
};

/// Writes fields, from the first key on; each but the last with its comma.
class FieldWriter {
 public:
  explicit FieldWriter(TextWriter& out) : out_(out) {}

  template <typename It>
  void PutAll(const It& it) {
    VisitFields(it, [&](const PlanField& field, const auto& value) { Put(field, value); });
  }
  template <typename Value>
  void Put(const PlanField& field, const Value& value) {
    if constexpr (HasFields<const Value>) {
      PutText(field, "{ ");
      FieldWriter(out_).PutAll(value);
      out_.Put(" }}");
    } else {
      if constexpr (std::is_integral_v<Value>) {
        if (field.if_absent == value) return;
        if (field.null_value == value) return PutText(field, "null");
      }
      PutText(field, TextOf(value));
    }
  }
  /// `text`: the value's JSON, or its beginning.
  void PutText(const PlanField& field, const std::string& text) {
    const char* const separator = is_first_ ? "" : field.starts_line ? ",\n  " : ", ";
    is_first_ = false;
    out_.Put("{}\"{}\": {}", separator, field.key, text);
  }

 private:
  static std::string TextOf(const std::string& text) { return QuoteJson(text); }
  static std::string TextOf(uint64_t number) { return fmt::to_string(number); }
  static std::string TextOf(const std::optional<uint32_t>& number) {
    return number ? fmt::to_string(*number) : "null";
  }
  template <typename Tag>
  static std::string TextOf(Id<Tag> id) {
    return fmt::to_string(id.value);
  }
  static std::string TextOf(Lane lane) { return fmt::to_string(NumberOf(lane)); }
  static std::string TextOf(OpKind kind) { return QuoteJson(Name(kind)); }
  static std::string TextOf(CollectiveKind kind) { return QuoteJson(Name(kind)); }
  static std::string TextOf(ReadyMode mode) { return QuoteJson(Name(mode)); }

  TextWriter& out_;
  bool is_first_ = true;
};

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_FIELDS_H_
