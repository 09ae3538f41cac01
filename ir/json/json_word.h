// SPDX-License-Identifier: Apache-2.0
//
// ReadWord: a reader (json_reader.h) of a string that names an enumerator. Internal to ir/.
#ifndef PREPOST_IR_JSON_JSON_WORD_H_
#define PREPOST_IR_JSON_JSON_WORD_H_

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

#include "ir/json/json_reader.h"
#include "ir/near_name.h"
#include "ir/plan.h"

namespace prepost {

/// All of an enum.
template <typename Enum>
inline constexpr std::array<Enum, 0> kEnumerators = {};
template <>
inline constexpr std::array kEnumerators<CollectiveKind> = {CollectiveKind::kMulticast};
template <>
inline constexpr std::array kEnumerators<ReadyMode> = {ReadyMode::kBarrier, ReadyMode::kChannel,
                                                       ReadyMode::kWindow, ReadyMode::kRetry};
template <>
inline constexpr std::array kEnumerators<OpKind> = {OpKind::kSend, OpKind::kRecv};

/// One of them, by its Name(), or an error that suggests the near one.
template <typename Enum>
JsonForm::ReadScalar ReadWord(Enum* out) {
  return [out](const JsonScalar& scalar) -> Status {
    std::vector<std::string> names;
    for (Enum value : kEnumerators<Enum>) {
      if (scalar.kind == JsonScalar::Kind::kString && scalar.text == Name(value)) {
        *out = value;
        return {};
      }
      names.emplace_back(Name(value));
    }
    return Rejected(fmt::format("expected {}\"{}\", found {}{}", names.size() == 1 ? "" : "one of ",
                                fmt::join(names, "\", \""), scalar.Describe(),
                                DidYouMean(scalar.text, names)));
  };
}

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_WORD_H_
