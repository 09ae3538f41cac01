// SPDX-License-Identifier: Apache-2.0
//
// Push(): brings files to hosts. It starts a receiver on each (receiver.h), makes a group of them
// and this machine (prepost/prepost.h), sends the files as its root, and has every host verify what
// it has written before the files get their names.
#ifndef PREPOST_TOOLS_PUSH_PUSHER_H_
#define PREPOST_TOOLS_PUSH_PUSHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "tools/push/file_attributes.h"
#include "tools/push/manifest.h"
#include "tools/push/push_options.h"
#include "tools/push/push_source.h"

namespace prepost::tools {

struct HostVerdict {
  std::string host;
  Status status;
  std::string target;
  double link_speed = 0;        ///< bytes/s that the best of its connections carried; 0: not known
  bool is_consequence = false;  ///< the error is that of another host
  bool was_there = false;       ///< all files, before
  uint64_t bytes = 0;           ///< received
  double seconds = 0;           ///< from the first group on
  std::vector<Unkept> unkept = {};
};

struct PushReport {
  std::vector<HostVerdict> hosts;  ///< in the order of PushOptions::hosts
  std::vector<PushedFile> files;   ///< all; `sum` of those that were sent, or compared by it
  size_t files_sent = 0;
  bool by_content = false;          ///< that the others are there was found by their sums
  std::string why_sequential = {};  ///< PushRounds::why_sequential()
  std::string slow_host = {};  ///< whose connections carry less than half of the others'; "": none
  uint64_t bytes = 0;          ///< sent to each host that lacked something
  double seconds = 0;
};

/// Errors: what kept it from beginning; kInterrupted: nothing is left at the hosts. All else, a
/// host that fails among it, stands in the verdicts.
Result<PushReport> Push(PushSource& source, PushOptions options);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSHER_H_
