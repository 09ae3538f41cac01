// SPDX-License-Identifier: Apache-2.0
//
// AdviceForStreams: whether another plan would be better over TCP than one that was chosen for
// NICs, or made by hand.
#ifndef PREPOST_COMPILER_CHOICE_STREAM_ADVICE_H_
#define PREPOST_COMPILER_CHOICE_STREAM_ADVICE_H_

#include <optional>
#include <string>

#include "ir/plan.h"

namespace prepost {

/// Of a multicast that is carried over TCP: what `--transport tcp` would choose for its nodes and
/// bytes, in words, if by the model of streams (stream_cost.h, modelled) this plan takes at
/// least 1.1 times as long. None: it does not, or the model does not speak of messages as small.
std::optional<std::string> AdviceForStreams(const PlanHeader& header);

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_STREAM_ADVICE_H_
