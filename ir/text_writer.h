// SPDX-License-Identifier: Apache-2.0
//
// TextWriter: formatted text for files of millions of lines: collected and handed to the stream in
// large pieces. Internal to ir/.
#ifndef PREPOST_IR_TEXT_WRITER_H_
#define PREPOST_IR_TEXT_WRITER_H_

#include <fmt/format.h>

#include <iterator>
#include <ostream>
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

 private:
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
