// SPDX-License-Identifier: Apache-2.0
#include "tools/report/fit_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "ir/base/count.h"

namespace prepost::tools {
namespace {

using nic::Fit;
using nic::Misfit;
using nic::PartedQueue;
using nic::ResourceUse;
using Json = nlohmann::ordered_json;

/// The rule that a finding is against (docs/plan.md).
constexpr std::string_view kRule = "bounds";

struct ResourceLine {
  nic::Resource resource;
  const char* label;
};
constexpr ResourceLine kLines[] = {{nic::Resource::kQps, "QPs of a node"},
                                   {nic::Resource::kCqs, "CQs of a node"},
                                   {nic::Resource::kSendQueue, "WQEs of a send queue"},
                                   {nic::Resource::kReceiveQueue, "WQEs of a receive queue"},
                                   {nic::Resource::kCompletionQueue, "entries of a CQ"},
                                   {nic::Resource::kBlock, "bytes of a block"}};

/// "7 (node 3), 40 in all".
std::string UseText(nic::Resource resource, const ResourceUse& use) {
  if (resource == nic::Resource::kBlock || use.most == 0) return fmt::to_string(use.most);
  return fmt::format("{} (node {}), {} in all", use.most, use.node.value, use.total);
}

std::string VerdictText(std::span<const Fit> fits) {
  std::string text;
  for (const Fit& fit : fits) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", Name(fit.mode),
                        fit.ok() ? "fits" : "does not fit, " + Count(fit.misfits, "finding"));
  }
  return text;
}

void PrintTable(std::span<const Fit> fits, std::ostream& out) {
  out << fmt::format("  {:<24} {:>10}", "the most", "limit");
  for (const Fit& fit : fits) out << fmt::format("  {:>28}", Name(fit.mode));
  out << "\n";
  for (const ResourceLine& line : kLines) {
    out << fmt::format("  {:<24} {:>10}", line.label, fits.front().of(line.resource).limit);
    for (const Fit& fit : fits)
      out << fmt::format("  {:>28}", UseText(line.resource, fit.of(line.resource)));
    out << "\n";
  }
}

void PrintMore(uint64_t all, size_t listed, std::ostream& out) {
  if (all > listed) out << fmt::format("    and {} more\n", all - listed);
}

void PrintDetails(const Fit& fit, std::ostream& out) {
  if (fit.parted != 0) {
    out << fmt::format("  {}: longer than {} written in parts: {}, {}\n", Name(fit.mode),
                       fit.parted == 1 ? "its ring and" : "their rings and",
                       Count(fit.parted, "queue"), Count(fit.rearms, "re-arm"));
    for (const PartedQueue& queue : fit.first_parted) {
      out << fmt::format("    node {}: {}: {} in a ring of {}: {}\n", queue.node.value, queue.what,
                         Count(queue.wqes, "WQE"), queue.ring, Count(queue.rearms, "re-arm"));
    }
    PrintMore(fit.parted, fit.first_parted.size(), out);
  }
  if (fit.ok()) return;
  out << fmt::format("  {}: {}\n", Name(fit.mode), Count(fit.misfits, "finding"));
  for (const Misfit& misfit : fit.first_misfits) {
    out << fmt::format("    {}{}{}: {}\n", misfit.where, misfit.where.empty() ? "" : ": ", kRule,
                       misfit.ToString());
  }
  PrintMore(fit.misfits, fit.first_misfits.size(), out);
}

Json MisfitJson(const Misfit& misfit) {
  Json json = {{"rule", kRule},
               {"where", misfit.where},
               {"message", misfit.ToString()},
               {"what", misfit.what}};
  if (misfit.node) json["node"] = misfit.node->value;
  if (misfit.needed == 0) return json;
  json["needed"] = misfit.needed;
  json["limit"] = misfit.limit;
  return json;
}

Json UsesJson(const Fit& fit) {
  Json json;
  for (const ResourceLine& line : kLines) {
    const ResourceUse& use = fit.of(line.resource);
    Json& one = json[std::string(Name(line.resource))];
    one = {{"most", use.most}, {"limit", use.limit}, {"total", use.total}};
    if (line.resource != nic::Resource::kBlock) one["node"] = use.node.value;
  }
  return json;
}

Json FitJson(const Fit& fit) {
  Json findings = Json::array();
  for (const Misfit& misfit : fit.first_misfits) findings.push_back(MisfitJson(misfit));
  Json json = {{"mode", Name(fit.mode)},
               {"fits", fit.ok()},
               {"findings", fit.misfits},
               {"diagnostics", std::move(findings)}};
  if (!fit.is_counted) return json;
  Json parts = Json::array();
  for (const PartedQueue& queue : fit.first_parted) {
    parts.push_back({{"node", queue.node.value},
                     {"queue", queue.what},
                     {"wqes", queue.wqes},
                     {"ring", queue.ring},
                     {"rearms", queue.rearms}});
  }
  json["resources"] = UsesJson(fit);
  json["queues_in_parts"] = fit.parted;
  json["rearms"] = fit.rearms;
  json["parts"] = std::move(parts);
  return json;
}

}  // namespace

bool FitsSomehow(std::span<const Fit> fits) { return std::ranges::any_of(fits, &Fit::ok); }

void PrintFits(const nic::DeviceProfile& profile, std::span<const Fit> fits, std::ostream& out) {
  out << fmt::format("device {}: {}\n", profile.name, VerdictText(fits));
  if (std::ranges::all_of(fits, &Fit::is_counted)) PrintTable(fits, out);
  for (const Fit& fit : fits) PrintDetails(fit, out);
}

Json FitsJson(const nic::DeviceProfile& profile, std::span<const Fit> fits) {
  Json modes = Json::array();
  for (const Fit& fit : fits) modes.push_back(FitJson(fit));
  return {{"device", profile.name}, {"fits", FitsSomehow(fits)}, {"modes", std::move(modes)}};
}

}  // namespace prepost::tools
