// SPDX-License-Identifier: Apache-2.0
//
// TextWriter: formatted text for files of millions of lines: collected and handed to the stream in
// large pieces. Internal to ir/ and runtime/.
#ifndef PREPOST_IR_TEXT_WRITER_H_
#define PREPOST_IR_TEXT_WRITER_H_

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
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
    if (buffer_.size() >= kFlushBytes) Flush();
  }

  /// The JSON array of the numbers that `number_of` gives of the elements; many times as fast as
  /// Put() for each.
  template <typename Range, typename NumberOf>
  void PutNumbers(const Range& range, NumberOf number_of) {
    PutArray(range, [&](const auto& element) { Append(number_of(element)); });
  }
  /// The same, with null for std::nullopt.
  template <typename Range, typename NumberOf>
  void PutNumbersOrNull(const Range& range, NumberOf number_of) {
    PutArray(range, [&](const auto& element) {
      const std::optional<uint32_t> number = number_of(element);
      number ? Append(*number) : buffer_.append(std::string_view("null"));
    });
  }

 private:
  template <typename Range, typename AppendElement>
  void PutArray(const Range& range, AppendElement append) {
    buffer_.push_back('[');
    bool is_first = true;
    for (const auto& element : range) {
      if (!is_first) buffer_.push_back(',');
      is_first = false;
      append(element);
      if (buffer_.size() >= kFlushBytes) Flush();
    }
    buffer_.push_back(']');
  }
  void Append(std::unsigned_integral auto number) {
    const fmt::format_int digits(number);
    buffer_.append(digits.data(), digits.data() + digits.size());
  }
  static constexpr size_t kFlushBytes = 1 << 16;
  void Flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  std::ostream& out_;
  fmt::memory_buffer buffer_;
};

}  // namespace prepost

#endif  // PREPOST_IR_TEXT_WRITER_H_
