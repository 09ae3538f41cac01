// SPDX-License-Identifier: Apache-2.0
//
// JsonSource: the characters of a JSON file, for the parser and for those who read numbers from
// under it. Internal to ir/.
#ifndef PREPOST_IR_JSON_JSON_SOURCE_H_
#define PREPOST_IR_JSON_JSON_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <istream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/json/json_reader.h"

namespace prepost {

/// The characters of a stream, taken from large pieces, and where the last one taken stands.
class JsonSource {
 public:
  /// More than any string has that is wanted, but for columns of letters. The parser keeps a
  /// string, and white space costs time, before its reader can refuse either.
  static constexpr uint64_t kTokenBytesMax = uint64_t{4} << 20;

  explicit JsonSource(std::istream& in, JsonPlace begin = {})
      : in_(*in.rdbuf()), line_(begin.line), line_begin_(0 - begin.column) {}
  JsonSource(const JsonSource&) = delete;
  JsonSource& operator=(const JsonSource&) = delete;

  /// What comes next: at least `count` (up to kPieceBytes) characters, fewer only before the end of
  /// the stream. Good until the next call.
  std::string_view Ahead(size_t count) {
    if (end_ - next_ < count && !is_ended_) Fill(count);
    return {buffer_.data() + next_, end_ - next_};
  }
  /// Takes `count` characters of Ahead(); a newline only by itself.
  void Take(size_t count) {
    const bool is_newline = buffer_[next_] == '\n';
    next_ += count;
    if (!is_newline) return;
    ++line_;
    line_begin_ = taken_before_ + next_;
  }
  /// Takes the white space that comes next; then the next character, or 0 at the end.
  char TakeSpace() {
    for (;;) {
      const std::string_view ahead = Ahead(1);
      if (ahead.empty()) return 0;
      const char c = ahead.front();
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
      Take(1);
    }
  }

  /// A token has ended: what comes is the next one's, and of that `bytes_max` at most.
  void EndToken(uint64_t bytes_max = kTokenBytesMax) {
    token_begin_ = taken_before_ + next_;
    token_max_ = bytes_max;
  }
  /// The stream seems to have ended, as the token that comes has more bytes, white space before it
  /// included.
  bool is_cut() const { return is_cut_; }
  uint64_t token_max() const { return token_max_; }

  /// What was taken last is a zero byte, which the parser takes for the end.
  bool is_behind_zero() const { return next_ > 0 && buffer_[next_ - 1] == 0; }
  /// The stream had nothing at all.
  bool is_empty() const { return is_ended_ && taken_before_ + end_ == 0; }
  uint64_t line() const { return line_; }
  uint64_t column() const { return taken_before_ + next_ - line_begin_; }

 private:
  static constexpr size_t kPieceBytes = 1 << 16;

  void Fill(size_t count);

  std::streambuf& in_;
  std::vector<char> buffer_ = std::vector<char>(kPieceBytes);
  size_t next_ = 0, end_ = 0;  // of what is in the buffer and not taken
  bool is_ended_ = false;
  bool is_cut_ = false;
  uint64_t token_begin_ = 0;  // counted in the stream
  uint64_t token_max_ = kTokenBytesMax;
  uint64_t taken_before_ = 0;  // characters of the stream before the buffer's first
  uint64_t line_ = 1;
  /// That line's first character, counted in the stream; wraps where it stands before the stream.
  uint64_t line_begin_ = 0;
};

/// The input iterator over a JsonSource that the parser wants.
class JsonSourceIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  JsonSourceIterator() = default;  ///< the end
  explicit JsonSourceIterator(JsonSource* source) : source_(source) {}

  char operator*() const { return source_->Ahead(1).front(); }
  JsonSourceIterator& operator++() {
    source_->Take(1);
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const JsonSourceIterator& a, const JsonSourceIterator& b) {
    return a.IsAtEnd() == b.IsAtEnd();
  }

 private:
  bool IsAtEnd() const { return source_ == nullptr || source_->Ahead(1).empty(); }
  JsonSource* source_ = nullptr;
};

/// More than the characters of a 32-bit number, or of null, and the one behind it.
inline constexpr size_t kNumberAhead = 16;

/// A number below 2^32, or null, at the beginning of a text.
struct ShortNumber {
  size_t length = 0;  ///< of its text; 0: there is something else
  std::optional<uint32_t> value;
};
ShortNumber ParseShortNumber(std::string_view text);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_SOURCE_H_
