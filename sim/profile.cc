// SPDX-License-Identifier: Apache-2.0
#include "sim/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <span>
#include <utility>

#include "ir/json/json_reader.h"
#include "ir/json/rate_json.h"
#include "ir/json/rate_text.h"
#include "ir/near_name.h"
#include "ir/plan.h"
#include "ir/utf8.h"

namespace prepost::emulated {
namespace {

using Need = JsonForm::Need;

constexpr const char* kProfileFormat = "prepost.profile";
constexpr uint32_t kProfileMajor = 1;
constexpr uint32_t kProfileMinor = 0;
constexpr size_t kTextBytesMax = 1024;
/// Where a value may come from; the value of the key says where exactly.
constexpr std::array kSources = {"paper", "data_sheet", "measured", "assumed"};

/// `Out` is a double or an optional one.
template <typename Out>
JsonForm::ReadScalar Seconds(Out* out) {
  return ReadLatency([out](double seconds) -> Status {
    if (seconds > kProfileSecondsMax) {
      return Rejected(fmt::format("{} is too large, the limit is {}", WriteLatency(seconds),
                                  WriteLatency(kProfileSecondsMax)));
    }
    *out = seconds;
    return {};
  });
}

/// As Seconds().
template <typename Out>
JsonForm::ReadScalar Rate(Out* out, double most = kProfileRateMax) {
  return ReadRate([out, most](double rate) -> Status {
    if (rate < kProfileRateMin) {
      return Rejected(fmt::format("{} is too small, the least is {}", WriteRate(rate),
                                  WriteRate(kProfileRateMin)));
    }
    if (rate > most) {
      return Rejected(
          fmt::format("{} is too large, the limit is {}", WriteRate(rate), WriteRate(most)));
    }
    *out = rate;
    return {};
  });
}

JsonForm::ReadScalar Number(double* out, double min, double max) {
  return ReadNumber([out, min, max](double value) -> Status {
    if (value < min) return Rejected(fmt::format("{} is too small, the least is {}", value, min));
    if (value > max) return Rejected(fmt::format("{} is too large, the limit is {}", value, max));
    *out = value;
    return {};
  });
}

/// One of `names`, which stand in the order of the values of `Enum`.
template <typename Enum>
JsonForm::ReadScalar Word(Enum* out, std::span<const std::string_view> names) {
  return [out, names](const JsonScalar& scalar) -> Status {
    std::string word;
    PREPOST_RETURN_IF_ERROR(ReadString(&word)(scalar));
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) {
      const std::vector<std::string> known(names.begin(), names.end());
      return Rejected(fmt::format("unknown word '{}', expected {}{}", Printable(word),
                                  fmt::join(known, " or "), DidYouMean(word, known)));
    }
    *out = static_cast<Enum>(found - names.begin());
    return {};
  };
}

/// A group of values, each as {"value": ..., "SOURCE": "where"}.
class Values {
 public:
  Values& Add(const char* key, JsonForm::ReadScalar read, Need need = Need::kRequired) {
    JsonForm& value = values_.emplace_back();
    value.OnBegin([this] { sources_ = 0; }).Scalar("value", std::move(read));
    for (const char* source : kSources) {
      value.Scalar(
          source, [this](const JsonScalar& s) { return Take(s); }, Need::kOptional);
    }
    value.OnEnd([this]() -> Status {
      if (sources_ == 1) return {};
      return Rejected(
          fmt::format("expected one of the keys {}, which say where the value comes from, found {}",
                      fmt::join(kSources, ", "), sources_));
    });
    form_.Object(key, &value, need);
    return *this;
  }
  JsonForm& form() { return form_; }

 private:
  Status Take(const JsonScalar& scalar) {
    ++sources_;
    std::string where;
    PREPOST_RETURN_IF_ERROR(ReadString(&where, kTextBytesMax)(scalar));
    const bool is_blank = where.find_first_not_of(" \t\r\n") == std::string::npos;
    return is_blank ? Rejected("expected where the value comes from, found nothing") : Status();
  }

  int sources_ = 0;              // of the value that is being read
  std::deque<JsonForm> values_;  // stay where they are
  JsonForm form_;
};

/// All of the file. Neither copied nor moved: the forms point into it.
class ProfileForm {
 public:
  explicit ProfileForm(std::vector<std::string>* warnings);
  ProfileForm(const ProfileForm&) = delete;
  ProfileForm& operator=(const ProfileForm&) = delete;

  JsonForm* form() { return &form_; }
  Profile Finish();

 private:
  void AddNetwork();
  void AddHost();

  Profile profile_;
  std::optional<double> up_rate_, down_rate_;
  double oversubscription_ = 1;
  std::optional<double> segment_calls_;
  PreemptionProfile preemption_;
  NeighboursProfile neighbours_;
  TcpProfile tcp_;
  ControlProfile control_;
  bool has_preemption_ = false;
  bool has_neighbours_ = false;
  bool has_tcp_ = false;
  bool has_control_ = false;
  Values network_, racks_, nic_, host_, preemption_values_, neighbours_values_, tcp_values_,
      control_values_;
  JsonForm form_;
};

ProfileForm::ProfileForm(std::vector<std::string>* warnings) {
  AddNetwork();
  NicProfile& nic = profile_.nic;
  nic_.Add("wqe", Seconds(&nic.wqe))
      .Add("wait", Seconds(&nic.wait))
      .Add("cqe", Seconds(&nic.cqe))
      .Add("doorbell", Seconds(&nic.doorbell))
      .Add("doorbell_interval", Seconds(&nic.doorbell_interval), Need::kOptional)
      .Add("message_overhead_bytes",
           ReadUint32(&nic.message_overhead_bytes, kMessageOverheadBytesMax))
      .Add("port_sharing", Word(&nic.port_sharing, kPortSharingNames));
  AddHost();
  tcp_values_.Add("system_call", Seconds(&tcp_.system_call))
      .Add("copy_rate", Rate(&tcp_.copy_rate))
      .Add("segment_bytes", ReadUint32(&tcp_.segment_bytes, kSegmentBytesMax, 1), Need::kOptional)
      .Add("segment_calls", Seconds(&segment_calls_), Need::kOptional)
      .form()
      .OnBegin([this] { has_tcp_ = true; })
      .OnEnd([this]() -> Status {
        if (!segment_calls_ || tcp_.segment_bytes != 0) return {};
        return Rejected(
            "key 'segment_bytes' is missing: without it blocks are copied as a whole, and "
            "'segment_calls' has no meaning");
      });
  control_values_.Add("system_call", Seconds(&control_.system_call))
      .Add("latency", Seconds(&control_.latency))
      .form()
      .OnBegin([this] { has_control_ = true; });
  form_.Scalar("format", ExpectString(kProfileFormat))
      .Scalar("version", ExpectVersion(kProfileMajor, kProfileMinor, warnings))
      .Scalar("name", ReadString(&profile_.name))
      .Scalar("cluster", ReadString(&profile_.cluster, kTextBytesMax))
      .Object("network", &network_.form())
      .Object("nic", &nic_.form())
      .Object("host", &host_.form())
      .Object("tcp", &tcp_values_.form(), Need::kOptional)
      .Object("control", &control_values_.form(), Need::kOptional);
}

void ProfileForm::AddNetwork() {
  NetworkProfile& network = profile_.network;
  racks_.Add("hosts", ReadUint32(&network.rack_hosts, kNodesMax, 1))
      .Add("core_latency", Seconds(&network.core_latency))
      .Add("up_rate", Rate(&up_rate_), Need::kOptional)
      .Add("oversubscription", Number(&oversubscription_, 1, kOversubscriptionMax), Need::kOptional)
      .Add("down_rate", Rate(&down_rate_), Need::kOptional)
      .Add("core_rate", Rate(&network.core_rate), Need::kOptional)
      .form()
      .OneOf("up_rate", "oversubscription");
  network_.Add("host_rate", Rate(&network.host_rate, kHostRateMax))
      .Add("duplex", Rate(&network.duplex), Need::kOptional)
      .Add("rack_latency", Seconds(&network.rack_latency))
      .form()
      .Object("racks", &racks_.form(), Need::kOptional);
}

void ProfileForm::AddHost() {
  HostProfile& host = profile_.host;
  preemption_values_.Add("rate", Number(&preemption_.rate, kPreemptionRateMin, kPreemptionRateMax))
      .Add("length", Seconds(&preemption_.length))
      .Add("lengths", Word(&preemption_.lengths, kPreemptionLengthsNames))
      .form()
      .OnBegin([this] { has_preemption_ = true; });
  neighbours_values_.Add("count", ReadUint32(&neighbours_.count, kProfileNeighboursMax))
      .Add("slice", Seconds(&neighbours_.slice))
      .form()
      .OnBegin([this] { has_neighbours_ = true; });
  host_.Add("cores", ReadUint32(&host.cores, kProfileCoresMax, 1))
      .Add("post_send", Seconds(&host.post_send))
      .Add("post_receive", Seconds(&host.post_receive))
      .Add("poll", Seconds(&host.poll))
      .Add("completion", Seconds(&host.completion))
      .Add("credit", Seconds(&host.credit))
      .Add("interrupt", Seconds(&host.interrupt))
      .Add("hybrid_polling", Seconds(&host.hybrid_polling))
      .Add("message_start", Seconds(&host.message_start))
      .Add("message_setup", Seconds(&host.message_setup))
      .Add("copy_rate", Rate(&host.copy_rate))
      .form()
      .Object("preemption", &preemption_values_.form(), Need::kOptional)
      .Object("neighbours", &neighbours_values_.form(), Need::kOptional);
}

Profile ProfileForm::Finish() {
  Profile profile = profile_;
  NetworkProfile& network = profile.network;
  if (network.rack_hosts != 0) {
    network.up_rate = up_rate_.value_or(network.host_rate * network.rack_hosts / oversubscription_);
    network.down_rate = down_rate_.value_or(network.up_rate);
  }
  if (has_preemption_) profile.host.preemption = preemption_;
  if (has_neighbours_) profile.host.neighbours = neighbours_;
  if (has_tcp_) {
    profile.tcp = tcp_;
    profile.tcp->segment_calls = segment_calls_.value_or(0);
  }
  if (has_control_) profile.control = control_;
  return profile;
}

}  // namespace

Result<Profile> ReadProfile(std::istream& in, const std::string& name,
                            std::vector<std::string>* warnings) {
  ProfileForm form(warnings);
  PREPOST_RETURN_IF_ERROR(ReadJson(in, name, form.form()));
  return form.Finish();
}

Network NetworkOf(const NetworkProfile& profile, uint32_t nodes) {
  PREPOST_CHECK(nodes >= 1);
  const uint32_t rack_hosts = profile.rack_hosts == 0 ? nodes : profile.rack_hosts;
  const double never = std::numeric_limits<double>::max();  // nothing leaves the only rack
  Network network = {.nodes = {},
                     .racks = {},
                     .core_rate = profile.core_rate,
                     .rack_latency = profile.rack_latency,
                     .core_latency = profile.core_latency};
  for (uint32_t i = 0; i < nodes; ++i) {
    const uint32_t rack = i / rack_hosts;
    if (rack == network.racks.size()) {
      const bool is_all = profile.rack_hosts == 0;
      network.racks.push_back({.name = fmt::to_string(rack),
                               .up_rate = is_all ? never : profile.up_rate,
                               .down_rate = is_all ? never : profile.down_rate});
    }
    network.nodes.push_back({.rack = rack,
                             .out_rate = profile.host_rate,
                             .in_rate = profile.host_rate,
                             .duplex_rate = profile.duplex});
  }
  return network;
}

}  // namespace prepost::emulated
