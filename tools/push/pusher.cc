// SPDX-License-Identifier: Apache-2.0
//
// Finds the hosts, starts receivers there (push_receivers.h), asks what they have, has the files
// sent (push_rounds.h), verified and named, and says what became of each host.
#include "tools/push/pusher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sodium.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "ir/base/count.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tools/push/push_protocol.h"
#include "tools/push/push_receivers.h"
#include "tools/push/push_rounds.h"

namespace prepost::tools {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kLocalHost = "localhost";

std::string RandomSecret() {
  std::array<unsigned char, 32> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// To start it again, also where there is no /proc.
std::string OwnProgram() {
  const char* const link = "/proc/self/exe";
  const auto* const path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return access(link, X_OK) == 0 || path == nullptr ? link : path;
}

class Pusher {
 public:
  Pusher(PushSource& source, PushOptions options)
      : source_(source), options_(std::move(options)), hosts_(options_), began_(Clock::now()) {}

  Result<PushReport> Run() {
    const Status status = RunAll();
    if (!status.ok() && status.code() != StatusCode::kRejected) return status;
    return Report(status);
  }

 private:
  Status RunAll() {
    PREPOST_RETURN_IF_ERROR(CheckPort());
    PREPOST_RETURN_IF_ERROR(FindAddresses());
    PREPOST_RETURN_IF_ERROR(StartAgents());
    if (options_.by_content && source_.stream_fd() < 0) {
      Tell("reading the files for their sums");
      PREPOST_RETURN_IF_ERROR(source_.AddSums([this] { return hosts_.CheckInterrupt(); }));
    }
    PREPOST_RETURN_IF_ERROR(AskWhatIsThere());
    rounds_.emplace(source_, hosts_, options_, secret_);
    PREPOST_RETURN_IF_ERROR(rounds_->SendAll());
    PREPOST_RETURN_IF_ERROR(Verify());
    return Commit();
  }

  void Tell(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  /// Two receivers of one machine cannot both listen at options_.port; those of this machine, which
  /// none from elsewhere reaches, listen anywhere.
  Status CheckPort() const {
    std::set<std::string> machines;
    for (const auto& host : hosts_.all()) {
      const std::string& name = host->given.name;
      if (options_.port == 0 || IsHere(*host)) continue;
      if (!machines.insert(name.substr(name.find('@') + 1)).second) {
        return UsageError(
            fmt::format("--port: {} has two targets, whose receivers cannot both listen at port {}",
                        name, options_.port));
      }
    }
    return {};
  }

  Status FindAddresses() {
    Tell("looking up hosts");
    HostLookups lookups;
    const auto is_local = [this](const auto& host) { return IsHere(*host); };
    if (std::ranges::any_of(hosts_.all(), is_local) &&
        !std::ranges::all_of(hosts_.all(), is_local)) {
      return UsageError("localhost and other hosts: name this machine as the others see it");
    }
    for (bool is_waiting = true; is_waiting;) {
      is_waiting = false;
      for (const auto& host : hosts_.all()) {
        if (!host->addresses.empty() || !host->address_text.empty()) continue;
        std::string name = host->given.address;
        if (name.empty()) name = host->given.name.substr(host->given.name.find('@') + 1);
        const auto found = lookups.Find(name);
        if (!found) {
          is_waiting = true;
        } else if (found->status().code() == StatusCode::kEnvironment) {
          return found->status();
        } else if (found->ok()) {
          host->addresses = **found;
        } else if (!host->given.address.empty()) {
          host->address_text = found->status().message();
          PushReceivers::Drop(*host, fmt::format("its address {} is not known here: {}", name,
                                                 found->status().message()));
        } else {
          // It may be a name that only ssh knows: then the host itself says where ssh came in.
          host->address_text = fmt::format("{}: {}", name, found->status().message());
        }
      }
      PREPOST_RETURN_IF_ERROR(hosts_.CheckInterrupt());
      if (is_waiting) poll(nullptr, 0, PushReceivers::kPumpMs / 10);
    }
    return {};
  }

  /// Its receiver is a process of this machine.
  bool IsHere(const PushReceiver& host) const {
    return prepost::tools::IsHere(options_, host.given);
  }

  std::vector<std::string> AgentWords(const PushReceiver& host) const {
    std::vector<std::string> words = options_.agent;
    if (IsHere(host)) return {OwnProgram(), "receive"};
    if (words.empty()) words = {"ssh", "-o", "BatchMode=yes"};
    words.push_back(host.given.name);
    words.push_back(options_.remote_command);
    words.push_back("receive");
    return words;
  }

  Status StartAgents() {
    Tell(fmt::format("starting receivers on {}", Count(hosts_.all().size(), "host")));
    PREPOST_RETURN_IF_ERROR(RaiseFileLimit(hosts_.all().size() * 8 + 64));
    secret_ = RandomSecret();
    PREPOST_RETURN_IF_ERROR(hosts_.Check());
    for (const auto& host : hosts_.all()) {
      if (!host->is_in()) continue;
      Result<AgentProcess> agent = AgentProcess::Start(AgentWords(*host));
      if (!agent.ok()) return agent.status();
      host->agent = *std::move(agent);
      // A receiver answers with an error, a number per file, or a sum per file.
      host->agent.channel().LimitLines(2 * LineChannel::kStringBytesMax +
                                       source_.manifest().size() * 128);
      host->agent.channel().Send({{"hello",
                                   {{"protocol", kPushProtocol},
                                    {"member", host->member},
                                    {"members", hosts_.all().size() + 1},
                                    {"secret", secret_},
                                    {"port", IsHere(*host) ? 0 : options_.port},
                                    {"target", host->given.target},
                                    {"allow_devices", options_.allow_devices},
                                    {"sync", options_.sync},
                                    {"strict", options_.is_strict},
                                    {"failure_ms", options_.failure_max.count()},
                                    {"connect_ms", JoinMax(options_).count()},
                                    {"sites", SitesOf(options_)},
                                    {"streams", options_.paths.streams},
                                    {"pace", options_.paths.pace},
                                    {"congestion", options_.paths.congestion}}}});
    }
    return hosts_.Until(
        "starting receivers", [](const PushReceiver& host) { return host.port.has_value(); },
        options_.connect_max,
        fmt::format("its receiver did not start within {:g} s",
                    std::chrono::duration<double>(options_.connect_max).count()));
  }

  Status AskWhatIsThere() {
    Tell("asking the hosts what they have");
    // A file with many holes has megabytes of extents.
    const std::string files =
        LineChannel::LineOf({{"files", {{"manifest", ToJson(source_.manifest())}}}});
    for (const auto& host : hosts_.all()) {
      PREPOST_RETURN_IF_ERROR(hosts_.CheckInterrupt());
      if (host->is_in()) host->agent.channel().SendLine(files);
    }
    PREPOST_RETURN_IF_ERROR(hosts_.Until(
        "asking the hosts what they have",
        [](const PushReceiver& host) { return host.have.has_value(); }, PushReceivers::kNever, ""));
    std::set<size_t> lacking;
    for (size_t file = 0; file < source_.manifest().size(); ++file) {
      for (const auto& host : hosts_.all()) {
        if (!host->is_in() || host->have->contains(file)) continue;
        host->lacks_something = true;
        lacking.insert(file);
      }
    }
    files_.assign(lacking.begin(), lacking.end());
    source_.Choose(files_);
    Tell("making room on the hosts");
    for (PushReceiver* const host : hosts_.Members())
      host->agent.channel().Send({{"prepare", files_}});
    PREPOST_RETURN_IF_ERROR(hosts_.Until(
        "making room on the hosts",
        [](const PushReceiver& host) { return !host.is_member() || host.is_prepared; },
        PushReceivers::kNever, ""));
    began_ = Clock::now();
    return {};
  }

  Status Verify() {
    if (hosts_.Members().empty()) return {};
    Tell("verifying");
    for (PushReceiver* const host : hosts_.Members())
      host->agent.channel().Send({{"end", {{"messages", rounds_->messages()}}}});
    PREPOST_RETURN_IF_ERROR(hosts_.Until(
        "verifying",
        [](const PushReceiver& host) { return !host.is_member() || host.sums.has_value(); },
        PushReceivers::kNever, ""));
    for (PushReceiver* const host : hosts_.Members()) CompareSums(*host);
    return hosts_.Check();
  }

  /// What others have relayed to the host may be anything; its sums come by its agent.
  void CompareSums(PushReceiver& host) const {
    const std::vector<MessageSum>& sums = source_.sums();
    for (size_t i = 0; i < sums.size(); ++i) {
      if (i < host.sums->size() && (*host.sums)[i] == sums[i].ToString()) continue;
      return PushReceivers::Drop(
          host, fmt::format("{} has another sum there than here: it was changed on the way",
                            source_.manifest()[files_[i]].name));
    }
  }

  Status Commit() {
    for (const auto& host : hosts_.all()) {
      if (!host->is_in()) continue;
      host->is_committing = true;
      host->agent.channel().Send({{"commit", true}});
    }
    is_committing_ = true;
    hosts_.set_keep_going(true);  // one that fails now takes nobody down
    return hosts_.Until(
        "naming the files", [](const PushReceiver& host) { return host.is_done; },
        PushReceivers::kNever, "");
  }

  /// At a host that did not fail itself, when the push did.
  std::string WhatIsLeft(const PushReceiver& host) const {
    if (is_committing_) return "it is not known whether the files are there: ";
    if (host.writes_in_place) return "a part of the file may have been written there, because ";
    return "nothing was left there, because ";
  }

  PushReport Report(const Status& status) const {
    PushReport report = {.hosts = {},
                         .files = source_.manifest(),
                         .files_sent = files_.size(),
                         .by_content = options_.by_content,
                         .bytes = rounds_ ? rounds_->sent_bytes() : 0,
                         .seconds = 0};
    for (size_t i = 0; i < files_.size() && i < source_.sums().size(); ++i)
      report.files[files_[i]].sum = source_.sums()[i].ToString();
    if (rounds_) report.why_sequential = rounds_->why_sequential();
    const std::vector<LinkSpeed> links = rounds_ ? rounds_->Speeds() : std::vector<LinkSpeed>();
    const std::vector<double> speeds = MemberSpeeds(links, hosts_.all().size() + 1);
    if (const auto slow = SlowMember(links, speeds.size()))
      report.slow_host = hosts_.all()[*slow - 1]->given.label;
    for (const auto& host : hosts_.all()) {
      HostVerdict verdict = {.host = host->given.label,
                             .status = host->status,
                             .target = host->given.target,
                             .link_speed = speeds[host->member],
                             .unkept = host->unkept};
      verdict.is_consequence = verdict.status.ok() && !host->is_done;
      if (verdict.is_consequence)
        verdict.status = Rejected(WhatIsLeft(*host) + hosts_.NameHosts(status.message()));
      verdict.was_there = verdict.status.ok() && !host->lacks_something;
      if (verdict.status.ok() && host->lacks_something) {
        verdict.bytes = host->bytes;
        verdict.seconds =
            std::chrono::duration<double>(std::max(host->last_written, began_) - began_).count();
        report.seconds = std::max(report.seconds, verdict.seconds);
      }
      report.hosts.push_back(std::move(verdict));
    }
    return report;
  }

  PushSource& source_;
  const PushOptions options_;
  PushReceivers hosts_;
  std::string secret_;
  std::vector<size_t> files_;         ///< that are sent, by place in the manifest
  std::optional<PushRounds> rounds_;  ///< when these begin
  bool is_committing_ = false;
  Clock::time_point began_;
};

}  // namespace

std::chrono::milliseconds JoinMax(const PushOptions& options) {
  return std::min(options.connect_max, std::chrono::milliseconds(10'000));
}

bool IsHere(const PushOptions& options, const PushHost& host) {
  return options.agent.empty() && host.name == kLocalHost;
}

bool IsSealed(const PushOptions& options) {
  const auto is_here = [&options](const PushHost& host) { return IsHere(options, host); };
  return !options.is_plain && options.device.empty() &&
         !std::ranges::all_of(options.hosts, is_here);
}

std::vector<std::string> SitesOf(const PushOptions& options) {
  if (options.site.empty()) return {};
  std::vector<std::string> sites = {options.site};
  for (const PushHost& host : options.hosts) sites.push_back(host.site);
  return sites;
}

Result<PushReport> Push(PushSource& source, PushOptions options) {
  return Pusher(source, std::move(options)).Run();
}

}  // namespace prepost::tools
