// SPDX-License-Identifier: Apache-2.0
//
// The faults of faults_test.cc: kinds, and one of them with all that was drawn for it.
#ifndef PREPOST_TESTS_LIBRARY_FAULTS_SCENE_H_
#define PREPOST_TESTS_LIBRARY_FAULTS_SCENE_H_

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "prepost/prepost.h"
#include "tests/support/machines.h"

namespace prepost::faults_test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFailureMax{2000};
constexpr milliseconds kConnectMax{5000};  ///< where a fault strikes while the group forms
constexpr milliseconds kHangs{30000};      ///< nothing here takes so long, on any machine
constexpr uint32_t kMembersMax = 6;

/// Most strike after a random delay, when the group is open or, while it forms, from its beginning.
/// What then strikes as early as it can is in brackets.
enum class Fault : uint8_t {
  kKill,
  kStop,
  kCloseSocket,  ///< one of the victim's connections, behind its back (the first that it has)
  kLeave,        ///< the victim does, with all its groups
  kNoMemory,     ///< the victim has none for a message (the first)
  kFullDisk,     ///< the victim's files are on a disk that becomes full (with a page)
  kStranger,     ///< at every port, in turn
  kCut,          ///< a connection breaks in the middle of whatever it carries (the first block)
  kUnplug,       ///< the victim's link goes down, without a word to anybody
  kCutPair,      ///< the link of the victim and another member does; neither is the root
  kWrongPlan,    ///< the victim's group has other options: no member's group opens in any case
};
constexpr const char* kNames[] = {"kill",      "stop",      "close_socket", "leave",
                                  "no_memory", "full_disk", "stranger",     "cut",
                                  "unplug",    "cut_pair",  "wrong_plan"};

struct Scene {
  Fault fault = Fault::kKill;
  uint32_t members = 3;
  uint32_t root = 0;
  uint32_t victim = 1;
  uint32_t other = 2;                  ///< kCutPair
  uint64_t local_copies = 0;           ///< a bit for each member
  bool is_forming = false;             ///< strikes before the group is open
  bool is_disturbed = false;           ///< short reads and writes, connections that pause
  bool notifies = false;               ///< the root hears when all have a message
  test::Machines* machines = nullptr;  ///< null: all members are on this one
  uint64_t seed = 1;
  milliseconds delay{0};
  std::vector<Address> addresses = {};

  const char* name() const { return kNames[static_cast<size_t>(fault)]; }
  /// Connections for blocks are of several streams, as over long paths.
  bool has_streams() const { return seed % 3 == 0; }
  /// The group is for calls: members combine and exchange vectors, until one is lost.
  bool has_calls() const {
    const bool has_incoming = fault == Fault::kNoMemory || fault == Fault::kFullDisk;
    return seed % 2 == 0 && !has_incoming && fault != Fault::kStranger &&
           !(fault == Fault::kCloseSocket && is_forming);
  }
  /// All messages are, so that many are under way together.
  bool is_short() const { return seed % 5 < 2 && !has_calls(); }
  /// Right after each other, several in one call.
  bool is_burst() const { return is_short() && seed / 2 % 2 == 0; }
  /// Messages and calls are encrypted.
  bool is_sealed() const { return seed % 7 < 2; }
  bool copies(uint32_t member) const { return (local_copies >> member & 1) != 0; }
  /// The link of the pair carries all messages.
  const char* algorithm() const { return fault == Fault::kCutPair ? "chain" : "auto"; }
  /// A connection that closes while members still look for each other, as they do in calls that use
  /// it first, is dialled again.
  bool may_go_on() const { return fault == Fault::kCloseSocket && (is_forming || has_calls()); }
  /// All but a victim that is lost.
  std::vector<uint32_t> Survivors() const {
    std::vector<uint32_t> survivors;
    const bool is_lost = fault == Fault::kKill || fault == Fault::kStop || fault == Fault::kLeave ||
                         fault == Fault::kUnplug;
    for (uint32_t i = 0; i < members; ++i) {
      if (!is_lost || i != victim) survivors.push_back(i);
    }
    return survivors;
  }
  std::string ToString() const {
    return fmt::format(
        "{}{}: {} members, root {}, victim {}, copies {:b}{}{}{}{}{}{}, seed {}, after {} ms",
        name(), is_forming ? " while it forms" : "", members, root, victim, local_copies,
        has_calls() ? ", calls" : "", has_streams() ? ", streams" : "",
        is_burst()   ? ", bursts"
        : is_short() ? ", short"
                     : "",
        is_sealed() ? ", sealed" : "", is_disturbed ? ", disturbed" : "",
        notifies ? ", notices" : "", seed, delay.count());
  }
};

}  // namespace prepost::faults_test

#endif  // PREPOST_TESTS_LIBRARY_FAULTS_SCENE_H_
