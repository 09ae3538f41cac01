// SPDX-License-Identifier: Apache-2.0
#ifndef PREPOST_IR_BASE_COUNT_H_
#define PREPOST_IR_BASE_COUNT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace prepost {

/// "1 block", "4 blocks": for everything that people read.
inline std::string Count(uint64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " ";
  text += noun;
  if (count != 1) text += "s";
  return text;
}

}  // namespace prepost

#endif  // PREPOST_IR_BASE_COUNT_H_
