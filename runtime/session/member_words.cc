// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/member_words.h"

#include <charconv>
#include <string_view>

namespace prepost {
namespace {

constexpr std::string_view kNode = "node";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
/// Of what may be a name.
bool IsNamePart(char c) {
  return IsDigit(c) || IsLetter(c) || std::string_view("-._:@/").find(c) != std::string_view::npos;
}
/// A word may end in what ends a sentence.
bool EndsWord(std::string_view rest) {
  return rest.empty() || !IsNamePart(rest[0]) ||
         ((rest[0] == '.' || rest[0] == ':') && (rest.size() == 1 || rest[1] == ' '));
}

}  // namespace

std::string InMemberWords(const std::string& text, const std::vector<uint32_t>& members) {
  std::string words;
  std::string_view rest = text;
  while (!rest.empty()) {
    const bool begins = words.empty() || !IsNamePart(words.back());
    if (begins && rest.starts_with("--") && rest.size() > 2 && IsLetter(rest[2])) {
      rest.remove_prefix(2);
      continue;
    }
    const size_t plural = rest.starts_with("nodes") ? 1 : 0;
    if (!begins || !rest.starts_with(kNode) || !EndsWord(rest.substr(kNode.size() + plural))) {
      words += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    words += plural == 0 ? "member" : "members";
    rest.remove_prefix(kNode.size() + plural);
    uint32_t node = 0;
    if (plural != 0 || rest.size() < 2 || rest[0] != ' ' || !IsDigit(rest[1])) continue;
    const char* const end = rest.data() + rest.size();
    const auto number = std::from_chars(rest.data() + 1, end, node);
    if (number.ec != std::errc() || node >= members.size()) continue;
    words += ' ' + std::to_string(members[node]);
    rest.remove_prefix(static_cast<size_t>(number.ptr - rest.data()));
  }
  return words;
}

Status InMemberWords(const Status& status, const std::vector<uint32_t>& members) {
  if (status.ok()) return status;
  return {status.code(), InMemberWords(status.message(), members), status.where()};
}

}  // namespace prepost
