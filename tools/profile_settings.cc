// SPDX-License-Identifier: Apache-2.0
#include "tools/profile_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "tools/message.h"
#include "tools/named_file.h"
#include "tools/value_text.h"

namespace prepost::tools {
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

/// A number as one, all else as text.
Json ValueOf(const std::string& text) {
  if (const std::optional<uint64_t> whole = NumberOf<uint64_t>(text)) return *whole;
  if (const std::optional<double> number = NumberOf<double>(text)) return *number;
  return text;
}

Status BadSetting(const std::string& setting, const std::string& why) {
  return {StatusCode::kUsage, fmt::format("--set {}: {}", setting, why)};
}

/// One setting in `profile`.
Status Apply(const std::string& setting, Json* profile) {
  const size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals);
  const bool is_key = key.find('.') != std::string::npos && key.find_first_of("/~ ") == key.npos &&
                      key.find("..") == key.npos && !key.starts_with('.') && !key.ends_with('.');
  if (equals == std::string::npos || !is_key) {
    return BadSetting(setting,
                      "expected a value of the profile by its name and what it is to be, "
                      "such as host.completion=1us");
  }
  Json value = ValueOf(setting.substr(equals + 1));
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
  place = {{"value", std::move(value)}, {"assumed", "as --set has it"}};
  return {};
}

/// What is said of text that nobody wrote, without line and column.
std::string WithoutPlace(const std::string& message, const std::string& name) {
  std::string text = message.starts_with(name + ":") ? message.substr(name.size() + 1) : message;
  const size_t pointer = text.find('/');
  if (text.find_first_not_of("0123456789: ") == pointer && pointer != std::string::npos)
    text.erase(0, pointer);
  return text;
}

}  // namespace

Result<ProfileText> LoadProfileText(const std::string& path) {
  ProfileText profile;
  PREPOST_RETURN_IF_ERROR(WithText(
      path, kProfileBytesMax, [&](const std::string& text, const std::string& name) -> Status {
        profile = {name, text};
        std::istringstream in(text);
        std::vector<std::string> warnings;
        const Status status = emulated::ReadProfile(in, name, &warnings).status();
        PrintWarnings(name, warnings);
        return status;
      }));
  return profile;
}

Result<emulated::Profile> ProfileWith(const ProfileText& text,
                                      const std::vector<std::string>& settings) {
  if (settings.empty()) {
    std::istringstream in(text.text);
    return emulated::ReadProfile(in, text.name);
  }
  Json profile = Json::parse(text.text, nullptr, /*allow_exceptions=*/false);
  PREPOST_CHECK(profile.is_object());  // it has been read
  for (const std::string& setting : settings) PREPOST_RETURN_IF_ERROR(Apply(setting, &profile));
  std::istringstream in(profile.dump());
  Result<emulated::Profile> read = emulated::ReadProfile(in, text.name);
  if (read.ok()) return read;
  std::string all = settings.front();
  for (size_t i = 1; i < settings.size(); ++i) all += ", " + settings[i];
  return BadSetting(all, WithoutPlace(read.status().ToString(), text.name));
}

std::string ValueInProfile(const ProfileText& text, const std::string& key) {
  const Json profile = Json::parse(text.text, nullptr, /*allow_exceptions=*/false);
  const Json::json_pointer pointer(PointerOf(key) + "/value");
  if (!profile.is_object() || !profile.contains(pointer)) return "";
  return profile[pointer].is_string() ? profile[pointer].get<std::string>() : "";
}

}  // namespace prepost::tools
