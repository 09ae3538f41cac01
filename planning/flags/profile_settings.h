// SPDX-License-Identifier: Apache-2.0
//
// --set host.completion=1us: a profile with some of its values replaced, by the names that they
// have in its file (docs/simulate.md).
#ifndef PREPOST_PLANNING_FLAGS_PROFILE_SETTINGS_H_
#define PREPOST_PLANNING_FLAGS_PROFILE_SETTINGS_H_

#include <string>
#include <vector>

#include "ir/base/status.h"
#include "sim/cluster/profile.h"

namespace prepost {

/// The text of a profile's file, which is read once, however often values are replaced in it.
struct ProfileText {
  std::string name;  ///< as in messages
  std::string text;
};

/// Reads the file ("-": stdin), or the shipped profile of that name where there is no such file.
/// Errors: kRejected, also for what is no profile; kUsage: a name that no shipped profile has;
/// warnings go to stderr.
Result<ProfileText> LoadProfileText(const std::string& path);

/// Whether it can be read, with warnings on stderr. Errors: kRejected.
Status CheckProfileText(const ProfileText& text);

/// "apt, fractus, ...": the names of the shipped profiles (examples/profiles), which are part of
/// the command, for --help and messages.
std::string ShippedProfiles();

/// A value in place of the file's.
struct ProfileSetting {
  std::string given;  ///< how: "--set host.completion=1us", "--preempt rate=1,for=1us"
  std::string text;   ///< "host.completion=1us"

  std::string key() const { return text.substr(0, text.find('=')); }
};
/// The settings of --set; those with a key of `swept` are reported as --sweep's.
std::vector<ProfileSetting> SettingsOf(const std::vector<std::string>& texts,
                                       const std::vector<std::string>& swept = {});

/// The profile with all of `settings` in their places; sizes may have units. A value that the file
/// lacks may be given, too, if its group is then whole. Errors: kUsage: no such key, one that is
/// set twice, a value that a profile may not have or that cannot be modelled; kRejected: the file's
/// cannot be.
Result<sim::Profile> ProfileWith(const ProfileText& text,
                                 const std::vector<ProfileSetting>& settings);

/// Where `other`, such as "--topology t.json", is the network in place of the profile's. Errors
/// (kUsage): settings of that, which would change nothing.
Status CheckNoneOfNetwork(const std::vector<ProfileSetting>& settings, const std::string& other);

/// What the file has for `key` as text; empty if nothing, or no text.
std::string ValueInProfile(const ProfileText& text, const std::string& key);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_PROFILE_SETTINGS_H_
