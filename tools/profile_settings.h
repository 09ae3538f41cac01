// SPDX-License-Identifier: Apache-2.0
//
// --set host.completion=1us: a profile with some of its values replaced, by the names that they have
// in its file (docs/profiles.md).
#ifndef PREPOST_TOOLS_PROFILE_SETTINGS_H_
#define PREPOST_TOOLS_PROFILE_SETTINGS_H_

#include <string>
#include <vector>

#include "prepost/backends/emulated/profile.h"
#include "prepost/ir/status.h"

namespace prepost::tools {

/// The text of a profile's file, which is read once, however often values are replaced in it.
struct ProfileText {
  std::string name;  ///< as in messages
  std::string text;
};

/// Reads the file ("-": stdin). Errors: kRejected, also for what is no profile; warnings go to stderr.
Result<ProfileText> LoadProfileText(const std::string& path);

/// The profile with each "KEY=VALUE" of `settings` in its place, in their order. A value that the
/// file lacks may be given, too, if its group is then whole. Errors: kUsage: no such key, or a value
/// that a profile may not have.
Result<emulated::Profile> ProfileWith(const ProfileText& text,
                                      const std::vector<std::string>& settings);

/// What the file has for `key` as text; empty if nothing, or no text.
std::string ValueInProfile(const ProfileText& text, const std::string& key);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PROFILE_SETTINGS_H_
