// SPDX-License-Identifier: Apache-2.0
//
// Which paths are long, and what connections over them are made of: in sessions and in models
// alike.
#ifndef PREPOST_IR_ANALYSIS_LONG_PATH_H_
#define PREPOST_IR_ANALYSIS_LONG_PATH_H_

#include <cstdint>

namespace prepost {

/// A path is long from this round trip on, in seconds: PathOptions::long_path, if nobody says
/// otherwise.
inline constexpr double kLongRoundTrip = 5e-3;
/// TCP connections that a connection over a long path is made of where nothing else is said.
inline constexpr uint16_t kLongStreams = 8;

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_LONG_PATH_H_
