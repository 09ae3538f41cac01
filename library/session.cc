// SPDX-License-Identifier: Apache-2.0
//
// Session: the public face of an engine (runtime/session/engine.h), with the compiler's plans.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "backends/registry.h"
#include "ir/base/count.h"
#include "ir/base/status.h"
#include "library/call_plans.h"
#include "library/device_group.h"
#include "library/group_plans.h"
#include "library/hooked_session.h"
#include "library/session_impl.h"
#include "prepost/prepost.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/thread.h"
#include "runtime/executor/executor_choice.h"
#include "runtime/session/engine.h"
#include "runtime/session/member_words.h"
#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeMax = std::chrono::hours(24);

WaitMode ModeOf(Waiting waiting) {
  switch (waiting) {
    case Waiting::kPolling:
      return WaitMode::kPolling;
    case Waiting::kHybrid:
      return WaitMode::kHybrid;
    case Waiting::kInterrupt:
      return WaitMode::kInterrupt;
  }
  PREPOST_CHECK(false);
  return {};
}
WaitPolicy WaitOf(const SessionOptions& options) {
  return {.mode = ModeOf(options.waiting), .idle_max = options.idle_max, .adapts = true};
}

PeerAddress PeerOf(const Address& address) {
  return {.host = address.host, .ports = {.first = address.port, .last = address.port}};
}

Status CheckSites(const SessionOptions& options) {
  if (options.sites.empty()) return {};
  if (options.sites.size() != options.members.size()) {
    return UsageError(fmt::format("there are {}, but the sites of {}",
                                  Count(options.members.size(), "member"),
                                  Count(options.sites.size(), "member")));
  }
  const auto nameless = std::ranges::find(options.sites, "");
  if (nameless == options.sites.end()) return {};
  return UsageError(
      fmt::format("member {} has no site, and others do", nameless - options.sites.begin()));
}

/// The sites of a group's members, numbered by their first member; none: all are at one.
struct GroupSites {
  std::vector<uint32_t> site_of;
  std::vector<std::string> names;
};
GroupSites SitesOf(const std::vector<uint32_t>& members, const std::vector<std::string>& sites) {
  GroupSites found;
  std::map<std::string, uint32_t> numbers;
  for (const uint32_t member : sites.empty() ? std::vector<uint32_t>() : members) {
    const auto next = static_cast<uint32_t>(numbers.size());
    const auto [number, is_new] = numbers.try_emplace(sites[member], next);
    if (is_new) found.names.push_back(sites[member]);
    found.site_of.push_back(number->second);
  }
  return numbers.size() < 2 ? GroupSites() : found;
}

Status CheckOptions(const SessionOptions& options) {
  if (options.members.empty()) return UsageError("a session needs members");
  if (options.self >= options.members.size()) {
    return UsageError(fmt::format("self is {}, but there are {}: 0 to {}", options.self,
                                  Count(options.members.size(), "member"),
                                  options.members.size() - 1));
  }
  if (options.failure_max < milliseconds(100))
    return UsageError(
        fmt::format("failure_max is {} ms; at least 100 are needed", options.failure_max.count()));
  if (options.failure_max > kTimeMax || options.connect_max > kTimeMax ||
      options.idle_max > kTimeMax) {
    return UsageError("failure_max, connect_max and idle_max are a day at most");
  }
  PREPOST_RETURN_IF_ERROR(CheckPathOptions(options.paths));
  PREPOST_RETURN_IF_ERROR(CheckSites(options));
  if (options.connect_max <= milliseconds(0) || options.idle_max < milliseconds(0))
    return UsageError("connect_max and idle_max are times from now on");
  return {};
}

/// What in `options` and `callbacks` does not go together; "": nothing.
std::string WhyUnfit(const GroupOptions& options, const GroupCallbacks& callbacks) {
  if (callbacks.pool && callbacks.incoming)
    return "both a pool and `incoming` are to supply the memory";
  if (callbacks.pool && options.sync)
    return "messages in buffers of a pool have no file to be synced to";
  const auto named = std::ranges::find(kExecutorNames, options.executor);
  if (named == kExecutorNames.end()) {
    return fmt::format("there is no executor \"{}\": {}", options.executor,
                       fmt::join(kExecutorNames, ", "));
  }
  const auto executor = static_cast<Executor>(named - kExecutorNames.begin());
  if (executor == Executor::kOffload && options.device.empty())
    return "to offload it to a NIC takes a device";
  if (options.seal && !options.device.empty()) {
    return fmt::format(
        "what goes over device {} the NIC itself moves, which seals nothing: either "
        "seal or a device",
        options.device);
  }
  if (options.root_connects && (options.algorithm != "sequential" || !options.device.empty()))
    return "where the root opens all connections, it sends to each of the others: algorithm "
           "\"sequential\", without a device";
  if (options.calls) {
    const char* const unfit = !options.device.empty()       ? "a device"
                              : !options.plan.empty()       ? "a plan"
                              : options.algorithm != "auto" ? "an algorithm"
                              : options.block_bytes != 0    ? "a size of blocks"
                              : options.notify_delivered    ? "notify_delivered"
                              : options.sync                ? "sync"
                              : callbacks.pool              ? "a pool"
                                                            : nullptr;
    if (unfit != nullptr) return fmt::format("a group for calls has not {}", unfit);
  } else if (options.deterministic) {
    return "`deterministic` is for calls";
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Open(const SessionOptions& options) {
  return HookedSession::Open(options, nullptr);
}

Result<std::unique_ptr<Session>> HookedSession::Open(const SessionOptions& options, TcpHook* hook) {
  PREPOST_RETURN_IF_ERROR(CheckOptions(options));
  CloseFilesInForks();
  Result<GroupKey> key = GroupKey::FromSecret(options.secret, "");
  if (!key.ok()) {
    const bool is_wrong = key.status().code() == StatusCode::kRejected;
    return is_wrong ? UsageError(key.status().message()) : key.status();
  }
  KeeperOptions keeper = {.who = fmt::format("member {}", options.self),
                          .own = PeerOf(options.members[options.self]),
                          .key = *std::move(key),
                          .bind = options.bind,
                          .failure_max = options.failure_max,
                          .connect_max = options.connect_max,
                          .reads_memory = options.local_copies};
  Result<std::unique_ptr<Engine>> engine = Engine::Make(std::move(keeper), WaitOf(options), hook);
  if (!engine.ok()) return engine.status();
  auto impl = std::make_unique<Session::Impl>();
  impl->options = options;
  Wipe(impl->options.secret);
  impl->options.secret.clear();
  impl->engine = *std::move(engine);
  impl->options.members[options.self].port = impl->engine->port();
  if (options.own_thread) {
    Result<std::thread> thread =
        StartThread("the thread of a session", [raw = impl.get()] { raw->Run(); });
    if (!thread.ok()) return thread.status();
    impl->thread = *std::move(thread);
  }
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() {
  if (impl_->is_inherited()) static_cast<void>(impl_.release());  // its locks may be held for ever
}

uint16_t Session::port() const { return impl_->engine->port(); }

Status Session::SetAddress(uint32_t member, const Address& address) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  if (member >= impl_->options.members.size())
    return UsageError(fmt::format("cannot set an address: there is no member {}", member));
  if (member == impl_->options.self)
    return UsageError(fmt::format("member {} is this one, which listens already", member));
  if (address.host.empty() || address.port == 0)
    return UsageError(fmt::format("member {} has no host or no port", member));
  const std::lock_guard lock(impl_->mutex);
  impl_->options.members[member] = address;
  return {};
}

Status Session::CreateGroup(uint64_t number, const std::vector<uint32_t>& members, uint32_t root,
                            const GroupOptions& options, GroupCallbacks callbacks) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  const auto fail = [number](const std::string& why) {
    return UsageError(fmt::format("cannot create group {}: {}", number, why));
  };
  if (std::set(members.begin(), members.end()).size() != members.size())
    return fail("a member stands twice in it");
  for (const uint32_t member : members) {
    if (member >= impl_->options.members.size())
      return fail(fmt::format("there is no member {}", member));
  }
  const auto self = std::ranges::find(members, impl_->options.self);
  if (self == members.end())
    return fail(fmt::format("member {}, which this is, is not in it", impl_->options.self));
  const auto root_place = std::ranges::find(members, root);
  if (root_place == members.end())
    return fail(fmt::format("its root, member {}, is not in it", root));
  if (const std::string unfit = WhyUnfit(options, callbacks); !unfit.empty()) return fail(unfit);
  const auto executor = static_cast<Executor>(std::ranges::find(kExecutorNames, options.executor) -
                                              kExecutorNames.begin());
  const GroupSites sites = SitesOf(members, impl_->options.sites);
  EngineGroupOptions group = {
      .number = number,
      .members = members,
      .self = NodeId::FromIndex(static_cast<size_t>(self - members.begin())),
      .collective = {.root = NodeId::FromIndex(static_cast<size_t>(root_place - members.begin()))},
      .notify_delivered = options.notify_delivered,
      .sync = options.sync,
      .is_for_calls = options.calls,
      .paths = impl_->options.paths,
      .sites = sites.site_of,
      .is_sealed = options.seal,
      .root_connects = options.root_connects,
      .terms =
          fmt::format("{} {} {} {} {}", options.algorithm, options.block_bytes,
                      options.notify_delivered, options.sync, options.plan.empty() ? "" : "file")};
  if (!group.sites.empty()) group.terms += fmt::format(" sites {}", fmt::join(group.sites, ","));
  if (options.root_connects) group.terms += " root connects";
  if (options.calls) group.terms += fmt::format(" calls {}", options.deterministic);
  if (!options.device.empty()) group.paths.streams = 1;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const uint32_t member : members) {
      const Address& address = impl_->options.members[member];
      if (member != impl_->options.self && (address.host.empty() || address.port == 0))
        return fail(fmt::format("member {} has no host or no port yet", member));
      group.addresses.push_back(PeerOf(address));
    }
  }
  auto plans = options.calls ? MakeCallPlans({.nodes = static_cast<uint32_t>(members.size()),
                                              .self = group.self,
                                              .is_deterministic = options.deterministic})
                             : MakeGroupPlans({.nodes = static_cast<uint32_t>(members.size()),
                                               .self = group.self,
                                               .root = group.collective.root,
                                               .algorithm = options.algorithm,
                                               .block_bytes = options.block_bytes,
                                               .sites = sites.site_of,
                                               .site_names = sites.names,
                                               .plan_path = options.plan,
                                               .is_flat = !options.device.empty()});
  if (!plans.ok()) return fail(plans.status().ToString());
  const bool receives = root != impl_->options.self && !options.calls;
  if (receives && !callbacks.pool && !callbacks.incoming)
    return fail("this member receives, and neither a pool nor `incoming` supplies the memory");
  std::unique_ptr<MessageMover> mover;
  if (!options.device.empty()) {
    auto devices = OpenGroupDevices({.device = options.device,
                                     .needs_offload = executor == Executor::kOffload,
                                     .nodes = static_cast<uint32_t>(members.size()),
                                     .self = group.self});
    if (!devices.ok()) {
      return EnvironmentError(fmt::format("cannot create group {}: {}", number,
                                          InMemberWords(devices.status().message(), members)));
    }
    group.terms += fmt::format(" {}", (*devices)->kind());
    mover = MakeDeviceGroup({.self = group.self,
                             .root = group.collective.root,
                             .executor = executor,
                             .device = options.device,
                             .wait = WaitOf(impl_->options),
                             .answer_max = impl_->options.connect_max},
                            *std::move(devices), **plans);
  }
  return impl_->engine->Create(group, *std::move(plans), std::move(callbacks), std::move(mover));
}

Result<uint64_t> Session::Send(uint64_t group, const void* data, uint64_t bytes) {
  const MessagePart part = {.data = data, .bytes = bytes};
  return SendMany(group, std::span(&part, 1));
}

Result<uint64_t> Session::SendMany(uint64_t group, std::span<const MessagePart> parts) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  for (const MessagePart& part : parts) {
    if (part.data == nullptr && part.bytes > 0)
      return UsageError("a message has bytes but no memory");
  }
  return impl_->engine->Send(group, parts);
}

Status Session::Barrier(uint64_t group, std::function<void()> passed) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  const Result<bool> is_for_calls = impl_->engine->IsForCalls(group);
  if (!is_for_calls.ok() || !*is_for_calls) return impl_->engine->Barrier(group, std::move(passed));
  return Call(group, {.kind = CollectiveKind::kBarrier},
              [passed = std::move(passed)](const Status& status) {
                if (status.ok() && passed) passed();
              });
}

Status Session::DestroyGroup(uint64_t group) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->engine->Destroy(group);
}
Status Session::AbortGroup(uint64_t group, const std::string& why) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->engine->Abort(group, why);
}

void Session::Resume() {
  if (!impl_->is_inherited()) impl_->engine->Resume();
}

Result<PeerPaths> Session::Paths(uint64_t group) const {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->engine->Paths(group);
}

Result<std::vector<PeerSpeed>> Session::Speeds(uint64_t group) const {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->engine->Speeds(group);
}

Result<std::vector<std::string>> Session::Notes(uint64_t group) const {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->engine->Notes(group);
}

int Session::fd() const { return impl_->engine->fd(); }

Status Session::Poll(milliseconds timeout) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  if (impl_->options.own_thread) return UsageError("the session has a thread of its own to poll");
  return impl_->engine->Poll(timeout);
}

}  // namespace prepost
