// SPDX-License-Identifier: Apache-2.0
//
// What tests ask of XML text: whether it is well formed as far as our writers can break it, and how
// often a piece occurs.
#ifndef PREPOST_TESTS_SUPPORT_XML_H_
#define PREPOST_TESTS_SUPPORT_XML_H_

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace prepost::test {

inline size_t Occurrences(std::string_view text, std::string_view piece) {
  size_t count = 0;
  for (size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + piece.size()))
    ++count;
  return count;
}

/// "" when tags nest, attributes are quoted and no bare '<' or '&' is left; else what is wrong.
inline std::string XmlError(std::string_view text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const size_t end = text.find(';', at);
      if (end == text.npos || end - at > 8) return "bare & at " + std::to_string(at);
    }
    if (text[at] != '<') continue;
    if (text.substr(at, 4) == "<!--") {
      at = text.find("-->", at);
      if (at == text.npos) return "comment without end";
      continue;
    }
    size_t end = at + 1;
    for (char quote = 0; end < text.size() && (quote != 0 || text[end] != '>'); ++end) {
      if (text[end] == '<') return "bare < at " + std::to_string(end);
      if (quote == 0 && text[end] == '"')
        quote = '"';
      else if (text[end] == quote)
        quote = 0;
    }
    if (end >= text.size()) return "tag without end";
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    const size_t name = tag.find_first_of(" \t\n/", 1);
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "closes " + std::string(tag);
      open.pop_back();
    } else if (tag[0] != '?' && tag[0] != '!' && tag.back() != '/') {
      open.emplace_back(tag.substr(0, name));
    }
    at = end;
  }
  return open.empty() ? "" : "left open: " + open.back();
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_XML_H_
