// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <span>
#include <type_traits>
#include <utility>

#include "ir/base/near_name.h"
#include "ir/base/utf8.h"
#include "ir/json/json_reader.h"
#include "ir/json/rate_json.h"
#include "ir/json/rate_text.h"
#include "ir/plan.h"

namespace prepost::sim {
namespace {

using Need = JsonForm::Need;

constexpr const char* kProfileFormat = "prepost.profile";
constexpr uint32_t kProfileMajor = 1;
constexpr uint32_t kProfileMinor = 0;
constexpr size_t kTextBytesMax = 1024;
/// Where a value may come from; the value of the key says where exactly.
constexpr std::array kSources = {"paper", "data_sheet", "measured", "assumed"};

constexpr std::array<std::string_view, 2> kPreemptionLengthsNames = {"fixed", "exponential"};

/// A time: seconds, or picoseconds where `out` counts those.
template <typename Out>
JsonForm::ReadScalar Seconds(Out* out) {
  return ReadLatency([out](double seconds) -> Status {
    if (seconds > kProfileSecondsMax) {
      return Rejected(fmt::format("{} is too large, the limit is {}", WriteLatency(seconds),
                                  WriteLatency(kProfileSecondsMax)));
    }
    if constexpr (std::is_same_v<Out, Picoseconds>) {
      *out = FromSeconds(seconds);
    } else {
      *out = seconds;
    }
    return {};
  });
}

/// `Out` is a double or an optional one.
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
  ControlProfile control_;
  bool has_control_ = false;
  Values network_, racks_, nic_, host_, preemption_values_, neighbours_values_, tcp_values_,
      control_values_;
  JsonForm form_;
};

ProfileForm::ProfileForm(std::vector<std::string>* warnings) {
  AddNetwork();
  NicCosts& nic = profile_.nic;
  nic_.Add("wqe", Seconds(&nic.wqe))
      .Add("wait", Seconds(&nic.wait))
      .Add("cqe", Seconds(&nic.cqe))
      .Add("doorbell", Seconds(&nic.doorbell))
      .Add("doorbell_interval", Seconds(&nic.doorbell_interval), Need::kOptional)
      .Add("message_overhead_bytes",
           ReadUint32(&nic.message_overhead_bytes, kMessageOverheadBytesMax))
      .Add("port_sharing", Word(&nic.port_sharing, kPortSharingNames));
  AddHost();
  HostCosts& host = profile_.host;
  tcp_values_.Add("system_call", Seconds(&host.system_call))
      .Add("copy_rate", Rate(&host.system_copy_rate))
      .Add("segment_bytes", ReadUint32(&host.segment_bytes, kSegmentBytesMax, 1), Need::kOptional)
      .Add("segment_calls", Seconds(&host.segment_calls), Need::kOptional)
      .form()
      .OnBegin([this] {
        profile_.is_tcp = true;
        profile_.host.segment_calls = -1;
      })
      .OnEnd([this]() -> Status {
        Picoseconds& calls = profile_.host.segment_calls;
        if (std::exchange(calls, std::max<Picoseconds>(calls, 0)) < 0) return {};
        if (profile_.host.segment_bytes != 0) return {};
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
      .Object("control", &control_values_.form(), Need::kOptional)
      .NamesAllMissing();
}

void ProfileForm::AddNetwork() {
  Network& network = profile_.network;
  racks_.Add("hosts", ReadUint32(&profile_.rack_hosts, kNodesMax, 1))
      .Add("core_latency", Seconds(&network.core_latency))
      .Add("up_rate", Rate(&up_rate_), Need::kOptional)
      .Add("oversubscription", Number(&oversubscription_, 1, kOversubscriptionMax), Need::kOptional)
      .Add("down_rate", Rate(&down_rate_), Need::kOptional)
      .Add("core_rate", Rate(&network.core_rate), Need::kOptional)
      .form()
      .OneOf("up_rate", "oversubscription");
  network_.Add("host_rate", Rate(&network.nodes[0].out_rate, kHostRateMax))
      .Add("duplex", Rate(&network.nodes[0].duplex_rate), Need::kOptional)
      .Add("rack_latency", Seconds(&network.rack_latency))
      .form()
      .Object("racks", &racks_.form(), Need::kOptional);
}

void ProfileForm::AddHost() {
  HostCosts& host = profile_.host;
  preemption_values_
      .Add("rate", Number(&host.preemptions_per_second, kPreemptionRateMin, kPreemptionRateMax))
      .Add("length", Seconds(&host.preemption_length))
      .Add("lengths", Word(&host.preemption_lengths_vary, kPreemptionLengthsNames));
  neighbours_values_.Add("count", ReadUint32(&host.neighbours, kNeighboursMax))
      .Add("slice", Seconds(&host.slice));
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
      .Add("combine", Seconds(&host.combine), Need::kOptional)
      .Add("combine_rate", Rate(&host.combine_rate), Need::kOptional)
      .form()
      .Object("preemption", &preemption_values_.form(), Need::kOptional)
      .Object("neighbours", &neighbours_values_.form(), Need::kOptional);
}

Profile ProfileForm::Finish() {
  Profile profile = profile_;
  profile.SetHostRate(profile.host_rate());
  if (profile.rack_hosts != 0) {
    Network::Rack& rack = profile.network.racks[0];
    rack.up_rate = up_rate_.value_or(profile.host_rate() * profile.rack_hosts / oversubscription_);
    rack.down_rate = down_rate_.value_or(rack.up_rate);
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

Network Profile::NetworkOf(uint32_t nodes) const {
  PREPOST_CHECK(nodes >= 1);
  Network all = network;
  all.nodes.assign(nodes, network.nodes[0]);
  if (rack_hosts == 0) {  // nothing leaves the only rack
    all.racks[0].up_rate = all.racks[0].down_rate = host_rate() * nodes;
    return all;
  }
  for (uint32_t i = 0; i < nodes; ++i) {
    const uint32_t rack = i / rack_hosts;
    if (rack == all.racks.size()) all.racks.push_back(network.racks[0]);
    all.racks[rack].name = fmt::to_string(rack);
    all.nodes[i].rack = rack;
  }
  return all;
}

}  // namespace prepost::sim
