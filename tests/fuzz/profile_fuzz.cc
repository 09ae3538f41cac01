// SPDX-License-Identifier: Apache-2.0
//
// A profile from anywhere: what is read makes a network for any number of nodes; what is refused
// has a place.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "prepost/backends/emulated/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto profile = prepost::emulated::ReadProfile(in, "profile");
  if (!profile.ok()) {
    PREPOST_CHECK(profile.status().ToString().starts_with("profile:"));
    return 0;
  }
  PREPOST_CHECK(profile->host.cores >= 1 && profile->host.copy_rate > 0);
  for (const uint32_t nodes : {1u, 2u, 33u}) {
    PREPOST_CHECK(CheckNetwork(NetworkOf(profile->network, nodes), nodes).ok());
  }
  return 0;
}
