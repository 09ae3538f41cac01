// SPDX-License-Identifier: Apache-2.0
//
// Rates and durations as people write them, and as all commands print them: "100Gbit/s",
// "12.5 GB/s", "1.5us".
#ifndef PREPOST_IR_JSON_RATE_TEXT_H_
#define PREPOST_IR_JSON_RATE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/base/status.h"

namespace prepost {

/// Bytes per second, finite and > 0, of a number with a unit: bit/s or B/s, with k, M, G, T for
/// powers of 1000 or Ki, Mi, Gi, Ti for powers of 1024. The Status needs a place.
Result<double> ParseRate(std::string_view text);

/// Seconds, finite and >= 0, of a number with a unit: ns, us, ms or s.
Result<double> ParseLatency(std::string_view text);

/// "100Gbit/s": up to six digits and the largest unit that leaves 1 or more.
std::string WriteRate(double bytes_per_second);
/// Any duration >= 0, not only a latency: "1.5us", "85.9171ms", "0ns", by the same rule; beyond
/// 999999 s with an exponent. For what files hold, flags take and reports print, so that a value
/// has one text everywhere, which ParseLatency() reads again.
std::string WriteLatency(double seconds);
/// Three digits, for labels of pictures and for what was measured once, whose further digits would
/// be noise: "0", "950 ns", "1.50 us", "27.9 ms", "-3.21 s"; four where rounding adds one: "10.00
/// us". The largest unit is the second, of which there may be more digits.
std::string ShortDuration(int64_t ns);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_RATE_TEXT_H_
