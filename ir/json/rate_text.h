// SPDX-License-Identifier: Apache-2.0
//
// Rates and latencies as people write them: "100Gbit/s", "12.5 GB/s", "1.5us".
#ifndef PREPOST_IR_JSON_RATE_TEXT_H_
#define PREPOST_IR_JSON_RATE_TEXT_H_

#include <string>
#include <string_view>

#include "ir/status.h"

namespace prepost {

/// Bytes per second, finite and > 0, of a number with a unit: bit/s or B/s, with k, M, G, T for
/// powers of 1000 or Ki, Mi, Gi, Ti for powers of 1024. The Status needs a place.
Result<double> ParseRate(std::string_view text);

/// Seconds, finite and >= 0, of a number with a unit: ns, us, ms or s.
Result<double> ParseLatency(std::string_view text);

/// "100Gbit/s": up to six digits and the largest unit that leaves 1 or more.
std::string WriteRate(double bytes_per_second);
/// "1.5us".
std::string WriteLatency(double seconds);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_RATE_TEXT_H_
