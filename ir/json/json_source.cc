// SPDX-License-Identifier: Apache-2.0
#include "ir/json/json_source.h"

#include <algorithm>

namespace prepost {

void JsonSource::Fill(size_t count) {
  std::copy(buffer_.begin() + static_cast<ptrdiff_t>(next_),
            buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
  taken_before_ += next_;
  end_ -= next_;
  next_ = 0;
  is_cut_ |= taken_before_ - token_begin_ > token_max_;
  is_ended_ |= is_cut_;
  while (end_ < count && !is_ended_) {
    const std::streamsize got =
        in_.sgetn(buffer_.data() + end_, static_cast<std::streamsize>(buffer_.size() - end_));
    if (got <= 0)
      is_ended_ = true;
    else
      end_ += static_cast<size_t>(got);
  }
}

ShortNumber ParseShortNumber(std::string_view text) {
  constexpr std::string_view kNull = "null";
  ShortNumber number;
  if (text.starts_with(kNull)) {
    number.length = kNull.size();
  } else {
    constexpr size_t kDigitsMax = 10;
    uint64_t value = 0;
    size_t digits = 0;
    for (; digits < text.size() && digits <= kDigitsMax; ++digits) {
      const uint32_t digit = static_cast<unsigned char>(text[digits]) - uint32_t{'0'};
      if (digit > 9) break;
      value = value * 10 + digit;
    }
    const bool is_padded = digits > 1 && text[0] == '0';
    if (digits == 0 || is_padded || value > UINT32_MAX) return {};
    number = {.length = digits, .value = static_cast<uint32_t>(value)};
  }
  const char behind = number.length < text.size() ? text[number.length] : '\0';
  const bool is_whole = behind == ',' || behind == ']' || behind == ' ' || behind == '\n' ||
                        behind == '\t' || behind == '\r';
  return is_whole ? number : ShortNumber();
}

}  // namespace prepost
