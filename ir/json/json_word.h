// SPDX-License-Identifier: Apache-2.0
//
// ReadWord: a reader (json_reader.h) of a string that names an enumerator. Internal to ir/.
#ifndef PREPOST_IR_JSON_JSON_WORD_H_
#define PREPOST_IR_JSON_JSON_WORD_H_

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "ir/base/near_name.h"
#include "ir/json/json_reader.h"
#include "ir/words.h"

namespace prepost {

/// One of them, by its Name(), or an error that suggests the near one.
template <typename Enum>
JsonForm::ReadScalar ReadWord(Enum* out) {
  return [out](const JsonScalar& scalar) -> Status {
    const bool is_string = scalar.kind == JsonScalar::Kind::kString;
    if (const auto value = is_string ? EnumeratorOf<Enum>(scalar.text) : std::nullopt) {
      *out = *value;
      return {};
    }
    const std::vector<std::string> names = NamesOf<Enum>();
    return Rejected(fmt::format("expected {}\"{}\", found {}{}", names.size() == 1 ? "" : "one of ",
                                fmt::join(names, "\", \""), scalar.Describe(),
                                DidYouMean(scalar.text, names)));
  };
}

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_WORD_H_
