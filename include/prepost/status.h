// SPDX-License-Identifier: Apache-2.0
//
// Status and Result<T>: how Prepost reports a mistake of the caller or of the environment. Nothing
// here throws. Part of the public API; inside the project ir/base/status.h adds what only we need.
#ifndef PREPOST_STATUS_H_
#define PREPOST_STATUS_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace prepost {

/// What went wrong; the value is the exit code of the command.
enum class StatusCode {
  kOk = 0,
  kRejected = 1,      ///< an input that is wrong, or a check or transfer that failed
  kUsage = 2,         ///< the call or the command line itself
  kEnvironment = 3,   ///< something this machine lacks: a device, a permission, a limit
  kInterrupted = 130  ///< the user stopped it
};

/// The outcome of something that returns no value. Cheap when ok. Copies may be used by any thread.
class [[nodiscard]] Status {
 public:
  Status() = default;
  /// Needs code != kOk. `message`: lower case, no final period. `where`: file:line:col, a JSON
  /// pointer, or empty.
  Status(StatusCode code, std::string message, std::string where = {});

  bool ok() const { return error_ == nullptr; }
  StatusCode code() const { return ok() ? StatusCode::kOk : error_->code; }
  const std::string& message() const { return ok() ? kNothing : error_->message; }
  const std::string& where() const { return ok() ? kNothing : error_->where; }
  /// "where: message", or just the message.
  std::string ToString() const { return where().empty() ? message() : where() + ": " + message(); }

 private:
  struct Error {
    StatusCode code;
    std::string message;
    std::string where;
  };
  static const std::string kNothing;

  std::shared_ptr<const Error> error_;  // shared by copies; null: ok
};

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

/// A condition that only a bug can break, of the library or of its caller. On in every build type.
#define PREPOST_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::prepost::CheckFailed(#condition, __FILE__, __LINE__))

/// A value, or the Status that says why there is none. Asking for a value that is not there stops
/// the program.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit so that `return value;` works
  Result(Status status) : state_(std::move(status)) {  // NOLINT: implicit, as above
    PREPOST_CHECK(!std::get<Status>(state_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  /// Ok when there is a value.
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  T& value() & {
    PREPOST_CHECK(ok());
    return std::get<T>(state_);
  }
  const T& value() const& {
    PREPOST_CHECK(ok());
    return std::get<T>(state_);
  }
  T&& value() && {
    PREPOST_CHECK(ok());
    return std::get<T>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace prepost

#endif  // PREPOST_STATUS_H_
