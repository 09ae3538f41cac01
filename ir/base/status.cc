// SPDX-License-Identifier: Apache-2.0
#include "ir/base/status.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace prepost {

const std::string Status::kNothing;

Status::Status(StatusCode code, std::string message, std::string where)
    : error_(std::make_shared<const Error>(Error{code, std::move(message), std::move(where)})) {
  PREPOST_CHECK(code != StatusCode::kOk);
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace prepost
