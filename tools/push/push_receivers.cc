// SPDX-License-Identifier: Apache-2.0
#include "tools/push/push_receivers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "ir/base/count.h"
#include "runtime/base/interrupt.h"

namespace prepost::tools {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr int kLastWordsMs = 500;
const std::string kThisMachine = "this machine";
constexpr milliseconds kMoreFailuresMax{500};  ///< for further hosts, when one has failed

}  // namespace

std::string PushReceiver::host() const {
  std::vector<std::string> hosts;
  for (const TcpAddress& address : addresses) hosts.push_back(address.Host());
  return fmt::format("{}", fmt::join(hosts, ","));
}

PushReceivers::PushReceivers(const PushOptions& options)
    : options_(options), keep_going_(options.keep_going) {
  for (const PushHost& host : options.hosts) {
    receivers_.push_back(std::make_unique<PushReceiver>());
    receivers_.back()->given = host;
    receivers_.back()->member = static_cast<uint32_t>(receivers_.size());
  }
}

PushReceivers::~PushReceivers() {
  std::vector<AgentProcess*> agents;
  for (const auto& receiver : receivers_) agents.push_back(&receiver->agent);
  AgentProcess::EndAll(agents, AgentProcess::kEndMaxMs);
}

std::vector<PushReceiver*> PushReceivers::Members() const {
  std::vector<PushReceiver*> members;
  for (const auto& receiver : receivers_) {
    if (receiver->is_member()) members.push_back(receiver.get());
  }
  return members;
}

Status PushReceivers::CheckInterrupt() const {
  return IsInterrupted(options_.interrupt_fd) ? Interrupted() : Status();
}

Status PushReceivers::Check() const {
  std::vector<std::string_view> out;
  for (const auto& receiver : receivers_) {
    if (!receiver->is_in()) out.push_back(receiver->given.label);
  }
  if (!out.empty() && !keep_going_) {
    constexpr size_t kNamedMax = 4;
    const size_t named = std::min(out.size(), kNamedMax);
    const std::string more =
        named < out.size() ? fmt::format(" and {} more", out.size() - named) : "";
    out.resize(named);
    return Rejected(fmt::format("{}{} failed", fmt::join(out, ", "), more));
  }
  const auto is_in = [](const auto& receiver) { return receiver->is_in(); };
  return std::ranges::any_of(receivers_, is_in) ? Status() : Rejected("no host is left");
}

void PushReceivers::Drop(PushReceiver& receiver, const std::string& why) {
  if (!receiver.is_in()) return;
  receiver.status = Rejected(why);
  receiver.agent.HangUp();
}

Status PushReceivers::Pump(int max_ms, std::span<pollfd> others) {
  std::vector<pollfd> polls(others.begin(), others.end());
  polls.push_back({.fd = options_.interrupt_fd, .events = POLLIN, .revents = 0});
  const size_t first = polls.size();
  for (const auto& receiver : receivers_) {
    const LineChannel& channel = receiver->agent.channel();
    const bool is_in = receiver->is_in();
    const bool is_heard = is_in && !receiver->has_closed;
    polls.push_back({.fd = is_heard ? channel.in() : -1, .events = POLLIN, .revents = 0});
    polls.push_back(
        {.fd = is_in && channel.wants_out() ? channel.out() : -1, .events = POLLOUT, .revents = 0});
    polls.push_back(
        {.fd = is_in ? receiver->agent.errors_fd() : -1, .events = POLLIN, .revents = 0});
  }
  poll(polls.data(), polls.size(), max_ms);
  PREPOST_RETURN_IF_ERROR(CheckInterrupt());
  std::copy_n(polls.begin(), others.size(), others.begin());
  for (size_t i = 0; i < receivers_.size(); ++i) {
    PushReceiver& receiver = *receivers_[i];
    if (!receiver.is_in()) continue;
    if (polls[first + 3 * i + 2].revents != 0) receiver.agent.FillErrors();
    if (polls[first + 3 * i].revents != 0) Hear(receiver);
    if (receiver.is_in() && !receiver.agent.channel().Flush())
      Drop(receiver, receiver.agent.LastWords(kLastWordsMs));
  }
  return {};
}

void PushReceivers::Hear(PushReceiver& receiver) {
  const bool is_open = receiver.agent.channel().Fill();
  receiver.has_closed = !is_open;
  receiver.heard = Clock::now();
  while (receiver.is_in()) {
    const Result<std::optional<json>> line = receiver.agent.channel().Next();
    if (!line.ok())
      return Drop(receiver, "its receiver wrote nonsense, or the shell that starts it there did: " +
                                line.status().message());
    if (!*line) break;
    try {
      Obey(receiver, **line);
    } catch (const json::exception& error) {
      return Drop(receiver, fmt::format("its receiver wrote nonsense: {}", error.what()));
    }
  }
  if (!is_open && receiver.is_in() && !receiver.is_done)
    Drop(receiver, receiver.agent.LastWords(kLastWordsMs));
}

void PushReceivers::Obey(PushReceiver& receiver, const json& line) {
  if (line.contains("listening")) {
    receiver.port = line.at("listening").at("port");
    if (receiver.addresses.empty()) {
      receiver.addresses = NumericAddresses(line.at("listening").at("address").get<std::string>());
      if (receiver.addresses.empty()) {
        return Drop(receiver,
                    fmt::format("its address is not known here: {}", receiver.address_text));
      }
    }
  } else if (line.contains("have")) {
    receiver.have.emplace();
    for (const json& file : line.at("have")) receiver.have->insert(file.get<size_t>());
  } else if (line.contains("prepared")) {
    receiver.is_prepared = true;
    receiver.writes_in_place = line.at("prepared").at("in_place");
  } else if (line.contains("written")) {
    receiver.written = std::max(receiver.written, line.at("written").get<uint64_t>());
    receiver.last_written = Clock::now();
  } else if (line.contains("broken")) {
    receiver.is_broken = true;
    receiver.broken_text = line.at("broken").at("text");
    receiver.is_unreached = line.at("broken").at("unreached");
  } else if (line.contains("left")) {
    receiver.has_left = true;
    receiver.port = line.at("left").at("port");
    receiver.written = std::max(receiver.written, line.at("left").at("written").get<uint64_t>());
  } else if (line.contains("summed")) {
    receiver.sums = line.at("summed").at("sums");
    receiver.bytes = line.at("summed").at("bytes");
  } else if (line.contains("done")) {
    if (!receiver.is_committing || receiver.is_done)
      return Drop(receiver, "its receiver says that it is done when it cannot be");
    for (const json& one : line.at("done").at("unkept")) {
      receiver.unkept.push_back({.what = one.at("what"),
                                 .error = one.at("error"),
                                 .file = one.at("file"),
                                 .files = one.at("files")});
    }
    receiver.is_done = true;
  } else if (line.contains("alive")) {
    const json& speeds = line.at("alive").at("speeds");
    if (speeds.empty()) return;  // of the last group they stay
    receiver.speeds.clear();
    for (const json& peer : speeds) {
      receiver.speeds.push_back({.from = receiver.member,
                                 .to = peer.at(0),
                                 .bytes = peer.at(1),
                                 .busy_seconds = peer.at(2)});
    }
  } else if (line.contains("note")) {
    if (options_.note)
      options_.note(fmt::format("{} {}", receiver.given.label, line.at("note").get<std::string>()));
  } else if (line.contains("error")) {
    Drop(receiver, line.at("error").at("text"));
  }
}

void PushReceivers::ShowWaiting(const std::string& what,
                                const std::function<bool(const PushReceiver&)>& is_ready) const {
  if (!options_.progress) return;
  constexpr size_t kNamedMax = 3;
  std::vector<std::string_view> waiting;
  size_t in = 0;
  for (const auto& receiver : receivers_) {
    if (!receiver->is_in()) continue;
    ++in;
    if (!is_ready(*receiver)) waiting.push_back(receiver->given.label);
  }
  const size_t ready = in - waiting.size();
  const bool are_more = waiting.size() > kNamedMax;
  waiting.resize(std::min(waiting.size(), kNamedMax));
  options_.progress(fmt::format("{}: {} of {}, waiting for {}{}", what, ready, Count(in, "host"),
                                fmt::join(waiting, ", "), are_more ? ", ..." : ""));
}

Status PushReceivers::Until(const std::string& what,
                            const std::function<bool(const PushReceiver&)>& is_ready,
                            milliseconds max, const std::string& late) {
  const Clock::time_point due = max == kNever ? Clock::time_point::max() : Clock::now() + max;
  for (const auto& receiver : receivers_) receiver->heard = Clock::now();
  // Others may fail, too, each for a reason of its own.
  std::optional<Clock::time_point> end_due;
  for (;;) {
    Status failed = Check();
    if (!failed.ok() && !end_due) end_due = Clock::now() + kMoreFailuresMax;
    if (!failed.ok() && Clock::now() >= *end_due) return failed;
    const bool is_over = Clock::now() >= due;
    bool is_waiting = false;
    for (const auto& receiver : receivers_) {
      if (!receiver->is_in() || is_ready(*receiver)) continue;
      is_waiting = true;
      if (is_over) Drop(*receiver, late);
    }
    if (!is_waiting) return Check();
    ShowWaiting(what, is_ready);
    PREPOST_RETURN_IF_ERROR(DropSilent(std::not_fn(is_ready)));
    if (!is_over) PREPOST_RETURN_IF_ERROR(Pump(kPumpMs));
  }
}

Status PushReceivers::DropSilent(const std::function<bool(const PushReceiver&)>& is_awaited) {
  const auto is_silent = [&](const auto& receiver) {
    return receiver->is_in() && is_awaited(*receiver) &&
           Clock::now() - receiver->heard >= options_.silence_max;
  };
  if (std::ranges::none_of(receivers_, is_silent)) return {};
  // What they said while this process was stopped, or read a slow source, has not been taken in
  // yet.
  PREPOST_RETURN_IF_ERROR(Pump(0));
  for (const auto& receiver : receivers_) {
    if (!is_silent(receiver)) continue;
    Drop(*receiver, fmt::format("it has said nothing for {:g} s: its disk may not answer",
                                std::chrono::duration<double>(options_.silence_max).count()));
  }
  return {};
}

std::string PushReceivers::NameHosts(std::string text) const {
  constexpr std::string_view kMembers = " members ";
  for (size_t at = text.find(kMembers); at != std::string::npos; at = text.find(kMembers, at + 1))
    text.replace(at, kMembers.size(), " hosts ");
  constexpr std::string_view kMember = "member ";
  for (size_t at = text.find(kMember); at != std::string::npos; at = text.find(kMember, at + 1)) {
    size_t member = 0;
    const char* const digits = text.data() + at + kMember.size();
    const auto number = std::from_chars(digits, text.data() + text.size(), member);
    if (number.ec != std::errc() || member > receivers_.size()) continue;
    auto end = static_cast<size_t>(number.ptr - text.data());
    if (text.compare(end, 2, " (") == 0) {
      // An address goes; what is wrong there stays.
      const size_t close = std::min(text.find(')', end), text.size() - 1) + 1;
      if (text.substr(end, close - end).find(": ") == std::string::npos) end = close;
    }
    const std::string& name = member == 0 ? kThisMachine : receivers_[member - 1]->given.label;
    text.replace(at, end - at, name);
    at += name.size() - 1;  // which may be like a member's
  }
  return text;
}

std::string PushReceivers::WordsOf(const PushReceiver& receiver) const {
  const std::string text = NameHosts(receiver.broken_text);
  // Another one may have said it first, who is named already.
  const auto names_it = [&text](const auto& it) {
    return text.starts_with(it->given.label + ": ") || text.starts_with(it->given.label + " ");
  };
  if (std::ranges::any_of(receivers_, names_it)) return text;
  return fmt::format("{}: {}", receiver.given.label, text);
}

}  // namespace prepost::tools
