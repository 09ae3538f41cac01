// SPDX-License-Identifier: Apache-2.0
#include "tools/push/push_hosts.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/topology/host_list.h"
#include "planning/flags/values.h"
#include "runtime/group/peers_file.h"

namespace prepost::tools {
namespace {

constexpr size_t kHostsMax = 100'000;

/// Where the first of `letters` stands outside of brackets; the end of `text` if nowhere.
size_t FindOutside(std::string_view text, std::string_view letters, size_t begin = 0) {
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (depth == 0 && letters.find(text[i]) != std::string_view::npos) return i;
    depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
  }
  return text.size();
}

/// fe80::1%eth0: eth0 is this machine's, and others have other names or none for that network.
Status ZoneError(std::string_view address) {
  return Rejected(fmt::format(
      "'{}' is an address on a network of this machine only (%); name one that all hosts reach",
      address));
}

Status CheckCount(size_t hosts) {
  if (hosts <= kHostsMax) return {};
  return Rejected(fmt::format("more than {} hosts are named", kHostsMax));
}

/// The hosts of `text`, HOST[:TARGET]: one, or those of a list as "node[01-16]". Errors without a
/// code that fits.
Status ParseHost(std::string_view text, std::vector<PushHost>* hosts) {
  const Status no_host = Rejected(fmt::format("'{}' names no host, expected HOST[:TARGET]", text));
  // user@[fd00::1]:target: colons in brackets are the address's.
  const size_t colon = FindOutside(text, ":");
  const std::string target(colon < text.size() ? text.substr(colon + 1) : "");
  text = text.substr(0, colon);
  std::string user;
  const size_t at = text.find('@');
  if (at != std::string_view::npos) {
    if (!IsHostName(text.substr(0, at))) return no_host;
    user = text.substr(0, at + 1);
    text.remove_prefix(at + 1);
  }
  std::vector<std::string> names = {std::string(text)};
  if (text.find('[') != std::string_view::npos) {
    const bool is_ipv6 = text.find(':') != std::string_view::npos;
    if (is_ipv6 && text.starts_with('[') && text.ends_with(']')) {
      names = {std::string(text.substr(1, text.size() - 2))};
    } else {
      Result<std::vector<std::string>> listed = ExpandHostList(text, kHostsMax);
      if (!listed.ok()) return listed.status();
      names = *std::move(listed);
    }
  }
  PREPOST_RETURN_IF_ERROR(CheckCount(hosts->size() + names.size()));
  for (const std::string& name : names) {
    if (!IsHostName(name)) return no_host;
    if (name.find('%') != std::string::npos) return ZoneError(name);
    hosts->push_back({.name = user + name, .target = target});
  }
  return {};
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
  if (word.find('%') != std::string::npos && IsHostName(word))
    return Rejected(ZoneError(word).message(), place);
  if (IsHostName(word)) return {};
  return Rejected(fmt::format("'{}' is no address of a host", word), place);
}

}  // namespace

Status ParsePushHosts(std::string_view text, std::vector<PushHost>* hosts) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = FindOutside(text, ",", begin);
    const Status status = ParseHost(text.substr(begin, end - begin), hosts);
    if (!status.ok()) return UsageError("--to: " + status.message());
    begin = end + 1;
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
    std::vector<PushHost> named;
    const Status status = ParseHost(words[0], &named);
    if (!status.ok()) return Rejected(status.message(), place);
    const Status count = CheckCount(hosts->size() + named.size());
    if (!count.ok()) return Rejected(count.message(), place);
    PushHost rest;
    for (size_t i = 1; i < words.size(); ++i)
      PREPOST_RETURN_IF_ERROR(TakeWord(words[i], place, &rest));
    if (named.size() > 1 && !rest.address.empty())
      return Rejected(fmt::format("{} hosts have one address", named.size()), place);
    for (PushHost& host : named) {
      host.address = rest.address;
      host.site = rest.site;
      host.place = place;
      hosts->push_back(std::move(host));
    }
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
    std::string target = host.target;
    while (target.size() > 1 && target.ends_with('/')) target.pop_back();
    if (!seen.emplace(host.name, target).second) {
      const std::string twice = fmt::format("host {} is named twice{}{}", host.name,
                                            host.target.empty() ? "" : ", both with ", host.target);
      return host.place.empty() ? UsageError(twice) : Rejected(twice, host.place);
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
