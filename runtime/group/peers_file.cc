// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/peers_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <istream>
#include <optional>
#include <unordered_map>
#include <utility>

namespace prepost {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr size_t kHostBytesMax = 253;  ///< of a DNS name
constexpr size_t kShownMax = 40;       ///< of a wrong word, in messages
constexpr std::string_view kForm = "expected NODE HOST[:PORT|:FIRST-LAST] [site=NAME]";
constexpr size_t kSiteBytesMax = 64;

/// The whole of `text` as a number up to `max`.
std::optional<uint32_t> NumberOf(std::string_view text, uint32_t max) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > max) return std::nullopt;
  return number;
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}
bool IsIpv6Character(char c) { return IsHostCharacter(c) || c == ':' || c == '%'; }

/// `text` for a message: its beginning, without anything that a terminal would not print.
std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, kShownMax));
  std::ranges::replace_if(
      shown, [](char c) { return c < 0x20 || c == 0x7f; }, '?');
  return shown;
}

/// Goes through one line, word by word.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text.substr(0, text.find('#'))) {}

  /// The next word; empty at the end.
  std::string_view Next() {
    const size_t begin = std::min(text_.find_first_not_of(kBlanks, end_), text_.size());
    begin_ = begin;
    end_ = std::min(text_.find_first_of(kBlanks, begin), text_.size());
    return text_.substr(begin, end_ - begin);
  }
  /// The column of the last word, from 1.
  size_t column() const { return begin_ + 1; }

 private:
  std::string_view text_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

class PeersParser {
 public:
  PeersParser(const std::string& name, uint32_t nodes)
      : name_(name), nodes_(nodes), line_of_node_(nodes, 0), peers_(nodes) {}

  Result<std::vector<PeerAddress>> Parse(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      PREPOST_RETURN_IF_ERROR(TakeLine(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    const auto missing = std::ranges::find(line_of_node_, 0u);
    if (missing == line_of_node_.end()) return std::move(peers_);
    return Rejected(fmt::format("node {} is missing, expected nodes 0 to {} as in the plan",
                                missing - line_of_node_.begin(), nodes_ - 1),
                    name_);
  }

 private:
  Status TakeLine(std::string_view text) {
    Line words(text);
    const std::string_view node_word = words.Next();
    if (node_word.empty()) return {};
    const std::optional<uint32_t> node = NumberOf(node_word, nodes_ - 1);
    if (!node) {
      return Error(words, fmt::format("'{}' is no node of the plan, expected 0 to {}",
                                      Shown(node_word), nodes_ - 1));
    }
    if (line_of_node_[*node] != 0) {
      return Error(words,
                   fmt::format("node {} stands in line {} already", *node, line_of_node_[*node]));
    }
    const std::string_view address = words.Next();
    if (address.empty()) return Error(words, fmt::format("no host, {}", kForm));
    Result<PeerAddress> peer = ParseAddress(words, address);
    if (!peer.ok()) return peer.status();
    if (peer->ports.first == peer->ports.last) {
      const auto [first, is_new] = node_at_.try_emplace(ToString(*peer), *node);
      if (!is_new) {
        return Error(words, fmt::format("{} is the address of node {} already; nodes of one host "
                                        "need ports of their own",
                                        Shown(first->first), first->second));
      }
    }
    std::string_view more = words.Next();
    if (more.starts_with(kSiteKey)) {
      more.remove_prefix(kSiteKey.size());
      const Status status = CheckSiteName(more, "");
      if (!status.ok()) return Error(words, status.message());
      peer->site = more;
      more = words.Next();
    }
    if (!more.empty()) return Error(words, fmt::format("'{}' is too much, {}", Shown(more), kForm));
    if (has_site_ && *has_site_ == peer->site.empty()) {
      return Error(
          words, fmt::format("node {} has {} site, and the nodes before have {}", *node,
                             peer->site.empty() ? "no" : "a", peer->site.empty() ? "one" : "none"));
    }
    has_site_ = !peer->site.empty();
    peers_[*node] = std::move(*peer);
    line_of_node_[*node] = line_;
    return {};
  }

  Result<PeerAddress> ParseAddress(const Line& words, std::string_view text) const {
    const bool bracketed = text.starts_with('[');
    const size_t host_end = std::min(text.find(bracketed ? ']' : ':'), text.size());
    std::string_view host = text.substr(0, host_end);
    std::string_view rest = text.substr(host_end);
    if (bracketed) {
      if (rest.empty()) return Error(words, "no ']' behind the IPv6 address");
      host.remove_prefix(1);
      rest.remove_prefix(1);
    } else if (std::ranges::count(rest, ':') > 1) {
      return Error(words, fmt::format("'{}' is no host; an IPv6 address stands in brackets, as in "
                                      "[::1]:7000",
                                      Shown(text)));
    }
    const bool is_ipv6 = host.find(':') != std::string_view::npos;
    if (bracketed != is_ipv6 || !IsHostName(host)) {
      return Error(words, fmt::format("'{}' is no host name or address", Shown(host)));
    }
    PeerAddress peer = {.host = std::string(host)};
    if (rest.empty()) return peer;
    if (rest.front() != ':') {
      return Error(words, fmt::format("'{}' behind the address, {}", Shown(rest), kForm));
    }
    const Result<PortRange> ports = ParsePorts(rest.substr(1));
    if (!ports.ok()) return Error(words, ports.status().message());
    peer.ports = *ports;
    return peer;
  }

  Status Error(const Line& words, std::string message) const {
    return Rejected(std::move(message), fmt::format("{}:{}:{}", name_, line_, words.column()));
  }

  const std::string& name_;
  const uint32_t nodes_;
  uint32_t line_ = 0;
  std::optional<bool> has_site_;                       ///< of the lines so far
  std::vector<uint32_t> line_of_node_;                 ///< 0: none yet
  std::unordered_map<std::string, uint32_t> node_at_;  ///< by address with one port
  std::vector<PeerAddress> peers_;
};

}  // namespace

bool IsHostName(std::string_view text) {
  const bool is_ipv6 = text.find(':') != std::string_view::npos;
  return !text.empty() && text.size() <= kHostBytesMax && !text.starts_with('-') &&
         std::ranges::all_of(text, is_ipv6 ? IsIpv6Character : IsHostCharacter);
}

Status CheckSiteName(std::string_view name, const std::string& where) {
  if (!name.empty() && name.size() <= kSiteBytesMax && std::ranges::all_of(name, IsHostCharacter))
    return {};
  return Rejected(
      fmt::format("'{}' is no name of a site: 1 to {} letters, digits, dots, dashes and "
                  "underscores",
                  Shown(name), kSiteBytesMax),
      where);
}

std::string ToString(const PeerAddress& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? fmt::format("[{}]", address.host) : address.host;
  const auto [first, last] = address.ports;
  return first == last ? fmt::format("{}:{}", host, first)
                       : fmt::format("{}:{}-{}", host, first, last);
}

Result<PortRange> ParsePorts(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<uint32_t> first = NumberOf(text.substr(0, dash), UINT16_MAX);
  const std::optional<uint32_t> last =
      dash == std::string_view::npos ? first : NumberOf(text.substr(dash + 1), UINT16_MAX);
  if (!first || !last || *first == 0) {
    return Rejected(
        fmt::format("'{}' is no port, expected 1 to 65535 or a range as 7000-7010", Shown(text)));
  }
  if (*last < *first || *last - *first >= kPortsMax) {
    return Rejected(
        fmt::format("'{}' is no range of 1 to {} ports, smallest first", Shown(text), kPortsMax));
  }
  return PortRange{.first = static_cast<uint16_t>(*first), .last = static_cast<uint16_t>(*last)};
}

Result<std::vector<PeerAddress>> ParsePeers(std::string_view text, const std::string& name,
                                            uint32_t nodes) {
  PREPOST_CHECK(nodes > 0);
  if (text.size() > kPeersFileBytesMax) {
    return Rejected(fmt::format("more than {} bytes", kPeersFileBytesMax), name);
  }
  return PeersParser(name, nodes).Parse(text);
}

Result<std::vector<PeerAddress>> ReadPeers(std::istream& in, const std::string& name,
                                           uint32_t nodes) {
  std::string text;
  char buffer[4096];
  while (text.size() <= kPeersFileBytesMax &&
         (in.read(buffer, sizeof(buffer)) || in.gcount() > 0)) {
    text.append(buffer, static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) return Rejected("cannot read", name);
  return ParsePeers(text, name, nodes);
}

}  // namespace prepost
