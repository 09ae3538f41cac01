// SPDX-License-Identifier: Apache-2.0
#include "ir/base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace prepost {
namespace {

/// Whether the sequence of `length` bytes at the start of `text` is a control character.
bool IsControl(std::string_view text, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (length == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  return length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080 to U+009F
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  uint32_t code = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[length] || is_surrogate || code > 0x10FFFF ? 0 : length;
}

size_t PrintableLength(std::string_view text) {
  const size_t length = Utf8Length(text);
  return IsControl(text, length) ? 0 : length;
}

std::string FirstLetters(std::string_view text, size_t letters) {
  size_t bytes = 0;
  while (letters-- > 0 && bytes < text.size())
    bytes += std::max<size_t>(Utf8Length(text.substr(bytes)), 1);
  return std::string(text.substr(0, bytes));
}

std::string Printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t taken = std::max<size_t>(Utf8Length(text), 1);
    if (PrintableLength(text) != 0) {
      out += text.substr(0, taken);
    } else {
      for (const char c : text.substr(0, taken)) {
        const auto byte = static_cast<uint8_t>(c);
        out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xF]};
      }
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string PrintableLines(std::string_view text) {
  constexpr std::string_view kContinued = "\n  ";
  std::string lines;
  for (;;) {
    const size_t length = text.find(kContinued);
    lines += Printable(text.substr(0, length));
    if (length == std::string_view::npos) return lines;
    lines += kContinued;
    text.remove_prefix(length + kContinued.size());
  }
}

}  // namespace prepost
