// SPDX-License-Identifier: Apache-2.0
//
// A listing is one line for the program, and per node one line for itself, one per CQ, and one per
// QP, each followed by its receives ("rq") and sends ("sq"). Operands are names, and names may come
// before the line that they are of: per node the lines of QPs are read first. What follows ";"
// names the op; offsets at the beginning of entries must be what they are. Empty lines and those
// that begin with "#" are passed over.
#include "backends/nic/program/listing_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/nic/device.h"

namespace prepost::nic {
namespace {

struct Line {
  size_t number = 0;  ///< from 1
  std::string text;
};

/// Reads one line from left to right. After the first thing that is not as expected everything else
/// fails too, and error() says what that was.
class Scanner {
 public:
  explicit Scanner(const Line& line) : line_(line), text_(line.text) {}

  bool has_failed() const { return !expected_.empty(); }
  bool at_end() const { return at_ == text_.size(); }

  /// Skips `word` if it is next.
  bool Skip(std::string_view word) {
    if (has_failed() || !text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool Expect(std::string_view word) { return Skip(word) || Fail(fmt::format("\"{}\"", word)); }
  void SkipSpaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  /// A number of at most `max`.
  template <typename T>
  bool Number(T* out, uint64_t max, int base = 10) {
    uint64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, base);
    if (has_failed() || error != std::errc() || value > max) {
      return Fail(fmt::format("a number up to {}", max));
    }
    last_ = at_;
    at_ += static_cast<size_t>(end - begin);
    *out = static_cast<T>(value);
    return true;
  }
  /// Everything up to `end`, or to the end of the line if there is none.
  std::string_view Until(std::string_view end) {
    if (has_failed()) return {};  // where that was is kept
    const size_t found = std::min(text_.find(end, at_), text_.size());
    const std::string_view word = text_.substr(at_, found - at_);
    last_ = at_;
    at_ = found;
    return word;
  }
  bool ExpectEnd() { return at_end() || Fail("the end of the line"); }
  bool Fail(std::string expected) {
    if (!has_failed()) expected_ = std::move(expected);
    return false;
  }
  /// The number or word that was read last is not what was expected.
  bool Reject(std::string expected) {
    if (!has_failed()) at_ = last_;
    return Fail(std::move(expected));
  }
  Status error(const std::string& name) const {
    const std::string rest(text_.substr(at_, 30));
    return Rejected(fmt::format("expected {}, found {}", expected_,
                                rest.empty() ? "the end of the line" : "\"" + rest + "\""),
                    fmt::format("{}:{}:{}", name, line_.number, at_ + 1));
  }

 private:
  const Line& line_;
  std::string_view text_;
  size_t at_ = 0;
  size_t last_ = 0;  // where the number or word began that was read last
  std::string expected_;
};

constexpr std::string_view kQpLine = "  QP ";

/// The lines of one node, the first of which names it.
class NodeParser {
 public:
  NodeParser(std::span<const Line> lines, const Payload& payload, const std::string& name)
      : lines_(lines), payload_(payload), name_(name) {}

  Result<NodeProgram> Run() {
    Scanner head(lines_.front());
    head.Expect("node ");
    head.Number(&out_.node.value, kNodesMax - 1);
    const std::optional<uint32_t> node = NodeOfQueues();
    if (node && *node != out_.node.value)
      head.Reject(fmt::format("node {} of the QPs below", *node));
    head.ExpectEnd();
    if (head.has_failed()) return head.error(name_);
    PREPOST_RETURN_IF_ERROR(FindNames());
    size_t qps = 0;
    for (const Line& line : lines_.subspan(1)) {
      Scanner scanner(line);
      if (line.text.starts_with(kQpLine)) {
        ParseQueuePair(scanner, out_.qps[qps++]);
      } else if (line.text.starts_with("  CQ ")) {
        continue;  // read with the names
      } else {
        ParseEntry(scanner, qps);
      }
      if (!scanner.has_failed()) scanner.ExpectEnd();
      if (scanner.has_failed()) return scanner.error(name_);
    }
    return FindFinal();
  }

 private:
  /// Which node the first QP is of; none if that cannot be read.
  std::optional<uint32_t> NodeOfQueues() const {
    for (const Line& line : lines_.subspan(1)) {
      if (!line.text.starts_with(kQpLine)) continue;
      Scanner scanner(line);
      uint32_t node = 0;
      scanner.Expect(kQpLine);
      scanner.Number(&node, kNodesMax - 1);
      return scanner.has_failed() ? std::nullopt : std::optional(node);
    }
    return std::nullopt;
  }

  /// QPs, then CQs, which are named after them.
  Status FindNames() {
    for (const Line& line : lines_.subspan(1)) {
      if (!line.text.starts_with(kQpLine)) continue;
      Scanner scanner(line);
      scanner.Expect("  ");
      const std::string name(scanner.Until(":"));
      if (!qp_of_.try_emplace(name, QpId::FromIndex(out_.qps.size())).second) {
        scanner.Reject("a name that no QP of the node has yet");
        return scanner.error(name_);
      }
      AddDirections(name, QpId::FromIndex(out_.qps.size()));
      out_.qps.emplace_back();
    }
    enabled_.assign(out_.qps.size(), 0);
    for (const Line& line : lines_.subspan(1)) {
      if (!line.text.starts_with("  CQ ")) continue;
      Scanner scanner(line);
      ParseCompletionQueue(scanner);
      if (scanner.has_failed()) return scanner.error(name_);
    }
    return {};
  }

  /// What the CQs of the QP `name` are called: of "QP 1<>0 blocks" "sends 1>0 blocks" and "receives
  /// 0>1 blocks".
  void AddDirections(const std::string& name, QpId qp) {
    using Role = CompletionQueue::Role;
    const size_t begin = kQpLine.size() - 2;  // without what indents it
    const size_t between = name.find("<>");
    const size_t end = name.find(' ', begin);
    std::string out = " of " + name, in = " of " + name;
    if (between < end && end != std::string::npos) {
      const std::string node = name.substr(begin, between - begin);
      const std::string peer = name.substr(between + 2, end - between - 2);
      out = fmt::format(" {}>{}{}", node, peer, name.substr(end));
      in = fmt::format(" {}>{}{}", peer, node, name.substr(end));
    }
    direction_of_.try_emplace(Name(Role::kSends) + out, Role::kSends, qp);
    direction_of_.try_emplace(Name(Role::kReceives) + in, Role::kReceives, qp);
  }

  void ParseCompletionQueue(Scanner& in) {
    using Role = CompletionQueue::Role;
    CompletionQueue cq;
    uint64_t position = 0;
    in.Expect("  CQ ");
    in.Number(&position, UINT32_MAX);
    if (position != out_.cqs.size()) in.Reject(fmt::format("CQ {}", out_.cqs.size()));
    in.Expect(": ");
    const std::string name(in.Until(","));
    if (const auto found = direction_of_.find(name); found != direction_of_.end()) {
      std::tie(cq.role, cq.qp) = found->second;
    } else if (name == "final") {
      cq.role = Role::kFinal;
    } else if (name != "idle") {
      in.Reject("\"sends ...\" or \"receives ...\" of a QP of the node, \"final\" or \"idle\"");
    }
    if (!cq_of_.try_emplace(name, CqId::FromIndex(out_.cqs.size())).second) {
      in.Reject("a name that no CQ of the node has yet");
    }
    in.Expect(", CQEs: ");
    in.Number(&cq.completions, kCqIndexMask);
    in.Expect(", ring: ");
    Ring(in, &cq.entries, /*max=*/1u << 24);
    in.ExpectEnd();
    out_.cqs.push_back(cq);
  }

  static void Ring(Scanner& in, uint32_t* out, uint32_t max) {
    if (in.Number(out, max) && !std::has_single_bit(*out)) in.Reject("a power of two");
  }

  template <typename Map>
  static auto FindName(Scanner& in, const Map& map, std::string_view name, const char* what) {
    const auto found = map.find(std::string(name));
    if (found != map.end()) return found->second;
    in.Reject(fmt::format("the name of a {} of the node", what));
    return typename Map::mapped_type{};
  }
  QpId FindQp(Scanner& in, std::string_view name) { return FindName(in, qp_of_, name, "QP"); }
  CqId FindCq(Scanner& in, std::string_view name) { return FindName(in, cq_of_, name, "CQ"); }

  /// "  QP 1<>2 blocks: managed, rings: 4 and 0, sends on final, receives on idle".
  void ParseQueuePair(Scanner& in, QueuePair& qp) {
    uint32_t node = 0;
    in.Expect(kQpLine);
    in.Number(&node, kNodesMax - 1);
    if (node != out_.node.value) in.Reject(fmt::format("node {}", out_.node.value));
    if (in.Skip(" loopback")) {
      qp.loopback = true;
      qp.peer = out_.node;
      uint32_t ordinal = 0;
      if (in.Skip(" ")) in.Number(&ordinal, UINT32_MAX);
    } else {
      in.Expect("<>");
      in.Number(&qp.peer.value, kNodesMax - 1);
      in.Expect(" ");
      if (in.Skip(Name(Lane::kCredits))) {
        qp.lane = Lane::kCredits;
      } else if (!in.Skip(Name(Lane::kBlocks))) {
        in.Fail("\"blocks\" or \"credits\"");
      }
    }
    in.Expect(": ");
    qp.managed = in.Skip("managed, ");
    in.Expect("rings: ");
    Ring(in, &qp.sq_wqebbs, kWqIndexMask);
    in.Expect(" and ");
    if (!in.Skip("0")) Ring(in, &qp.rq_wqes, kWqIndexMask);
    in.Expect(", sends on ");
    qp.send_cq = FindCq(in, in.Until(", receives on "));
    in.Expect(", receives on ");
    qp.recv_cq = FindCq(in, in.Until("\n"));
  }

  /// An entry of the QP of which the last line was: the `qps`-th.
  void ParseEntry(Scanner& in, size_t qps) {
    if (qps == 0) {
      in.Fail("the line of a CQ or QP");
      return;
    }
    QueuePair& qp = out_.qps[qps - 1];
    if (in.Skip("    rq ")) {
      ExpectOffset(in, qp.receives.size() * kReceiveStrideBytes);
      qp.receives.push_back(ParseReceive(in, qp));
      if (qp.rq_wqes == 0) in.Reject("no receive, as the line of the QP has no ring for them");
    } else if (in.Expect("    sq ")) {
      ExpectOffset(in, qp.sends.size() * kWqebbBytes);
      qp.sends.push_back(ParseSend(in));
    }
  }

  static void ExpectOffset(Scanner& in, size_t offset) {
    in.Expect(fmt::format("{:06x}  ", offset));
  }

  struct Range {
    uint64_t begin = 0;
    uint32_t bytes = 0;
  };
  /// "[0, 100)" within the message, or "0 bytes".
  Range ParseRange(Scanner& in) const {
    Range range;
    if (in.Skip("0 bytes")) return range;
    uint64_t end = 0;
    in.Expect("[");
    in.Number(&range.begin, payload_.bytes);
    in.Expect(", ");
    in.Number(&end, payload_.bytes);
    in.Expect(")");
    if (end <= range.begin || end - range.begin > kRcMessageBytesMax) {
      in.Reject("an end within a block behind the begin");
      return {};
    }
    range.bytes = static_cast<uint32_t>(end - range.begin);
    return range;
  }

  /// "; node 1 op 2 (...)"; anything else is about no op.
  OpId ParseOp(Scanner& in) const {
    OpId op = kNoOp;
    in.SkipSpaces();
    if (!in.Skip("; ")) return op;
    if (in.Skip(fmt::format("node {} op ", out_.node.value))) in.Number(&op.value, kNoOp.value - 1);
    in.Until("\n");
    return op;
  }

  ReceiveEntry ParseReceive(Scanner& in, const QueuePair& qp) const {
    in.Expect("RECV ");
    const Range range = ParseRange(in);
    ReceiveEntry entry{.offset = range.begin, .bytes = range.bytes};
    if (qp.lane != Lane::kCredits) {
      entry.block = static_cast<uint32_t>(range.begin / payload_.block_bytes);
    } else if (range.bytes != 0) {
      in.Reject("0 bytes, as of a credit");
    }
    entry.op = ParseOp(in);
    return entry;
  }

  SendEntry ParseSend(Scanner& in) {
    SendEntry entry;
    if (in.Skip("WAIT ")) {
      entry.opcode = Opcode::kWait;
      entry.cq = FindCq(in, in.Until(" until CQE "));
      in.Expect(" until CQE ");
      in.Number(&entry.cqe_index, kCqIndexMask);
    } else if (in.Skip("SEND_EN ")) {
      entry.opcode = Opcode::kSendEnable;
      entry.qp = FindQp(in, in.Until(" up to WQE "));
      in.Expect(" up to WQE ");
      in.Number(&entry.count, kWqIndexMask);
      entry.count = Unwrap(entry.qp, (entry.count + 1) & kWqIndexMask);
    } else if (in.Skip("SEND_IMM imm ")) {
      entry.opcode = Opcode::kSendImm;
      in.Number(&entry.block, payload_.blocks - 1, /*base=*/16);
      in.Expect(" ");
      const Range range = ParseRange(in);
      entry.offset = range.begin;
      entry.bytes = range.bytes;
    } else if (in.Skip("SEND ")) {
      entry.opcode = Opcode::kSend;
      in.Expect("0 bytes");
    } else {
      in.Expect("NOP");
    }
    entry.signaled = in.Skip(" signaled");
    ParseNeeds(in, entry);
    entry.op = ParseOp(in);
    return entry;
  }

  /// How many WQEs a SEND_EN enables, of which 16 bits are known: they rise.
  uint32_t Unwrap(QpId qp, uint32_t low) {
    if (qp.index() >= enabled_.size()) return low;
    uint32_t& before = enabled_[qp.index()];
    const auto rise = static_cast<int16_t>(low - before);
    return before = rise > 0 ? before + static_cast<uint32_t>(rise) : low;
  }

  /// " needs 3 receives of QP 1<>0 blocks".
  void ParseNeeds(Scanner& in, SendEntry& entry) {
    if (!in.Skip(" needs ")) return;
    if (!IsSend(entry.opcode)) {
      in.Fail("nothing that is needed, but of a send");
    }
    in.Number(&entry.count, UINT32_MAX);
    in.Expect(" receives of ");
    std::string_view name = in.Until(";");
    while (name.ends_with(' ')) name.remove_suffix(1);
    entry.qp = FindQp(in, name);
  }

  Result<NodeProgram> FindFinal() {
    const auto final = cq_of_.find("final");
    if (final == cq_of_.end() || out_.qps.empty()) {
      return Rejected(
          fmt::format("node {} has no {}", out_.node.value, out_.qps.empty() ? "QP" : "final CQ"),
          fmt::format("{}:{}", name_, lines_.front().number));
    }
    out_.final_cq = final->second;
    for (CompletionQueue& cq : out_.cqs) {
      if (cq.role == CompletionQueue::Role::kFinal) cq.qp = QpId::FromIndex(out_.qps.size() - 1);
    }
    return std::move(out_);
  }

  std::span<const Line> lines_;
  const Payload& payload_;
  const std::string& name_;
  std::unordered_map<std::string, QpId> qp_of_;
  std::unordered_map<std::string, CqId> cq_of_;
  /// What a CQ of one direction is of, by its name.
  std::unordered_map<std::string, std::pair<CompletionQueue::Role, QpId>> direction_of_;
  std::vector<uint32_t> enabled_;  // by QP: WQEs, by the SEND_ENs so far
  NodeProgram out_;
};

/// "queues: inline, message of 190 bytes in blocks of 100, RNR retries: 0".
Result<QueueProgram> ParseHead(const Line& line, const std::string& name) {
  QueueProgram out;
  Scanner in(line);
  in.Expect("queues: ");
  if (in.Skip("managed")) {
    out.mode = LoweringMode::kManaged;
  } else {
    in.Expect("inline");
  }
  uint64_t bytes = 0, block_bytes = 1;
  in.Expect(", message of ");
  in.Number(&bytes, kMessageBytesMax);
  in.Expect(" bytes in blocks of ");
  in.Number(&block_bytes, kMessageBytesMax);
  in.Expect(", RNR retries: ");
  in.Number(&out.rnr_retry, kRnrRetryForEver);
  in.ExpectEnd();
  if (in.has_failed()) return in.error(name);
  Result<Payload> payload =
      block_bytes == 0 ? Rejected("blocks have no bytes") : MakePayload(bytes, block_bytes);
  if (!payload.ok()) {
    return Rejected(payload.status().message(), fmt::format("{}:{}", name, line.number));
  }
  out.payload = *payload;
  return out;
}

/// The lines of a listing that are neither empty nor comments.
class LineReader {
 public:
  LineReader(std::istream& in, const std::string& name) : in_(in), name_(name) {}

  /// False at the end.
  Result<bool> Next(Line* line) {
    for (uint64_t barren_bytes = 0;;) {
      line->number = ++number_;
      std::string& text = line->text;
      text.clear();
      char c = 0;
      while (in_.get(c) && c != '\n') {
        if (text.size() == kLineBytesMax) return TooMuch("a line", kLineBytesMax);
        text += c;
      }
      if (!in_ && text.empty()) return false;
      barren_bytes += text.size() + 1;
      if (barren_bytes > kBarrenBytesMax) return TooMuch("comments", kBarrenBytesMax);
      if (text.ends_with('\r')) text.pop_back();  // of an editor that ends lines with both
      const size_t begin = text.find_first_not_of(" \t");
      if (begin != std::string::npos && text[begin] != '#') return true;
    }
  }
  /// At the last line, `what` has more than `bytes_max`.
  Status TooMuch(const char* what, uint64_t bytes_max) const {
    return Rejected(fmt::format("{} of more than {} bytes", what, bytes_max),
                    fmt::format("{}:{}", name_, number_));
  }

 private:
  static constexpr size_t kLineBytesMax = size_t{64} << 10;
  static constexpr uint64_t kBarrenBytesMax = uint64_t{16} << 20;

  std::istream& in_;
  const std::string& name_;
  size_t number_ = 0;
};

constexpr uint64_t kNodeBytesMax = uint64_t{1} << 30;

}  // namespace

Result<QueueProgram> ParseListing(std::istream& in, const std::string& name) {
  LineReader reader(in, name);
  std::optional<QueueProgram> out;
  std::vector<Line> of_node;
  uint64_t kept_bytes = 0;
  const auto end_node = [&]() -> Status {
    Result<NodeProgram> node = NodeParser(of_node, out->payload, name).Run();
    if (!node.ok()) return node.status();
    if (!out->nodes.empty() && out->nodes.back().node >= node->node) {
      return Rejected("nodes do not stand in the order of their ids",
                      fmt::format("{}:{}", name, of_node.front().number));
    }
    out->nodes.push_back(*std::move(node));
    return {};
  };
  for (Line line;;) {
    const Result<bool> has_line = reader.Next(&line);
    if (!has_line.ok()) return has_line.status();
    if (!*has_line) break;
    if (!out) {
      Result<QueueProgram> head = ParseHead(line, name);
      if (!head.ok()) return head;
      out = *std::move(head);
      continue;
    }
    const bool is_node = line.text.starts_with("node ");
    if (!of_node.empty() && is_node) {
      PREPOST_RETURN_IF_ERROR(end_node());
      of_node.clear();
      kept_bytes = 0;
    }
    kept_bytes += line.text.size() + sizeof(Line);
    if (kept_bytes > kNodeBytesMax) return reader.TooMuch("a node", kNodeBytesMax);
    const bool is_misplaced = of_node.empty() && !is_node;
    of_node.push_back(std::move(line));
    if (is_misplaced) return end_node();
  }
  if (!out) return Rejected("an empty file is no listing", name);
  if (!of_node.empty()) PREPOST_RETURN_IF_ERROR(end_node());
  return *std::move(out);
}

}  // namespace prepost::nic
