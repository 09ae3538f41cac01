// SPDX-License-Identifier: Apache-2.0
//
// A trace event's process is the node, its thread the channel; times are microseconds with three
// decimals since the file's zero, 1 ns before the first thing known.
//
// Slices of one thread must nest or be disjoint, but several sends of a channel may be under way at
// once. Channels are FIFO, so a slice is drawn from where the one before it ends: it shows how long
// its op was the oldest of its channel. The exact times are in every event's args, and only they
// are read back. An op that started and never completed is a "B" without an "E".
//
//   node 0, channel 0>1, send window 2:   started  0 ..... completed 50     drawn [0, 50)
//                                         started 10 ..... completed 80     drawn [50, 80)
//
// The arrow of a message leaves where its send's slice begins, and ends where its receive's slice
// begins or, where drawing moved the send behind that, as soon after as it can; it is left out when
// the receive ends before. Perfetto binds an arrow's end to the newest slice of the thread: so each
// end directly follows its slice in the file, and the instants of posting, which would be newer,
// belong to the process.
#include "runtime/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <vector>

#include "ir/base/count.h"
#include "ir/json/json_reader.h"
#include "ir/json/json_text.h"
#include "ir/json/json_writer.h"
#include "ir/messages.h"
#include "ir/version.h"

namespace prepost {
namespace {

constexpr const char* kTraceFormat = "prepost.trace";
constexpr uint32_t kTraceMajor = 1;
constexpr uint32_t kTraceMinor = 3;
constexpr uint32_t kMulticastMinor = 2;  ///< what plain multicasts need
/// Times of a file: what a double of another reader holds exactly; 104 days.
constexpr uint64_t kTimeMax = (uint64_t{1} << 53) - 1;

/// "send block 3", "combine blocks 4-7", "recv credit".
std::string NameOf(const Op& op) {
  if (op.is_credit()) return fmt::format("{} credit", Name(op.kind));
  if (op.count == 1) return fmt::format("{} block {}", Name(op.kind), op.block);
  return fmt::format("{} blocks {}-{}", Name(op.kind), op.block, uint64_t{op.block} + op.count - 1);
}

std::string Microseconds(uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

/// Where an op is drawn on its thread, in ns since the file's zero.
struct Slice {
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  uint64_t begin = kNone;  ///< kNone: it is not drawn
  uint64_t end = kNone;    ///< kNone: it never completed

  bool drawn() const { return begin != kNone; }
};

class TraceWriter {
 public:
  TraceWriter(const Plan& plan, const RunTrace& trace, const TraceInfo& info, std::ostream& out)
      : plan_(plan),
        trace_(trace),
        info_(info),
        json_(out, JsonWriter::Style::kCompact),
        messages_(plan) {
    FindZero();
    PlaceSlices();
  }

  void Run() {
    WriteHeader();
    for (const Program& program : plan_.programs()) {
      if (!IsKnown(program)) continue;
      WriteNames(program);
      for (uint32_t id = 0; id < program.op_count; ++id) WriteOp(program, OpId(id));
    }
    json_.Line(0).EndArray().EndObject();
  }

 private:
  JsonWriter& BeginEvent(std::string_view phase, const Program& program) {
    return json_.Line(0).BeginObject().Field("ph", phase).Field("pid", program.node.value);
  }
  /// On the thread of `channel`.
  JsonWriter& BeginEvent(std::string_view phase, const Program& program, ChannelId channel) {
    return BeginEvent(phase, program).Field("tid", channel.value);
  }
  void WriteTime(const char* key, uint64_t time_ns) {
    if (time_ns != 0) json_.Field(key, Since(time_ns));
  }

  uint64_t Since(uint64_t time_ns) const { return time_ns == 0 ? 0 : time_ns - zero_ns_; }

  /// Whether anything is known of a node's ops.
  bool IsKnown(const Program& program) const {
    return std::ranges::any_of(trace_.times(program.node), [](const OpTimes& times) {
      return times.posted_ns != 0 || times.started_ns != 0 || times.completed_ns != 0;
    });
  }
  void FindZero();
  void PlaceSlices();
  void WriteHeader();
  void WriteHosts();
  void WriteNames(const Program& program);
  void WriteName(const Program& program, ChannelId channel);
  void WriteOp(const Program& program, OpId id);
  void WriteSlice(const Program& program, OpId id, const Op& op, const OpTimes& times,
                  const Slice& slice);
  void WriteArrow(const Program& program, const Op& op, uint32_t position);

  const Plan& plan_;
  const RunTrace& trace_;
  const TraceInfo& info_;
  JsonWriter json_;
  const MessageTable messages_;
  uint64_t zero_ns_ = 0;
  std::vector<Slice> slices_;  ///< by position in Plan::ops()
};

/// No recorded time becomes 0, which says that there is none.
void TraceWriter::FindZero() {
  uint64_t first = trace_.start_ns;
  const auto see = [&](uint64_t time) {
    if (time != 0) first = first == 0 ? time : std::min(first, time);
  };
  for (const Program& program : plan_.programs()) {
    for (const OpTimes& times : trace_.times(program.node)) {
      for (const uint64_t time : {times.posted_ns, times.started_ns, times.completed_ns}) see(time);
    }
  }
  for (const TraceHost& host : info_.hosts) {
    for (const uint64_t time : host.wakeups_ns) see(time);
  }
  zero_ns_ = first == 0 ? 0 : first - 1;
}

void TraceWriter::PlaceSlices() {
  slices_.resize(plan_.ops().size());
  std::vector<uint64_t> free_at[2];  // by kind of op and channel
  for (std::vector<uint64_t>& ends : free_at) ends.assign(plan_.channels().size(), 0);
  for (const Program& program : plan_.programs()) {
    const std::span<const OpTimes> all = trace_.times(program.node);
    for (uint32_t id = 0; id < program.op_count; ++id) {
      const Op& op = plan_.ops(program)[id];
      const OpTimes& times = all[id];
      if (times.started_ns == 0 && times.completed_ns == 0) continue;
      uint64_t& free = free_at[op.is_send() ? 0 : 1][op.channel.index()];
      Slice& slice = slices_[program.op_begin + id];
      slice.begin =
          std::max(free, Since(times.started_ns != 0 ? times.started_ns : times.completed_ns));
      if (times.completed_ns == 0) continue;
      slice.end = std::max(slice.begin + 1, Since(times.completed_ns));
      free = slice.end;
    }
  }
}

/// Perfetto reads this key only at the file's beginning, and nothing behind a key it does not know.
void TraceWriter::WriteHeader() {
  const PlanHeader& header = plan_.header();
  json_.BeginObject().Key("otherData").BeginObject();
  json_.Format(kTraceFormat, kTraceMajor, IsPlainMulticast(plan_) ? kMulticastMinor : kTraceMinor)
      .Field("generator", kGenerator);
  json_.Line(0).Field("executor", info_.executor).Field("detail", info_.detail);
  json_.Field("outcome", info_.outcome)
      .Field("start_ns", std::max<uint64_t>(1, Since(trace_.start_ns)));
  json_.Line(0).Key("plan").BeginObject();
  json_.Field("algorithm", header.algorithm).Field("nodes", header.nodes);
  json_.Field("root", header.collective.root.value);
  json_.Field("message_bytes", header.payload.bytes);
  json_.Field("block_bytes", header.payload.block_bytes);
  json_.Field("channels", plan_.channels().size()).Field("ops", plan_.ops().size());
  json_.Field("rounds", header.rounds);
  if (header.collective.kind != CollectiveKind::kMulticast) {
    json_.Field("collective", Name(header.collective.kind));
    if (!header.combine.is_none()) json_.Field("combine", ToString(header.combine));
  }
  json_.EndObject();
  if (!info_.hosts.empty()) WriteHosts();
  json_.EndObject().Line(0).Field("displayTimeUnit", "ns").Line(0).Key("traceEvents").BeginArray();
}

void TraceWriter::WriteHosts() {
  json_.Line(0).Key("hosts").BeginArray();
  for (const TraceHost& host : info_.hosts) {
    json_.Line(0).BeginObject().Field("node", host.node.value).Field("posts", host.posts);
    json_.Field("posts_during", host.posts_during).Field("wakeups", host.wakeups);
    json_.Field("cpu_ns", host.cpu_ns);
    if (!host.wakeups_ns.empty()) {
      json_.Key("wakeups_ns").Numbers(host.wakeups_ns, [&](uint64_t time) { return Since(time); });
    }
    json_.EndObject();
  }
  json_.EndArray();
}

void TraceWriter::WriteNames(const Program& program) {
  const uint32_t node = program.node.value;
  const bool root = plan_.header().collective.IsRoot(program.node);
  BeginEvent("M", program).Field("name", "process_name").Key("args").BeginObject();
  json_.Field("name", fmt::format("node {}{}", node, root ? " (root)" : ""));
  json_.EndObject().EndObject();
  BeginEvent("M", program).Field("name", "process_sort_index").Key("args").BeginObject();
  json_.Field("sort_index", node).EndObject().EndObject();
  std::vector<ChannelId> channels;
  for (const Op& op : plan_.ops(program)) channels.push_back(op.channel);
  std::ranges::sort(channels);
  channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
  for (const ChannelId channel : channels) WriteName(program, channel);
}

void TraceWriter::WriteName(const Program& program, ChannelId id) {
  const Channel& channel = plan_.channels()[id.index()];
  BeginEvent("M", program, id).Field("name", "thread_name").Key("args").BeginObject();
  json_.Field("name", fmt::format("channel {}: {}>{} lane {}", id.value, channel.from.value,
                                  channel.to.value, NumberOf(channel.lane)));
  json_.EndObject().EndObject();
  BeginEvent("M", program, id).Field("name", "thread_sort_index").Key("args").BeginObject();
  json_.Field("sort_index", id.value).EndObject().EndObject();
}

void TraceWriter::WriteOp(const Program& program, OpId id) {
  const uint32_t position = program.op_begin + id.value;
  const Op& op = plan_.ops()[position];
  const OpTimes& times = trace_.times(program.node)[id.index()];
  if (times.posted_ns != 0) {
    BeginEvent("i", program, op.channel);
    json_.Key("ts").Literal(Microseconds(Since(times.posted_ns)));
    json_.Field("s", "p").Field("cat", "posted").Field("name", "post " + NameOf(op));
    json_.Key("args").BeginObject().Field("op", id.value);
    WriteTime("posted_ns", times.posted_ns);
    json_.EndObject().EndObject();
  }
  if (!slices_[position].drawn()) return;
  WriteSlice(program, id, op, times, slices_[position]);
  WriteArrow(program, op, position);
}

void TraceWriter::WriteSlice(const Program& program, OpId id, const Op& op, const OpTimes& times,
                             const Slice& slice) {
  const Channel& channel = plan_.channels()[op.channel.index()];
  const bool completed = slice.end != Slice::kNone;
  BeginEvent(completed ? "X" : "B", program, op.channel);
  json_.Key("ts").Literal(Microseconds(slice.begin));
  if (completed) json_.Key("dur").Literal(Microseconds(slice.end - slice.begin));
  json_.Field("cat", Name(op.kind)).Field("name", NameOf(op));
  json_.Key("args").BeginObject().Field("op", id.value);
  if (!op.is_credit()) json_.Field("block", op.block);
  if (op.count != 1) json_.Field("count", op.count);
  json_.Field("round", op.round);
  json_.Field("peer", op.is_send() ? channel.to.value : channel.from.value);
  WriteTime("posted_ns", times.posted_ns);
  WriteTime("started_ns", times.started_ns);
  WriteTime("completed_ns", times.completed_ns);
  json_.EndObject().EndObject();
}

void TraceWriter::WriteArrow(const Program& program, const Op& op, uint32_t position) {
  const uint32_t message = messages_.MessageOf(position);
  const Slice& send = slices_[messages_.send(message)];
  const Slice& receive = slices_[messages_.recv(message)];
  if (!send.drawn() || !receive.drawn()) return;
  const uint64_t arrival = std::max(receive.begin, send.begin + 1);
  if (arrival >= receive.end) return;
  BeginEvent(op.is_send() ? "s" : "f", program, op.channel);
  json_.Key("ts").Literal(Microseconds(op.is_send() ? send.begin : arrival));
  json_.Field("id", message).Field("cat", "message").Field("name", "message");
  if (!op.is_send()) json_.Field("bp", "e");
  json_.EndObject();
}

/// One event as it stands in the file.
struct ReadEvent {
  std::string phase;
  uint32_t node = 0;
  std::optional<uint32_t> channel;
  std::optional<uint32_t> op;
  std::optional<uint32_t> block;
  std::optional<uint32_t> count;
  std::optional<uint32_t> round;
  OpTimes times;
};

/// A time or duration in microseconds. It is for viewers: only its form is checked.
Status CheckMicroseconds(const JsonScalar& scalar) {
  const bool number = scalar.kind == JsonScalar::Kind::kUnsigned ||
                      (scalar.kind == JsonScalar::Kind::kOtherNumber && scalar.text[0] != '-');
  if (number) return {};
  return Rejected("expected microseconds from 0 on, found " + scalar.Describe());
}

JsonForm::ReadScalar ExpectNumber(uint64_t expected) {
  return [expected](const JsonScalar& scalar) -> Status {
    if (scalar.kind == JsonScalar::Kind::kUnsigned && scalar.number == expected) return {};
    return Rejected(fmt::format("the trace is of another plan: found {}, the plan has {}",
                                scalar.Describe(), expected));
  };
}

/// A string that the plan has, too.
JsonForm::ReadScalar ExpectPlans(std::string expected) {
  return [expected = std::move(expected)](const JsonScalar& scalar) -> Status {
    if (scalar.kind == JsonScalar::Kind::kString && scalar.text == expected) return {};
    return Rejected(fmt::format("the trace is of another plan: found {}, the plan has {}",
                                scalar.Describe(), QuoteJson(expected)));
  };
}

class TraceReader {
 public:
  TraceReader(const Plan& plan, RunTrace* trace, TraceInfo* info)
      : plan_(plan), trace_(trace), info_(*info) {
    by_node_.resize(plan.header().nodes);
    for (size_t i = 0; i < info_.hosts.size(); ++i) host_of_[info_.hosts[i].node.value] = i;
    for (const Program& program : plan.programs()) by_node_[program.node.index()] = &program;
    trace->start_ns = kTraceOriginNs;
    AddPlanForm();
    AddHostForm();
    AddEventForm();
    other_.Scalar("format", ExpectString(kTraceFormat))
        .Scalar("version", ExpectVersion(kTraceMajor, kTraceMinor, nullptr))
        .Scalar("generator", ReadString(&text_))
        .Scalar("executor", ReadString(&info_.executor))
        .Scalar("detail",
                [this](const JsonScalar& scalar) -> Status {
                  PREPOST_RETURN_IF_ERROR(ReadString(&info_.detail, kTraceDetailMax)(scalar));
                  if (info_.detail.starts_with(kModelled)) trace_->modelled = info_.detail;
                  return {};
                })
        .Scalar("outcome", ReadString(&info_.outcome, 1 << 20))
        .Scalar("start_ns", ReadUint64(&start_ns_, kTimeMax))
        .Object("plan", &plan_form_)
        .Objects("hosts", &host_form_, JsonForm::Need::kOptional)
        .OnEnd([this] { return EndOtherData(); });
    const auto other_file = [](const JsonScalar& scalar) {
      return Rejected("expected a trace (prepost run --trace), found " + scalar.Describe());
    };
    file_.Scalar("format", other_file, JsonForm::Need::kOptional)
        .Object("otherData", &other_)
        .Scalar("displayTimeUnit", ReadString(&text_))
        .Objects("traceEvents", &event_form_);
  }

  Status Read(std::istream& in, const std::string& name) { return ReadJson(in, name, &file_); }

 private:
  void AddPlanForm();
  void AddHostForm();
  void AddEventForm();
  Status EndOtherData();
  Status EndHost();
  Status AddHost(TraceHost host);
  Status EndEvent();
  Status AddOp();
  Status SetTime(uint64_t file_ns, uint64_t* time_ns) const;

  const Plan& plan_;
  RunTrace* const trace_;
  TraceInfo& info_;
  std::vector<const Program*> by_node_;
  JsonForm file_, other_, plan_form_, host_form_, event_form_, args_;
  std::string text_;  ///< of keys that are for people
  uint32_t number_ = 0;
  uint64_t start_ns_ = 0;  ///< 0: not read yet
  ReadEvent event_;
  TraceHost host_;                      ///< its wake-ups since the file's zero, as the next's
  uint64_t wakeup_ns_ = 0;              ///< the last one of these
  std::vector<TraceHost> hosts_;        ///< of this file: its start may come behind them
  std::map<uint32_t, size_t> host_of_;  ///< by node, in info_
};

void TraceReader::AddPlanForm() {
  const PlanHeader& header = plan_.header();
  plan_form_
      .Scalar(
          "algorithm",
          [&header](const JsonScalar& scalar) -> Status {
            // Compared as it would be written: names may hold any bytes.
            if (QuoteJson(scalar.text) == QuoteJson(header.algorithm)) return {};
            return Rejected(fmt::format("the trace is of another plan: found {}, the plan has {}",
                                        scalar.Describe(), QuoteJson(header.algorithm)));
          })
      .Scalar("nodes", ExpectNumber(header.nodes))
      .Scalar("root", ExpectNumber(header.collective.root.value))
      .Scalar("message_bytes", ExpectNumber(header.payload.bytes))
      .Scalar("block_bytes", ExpectNumber(header.payload.block_bytes))
      .Scalar("channels", ExpectNumber(plan_.channels().size()))
      .Scalar("ops", ExpectNumber(plan_.ops().size()))
      .Scalar("rounds", ExpectNumber(header.rounds))
      .Scalar("collective", ExpectPlans(Name(header.collective.kind)),
              header.collective.kind == CollectiveKind::kMulticast ? JsonForm::Need::kOptional
                                                                   : JsonForm::Need::kRequired)
      .Scalar("combine", ExpectPlans(ToString(header.combine)),
              header.combine.is_none() ? JsonForm::Need::kOptional : JsonForm::Need::kRequired);
}

void TraceReader::AddHostForm() {
  host_form_.OnBegin([this] { host_ = {}; })
      .Scalar("node", ReadUint32(&host_.node.value))
      .Scalar("posts", ReadUint64(&host_.posts, kTimeMax))
      .Scalar("posts_during", ReadUint64(&host_.posts_during, kTimeMax))
      .Scalar("wakeups", ReadUint64(&host_.wakeups, kTimeMax))
      .Scalar("cpu_ns", ReadUint64(&host_.cpu_ns, kTimeMax))
      .Scalars(
          "wakeups_ns",
          [this, read = ReadUint64(&wakeup_ns_, kTimeMax, 1)](const JsonScalar& scalar) -> Status {
            PREPOST_RETURN_IF_ERROR(read(scalar));
            host_.wakeups_ns.push_back(wakeup_ns_);
            return {};
          },
          JsonForm::Need::kOptional)
      .OnEnd([this] { return EndHost(); });
}

Status TraceReader::EndHost() {
  if (host_.node.value >= plan_.header().nodes) {
    return Rejected(fmt::format("no node {}: the plan has nodes 0 to {}", host_.node.value,
                                plan_.header().nodes - 1));
  }
  if (host_.wakeups_ns.size() > host_.wakeups) {
    return Rejected(fmt::format("found the times of {}, expected {} at most",
                                Count(host_.wakeups_ns.size(), "wake-up"), host_.wakeups));
  }
  hosts_.push_back(std::move(host_));
  return {};
}

Status TraceReader::AddHost(TraceHost host) {
  for (uint64_t& time : host.wakeups_ns) time = kTraceOriginNs + time - start_ns_;
  std::ranges::sort(host.wakeups_ns);
  const auto [known, is_new] = host_of_.emplace(host.node.value, info_.hosts.size());
  if (is_new) {
    info_.hosts.push_back(std::move(host));
  } else if (info_.hosts[known->second] != host) {
    return Rejected(fmt::format("the host of node {} did something else already", host.node.value));
  }
  return {};
}

void TraceReader::AddEventForm() {
  using Need = JsonForm::Need;
  args_.Scalar("name", ReadString(&text_), Need::kOptional)
      .Scalar("sort_index", ReadUint32(&number_), Need::kOptional)
      .Scalar("op", ReadOptionalUint32(&event_.op), Need::kOptional)
      .Scalar("block", ReadOptionalUint32(&event_.block), Need::kOptional)
      .Scalar("count", ReadOptionalUint32(&event_.count), Need::kOptional)
      .Scalar("round", ReadOptionalUint32(&event_.round), Need::kOptional)
      .Scalar("peer", ReadUint32(&number_), Need::kOptional)
      .Scalar("posted_ns", ReadUint64(&event_.times.posted_ns, kTimeMax), Need::kOptional)
      .Scalar("started_ns", ReadUint64(&event_.times.started_ns, kTimeMax), Need::kOptional)
      .Scalar("completed_ns", ReadUint64(&event_.times.completed_ns, kTimeMax), Need::kOptional);
  event_form_.OnBegin([this] { event_ = {}; })
      .Scalar("ph", ReadString(&event_.phase))
      .Scalar("pid", ReadUint32(&event_.node))
      .Scalar("tid", ReadOptionalUint32(&event_.channel), Need::kOptional)
      .Scalar("ts", CheckMicroseconds, Need::kOptional)
      .Scalar("dur", CheckMicroseconds, Need::kOptional)
      .Scalar("s", ReadString(&text_), Need::kOptional)
      .Scalar("id", ReadUint32(&number_), Need::kOptional)
      .Scalar("bp", ReadString(&text_), Need::kOptional)
      .Scalar("cat", ReadString(&text_), Need::kOptional)
      .Scalar("name", ReadString(&text_))
      .Object("args", &args_, Need::kOptional)
      .OnEnd([this] { return EndEvent(); });
}

Status TraceReader::EndOtherData() {
  if (start_ns_ == 0) return Rejected("start_ns is 0, expected nanoseconds since the file's zero");
  for (TraceHost& host : hosts_) PREPOST_RETURN_IF_ERROR(AddHost(std::move(host)));
  hosts_.clear();
  return {};
}

Status TraceReader::EndEvent() {
  if (event_.phase == "M" || event_.phase == "s" || event_.phase == "f") return {};
  if (event_.phase != "X" && event_.phase != "B" && event_.phase != "i") {
    return Rejected(fmt::format("events of phase '{}' are not known, expected B, M, X, f, i or s",
                                event_.phase.substr(0, 8)));
  }
  if (start_ns_ == 0) return Rejected("events stand before otherData");
  return AddOp();
}

Status TraceReader::AddOp() {
  if (event_.node >= plan_.header().nodes) {
    return Rejected(fmt::format("no node {}: the plan has nodes 0 to {}", event_.node,
                                plan_.header().nodes - 1));
  }
  const Program& program = *by_node_[event_.node];
  if (!event_.op || *event_.op >= program.op_count) {
    return Rejected(event_.op ? fmt::format("no op {}: node {} has {}", *event_.op, event_.node,
                                            Count(program.op_count, "op"))
                              : std::string("args name no op"));
  }
  const Op& op = plan_.ops(program)[*event_.op];
  const bool slice = event_.phase != "i";
  const bool same =
      event_.channel == op.channel.value &&
      (!slice || (event_.round == op.round && event_.block.value_or(kNoBlock) == op.block &&
                  event_.count.value_or(1) == op.count));
  if (!same) {
    return Rejected(
        fmt::format("the trace is of another plan: in the plan, {} is on channel {}, in "
                    "round {}",
                    Describe(plan_, program, OpId(*event_.op)), op.channel.value, op.round));
  }
  const OpTimes& read = event_.times;
  OpTimes& times = trace_->times(program.node)[*event_.op];
  PREPOST_RETURN_IF_ERROR(SetTime(read.posted_ns, &times.posted_ns));
  PREPOST_RETURN_IF_ERROR(SetTime(read.started_ns, &times.started_ns));
  PREPOST_RETURN_IF_ERROR(SetTime(read.completed_ns, &times.completed_ns));
  // Of all its events together.
  if (times.completed_ns != 0 &&
      (times.started_ns > times.completed_ns || times.posted_ns > times.completed_ns)) {
    return Rejected("it completed before it was posted or started");
  }
  return {};
}

Status TraceReader::SetTime(uint64_t file_ns, uint64_t* time_ns) const {
  if (file_ns == 0) return {};
  const uint64_t aligned_ns = kTraceOriginNs + file_ns - start_ns_;
  if (*time_ns != 0 && *time_ns != aligned_ns) {
    return Rejected(fmt::format("node {} op {} has other times already", event_.node, *event_.op));
  }
  *time_ns = aligned_ns;
  return {};
}

}  // namespace

std::vector<TraceHost> HostsOf(const RunReport& report) {
  std::vector<TraceHost> hosts;
  for (const NodeReport& node : report.nodes) {
    hosts.push_back({.node = node.node,
                     .posts = node.host_posts,
                     .posts_during = node.host_posts_during,
                     .wakeups = node.host_wakeups,
                     .cpu_ns = node.cpu_ns});
  }
  return hosts;
}

void AddWakeups(const RunTrace& trace, std::vector<TraceHost>* hosts) {
  for (TraceHost& host : *hosts) {
    // A host may wake up once more when it has reported what it did.
    const std::span<const uint64_t> all = trace.wakeups(host.node);
    const auto counted = all.first(std::min<uint64_t>(all.size(), host.wakeups));
    host.wakeups_ns.assign(counted.begin(), counted.end());
  }
}

void WriteTrace(const Plan& plan, const RunTrace& trace, const TraceInfo& info, std::ostream& out) {
  TraceWriter(plan, trace, info, out).Run();
}

Status ReadTrace(std::istream& in, const std::string& name, const Plan& plan, RunTrace* trace,
                 TraceInfo* info) {
  TraceInfo unwanted;
  return TraceReader(plan, trace, info == nullptr ? &unwanted : info).Read(in, name);
}

}  // namespace prepost
