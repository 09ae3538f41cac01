// SPDX-License-Identifier: Apache-2.0
//
// RoundsFindings: what is wrong in a file of rounds: all is counted, the first few are kept.
// Internal to compiler/rounds/.
#ifndef PREPOST_COMPILER_ROUNDS_ROUNDS_FINDINGS_H_
#define PREPOST_COMPILER_ROUNDS_ROUNDS_FINDINGS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "ir/base/status.h"
#include "ir/verify/verify.h"

namespace prepost {

/// To be added to in the order of the file.
class RoundsFindings {
 public:
  bool empty() const { return count_ == 0; }

  /// `make` returns the Status, place and message; it is called only if the finding is kept.
  template <typename Make>
  void Add(Make make) {
    if (++count_ > VerifyOptions().diagnostics_max) return;
    const Status finding = make();
    if (count_ == 1) {
      first_ = finding;
    } else {
      more_ += "\n  " + finding.ToString();
    }
  }

  /// Ok if there are none; else kRejected at the place of the first, the others behind it, a line
  /// each.
  Status ToStatus() const {
    if (empty()) return {};
    std::string message = first_.message() + more_;
    if (const uint64_t kept = VerifyOptions().diagnostics_max; count_ > kept)
      message += "\n  and " + std::to_string(count_ - kept) + " more";
    return Rejected(std::move(message), first_.where());
  }

 private:
  uint64_t count_ = 0;
  Status first_;
  std::string more_;
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_ROUNDS_ROUNDS_FINDINGS_H_
