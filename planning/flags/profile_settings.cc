// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/profile_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "planning/files/named_file.h"
#include "planning/files/shipped_files.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kProfileBytesMax = size_t{1} << 20;

/// "host.completion" as "/host/completion".
std::string PointerOf(const std::string& key) {
  std::string pointer = "/" + key;
  for (char& c : pointer) {
    if (c == '.') c = '/';
  }
  return pointer;
}

/// Keys whose values have no unit. All others that may be numbers are times and rates.
bool IsOfNumber(const std::string& key) {
  constexpr std::string_view kKeys[] = {"host.cores", "host.preemption.rate",
                                        "host.neighbours.count", "network.racks.hosts",
                                        "network.racks.oversubscription"};
  return IsOfBytes(key) || std::ranges::find(kKeys, key) != std::end(kKeys);
}

/// A number as one, all else as text.
Json JsonOfText(const std::string& text) {
  if (const std::optional<uint64_t> whole = NumberOf<uint64_t>(text)) return *whole;
  if (const std::optional<double> number = NumberOf<double>(text)) return *number;
  return text;
}

Status BadSetting(const ProfileSetting& setting, const std::string& why) {
  return {StatusCode::kUsage, fmt::format("{}: {}", setting.given, why)};
}

/// Settings that are at fault together.
Status BadSettings(const std::vector<ProfileSetting>& settings, const std::string& why) {
  std::string all;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (i != 0 && settings[i].given == settings[i - 1].given) continue;
    all += (all.empty() ? "" : ", ") + settings[i].given;
  }
  return {StatusCode::kUsage, fmt::format("{}: {}", all, why)};
}

/// One key for two whose values follow from each other.
std::string PlaceOf(const std::string& key) {
  return key == "network.racks.up_rate" ? "network.racks.oversubscription" : key;
}

Status CheckNoneTwice(const std::vector<ProfileSetting>& settings) {
  for (size_t i = 0; i < settings.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (PlaceOf(settings[i].key()) != PlaceOf(settings[j].key())) continue;
      return BadSetting(settings[i], fmt::format("{} is already set by {}", settings[i].key(),
                                                 settings[j].given));
    }
  }
  return {};
}

/// A name in each part, two of them or more.
bool IsKey(const std::string& key) {
  constexpr size_t kPartsMax = 8;
  size_t parts = 0;
  bool begins = true;
  for (const char it : key) {
    const bool is_letter = (it >= 'a' && it <= 'z') || (it >= 'A' && it <= 'Z') || it == '_';
    const bool is_digit = it >= '0' && it <= '9';
    if (begins ? !is_letter : !(is_letter || is_digit || it == '-' || it == '.')) return false;
    parts += begins ? 1 : 0;
    begins = it == '.';
  }
  return !begins && parts >= 2 && parts <= kPartsMax;
}

/// One setting in `profile`.
Status Apply(const ProfileSetting& setting, Json* profile) {
  const size_t equals = setting.text.find('=');
  const std::string key = setting.key();
  if (equals == std::string::npos || !IsKey(key)) {
    return BadSetting(setting,
                      "expected a value of the profile by its name and what it is to be, "
                      "such as host.completion=1us");
  }
  Json value = JsonOfText(setting.text.substr(equals + 1));
  if (IsOfBytes(key)) {
    const Result<uint64_t> bytes = ParseSize(setting.text.substr(equals + 1));
    if (!bytes.ok()) return BadSetting(setting, bytes.status().message());
    value = *bytes;
  }
  const Json::json_pointer pointer(PointerOf(key));
  for (Json::json_pointer at = pointer.parent_pointer(); !at.empty(); at = at.parent_pointer()) {
    if (profile->contains(at) && !(*profile)[at].is_object())
      return BadSetting(setting, "the profile has no such value");
  }
  Json& place = (*profile)[pointer];
  if (!place.is_null() && !place.contains("value"))
    return BadSetting(setting, fmt::format("{} is a group of values", key));
  // One of these follows from the other.
  if (key == "network.racks.up_rate") (*profile)["network"]["racks"].erase("oversubscription");
  if (key == "network.racks.oversubscription") (*profile)["network"]["racks"].erase("up_rate");
  place = {{"value", std::move(value)}, {"assumed", "as the command has it"}};
  return {};
}

/// An error where `setting`, of a key that a profile has, is a time or rate without its unit. In a
/// file such a number is of seconds or bytes per second; whoever writes completion=1 here hardly
/// means a second. 0 is 0 in any unit.
Status CheckUnit(const ProfileSetting& setting) {
  const std::string key = setting.key();
  const Json value = JsonOfText(setting.text.substr(setting.text.find('=') + 1));
  if (!value.is_number() || value == 0 || IsOfNumber(key)) return {};
  const bool is_rate = key.ends_with("rate") || key.ends_with("duplex");
  return BadSetting(setting, is_rate ? "expected a rate with its unit, such as 1Gbit/s"
                                     : "expected a time with its unit, such as 1us");
}

/// What is said of text that nobody wrote, without line and column.
std::string WithoutPlace(const std::string& message, const std::string& name) {
  std::string text = message.starts_with(name + ":") ? message.substr(name.size() + 1) : message;
  const size_t pointer = text.find('/');
  if (text.find_first_not_of("0123456789: ") == pointer && pointer != std::string::npos)
    text.erase(0, pointer);
  return text;
}

/// Those of `settings` that a message such as "/host/poll/value: ..." is about, or one about the
/// group of values that they are in; all if none.
std::vector<ProfileSetting> AtFault(const std::vector<ProfileSetting>& settings,
                                    const std::string& message) {
  const std::string place = message.substr(0, message.find(':')) + "/";
  std::vector<ProfileSetting> found;
  std::ranges::copy_if(settings, std::back_inserter(found), [&](const ProfileSetting& it) {
    const std::string pointer = PointerOf(it.key()) + "/";
    return place.size() > 1 && (place.starts_with(pointer) || pointer.starts_with(place));
  });
  return found.empty() ? settings : found;
}

/// Errors: what a profile may say of hosts, and cannot be modelled.
Status CheckHosts(const sim::Profile& profile, const std::string& name,
                  const std::vector<ProfileSetting>& settings) {
  const Status status = CheckCosts(profile.host);
  if (status.ok()) return {};
  std::vector<ProfileSetting> of_hosts;
  std::ranges::copy_if(settings, std::back_inserter(of_hosts), [](const ProfileSetting& it) {
    return it.key().starts_with("host.preemption.") || it.key().starts_with("host.neighbours.");
  });
  if (of_hosts.empty()) return Rejected(status.message(), name);
  return BadSettings(of_hosts, status.message());
}

/// The text that `path` stands for, as a file or as the name of a shipped profile.
Result<ProfileText> FindProfileText(const std::string& path) {
  const Result<std::optional<std::string_view>> shipped =
      ShippedText(kShippedProfiles, path, "--profile", "shipped profile");
  if (!shipped.ok()) return shipped.status();
  if (*shipped) return ProfileText{path, std::string(**shipped)};
  ProfileText profile;
  PREPOST_RETURN_IF_ERROR(WithText(path, kProfileBytesMax,
                                   [&](const std::string& text, const std::string& name) -> Status {
                                     profile = {name, text};
                                     return {};
                                   }));
  return profile;
}

}  // namespace

std::string ShippedProfiles() { return NamesOf(kShippedProfiles); }

std::vector<ProfileSetting> SettingsOf(const std::vector<std::string>& texts,
                                       const std::vector<std::string>& swept) {
  std::vector<ProfileSetting> settings;
  for (const std::string& text : texts) {
    ProfileSetting& it = settings.emplace_back(ProfileSetting{"", text});
    const bool is_swept = std::ranges::find(swept, it.key()) != swept.end();
    it.given = (is_swept ? "--sweep " : "--set ") + text;
  }
  return settings;
}

Result<ProfileText> LoadProfileText(const std::string& path) {
  Result<ProfileText> profile = FindProfileText(path);
  if (!profile.ok()) return profile;
  if (Status status = CheckProfileText(*profile); !status.ok()) return status;
  return profile;
}

Status CheckProfileText(const ProfileText& text) {
  std::istringstream in(text.text);
  std::vector<std::string> warnings;
  const Status status = sim::ReadProfile(in, text.name, &warnings).status();
  PrintWarnings(text.name, warnings);
  return status;
}

Result<sim::Profile> ProfileWith(const ProfileText& text,
                                 const std::vector<ProfileSetting>& settings) {
  PREPOST_RETURN_IF_ERROR(CheckNoneTwice(settings));
  std::string changed = text.text;
  if (!settings.empty()) {
    Json profile = Json::parse(text.text, nullptr, /*allow_exceptions=*/false);
    PREPOST_CHECK(profile.is_object());  // it has been read
    for (const ProfileSetting& setting : settings)
      PREPOST_RETURN_IF_ERROR(Apply(setting, &profile));
    changed =
        profile.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
  }
  std::istringstream in(changed);
  Result<sim::Profile> read = sim::ReadProfile(in, text.name);
  if (!read.ok() && settings.empty()) return read;
  if (!read.ok()) {
    const std::string message = WithoutPlace(read.status().ToString(), text.name);
    return BadSettings(AtFault(settings, message), message);
  }
  PREPOST_RETURN_IF_ERROR(CheckHosts(*read, text.name, settings));
  for (const ProfileSetting& setting : settings) PREPOST_RETURN_IF_ERROR(CheckUnit(setting));
  return read;
}

Status CheckNoneOfNetwork(const std::vector<ProfileSetting>& settings, const std::string& other) {
  for (const ProfileSetting& it : settings) {
    if (!it.key().starts_with("network.")) continue;
    return BadSetting(it, fmt::format("changes nothing: the network is that of {}, in place of "
                                      "the profile's",
                                      other));
  }
  return {};
}

std::string ValueInProfile(const ProfileText& text, const std::string& key) {
  if (!IsKey(key)) return "";
  const Json profile = Json::parse(text.text, nullptr, /*allow_exceptions=*/false);
  const Json::json_pointer pointer(PointerOf(key) + "/value");
  if (!profile.is_object() || !profile.contains(pointer)) return "";
  return profile[pointer].is_string() ? profile[pointer].get<std::string>() : "";
}

}  // namespace prepost
