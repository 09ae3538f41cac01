// SPDX-License-Identifier: Apache-2.0
#include "prepost/ir/status.h"

#include <cstdio>
#include <cstdlib>

namespace prepost {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace prepost
