// SPDX-License-Identifier: Apache-2.0
//
// When a group fails, every receiver leaves it and says how far it is. Who has an error of its own,
// or does not answer, or is where the session says that it failed, is out; the others form the next
// group, which begins with the first message that one of them lacks. Messages are kept here until
// all of the group have written them, so this works for pipes, too.
#include "tools/push/push_rounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "ir/base/count.h"
#include "runtime/base/event_fd.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tools/push/push_protocol.h"
#include "tools/push/reach.h"
#include "tools/report/quantities.h"

namespace prepost::tools {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kAnswerSlack{3000};     ///< for a host to say how far it is
constexpr milliseconds kNamedAnswerMax{1000};  ///< the same for the one that the cause names
constexpr milliseconds kOwnFindingMax{1000};   ///< for this member's session to see a failure
constexpr milliseconds kSilentWaitMax{1000};   ///< for the source, then it says what it waits for
constexpr milliseconds kReachMax{2000};        ///< for a host that may not be reached
constexpr milliseconds kRefusedAfter{3000};    ///< a group in which nothing moves is looked at
constexpr milliseconds kRefusedMax{500};       ///< for that
constexpr const char* kSequential = "sequential";
constexpr int kTriesMax = 3;  ///< of a group that fails although nobody is out

/// Where `receiver` reaches this machine: by as many addresses as it has, if they are different.
std::string OwnHost(const PushReceiver& receiver) {
  std::vector<std::string> hosts;
  for (const TcpAddress& address : receiver.addresses) {
    const std::string host = LocalHostTowards(address);
    if (!host.empty() && std::ranges::count(hosts, host) == 0) hosts.push_back(host);
  }
  return fmt::format("{}", fmt::join(hosts, ","));
}

}  // namespace

/// What the session's thread hands over.
class PushRounds::GroupState {
 public:
  explicit GroupState(EventFd wake) : wake_(std::move(wake)) {}

  int fd() const { return wake_.fd(); }
  GroupCallbacks Callbacks() {
    GroupCallbacks callbacks;
    callbacks.opened = [this] {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
      wake_.Signal();
    };
    callbacks.failed = [this](const Status& cause, const FailedMembers& where) {
      const std::lock_guard lock(mutex_);
      failure_ = cause;
      where_ = where;
      wake_.Signal();
    };
    return callbacks;
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    failure_ = Status();
    where_ = FailedMembers();
    is_open_ = false;
    wake_.Take();
  }
  void Heard() const { wake_.Take(); }
  /// Once: all members are connected.
  bool TakeOpened() {
    const std::lock_guard lock(mutex_);
    return std::exchange(is_open_, false);
  }
  Status failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  FailedMembers where() {
    const std::lock_guard lock(mutex_);
    return where_;
  }

 private:
  EventFd wake_;
  std::mutex mutex_;  ///< all below
  Status failure_;
  FailedMembers where_;
  bool is_open_ = false;
};

PushRounds::PushRounds(PushSource& source, PushReceivers& receivers, const PushOptions& options,
                       std::string secret)
    : source_(source),
      receivers_(receivers),
      options_(options),
      secret_(std::move(secret)),
      algorithm_(options.algorithm) {}

// First the session, whose callbacks are group_'s.
PushRounds::~PushRounds() { session_.reset(); }

/// Groups, one after the other, until one has brought all messages to all of its members.
Status PushRounds::SendAll() {
  Result<EventFd> wake = EventFd::Make();
  if (!wake.ok()) return wake.status();
  group_ = std::make_unique<GroupState>(*std::move(wake));
  total_bytes_ = source_.data_bytes();
  began_ = rated_at_ = Clock::now();
  for (int tries = 0;;) {
    if (receivers_.Members().empty()) return {};
    PREPOST_RETURN_IF_ERROR(OpenGroup());
    PREPOST_RETURN_IF_ERROR(SendInGroup());
    if (IsAllWritten()) return {};
    const size_t before = receivers_.Members().size();
    Status cause;
    PREPOST_RETURN_IF_ERROR(WhoIsLeft(&cause));
    if (std::exchange(has_other_way_, false)) continue;
    const bool is_same = receivers_.Members().size() == before;
    if (is_same && (++tries == kTriesMax || !receivers_.keep_going() || !was_opened_))
      return Rejected(receivers_.NameHosts(cause.message()));
  }
}

Status PushRounds::OpenGroup() {
  of_group_ = receivers_.Members();
  SessionOptions options = {.self = 0,
                            .members = std::vector<Address>(receivers_.all().size() + 1),
                            .sites = SitesOf(options_),
                            .secret = secret_,
                            .failure_max = options_.failure_max,
                            .connect_max = JoinMax(options_) + 3 * kOwnFindingMax,
                            .paths = options_.paths};
  options.members[0] = {.host = "", .port = options_.port};
  for (const PushReceiver* const member : of_group_) {
    options.members[member->member] = {.host = member->host(), .port = *member->port};
  }
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  group_->Clear();
  send_failure_ = Status();
  ++number_;
  std::vector<uint32_t> numbers = {0};
  json addresses = json::array({json::array({"", session_->port()})});
  for (const PushReceiver* const member : of_group_) {
    numbers.push_back(member->member);
    addresses.push_back({member->host(), *member->port});
  }
  while (first_ < MinWritten()) DropFirst();
  was_opened_ = false;
  has_looked_ = std::exchange(is_refused_, false);  // a second time it is waited for
  moved_at_ = sent_at_ = acknowledged_at_ = Clock::now();
  written_before_ = written_lately_ = Written();
  acknowledged_bytes_ = 0;
  own_speeds_.clear();  // of connections that are no more
  for (PushReceiver* const member : of_group_) {
    member->speeds.clear();
    member->written_before = member->written;
  }
  PREPOST_RETURN_IF_ERROR(session_->CreateGroup(number_, numbers, /*root=*/0,
                                                {.algorithm = algorithm_,
                                                 .block_bytes = options_.block_bytes,
                                                 .device = options_.device,
                                                 .seal = IsSealed(options_),
                                                 .root_connects = RootConnects()},
                                                group_->Callbacks()));
  for (PushReceiver* const member : of_group_) SendGroup(*member, numbers, addresses);
  for (const Message& message : window_) SendMessage(message);
  return {};
}

void PushRounds::SendGroup(PushReceiver& receiver, const std::vector<uint32_t>& numbers,
                           json addresses) {
  receiver.is_broken = receiver.is_unreached = false;
  receiver.has_left = false;
  addresses[0][0] = options_.own_address.empty() ? OwnHost(receiver) : options_.own_address;
  receiver.agent.channel().Send({{"group",
                                  {{"number", number_},
                                   {"members", numbers},
                                   {"addresses", std::move(addresses)},
                                   {"first", first_},
                                   {"algorithm", algorithm_},
                                   {"device", options_.device},
                                   {"seal", IsSealed(options_)},
                                   {"root_connects", RootConnects()},
                                   {"block_bytes", options_.block_bytes}}}});
}

/// A group cannot be sent to from the moment on that it fails, and its callback says why a little
/// later.
void PushRounds::SendMessage(const Message& message) {
  const Result<uint64_t> sent = session_->Send(number_, message.memory.get(), message.bytes);
  if (!sent.ok() && send_failure_.ok()) send_failure_ = sent.status();
}

bool PushRounds::HasFailed() const {
  const auto is_out = [](const PushReceiver* member) {
    return !member->is_in() || member->is_broken;
  };
  return !send_failure_.ok() || !group_->failure().ok() || std::ranges::any_of(of_group_, is_out);
}

uint64_t PushRounds::MinWritten() const {
  uint64_t written = first_ + window_.size();
  for (const PushReceiver* const member : of_group_) written = std::min(written, member->written);
  return written;
}

/// Messages, by all members together.
uint64_t PushRounds::Written() const {
  uint64_t written = 0;
  for (const PushReceiver* const member : of_group_) written += member->written;
  return written;
}

void PushRounds::DropFirst() {
  spare_.push_back(std::move(window_.front().memory));
  done_bytes_ += window_.front().bytes;
  window_.pop_front();
  ++first_;
}

/// Until all is written, or the group has failed, or a member is out.
Status PushRounds::SendInGroup() {
  while (!HasFailed()) {
    PREPOST_RETURN_IF_ERROR(ReadMore());
    while (first_ < MinWritten()) DropFirst();
    if (IsAllWritten()) return {};
    NoteWaiting();
    ShowProgress();
    const bool may_read = !is_read_ && window_.size() < kPushWindow;
    const bool wants_stream = may_read && source_.stream_fd() >= 0;
    PREPOST_RETURN_IF_ERROR(
        Pump(may_read && !wants_stream ? 0 : PushReceivers::kPumpMs, wants_stream));
    PREPOST_RETURN_IF_ERROR(
        receivers_.DropSilent([](const PushReceiver& receiver) { return receiver.is_member(); }));
    PREPOST_RETURN_IF_ERROR(CheckProgress());
    PREPOST_RETURN_IF_ERROR(LookForRefused());
  }
  return {};
}

/// Where nothing moves any more though it was sent: members lack connections. Receivers listen, so
/// one whose host refuses them is hardly about to come, as sessions have to assume of members.
Status PushRounds::LookForRefused() {
  const uint64_t written = Written();
  if (window_.empty() || std::exchange(written_lately_, written) != written)
    sent_at_ = Clock::now();
  if (has_looked_ || caller_ == Caller::kHosts || Clock::now() < sent_at_ + kRefusedAfter ||
      Clock::now() < acknowledged_at_ + kRefusedAfter / 3)
    return {};
  has_looked_ = true;
  const Result<std::vector<Unreached>> found =
      FindUnreached(of_group_, kRefusedMax, [this] { return receivers_.CheckInterrupt(); });
  if (!found.ok()) return found.status();
  for (const Unreached& it : *found) {
    // Who has written something has its connections, and may refuse others.
    if (!it.is_refused || it.receiver->written > it.receiver->written_before) continue;
    is_refused_ = true;
    send_failure_ = Rejected(
        fmt::format("this machine does not reach {}: {}", it.receiver->given.label, it.why));
  }
  return {};
}

/// Nobody writes what is under way, though all answer.
Status PushRounds::CheckProgress() {
  const uint64_t written = Written();
  if (window_.empty() || written != std::exchange(moved_, written)) moved_at_ = Clock::now();
  if (options_.no_progress_max.count() == 0 || Clock::now() < moved_at_ + options_.no_progress_max)
    return {};
  const auto slow = std::ranges::min_element(of_group_, {}, &PushReceiver::written);
  return Rejected(fmt::format(
      "no host has written anything for {:g} s (--timeout); the one that has least is {}",
      std::chrono::duration<double>(options_.no_progress_max).count(), (*slow)->given.label));
}

/// Of receivers, the session, and the source if it is a stream that is wanted.
Status PushRounds::Pump(int max_ms, bool wants_stream) {
  std::array<pollfd, 2> polls = {
      {{.fd = group_->fd(), .events = POLLIN, .revents = 0},
       {.fd = wants_stream ? source_.stream_fd() : -1, .events = POLLIN, .revents = 0}}};
  PREPOST_RETURN_IF_ERROR(receivers_.Pump(max_ms, polls));
  if (polls[0].revents != 0) group_->Heard();
  if (group_->TakeOpened()) {
    was_opened_ = true;
    NotePaths();
  }
  is_stream_ready_ = polls[1].revents != 0;
  return {};
}

/// At most a message.
Status PushRounds::ReadMore() {
  if (is_read_ || window_.size() >= kPushWindow) return {};
  if (source_.stream_fd() >= 0 && !std::exchange(is_stream_ready_, false)) return {};
  if (partial_.memory == nullptr && !spare_.empty()) {
    partial_.memory = std::move(spare_.back());
    spare_.pop_back();
  }
  // Not touched before it is used.
  if (partial_.memory == nullptr) partial_.memory.reset(new std::byte[kPushMessageBytes]);
  if (partial_.bytes == 0) partial_max_ = NextBytes();
  const Result<size_t> got =
      source_.Read({partial_.memory.get() + partial_.bytes, partial_max_ - partial_.bytes},
                   [this] { return receivers_.CheckInterrupt(); });
  if (!got.ok()) return got.status();
  partial_.bytes += *got;
  is_read_ = *got == 0;
  const bool is_full = partial_.bytes == partial_max_ ||
                       (source_.stream_fd() < 0 && partial_.bytes > 0) ||
                       (is_read_ && partial_.bytes > 0);
  if (is_full) {
    window_.push_back(std::exchange(partial_, {}));
    sent_bytes_ += window_.back().bytes;
    SendMessage(window_.back());
  }
  return {};
}

/// A pipe to which nobody writes looks like one that hangs.
void PushRounds::NoteWaiting() {
  if (has_noted_ || source_.awaited_pipe().empty() || Clock::now() < began_ + kSilentWaitMax)
    return;
  has_noted_ = true;
  if (options_.note) {
    options_.note(
        fmt::format("waits until somebody writes to the pipe {}", source_.awaited_pipe()));
  }
}

/// Of the group that has opened, unless it was said before.
void PushRounds::NotePaths() {
  const Result<std::vector<std::string>> notes = session_->Notes(number_);
  if (!notes.ok() || !options_.note) return;
  for (const std::string& note : *notes) {
    if (noted_.insert(note).second) options_.note(receivers_.NameHosts(note));
  }
}

/// Of the message that is read next: what takes about a quarter of a second, so that progress is
/// seen on slow paths, too, in a few sizes only, as each has a plan of its own.
uint64_t PushRounds::NextBytes() const {
  constexpr uint64_t kLeast = uint64_t{1} << 20;
  constexpr double kSeconds = 0.25;
  // Over a device each would be lowered; and who names blocks means them for long messages.
  if (!options_.device.empty() || options_.block_bytes != 0) return kPushMessageBytes;
  const auto wanted = static_cast<uint64_t>(rate_ * kSeconds);
  return std::bit_floor(std::clamp(wanted, kLeast, kPushMessageBytes));
}

/// What has been done since some time ago.
void PushRounds::TakeRate() {
  constexpr milliseconds kFirst{20}, kLater{1000};
  const auto since = Clock::now() - rated_at_;
  if (since < (rate_ == 0 || rate_ * 0.25 < kPushMessageBytes ? kFirst : kLater)) return;
  if (done_bytes_ == rated_bytes_ && since < kLater) return;
  const double now = static_cast<double>(done_bytes_ - rated_bytes_) /
                     std::chrono::duration<double>(since).count();
  rate_ = rate_ == 0 ? now : (rate_ + now) / 2;
  rated_at_ = Clock::now();
  rated_bytes_ = done_bytes_;
}

std::vector<LinkSpeed> PushRounds::Speeds() const {
  std::vector<LinkSpeed> all = own_speeds_;
  for (const PushReceiver* const member : of_group_)
    all.insert(all.end(), member->speeds.begin(), member->speeds.end());
  return all;
}

/// That the others wait for; "": none, or not known.
std::string PushRounds::SlowHost() const {
  const std::optional<uint32_t> member = SlowMember(Speeds(), receivers_.all().size() + 1);
  if (member) return receivers_.all()[*member - 1]->given.label;
  // All are held up by a disk, too: who has not written what the window waits for.
  const auto [slow, fast] = std::ranges::minmax_element(of_group_, {}, &PushReceiver::written);
  const bool is_behind = window_.size() == kPushWindow && (*slow)->written < (*fast)->written;
  return is_behind ? (*slow)->given.label : "";
}

void PushRounds::ShowProgress() {
  TakeRate();
  if (Clock::now() < next_progress_) return;
  next_progress_ = Clock::now() + milliseconds(200);
  const Result<std::vector<PeerSpeed>> speeds = session_->Speeds(number_);
  if (speeds.ok() && !speeds->empty()) {
    own_speeds_.clear();
    uint64_t bytes = 0;
    for (const PeerSpeed& peer : *speeds) {
      bytes += peer.bytes;
      own_speeds_.push_back(
          {.from = 0, .to = peer.member, .bytes = peer.bytes, .busy_seconds = peer.busy_seconds});
    }
    if (std::exchange(acknowledged_bytes_, bytes) != bytes) acknowledged_at_ = Clock::now();
  }
  if (!options_.progress) return;
  if (Written() == written_before_) {  // whom they wait for is not known yet
    const std::string hosts = Count(of_group_.size(), "host");
    return options_.progress(
        done_bytes_ == 0 ? "connecting " + hosts
                         : fmt::format("{}, connecting {}", FormatBytes(done_bytes_), hosts));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_bytes_) / seconds : 0;
  std::string line = FormatBytes(done_bytes_);
  if (total_bytes_) line += " of " + FormatBytes(*total_bytes_);
  if (const std::string host = SlowHost(); !host.empty()) line += ", waiting for " + host;
  line += fmt::format(", {}/s", FormatBytes(static_cast<uint64_t>(rate)));
  if (total_bytes_ && rate > 0) {
    line += fmt::format(", {:.0f} s left", static_cast<double>(*total_bytes_ - done_bytes_) / rate);
  }
  options_.progress(line);
}

/// Of hosts that have no connection to others: one that has called, so that it knows an address and
/// what came of it, before those that have waited.
std::string PushRounds::WhyNotConnected(const Status& cause) const {
  for (const PushReceiver* const member : of_group_) {
    const std::string words = receivers_.WordsOf(*member);
    if (member->is_broken && words.find('(') != std::string::npos) return words;
  }
  return receivers_.NameHosts(cause.message());
}

/// Hosts that talk over their own connections cannot connect to each other or to this machine, and
/// it is `where` that they miss, as far as that is known. Whoever is out of that is dropped, or
/// algorithm_ is another one.
Status PushRounds::JudgeUnreached(const Status& cause, std::optional<uint32_t> where) {
  const milliseconds max = std::min(options_.connect_max, kReachMax);
  const Result<std::vector<Unreached>> found =
      FindUnreached(of_group_, max, [this] { return receivers_.CheckInterrupt(); });
  if (!found.ok()) return found.status();
  if (is_refused_ && found->empty()) {  // it has come meanwhile
    has_other_way_ = true;
    return {};
  }
  if (found->empty() && GoSequential(cause, Caller::kRoot)) return {};
  const bool is_nobody = found->size() == of_group_.size();
  if (is_nobody && GoSequential(cause, Caller::kHosts)) return {};
  const auto is_missed = [where](const Unreached& it) { return it.receiver->member == where; };
  const bool are_out = is_nobody || !where || *where == 0 || std::ranges::any_of(*found, is_missed);
  for (const Unreached& it : *found) {
    if (are_out || is_missed(it))
      PushReceivers::Drop(*it.receiver, "this machine does not reach it: " + it.why);
  }
  if (!are_out) DropNamed(cause, where);
  return {};
}

void PushRounds::DropNamed(const Status& cause, std::optional<uint32_t> where) {
  for (PushReceiver* const member : of_group_) {
    if (where == member->member)
      PushReceivers::Drop(*member, receivers_.NameHosts(cause.message()));
  }
}

/// This machine reaches all hosts, but some do not reach it or each other: then it connects to each
/// of them and sends to it itself. Or it reaches none, as where firewalls let nothing in: then they
/// connect to it. Each once.
bool PushRounds::GoSequential(const Status& cause, Caller caller) {
  if (!options_.device.empty()) return false;
  const bool was_sequential = algorithm_ == kSequential;
  if (was_sequential && (caller_ == caller || caller == Caller::kRoot)) return false;
  caller_ = caller;
  algorithm_ = kSequential;
  has_other_way_ = true;
  if (caller == Caller::kHosts) {
    why_sequential_ =
        fmt::format("neither this machine nor the hosts reach them: {}", WhyNotConnected(cause));
    if (options_.note) {
      options_.note(fmt::format(
          "each host connects to this machine, which sends to it itself, as with --algorithm "
          "sequential: {}",
          why_sequential_));
    }
    return true;
  }
  why_sequential_ = fmt::format("not all hosts reach {}: {}",
                                was_opened_ ? "each other" : "this machine or each other",
                                WhyNotConnected(cause));
  if (options_.note) {
    options_.note(fmt::format(
        "this machine connects and sends to each host itself, as with --algorithm sequential: {}",
        why_sequential_));
  }
  return true;
}

/// Hosts need then reach neither this machine nor each other.
bool PushRounds::RootConnects() const {
  return algorithm_ == kSequential && caller_ == Caller::kRoot && options_.device.empty();
}

/// Of the group at hand, by the session's word or else a member's, or what put a member out, or
/// what is wrong with a message.
Status PushRounds::CauseOfFailure() const {
  if (!group_->failure().ok()) return group_->failure();
  for (const PushReceiver* const member : of_group_) {
    if (member->is_in() && member->is_broken) return Rejected(receivers_.WordsOf(*member));
  }
  for (const PushReceiver* const member : of_group_) {
    if (!member->is_in())
      return Rejected(fmt::format("{}: {}", member->given.label, member->status.message()));
  }
  return send_failure_;
}

/// After a group that has failed, of what is `*cause`. Who does not answer is out.
Status PushRounds::WhoIsLeft(Status* cause) {
  const std::vector<PushReceiver*> members = of_group_;
  const auto is_out = [](const PushReceiver* member) { return !member->is_in(); };
  // A member may have heard of it before this one's session, which knows more.
  const Clock::time_point due = Clock::now() + kOwnFindingMax;
  while (!is_refused_ && group_->failure().ok() && std::ranges::none_of(members, is_out) &&
         Clock::now() < due)
    PREPOST_RETURN_IF_ERROR(Pump(PushReceivers::kPumpMs, /*wants_stream=*/false));
  *cause = CauseOfFailure();
  const FailedMembers failed = group_->where();
  const std::optional<uint32_t> where = failed;
  session_.reset();
  for (PushReceiver* const member : members) {
    if (member->is_in()) member->agent.channel().Send({{"leave", number_}});
  }
  const bool keep_going = receivers_.set_keep_going(true);  // all are to answer
  const Clock::time_point named_due = Clock::now() + kNamedAnswerMax;
  const auto is_named = [&](const PushReceiver& receiver) { return where == receiver.member; };
  const Status status = receivers_.Until(
      "ending the group",
      [&](const PushReceiver& receiver) {
        return !receiver.is_member() || receiver.has_left ||
               (is_named(receiver) && Clock::now() > named_due);
      },
      options_.failure_max + kAnswerSlack, "it does not answer any more");
  receivers_.set_keep_going(keep_going);
  if (status.code() == StatusCode::kInterrupted) return status;
  for (PushReceiver* const member : members) {
    if (is_named(*member) && member->is_in() && !member->has_left)
      PushReceivers::Drop(*member, receivers_.NameHosts(cause->message()));
  }
  if (std::ranges::none_of(members, is_out)) {
    // All of them talk, so it is the network of one of them, or that between two.
    const bool is_unreached = is_refused_ || failed.unreached ||
                              std::ranges::any_of(members, &PushReceiver::is_unreached);
    if (!is_unreached) DropNamed(*cause, where);
    if (is_unreached) PREPOST_RETURN_IF_ERROR(JudgeUnreached(*cause, where));
    if (has_other_way_) return {};
  }
  PREPOST_RETURN_IF_ERROR(receivers_.Check());
  if (options_.note && keep_going) {
    options_.note(fmt::format("the transfer broke off: {}; it goes on with {}",
                              receivers_.NameHosts(cause->message()),
                              Count(receivers_.Members().size(), "host")));
  }
  return {};
}

}  // namespace prepost::tools
