// SPDX-License-Identifier: Apache-2.0
//
// Sweep: the values of --sweep KEY=VALUES, and all their combinations. A key is a flag of the
// command without its dashes, or a value of the profile by its name (profile_settings.h).
#ifndef PREPOST_TOOLS_FLAGS_SWEEP_H_
#define PREPOST_TOOLS_FLAGS_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"

namespace prepost::tools {

struct SweepValue {
  std::string text;              ///< as a flag takes it
  std::optional<double> number;  ///< bytes, seconds, bytes/s or a number without a unit
};

/// What the numbers of an axis are.
enum class SweepUnit : uint8_t { kNone, kBytes, kSeconds, kBytesPerSecond };

/// The unit that a value is written with; that of a size cannot be known.
SweepUnit UnitOf(const std::string& text);

struct SweepAxis {
  std::string key;
  std::vector<SweepValue> values;
  SweepUnit unit = SweepUnit::kNone;
  bool is_geometric = false;  ///< each is the one before it times something
  bool is_numeric = false;    ///< all are numbers

  /// Whether it sets a value of the profile, not a flag.
  bool is_setting() const { return key.find('.') != std::string::npos; }
  /// "block_bytes", "host.completion_seconds".
  std::string column() const;
};

/// The rows of all axes together, at most.
inline constexpr size_t kSweepRowsMax = 100'000;

/// "block-bytes=64KiB:4MiB:x2", "nodes=2:10:+2", "algorithm=chain,circulant"; values that have
/// commas stand between semicolons. Sizes, times and rates have their units, the step of a range,
/// too. Errors (kUsage): not of this form, more values than a sweep has rows.
Result<SweepAxis> ParseSweep(const std::string& text);

/// By axis: which of its values. The last axis varies fastest.
using SweepPoint = std::vector<size_t>;
/// Errors (kUsage): a key twice, more than kSweepRowsMax.
Result<std::vector<SweepPoint>> PointsOf(const std::vector<SweepAxis>& axes);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SWEEP_H_
