// SPDX-License-Identifier: Apache-2.0
//
// Checks of flags that are numbers. CLI11 converts what a flag is given, but wraps -1 to the
// largest number, takes "nan" for one in any range, and an empty text for the default; these checks
// come before its conversion. And one of texts: what a script's unset variable makes of a flag is
// not the flag left out.
#ifndef PREPOST_TOOLS_FLAGS_NUMBER_CHECK_H_
#define PREPOST_TOOLS_FLAGS_NUMBER_CHECK_H_

#include <cstdint>
#include <string>

#include "tools/flags/cli_forward.h"

namespace prepost::tools {

/// For ->check(): decimal digits, a number from `least` to `most`.
CLI::Validator WholeNumber(uint64_t least, uint64_t most);

/// For ->check(): the number of a node, or of a block, that some plan can have. Whether the plan at
/// hand has it is not asked.
CLI::Validator NodeNumber();
CLI::Validator BlockNumber();

/// For ->check(): a decimal number, finite, from `least` to `most`.
CLI::Validator Number(double least, double most);

/// Of every flag that is a time in seconds.
CLI::Validator Seconds();

/// For ->check(): any text but "". `kind`: what it names, "a device".
CLI::Validator NameOf(const std::string& kind);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_NUMBER_CHECK_H_
