// SPDX-License-Identifier: Apache-2.0
//
// Status and Result<T>, which are part of the public API (prepost/status.h), and what is short for
// them inside the project. No exception crosses a folder; those of a library are caught where it is
// called.
#ifndef PREPOST_IR_BASE_STATUS_H_
#define PREPOST_IR_BASE_STATUS_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "prepost/status.h"

namespace prepost {

inline Status Rejected(std::string message, std::string where = {}) {
  return {StatusCode::kRejected, std::move(message), std::move(where)};
}
inline Status UsageError(std::string message, std::string where = {}) {
  return {StatusCode::kUsage, std::move(message), std::move(where)};
}
inline Status EnvironmentError(std::string message, std::string where = {}) {
  return {StatusCode::kEnvironment, std::move(message), std::move(where)};
}

/// Leaves the enclosing function with the Status if it is an error.
#define PREPOST_RETURN_IF_ERROR(expression)                                      \
  do {                                                                           \
    if (::prepost::Status prepost_status = (expression); !prepost_status.ok()) { \
      return prepost_status;                                                     \
    }                                                                            \
  } while (false)

}  // namespace prepost

#endif  // PREPOST_IR_BASE_STATUS_H_
