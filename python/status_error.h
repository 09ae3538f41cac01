// SPDX-License-Identifier: Apache-2.0
//
// StatusError: a Status on its way to Python, where it is one of the exceptions of
// prepost/_errors.py with the same text. Used by the bindings only; thrown with the interpreter's
// lock or without.
#ifndef PREPOST_PYTHON_STATUS_ERROR_H_
#define PREPOST_PYTHON_STATUS_ERROR_H_

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "ir/base/status.h"
#include "ir/base/utf8.h"
#include "prepost/prepost.h"

namespace prepost::python {

class StatusError : public std::exception {
 public:
  enum class Kind : uint8_t { kCall, kGroup, kTimeout };

  explicit StatusError(Status status, Kind kind = Kind::kCall, FailedMembers where = {})
      : status_(std::move(status)),
        text_(PrintableLines(status_.ToString())),
        kind_(kind),
        where_(std::move(where)) {}

  const char* what() const noexcept override { return text_.c_str(); }
  StatusCode code() const { return status_.code(); }
  Kind kind() const { return kind_; }
  /// Of kGroup.
  const FailedMembers& where() const { return where_; }

 private:
  Status status_;
  std::string text_;
  Kind kind_;
  FailedMembers where_;
};

inline void ThrowIfError(const Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <typename T>
T ValueOf(Result<T> result) {
  ThrowIfError(result.status());
  return *std::move(result);
}

}  // namespace prepost::python

#endif  // PREPOST_PYTHON_STATUS_ERROR_H_
