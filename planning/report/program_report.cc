// SPDX-License-Identifier: Apache-2.0
#include "planning/report/program_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/listing.h"
#include "ir/base/count.h"
#include "planning/files/shipped_files.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

/// Of one node, or of all together.
struct Needs {
  uint64_t qps = 0, cqs = 0, wqes = 0, waits = 0, enables = 0, doorbells = 0, rearms = 0,
           ring_bytes = 0;

  void Add(const nic::NodeProgram& node) {
    qps += node.qps.size();
    cqs += node.cqs.size();
    wqes += node.wqes();
    waits += node.waits();
    enables += node.enables();
    doorbells += node.doorbells();
    rearms += node.rearms();
    ring_bytes += node.ring_bytes();
  }
  void AddTo(Json* out) const {
    out->update({{"qps", qps},
                 {"cqs", cqs},
                 {"wqes", wqes},
                 {"waits", waits},
                 {"send_enables", enables},
                 {"doorbells", doorbells},
                 {"rearms", rearms},
                 {"ring_bytes", ring_bytes}});
  }
};

Needs NeedsOf(const nic::QueueProgram& program) {
  Needs all;
  for (const nic::NodeProgram& node : program.nodes) all.Add(node);
  return all;
}

std::string FitText(const std::vector<ProfileFit>& fits) {
  std::vector<std::string> fitting, refused;
  for (const ProfileFit& it : fits) {
    if (it.status.ok()) {
      fitting.push_back(it.profile);
    } else {
      refused.push_back(fmt::format("not {} ({})", it.profile, it.status.message()));
    }
  }
  std::string text = fitting.empty() ? "" : fmt::format("fits {}", fmt::join(fitting, ", "));
  if (!refused.empty())
    text += fmt::format("{}{}", text.empty() ? "" : "; ", fmt::join(refused, "; "));
  return text;
}

}  // namespace

std::vector<ProfileFit> FitsOf(const VerifiedPlan& plan, nic::LowerOptions options) {
  std::vector<ProfileFit> fits;
  for (const ShippedFile& file : kShippedDevices) {
    std::istringstream in{std::string(file.text)};
    const std::string name(file.name);
    const Result<nic::DeviceProfile> profile = nic::ReadDeviceProfile(in, name, nullptr);
    PREPOST_CHECK(profile.ok());
    options.profile = *profile;
    fits.push_back({name, nic::Lower(plan, options).status()});
  }
  return fits;
}

void Print(const nic::QueueProgram& program, const std::vector<ProfileFit>& fits,
           std::ostream& out) {
  for (const nic::NodeProgram& node : program.nodes) out << nic::Summary(node) << "\n";
  const Needs all = NeedsOf(program);
  out << fmt::format("all: {}, {}, {}, {}, {} of rings", Count(program.nodes.size(), "node"),
                     Count(all.qps, "QP"), Count(all.cqs, "CQ"), Count(all.wqes, "WQE"),
                     Count(all.ring_bytes, "byte"));
  if (!fits.empty()) out << "; " << FitText(fits);
  out << "\n";
}

Json ToJson(const nic::QueueProgram& program, const std::vector<ProfileFit>& fits) {
  Json nodes = Json::array();
  for (const nic::NodeProgram& node : program.nodes) {
    Needs needs;
    needs.Add(node);
    Json& entry = nodes.emplace_back(Json{{"node", node.node.value}});
    needs.AddTo(&entry);
  }
  Json all = {{"nodes", program.nodes.size()}};
  NeedsOf(program).AddTo(&all);
  Json json = {{"mode", Name(program.mode)}, {"nodes", std::move(nodes)}, {"all", std::move(all)}};
  if (fits.empty()) return json;
  Json& list = json["profiles"] = Json::array();
  for (const ProfileFit& it : fits) {
    Json& entry = list.emplace_back(Json{{"profile", it.profile}, {"fits", it.status.ok()}});
    if (!it.status.ok()) entry["why"] = it.status.message();
  }
  return json;
}

}  // namespace prepost
