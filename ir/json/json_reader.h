// SPDX-License-Identifier: Apache-2.0
//
// ReadJson: reads a JSON file whose form is known ahead, as a stream, and says exactly where it
// differs. The readers of plans and specs describe their objects as JsonForms; everything common
// (unknown, missing and doubled keys, wrong types, nesting, positions) is here.
#ifndef PREPOST_IR_JSON_JSON_READER_H_
#define PREPOST_IR_JSON_JSON_READER_H_

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// The last character that was read of a file: its line, from 1, and its column, from 1; 0: none of
/// the line.
struct JsonPlace {
  uint64_t line = 1;
  uint64_t column = 0;
};

/// A scalar as it stands in the file.
struct JsonScalar {
  enum class Kind : uint8_t { kNull, kBoolean, kUnsigned, kOtherNumber, kString };
  Kind kind = Kind::kNull;
  uint64_t number = 0;   ///< kUnsigned; kBoolean: 0 or 1
  std::string text;      ///< kString: the string; kOtherNumber: as written
  JsonPlace place = {};  ///< where it ends; of a number, the character behind it

  bool is_null() const { return kind == Kind::kNull; }
  /// "null", "a boolean", "7", "-1", "string \"x\"", for messages.
  std::string Describe() const;
};

/// The form of one object: its keys, what each value must be, and where it goes. Lives longer than
/// the reading. The functions are called in file order; a Status they return needs no place, it is
/// added.
class JsonForm {
 public:
  using ReadScalar = std::function<Status(const JsonScalar&)>;
  enum class Need : uint8_t { kRequired, kOptional };

  JsonForm& Scalar(std::string key, ReadScalar read, Need need = Need::kRequired);
  /// A string that has a letter for each element of a column, and may be as long.
  JsonForm& Letters(std::string key, ReadScalar read, Need need = Need::kRequired);
  JsonForm& Object(std::string key, JsonForm* form, Need need = Need::kRequired);
  /// Either: a value, or an object that says more about it.
  JsonForm& ScalarOrObject(std::string key, ReadScalar read, JsonForm* form,
                           Need need = Need::kRequired);
  /// An array of `least` elements or more.
  JsonForm& Scalars(std::string key, ReadScalar read_element, Need need = Need::kRequired,
                    uint64_t least = 0);
  /// An array of arrays; `begin_list` is called when one of those begins.
  JsonForm& ScalarLists(std::string key, std::function<void()> begin_list, ReadScalar read_element,
                        Need need = Need::kRequired);
  /// Either: an array of `least` elements or more, or an array of such arrays.
  JsonForm& ScalarsOrLists(std::string key, std::function<void()> begin_list,
                           ReadScalar read_element, Need need = Need::kRequired,
                           uint64_t least = 0);
  /// Either: one value, or an array of them.
  JsonForm& ScalarOrScalars(std::string key, ReadScalar read_element, Need need = Need::kRequired);
  /// Many numbers, appended to `*out`: read much faster than Scalars.
  struct Uint32Column {
    std::vector<uint32_t>* out = nullptr;
    uint32_t value_max = 0xffffffff;
    std::optional<uint32_t> null_value = {};  ///< what null stands for; none: it is an error
  };
  JsonForm& Uint32s(std::string key, Uint32Column column, Need need = Need::kRequired);
  JsonForm& Objects(std::string key, JsonForm* element_form, Need need = Need::kRequired);
  /// Either: one object, or an array of objects of another form.
  JsonForm& ObjectOrObjects(std::string key, JsonForm* form, JsonForm* element_form,
                            Need need = Need::kRequired);
  /// Exactly one of two optional keys, added before, must be there.
  JsonForm& OneOf(const std::string& key, const std::string& other);
  /// Of a whole file: keys that it lacks are an error that names all of them, at its end; what is
  /// checked of an object that lacks some is left out.
  JsonForm& NamesAllMissing();
  /// Called when an object of this form begins and when it is complete.
  JsonForm& OnBegin(std::function<void()> begin);
  JsonForm& OnEnd(std::function<Status()> end);

 private:
  friend class JsonFormHandler;
  enum class Type : uint8_t {
    kScalar,
    kObject,
    kScalarOrObject,
    kScalars,
    kScalarLists,
    kScalarsOrLists,
    kScalarOrScalars,
    kObjects,
    kObjectOrObjects
  };
  struct Field {
    std::string key;
    Type type;
    Need need;
    ReadScalar read;
    std::function<void()> begin_list = {};  ///< of ScalarLists
    JsonForm* form = nullptr;               ///< of an object that may be the value
    JsonForm* element_form = nullptr;       ///< of the objects of an array that may be the value
    uint64_t least = 0;                     ///< elements of an array
    bool is_letters = false;
    Uint32Column column = {};  ///< of Uint32s
  };
  JsonForm& Add(Field field);

  std::vector<Field> fields_;
  std::vector<std::pair<size_t, size_t>> alternatives_;  // of OneOf(), as indices into fields_
  std::function<void()> begin_;
  std::function<Status()> end_;
  bool names_all_missing_ = false;
};

/// Readers for the usual scalars.
JsonForm::ReadScalar ReadBool(bool* out);
JsonForm::ReadScalar ReadUint32(uint32_t* out, uint32_t max = 0xffffffff, uint32_t min = 0);
JsonForm::ReadScalar ReadUint64(uint64_t* out, uint64_t max = UINT64_MAX, uint64_t min = 0);
JsonForm::ReadScalar ReadInt64(int64_t* out, int64_t min, int64_t max);
JsonForm::ReadScalar ReadOptionalUint32(std::optional<uint32_t>* out);  ///< null: none
JsonForm::ReadScalar ReadString(std::string* out, size_t bytes_max = 256);
/// The value must be exactly this string.
JsonForm::ReadScalar ExpectString(std::string expected);
/// "1.0": the major part must be `major`; a minor part above `minor` adds a line to `*warnings`
/// (may be null).
JsonForm::ReadScalar ExpectVersion(uint32_t major, uint32_t minor,
                                   std::vector<std::string>* warnings);

/// Reads one object of `form` from `in`, to the end of the stream. Keys that begin with "x-" are
/// skipped with whatever they hold. Errors (kRejected) carry "name:line:col: /json/pointer"; the
/// column is that of the last character read. `begin`: what was read of the file before.
Status ReadJson(std::istream& in, const std::string& name, JsonForm* form, JsonPlace begin = {});

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_READER_H_
