// SPDX-License-Identifier: Apache-2.0
//
// TextWriter: formatted text for files of millions of lines: collected and handed to the stream in
// large pieces. Internal to ir/ and runtime/.
#ifndef PREPOST_IR_BASE_TEXT_WRITER_H_
#define PREPOST_IR_BASE_TEXT_WRITER_H_

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <limits>
#include <ostream>
#include <string_view>
#include <utility>

namespace prepost {

class TextWriter {
 public:
  explicit TextWriter(std::ostream& out) : out_(out) {}
  ~TextWriter() { Flush(); }
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  template <typename... Arguments>
  void Put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Arguments>(arguments)...);
    FlushLarge();
  }
  /// Many times as fast as Put().
  void Append(std::string_view text) {
    buffer_.append(text.data(), text.data() + text.size());
    FlushLarge();
  }
  void Append(char byte) {
    buffer_.push_back(byte);
    FlushLarge();
  }
  void AppendNumber(std::integral auto number) {
    const fmt::format_int digits(number);
    Append(std::string_view(digits.data(), digits.size()));
  }
  /// `before`, then the number: for columns of numbers, and so written where they stay.
  template <std::integral Number>
  void AppendNumber(char before, Number number) {
    constexpr size_t kBytesMax = std::numeric_limits<Number>::digits10 + 3;  // with it and a sign
    const size_t size = buffer_.size();
    buffer_.try_resize(size + kBytesMax);
    char* const begin = buffer_.data() + size;
    *begin = before;
    const char* const end = std::to_chars(begin + 1, begin + kBytesMax, number).ptr;
    buffer_.try_resize(size + static_cast<size_t>(end - begin));
    FlushLarge();
  }

 private:
  static constexpr size_t kFlushBytes = 1 << 16;
  void FlushLarge() {
    if (buffer_.size() >= kFlushBytes) Flush();
  }
  void Flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  std::ostream& out_;
  fmt::memory_buffer buffer_;
};

}  // namespace prepost

#endif  // PREPOST_IR_BASE_TEXT_WRITER_H_
