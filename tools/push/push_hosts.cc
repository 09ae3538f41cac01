// SPDX-License-Identifier: Apache-2.0
#include "tools/push/push_hosts.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "planning/flags/values.h"
#include "runtime/group/peers_file.h"

namespace prepost::tools {
namespace {

/// False if `text` names no host.
bool ParseHost(std::string_view text, PushHost* host) {
  size_t colon = text.find(':');
  // user@[fd00::1]:target: colons in brackets are the address's.
  const size_t bracket = text.find('[');
  if (bracket < colon) {
    const size_t end = text.find(']', bracket);
    if (end == std::string_view::npos) return false;
    colon = text.find(':', end);
  }
  if (colon != std::string_view::npos) host->target = text.substr(colon + 1);
  text = text.substr(0, colon);
  const size_t at = text.find('@');
  if (at != std::string_view::npos) {
    if (!IsHostName(text.substr(0, at))) return false;
    host->name = text.substr(0, at + 1);
    text.remove_prefix(at + 1);
  }
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    if (text.find(':') == std::string_view::npos) return false;
  }
  host->name += text;
  return IsHostName(text);
}

/// The words of a line, without its comment; nothing: a quote does not end.
std::optional<std::vector<std::string>> WordsOf(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string> words;
  bool is_quoted = false, is_in_word = false;
  for (const char letter : line) {
    const bool is_blank = kBlanks.find(letter) != std::string_view::npos;
    if (!is_quoted && letter == '#') break;
    if (!is_quoted && is_blank) {
      is_in_word = false;
      continue;
    }
    if (!std::exchange(is_in_word, true)) words.emplace_back();
    if (letter == '"') {
      is_quoted = !is_quoted;
    } else {
      words.back() += letter;
    }
  }
  if (is_quoted) return std::nullopt;
  return words;
}

/// One behind the host.
Status TakeWord(const std::string& word, const std::string& place, PushHost* host) {
  if (word.starts_with(kSiteKey)) {
    host->site = word.substr(kSiteKey.size());
    return CheckSiteName(host->site, place);
  }
  if (!host->address.empty() || !host->site.empty()) {
    return Rejected(
        fmt::format(
            "'{}' after the address of a host; a TARGET with blanks stands in double quotes", word),
        place);
  }
  host->address = word;
  if (IsHostName(word)) return {};
  return Rejected(fmt::format("'{}' is no address of a host", word), place);
}

}  // namespace

Status ParsePushHosts(std::string_view text, std::vector<PushHost>* hosts) {
  for (const std::string& part : Split(text, ',')) {
    PushHost host;
    if (!ParseHost(part, &host))
      return UsageError(fmt::format("--to: '{}' names no host, expected HOST[:TARGET]", part));
    hosts->push_back(std::move(host));
  }
  return {};
}

Status ParsePushHostsFile(std::string_view text, const std::string& name,
                          std::vector<PushHost>* hosts) {
  size_t line_number = 0;
  std::string with_site, without_site;  // places of hosts
  for (const std::string& line : Split(text, '\n')) {
    ++line_number;
    const std::string place = fmt::format("{}:{}", name, line_number);
    const std::optional<std::vector<std::string>> found = WordsOf(line);
    if (!found) return Rejected("a double quote has no end", place);
    const std::vector<std::string>& words = *found;
    if (words.empty()) continue;
    PushHost host;
    if (!ParseHost(words[0], &host))
      return Rejected(fmt::format("'{}' names no host, expected HOST[:TARGET]", words[0]), place);
    for (size_t i = 1; i < words.size(); ++i)
      PREPOST_RETURN_IF_ERROR(TakeWord(words[i], place, &host));
    hosts->push_back(std::move(host));
    (hosts->back().site.empty() ? without_site : with_site) = place;
  }
  if (with_site.empty() || without_site.empty()) return {};
  return Rejected(
      fmt::format("a host has no site, and others do ({}): site=NAME at all, or at none",
                  with_site),
      without_site);
}

Status LabelPushHosts(std::vector<PushHost>* hosts) {
  if (hosts->empty()) return UsageError("no host to push to: name some with --to or --hosts");
  std::map<std::string, size_t> uses;
  std::set<std::pair<std::string, std::string>> seen;
  for (const PushHost& host : *hosts) {
    ++uses[host.name];
    if (!seen.emplace(host.name, host.target).second) {
      return UsageError(fmt::format("host {} is named twice{}{}", host.name,
                                    host.target.empty() ? "" : ", both with ", host.target));
    }
  }
  for (PushHost& host : *hosts) {
    host.label = uses[host.name] > 1 && !host.target.empty()
                     ? fmt::format("{}:{}", host.name, host.target)
                     : host.name;
  }
  return {};
}

}  // namespace prepost::tools
