// SPDX-License-Identifier: Apache-2.0
//
// InputBuffer: an open file, pipe or terminal as a std::streambuf that knows an error from the end.
// All that is read of files that others name comes through it: with a std::ifstream, or std::cin, a
// read that fails looks as if the file ended there. A byte-order mark at the beginning is left out.
#ifndef PREPOST_IR_BASE_INPUT_BUFFER_H_
#define PREPOST_IR_BASE_INPUT_BUFFER_H_

#include <streambuf>
#include <string>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

class InputBuffer final : public std::streambuf {
 public:
  /// Opens `path`, and closes it in the end. What went wrong is error().
  explicit InputBuffer(const std::string& path);
  /// Reads from `file`, which stays its owner's.
  explicit InputBuffer(int file);
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;
  ~InputBuffer() override;

  /// Of opening or of the read that failed, an errno value; 0: none.
  int error() const { return error_; }
  /// error() in words, "cannot read: Is a directory", at the place `path`. Errors: kRejected.
  Status status(const std::string& path) const;

 protected:
  /// Waits, also where the file is one that never waits.
  int_type underflow() override;
  /// Back to the beginning, of what can be read twice, is the only place to go.
  pos_type seekpos(pos_type position, std::ios_base::openmode which) override;

 private:
  const bool is_own_;
  int file_;
  int error_ = 0;
  bool is_begun_ = false;
  std::vector<char> bytes_;
};

}  // namespace prepost

#endif  // PREPOST_IR_BASE_INPUT_BUFFER_H_
