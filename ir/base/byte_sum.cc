// SPDX-License-Identifier: Apache-2.0
#include "ir/base/byte_sum.h"

#include <algorithm>

namespace prepost {

std::string ByteSum::ToText() const {
  unsigned __int128 rest = static_cast<unsigned __int128>(high_) << 64 | low_;
  std::string digits;
  do {
    digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  } while (rest != 0);
  std::ranges::reverse(digits);
  return digits;
}

std::string CountBytes(const ByteSum& bytes) {
  return bytes.ToText() + (bytes == ByteSum(1) ? " byte" : " bytes");
}

}  // namespace prepost
