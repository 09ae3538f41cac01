// SPDX-License-Identifier: Apache-2.0
//
// TcpStreams: what TCP carries over a long path, modelled: the congestion windows of a connection's
// streams, one step per round trip, as CUBIC moves them (RFC 9438, with HyStart's end of slow
// start, RFC 9406), and what takes packets: chance, a full queue, a policer. TcpSecondsOf() is
// their mean over a message.
#ifndef PREPOST_IR_ANALYSIS_TCP_RATE_H_
#define PREPOST_IR_ANALYSIS_TCP_RATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/analysis/long_path.h"
#include "ir/analysis/network.h"

namespace prepost {

/// Bytes of a packet's headers: IPv4, TCP with timestamps.
inline constexpr uint32_t kPacketHeaders = 52;

/// Several links one after the other as one: the least rate and pace, all latencies and queues, and
/// what any of them loses; the policer of least rate, and of streams the most.
Network::Link PathOf(const Network& network, std::span<const uint32_t> links);
/// Whether TCP feels such a path: it is long, or loses something.
bool IsLong(const Network::Link& path);

/// One thread. The same path and seed give the same.
class TcpStreams {
 public:
  TcpStreams(const Network::Link& path, uint64_t seed);

  uint32_t count() const { return static_cast<uint32_t>(streams_.size()); }
  /// Seconds that a round trip takes now: more where windows wait in the path's queue, and it is
  /// `all_windows` bytes that all connections on it have in flight together.
  double RoundTrip(double all_windows) const;
  /// Bytes/s that its windows allow in the round trip that begins now, the pace included.
  double rate() const;
  /// Bytes in flight that its windows allow.
  double window() const;
  /// RoundTrip() has passed, in which it sent at rate(), and all connections on the path together
  /// had windows of `all_windows` bytes.
  void Step(double all_windows);

 private:
  struct Stream {
    double window = 10;       // segments
    double threshold = 1e18;  // slow start ends there
    double most = 0;          // window at the last loss
    double since = 0;         // seconds from that
    bool is_starting = true;
  };
  /// Uniform, 0 to 1.
  double Chance();
  void Lose(Stream* stream, double through);
  void Grow(Stream* stream, double all_segments, double seconds);

  Network::Link path_;
  double round_trip_;
  double segment_;     // payload bytes
  double in_pipe_;     // segments that fill the path
  double tokens_ = 0;  // bytes left at the policer
  uint64_t random_;
  std::vector<Stream> streams_;
};

/// Bytes/s that a connection has in the long run: RFC 9438's 1.054 segments / (RTT^0.25 p^0.75) per
/// stream, or what the path carries.
double LongRunRate(const Network::Link& path);
/// Seconds in which one connection alone sends so many bytes, in the mean of some runs, from its
/// slow start on; where the path is not long, what it takes at its rate.
double TcpSecondsOf(const Network::Link& path, uint64_t bytes);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_TCP_RATE_H_
