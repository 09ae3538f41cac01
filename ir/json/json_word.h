// SPDX-License-Identifier: Apache-2.0
//
// Readers (json_reader.h) of enumerators: ReadWord of a string that names one, ReadLane of a number. Internal to ir/.
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

inline constexpr std::array kCollectiveKinds = {CollectiveKind::kMulticast};
inline constexpr std::array kReadyModes = {ReadyMode::kBarrier, ReadyMode::kChannel,
                                           ReadyMode::kWindow, ReadyMode::kRetry};
inline constexpr std::array kOpKinds = {OpKind::kSend, OpKind::kRecv};

/// One of the `values`, by its Name(), or an error that suggests the near one.
template <typename Enum, size_t count>
JsonForm::ReadScalar ReadWord(Enum* out, const std::array<Enum, count>& values) {
  return [out, values](const JsonScalar& scalar) -> Status {
    std::vector<std::string> names;
    for (Enum value : values) {
      if (scalar.kind == JsonScalar::Kind::kString && scalar.text == Name(value)) {
        *out = value;
        return {};
      }
      names.emplace_back(Name(value));
    }
    return Rejected(fmt::format("expected {}\"{}\", found {}{}", count == 1 ? "" : "one of ",
                                fmt::join(names, "\", \""), scalar.Describe(),
                                DidYouMean(scalar.text, names)));
  };
}

/// The number of a lane.
inline JsonForm::ReadScalar ReadLane(Lane* out) {
  return [out](const JsonScalar& scalar) -> Status {
    uint64_t number = 0;
    PREPOST_RETURN_IF_ERROR(ReadUint64(&number)(scalar));
    const Result<Lane> lane = LaneOf(number);
    if (lane.ok()) *out = *lane;
    return lane.status();
  };
}

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_WORD_H_
