// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/path_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {
namespace {

using std::chrono::microseconds;

constexpr size_t kNamedMax = 4;  ///< members

std::string TextOf(microseconds time) {
  return fmt::format("{:.3g} ms", static_cast<double>(time.count()) / 1000);
}

/// "member 3", "member 3, member 4 and 12 more".
std::string TextOf(const char* word, const std::vector<uint32_t>& members) {
  const size_t named = std::min(members.size(), kNamedMax);
  std::vector<std::string> names;
  for (size_t i = 0; i < named; ++i) names.push_back(fmt::format("{} {}", word, members[i]));
  const std::string more =
      members.size() == named ? "" : fmt::format(" and {} more", members.size() - named);
  return fmt::format("{}{}", fmt::join(names, ", "), more);
}

/// Those that are said to be at this member's site and are far from it.
std::string NoteOfSites(const GroupPaths& group) {
  std::vector<uint32_t> far;
  microseconds longest{0};
  for (size_t node = 0; node < group.round_trips.size(); ++node) {
    const bool is_here =
        group.sites.empty() || group.sites[node] == group.sites[group.self.index()];
    if (!is_here || group.round_trips[node] < group.options.long_path) continue;
    far.push_back(group.members[node]);
    longest = std::max(longest, group.round_trips[node]);
  }
  if (far.empty()) return "";
  const char* const why =
      group.sites.empty()
          ? "and no sites are named: with them, each block would enter each site once"
          : "and they are said to be at the same site";
  return fmt::format("a round trip from {} {} to {} takes {}, {}", group.word,
                     group.members[group.self.index()], TextOf(group.word, far), TextOf(longest),
                     why);
}

}  // namespace

std::vector<std::string> PathNotes(const GroupPaths& group, std::span<const TcpSocket> sockets) {
  std::vector<std::string> notes;
  if (std::string note = NoteOfSites(group); !note.empty()) notes.push_back(std::move(note));
  for (const TcpSocket& socket : sockets) {
    if (socket.lane != Lane::kBlocks || socket.stream > 0) continue;
    const microseconds round_trip = RoundTripOf(socket.fd.get());
    if (round_trip < group.options.long_path) continue;
    const std::string note = NoteOfBuffers(round_trip, socket.streams, group.options.pace);
    if (note.empty()) continue;
    notes.push_back(fmt::format("the path to {} {} takes {} there and back: {}", group.word,
                                group.members[socket.peer.index()], TextOf(round_trip), note));
  }
  return notes;
}

}  // namespace prepost
