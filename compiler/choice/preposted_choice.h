// SPDX-License-Identifier: Apache-2.0
//
// What is good for groups on NICs, whose plans have neither credits nor windows, without a search
// as that of choice.h: each member finds it by itself, for every message, in no time.
#ifndef PREPOST_COMPILER_CHOICE_PREPOSTED_CHOICE_H_
#define PREPOST_COMPILER_CHOICE_PREPOSTED_CHOICE_H_

#include <cstdint>
#include <string>

namespace prepost {

/// Two trees, each of half the blocks, are the fastest of all schedules by simulation, from 3 nodes
/// and 64 KiB on: tests/sim/preposted_choice_test.cc compares. Of 2 nodes all are the same.
std::string PrepostedAlgorithm(uint32_t nodes);

/// A power of two. Small blocks fill the trees sooner: a message takes as many block times more as
/// there are levels, twice. Below 16 KiB NICs' own work per block shows, and more than 512 blocks
/// gain less than 2 % and cost memory of NICs.
uint64_t PrepostedBlockBytes(uint64_t message_bytes);

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_PREPOSTED_CHOICE_H_
