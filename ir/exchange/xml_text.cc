// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/xml_text.h"

#include <cstdint>

#include "ir/base/utf8.h"

namespace prepost {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of the XML character at the start of `text`; 0 when there is none.
size_t CharacterLength(std::string_view text) {
  const size_t length = Utf8Length(text);
  const auto first = static_cast<uint8_t>(text[0]);
  if (length == 1 && first < 0x20) return first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::string_view character = text.substr(0, length);
  return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF" ? 0 : length;
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    switch (length == 0 ? '\0' : text[0]) {
      case '\0':
        out += kReplacement;
        break;
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace prepost
