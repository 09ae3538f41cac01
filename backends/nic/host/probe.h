// SPDX-License-Identifier: Apache-2.0
//
// Probe: asks a device what no source says: small experiments, each with objects of its own and a
// bounded wait, whose outcome a person with a card can send to the project.
#ifndef PREPOST_BACKENDS_NIC_HOST_PROBE_H_
#define PREPOST_BACKENDS_NIC_HOST_PROBE_H_

#include <functional>
#include <string>
#include <vector>

#include "backends/nic/device.h"

namespace prepost::nic {

/// One device, which reaches itself.
struct ProbeTarget {
  Device& device;
  /// Lets a NIC in software do all that it will do. Empty: the NIC runs on its own, and is given
  /// some time for each outcome.
  std::function<void()> settle = {};

  bool is_software() const { return static_cast<bool>(settle); }
};

struct ProbeAnswer {
  std::string id;  ///< "U1" ... "U10"
  std::string question;
  std::string experiment;
  std::string seen;  ///< or "not answered: REASON"
  bool is_answered = false;
};

/// All questions, in the order of their ids; takes seconds at most. What fails is an answer, too.
std::vector<ProbeAnswer> Probe(const ProbeTarget& target);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_PROBE_H_
