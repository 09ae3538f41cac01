// SPDX-License-Identifier: Apache-2.0
//
// LinkTraffic: of a run of several groups in virtual time that is over, who used which link when:
// to tell what a message has lost on its links to other groups from what it has to its own.
#ifndef PREPOST_SIM_NETWORK_LINK_TRAFFIC_H_
#define PREPOST_SIM_NETWORK_LINK_TRAFFIC_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/ids.h"
#include "sim/causes/time_trail.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// Memory: some 100 bytes per message. Reading it needs no lock.
class LinkTraffic {
 public:
  /// Both must outlive it; `network` is that of the run.
  LinkTraffic(const TimeTrail& trail, const Network& network);

  /// Of `time`, a part of what message `id` took longer than alone, that which goes to other
  /// groups: their share of what others have sent meanwhile on that of its links that was used
  /// most. A message counts evenly over the time in which it was on its way. 0 where nobody sent.
  Picoseconds OfOtherGroups(MessageId id, Picoseconds time) const;

 private:
  /// A message on a link.
  struct Use {
    Picoseconds begin = 0;
    Picoseconds end = 0;     ///< > begin
    Picoseconds latest = 0;  ///< end of those up to here
    MessageId message = kNoMessage;
  };
  struct Bytes {
    double own = 0;  ///< the group's, with the message itself
    double others = 0;
  };
  std::vector<size_t> LinksOf(const TimedMessage& message) const;
  double RateOf(size_t link) const;
  double BytesOf(const TimedMessage& message) const;
  Bytes Meanwhile(size_t link, const TimedMessage& message) const;

  const TimeTrail& trail_;
  const Network& network_;
  const ResourceRow row_;
  const bool has_duplex_;
  std::vector<std::vector<Use>> uses_;  // by place in row_; by begin
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_NETWORK_LINK_TRAFFIC_H_
