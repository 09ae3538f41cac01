// SPDX-License-Identifier: Apache-2.0
//
// A peers file from anywhere: the first byte is the number of nodes, the rest the text. What is
// read is the same when it is written and read again; what is refused has a place.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"
#include "runtime/group/peers_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint32_t nodes = data[0] % 8 + 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto peers = prepost::ParsePeers(text, "peers", nodes);
  if (!peers.ok()) {
    PREPOST_CHECK(peers.status().ToString().starts_with("peers:"));
    return 0;
  }
  PREPOST_CHECK(peers->size() == nodes);
  std::string written;
  for (uint32_t node = 0; node < nodes; ++node) {
    const prepost::PeerAddress& peer = (*peers)[node];
    PREPOST_CHECK(!peer.host.empty() && peer.ports.first > 0 &&
                  peer.ports.first <= peer.ports.last &&
                  uint32_t{peer.ports.last} - peer.ports.first < prepost::kPortsMax);
    const std::string site = peer.site.empty() ? "" : " site=" + peer.site;
    written += std::to_string(node) + " " + ToString(peer) + site + "\n";
  }
  const auto again = prepost::ParsePeers(written, "written", nodes);
  PREPOST_CHECK(again.ok() && *again == *peers);
  return 0;
}
