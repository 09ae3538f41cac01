// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/device_profile.h"

#include <deque>

#include "ir/json/json_reader.h"

namespace prepost::nic {
namespace {

constexpr const char* kDeviceFormat = "prepost.device";
constexpr uint32_t kDeviceMajor = 1;
constexpr uint32_t kDeviceMinor = 0;
constexpr size_t kSourceBytesMax = 1024;

struct Limit {
  const char* key;
  uint32_t DeviceProfile::*member;
  uint32_t min;
  uint32_t max;
};
constexpr Limit kLimits[] = {
    {"sq_wqebbs", &DeviceProfile::sq_wqebbs, kRingEntriesMin, kRingEntriesMax},
    {"rq_wqes", &DeviceProfile::rq_wqes, kRingEntriesMin, kRingEntriesMax},
    {"cq_entries", &DeviceProfile::cq_entries, 1, kCqIndexAhead + 1},
    {"qps", &DeviceProfile::qps, 1, kNumberMask + 1},
    {"cqs", &DeviceProfile::cqs, 1, kNumberMask + 1},
    {"message_bytes", &DeviceProfile::message_bytes, 1, kRcMessageBytesMax},
    {"wq_ahead", &DeviceProfile::wq_ahead, kRingEntriesMin, kWqIndexAhead},
    {"cq_ahead", &DeviceProfile::cq_ahead, 1, kCqIndexAhead},
};

struct Capability {
  const char* key;
  bool DeviceProfile::*member;
};
constexpr Capability kCapabilities[] = {{"cd", &DeviceProfile::cross_channel},
                                        {"cq_oi", &DeviceProfile::cq_ignore_overrun}};

/// A group of values: each stands plainly, or as {"value": ..., "source": "..."}.
class Values {
 public:
  void Add(const char* key, const JsonForm::ReadScalar& read, JsonForm::Need need) {
    JsonForm& with_source = with_sources_.emplace_back();
    with_source.Scalar("value", read)
        .Scalar("source", ReadString(&source_, kSourceBytesMax), JsonForm::Need::kOptional);
    form_.ScalarOrObject(key, read, &with_source, need);
  }
  JsonForm* form() { return &form_; }

 private:
  std::string source_;                 // the last one read
  std::deque<JsonForm> with_sources_;  // stay where they are
  JsonForm form_;
};

}  // namespace

Result<DeviceProfile> ReadDeviceProfile(std::istream& in, const std::string& name,
                                        std::vector<std::string>* warnings) {
  using Need = JsonForm::Need;
  DeviceProfile profile;
  Values limits;
  for (const Limit& limit : kLimits) {
    limits.Add(limit.key, ReadUint32(&(profile.*limit.member), limit.max, limit.min),
               Need::kOptional);
  }
  Values capabilities;
  for (const Capability& capability : kCapabilities) {
    capabilities.Add(capability.key, ReadBool(&(profile.*capability.member)), Need::kRequired);
  }
  JsonForm form;
  form.Scalar("format", ExpectString(kDeviceFormat))
      .Scalar("version", ExpectVersion(kDeviceMajor, kDeviceMinor, warnings))
      .Scalar("name", ReadString(&profile.name))
      .Object("limits", limits.form(), Need::kOptional)
      .Object("capabilities", capabilities.form())
      .NamesAllMissing();
  PREPOST_RETURN_IF_ERROR(ReadJson(in, name, &form));
  return profile;
}

}  // namespace prepost::nic
