// SPDX-License-Identifier: Apache-2.0
//
// PushHost: a host that files are pushed to, as --to and --hosts name it.
#ifndef PREPOST_TOOLS_PUSH_PUSH_HOSTS_H_
#define PREPOST_TOOLS_PUSH_PUSH_HOSTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"

namespace prepost::tools {

struct PushHost {
  std::string name;     ///< what the agent command gets: "node7", "user@node7"
  std::string target;   ///< folder, pipe or device there; "": where the agent starts
  std::string address;  ///< where others reach it; "": as `name` says
  std::string site;     ///< "": none is named
  std::string place;    ///< file:line; "": in --to

  /// `name`, and `target` where another host of the list has this name.
  std::string label;
};

/// "HOST[:TARGET],HOST[:TARGET],...", IPv6 addresses in brackets. Adds to `*hosts`. Errors
/// (kUsage): an empty part.
Status ParsePushHosts(std::string_view text, std::vector<PushHost>* hosts);

/// Lines "HOST[:TARGET] [ADDRESS] [site=NAME]", from # on a comment; blanks and # in double quotes
/// belong to the word. Adds to `*hosts`. Errors (kRejected), with `name`:line: anything else, and a
/// host without a site where others have one.
Status ParsePushHostsFile(std::string_view text, const std::string& name,
                          std::vector<PushHost>* hosts);

/// Gives every host its label. Errors: none at all (kUsage), one twice with the same target
/// (kUsage, of a file kRejected with its place).
Status LabelPushHosts(std::vector<PushHost>* hosts);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSH_HOSTS_H_
