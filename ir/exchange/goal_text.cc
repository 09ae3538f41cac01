// SPDX-License-Identifier: Apache-2.0
//
// GOAL is a language of lines: each holds one op, one order, or the beginning or end of a rank.
// Comments are /* ... */, over lines too, and // to the end of the line; they stand between, not
// within words. The grammar is that of LogGOPSim's src/LogGOPSim/txt2bin.re; what it reads is read,
// and white space and comments may stand in a few more places.
#include "ir/exchange/goal_text.h"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>

#include <algorithm>
#include <charconv>
#include <istream>
#include <limits>

#include "ir/plan.h"

namespace prepost {
namespace {

constexpr size_t kLineBytesMax = 4096;
constexpr uint64_t kBarrenBytesMax = uint64_t{16} << 20;  ///< in a row: comments and white space
constexpr size_t kEntriesMax = std::numeric_limits<uint32_t>::max() - 1;
constexpr size_t kShownMax = 40;  ///< bytes of a wrong word

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

class GoalTextReader {
 public:
  GoalTextReader(std::istream& in, const std::string& name) : in_(in), name_(name) {
    file_.name = name;
  }

  Result<GoalFile> Read() {
    while (NextLine()) {
      if (Status status = ReadLine(); !status.ok())
        return Rejected(status.message(), fmt::format("{}:{}", name_, line_));
    }
    if (too_long_) {
      return Rejected(
          barren_bytes_ > kBarrenBytesMax
              ? fmt::format("more than {} bytes of comments and white space", kBarrenBytesMax)
              : fmt::format("a line of more than {} bytes", kLineBytesMax),
          fmt::format("{}:{}", name_, line_));
    }
    if (in_.bad()) return Rejected("cannot read", name_);
    if (in_rank_) return Rejected(fmt::format("rank {} has no '}}'", rank_), name_);
    if (in_comment_) return Rejected("a comment has no '*/'", name_);
    if (file_.ranks.empty()) return Rejected("no 'num_ranks': this is no GOAL text", name_);
    std::ranges::sort(file_.orders);
    return std::move(file_);
  }

 private:
  /// The next line, without comments; false at the end, or when it is too long.
  bool NextLine() {
    text_.clear();
    bool any = false;
    char c = 0;
    bool to_end = false;
    while (in_.get(c)) {
      if (!any) ++line_;
      any = true;
      ++barren_bytes_;
      if (text_.size() > kLineBytesMax || barren_bytes_ > kBarrenBytesMax) {
        too_long_ = true;
        return false;
      }
      if (c == '\n') break;
      Take(c, &to_end);
    }
    words_ = text_;
    return any;
  }

  /// Adds `c` to the line unless it is of a comment.
  void Take(char c, bool* to_end) {
    if (in_comment_) {
      in_comment_ = !(comment_end_ == '*' && c == '/');
      comment_end_ = in_comment_ ? c : '\0';
      return;
    }
    if (*to_end) return;
    if (!text_.empty() && text_.back() == '/' && (c == '/' || c == '*')) {
      text_.back() = ' ';
      *to_end = c == '/';
      in_comment_ = c == '*';
      return;
    }
    text_ += c;
    if (!IsSpace(c)) barren_bytes_ = 0;
  }

  /// The next word of the line: letters and digits, or one other character; empty at its end.
  std::string_view Word() {
    while (!words_.empty() && IsSpace(words_.front())) words_.remove_prefix(1);
    size_t length = 0;
    while (length < words_.size() && IsWord(words_[length])) ++length;
    if (length == 0 && !words_.empty()) length = 1;
    const std::string_view word = words_.substr(0, length);
    words_.remove_prefix(length);
    return word;
  }
  std::string_view Peek() {
    const std::string_view rest = words_;
    const std::string_view word = Word();
    words_ = rest;
    return word;
  }

  static Status Expected(const std::string& what, std::string_view found) {
    return Rejected(fmt::format(
        "expected {}, found {}", what,
        found.empty() ? "the end of the line" : fmt::format("'{}'", found.substr(0, kShownMax))));
  }
  Status ReadEnd() {
    const std::string_view word = Word();
    return word.empty() ? Status() : Expected("the end of the line", word);
  }
  template <typename Number>
  Status ReadNumber(const char* what, Number most, std::string_view word, Number* value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
    if (error == std::errc() && end == word.data() + word.size() && *value <= most) return {};
    return Expected(fmt::format("{} from 0 to {}", what, most), word);
  }

  /// A statement, or two where braces share a line with others.
  Status ReadLine() {
    while (!Peek().empty()) {
      const std::string_view word = Word();
      if (word == "}") {
        if (!in_rank_) return Rejected("'}' without a rank");
        in_rank_ = false;
        file_.ranks[rank_].op_end = static_cast<uint32_t>(file_.ops.size());
      } else if (!in_rank_) {
        PREPOST_RETURN_IF_ERROR(word == "num_ranks" ? ReadRanks() : ReadRank(word));
      } else {
        PREPOST_RETURN_IF_ERROR(ReadStatement(word));
      }
    }
    return {};
  }

  Status ReadRanks() {
    if (!file_.ranks.empty()) return Rejected("a second 'num_ranks'");
    uint32_t count = 0;
    PREPOST_RETURN_IF_ERROR(ReadNumber("a number of ranks", kNodesMax, Word(), &count));
    if (count == 0) return Rejected("0 ranks, at least 1 is needed");
    file_.ranks.resize(count);
    return {};
  }

  Status ReadRank(std::string_view word) {
    if (word != "rank") {
      return Expected(file_.ranks.empty() ? "'num_ranks'" : "'rank'", word);
    }
    if (file_.ranks.empty()) return Rejected("'rank' before 'num_ranks'");
    const auto most = static_cast<uint32_t>(file_.ranks.size() - 1);
    PREPOST_RETURN_IF_ERROR(ReadNumber("a rank", most, Word(), &rank_));
    GoalFile::Rank& rank = file_.ranks[rank_];
    if (rank.line != 0)
      return Rejected(fmt::format("rank {} stands in line {} already", rank_, rank.line));
    if (const std::string_view open = Word(); open != "{") return Expected("'{'", open);
    rank = {.op_begin = static_cast<uint32_t>(file_.ops.size()), .op_end = 0, .line = line_};
    labels_.clear();
    in_rank_ = true;
    return {};
  }

  static bool IsOp(std::string_view word) {
    return word == "send" || word == "recv" || word == "calc";
  }

  /// An op with or without a label, or an order.
  Status ReadStatement(std::string_view word) {
    if (IsOp(word)) return ReadOp(word);
    const bool is_letter = (word[0] >= 'a' && word[0] <= 'z') || (word[0] >= 'A' && word[0] <= 'Z');
    if (!is_letter) return Expected("an op, a label or '}'", word);
    const std::string_view next = Word();
    if (next == "requires" || next == "irequires") return ReadOrder(word, next == "irequires");
    if (next != ":") return Expected("':', 'requires' or 'irequires' behind a label", next);
    const auto label = llvm::StringRef(word.data(), word.size());
    const auto [known, is_new] =
        labels_.try_emplace(label, static_cast<uint32_t>(file_.ops.size()));
    if (!is_new) {
      return Rejected(fmt::format("label {} is that of line {} already", word.substr(0, kShownMax),
                                  file_.ops[known->second].line));
    }
    const std::string_view op = Word();
    return IsOp(op) ? ReadOp(op) : Expected("send, recv or calc", op);
  }

  Status ReadOp(std::string_view word) {
    if (file_.ops.size() >= kEntriesMax)
      return Rejected(fmt::format("more than {} ops", kEntriesMax));
    GoalOp op{.rank = rank_, .line = line_};
    if (word == "calc") {
      PREPOST_RETURN_IF_ERROR(ReadNumber("a number of nanoseconds", UINT64_MAX, Word(), &op.bytes));
    } else {
      op.kind = word == "send" ? GoalOp::Kind::kSend : GoalOp::Kind::kRecv;
      PREPOST_RETURN_IF_ERROR(ReadMessage(&op));
    }
    PREPOST_RETURN_IF_ERROR(ReadAttributes(op.kind != GoalOp::Kind::kCalc, &op));
    file_.ops.push_back(op);
    return {};
  }

  /// "100b to 3" of a send, "100b from 3" of a recv.
  Status ReadMessage(GoalOp* op) {
    std::string_view size = Word();
    const bool has_unit = size.ends_with('b');
    if (has_unit) size.remove_suffix(1);
    PREPOST_RETURN_IF_ERROR(ReadNumber("a size", kMessageBytesMax, size, &op->bytes));
    if (!has_unit) {
      if (const std::string_view unit = Word(); unit != "b") return Expected("'b'", unit);
    }
    const char* const way = op->kind == GoalOp::Kind::kSend ? "to" : "from";
    if (const std::string_view found = Word(); found != way)
      return Expected(fmt::format("'{}'", way), found);
    const std::string_view peer = Word();
    if (peer == "-1")
      return Rejected("a recv from any source: which message it takes is known only when it runs");
    const auto most = static_cast<uint32_t>(file_.ranks.size() - 1);
    PREPOST_RETURN_IF_ERROR(ReadNumber("a rank", most, peer, &op->peer));
    return op->peer == rank_ ? Rejected(fmt::format("a message of rank {} to itself", rank_))
                             : Status();
  }

  /// "tag T", "cpu C" and "nic N", each at most once and in that order; calc has no tag.
  Status ReadAttributes(bool is_message, GoalOp* op) {
    uint32_t skipped = 0;
    if (is_message && Peek() == "tag") {
      Word();
      const std::string_view tag = Word();
      if (tag == "-1")
        return Rejected("any tag: which message it is matched with is known only when it runs");
      PREPOST_RETURN_IF_ERROR(ReadNumber("a tag", UINT32_MAX, tag, &op->tag));
    }
    for (const char* attribute : {"cpu", "nic"}) {
      if (Peek() != attribute) continue;
      Word();
      PREPOST_RETURN_IF_ERROR(ReadNumber(attribute, UINT32_MAX, Word(), &skipped));
    }
    return Peek() == "}" ? Status() : ReadEnd();
  }

  Status ReadOrder(std::string_view later, bool is_start) {
    const std::string_view earlier = Word();
    GoalOrder order{.is_start = is_start};
    for (const auto& [label, op] :
         {std::pair(later, &order.later), std::pair(earlier, &order.earlier)}) {
      const auto known = labels_.find(llvm::StringRef(label.data(), label.size()));
      if (known == labels_.end()) {
        return Rejected(fmt::format("no op of rank {} above has the label '{}'", rank_,
                                    label.substr(0, kShownMax)));
      }
      *op = known->second;
    }
    if (file_.orders.size() >= kEntriesMax)
      return Rejected(fmt::format("more than {} requirements", kEntriesMax));
    file_.orders.push_back(order);
    return Peek() == "}" ? Status() : ReadEnd();
  }

  std::istream& in_;
  uint64_t barren_bytes_ = 0;  ///< in a row of comments and white space
  const std::string& name_;
  GoalFile file_;
  uint32_t line_ = 0;
  std::string text_;        // the line
  std::string_view words_;  // what is left of it
  bool too_long_ = false;
  bool in_comment_ = false;
  char comment_end_ = '\0';  // the last character of the comment
  bool in_rank_ = false;
  uint32_t rank_ = 0;
  llvm::StringMap<uint32_t> labels_;  // of the rank -> op
};

}  // namespace

std::span<const GoalOrder> GoalFile::OrdersOf(uint32_t later) const {
  const auto range = std::ranges::equal_range(orders, later, {}, &GoalOrder::later);
  return {range.begin(), range.end()};
}

Status GoalFile::At(uint32_t op, std::string message) const {
  return Rejected(std::move(message), fmt::format("{}:{}", name, ops[op].line));
}

Result<GoalFile> ReadGoalText(std::istream& in, const std::string& name) {
  return GoalTextReader(in, name).Read();
}

}  // namespace prepost
