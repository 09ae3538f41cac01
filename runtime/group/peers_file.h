// SPDX-License-Identifier: Apache-2.0
//
// The peers file: where each node of a plan listens. One line per node, in any order:
//
//     # NODE HOST[:PORT|:FIRST-LAST] [site=NAME]
//     0 10.0.0.1
//     1 storage-1.example.org:7000
//     2 [2001:db8::2]:7000-7010
//
// Sites, at all lines or at none, say which nodes are near each other.
#ifndef PREPOST_RUNTIME_GROUP_PEERS_FILE_H_
#define PREPOST_RUNTIME_GROUP_PEERS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;

  friend bool operator==(const PortRange&, const PortRange&) = default;
};

/// The port of nodes whose line names none.
inline constexpr uint16_t kDefaultPort = 7811;
inline constexpr uint32_t kPortsMax = 1024;  ///< in a range
inline constexpr size_t kPeersFileBytesMax = size_t{64} << 20;

struct PeerAddress {
  std::string host;  ///< a name or an address; IPv6 without its brackets
  PortRange ports = {.first = kDefaultPort, .last = kDefaultPort};
  std::string site = {};  ///< "": none is named

  friend bool operator==(const PeerAddress&, const PeerAddress&) = default;
};
/// Whether `text` may be the name of a host or an address of it, IPv6 without brackets: the only
/// form in which one is passed on, to resolvers and to command lines, where a leading dash would be
/// a flag.
bool IsHostName(std::string_view text);

/// Before the name of a site, in files of hosts.
inline constexpr std::string_view kSiteKey = "site=";
/// Whether `name` may be a site's: 1 to 64 letters, digits, dots, dashes and underscores. Errors
/// (kRejected).
Status CheckSiteName(std::string_view name, const std::string& where);

/// "10.0.0.1:7811", "[::1]:7000-7010", without the site.
std::string ToString(const PeerAddress& address);

/// "7000" or "7000-7010", within 1..65535 and kPortsMax. Errors: kRejected, without a place.
Result<PortRange> ParsePorts(std::string_view text);

/// The addresses of nodes 0 .. nodes - 1. Errors (kRejected), with `name`:line:column: anything but
/// lines as above with every node once; more than kPeersFileBytesMax.
Result<std::vector<PeerAddress>> ParsePeers(std::string_view text, const std::string& name,
                                            uint32_t nodes);
Result<std::vector<PeerAddress>> ReadPeers(std::istream& in, const std::string& name,
                                           uint32_t nodes);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_PEERS_FILE_H_
