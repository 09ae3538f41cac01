// SPDX-License-Identifier: Apache-2.0
//
// A step is a round trip. Each stream that loses a packet in it goes back to 0.7 of its window, and
// then grows by CUBIC's curve, or by that of Reno where that is more; without a loss it grows once.
// Packets are lost
//   by chance: a stream that sends w packets keeps all of them with (1 - p)^w;
//   when windows fill path and queue: then those streams lose that are above their share, and of
//     the others every second one by chance, as arrivals mix;
//   at a policer: when a round trip brings more than its rate and what is left of its burst;
//     likewise.
// Slow start doubles windows and ends at the first loss or when the path is full: HyStart sees its
// queue grow.
//
// Example: 400 Mbit/s, 60 ms, packets of 9000 bytes: 335 segments fill the path. One stream begins
// with 10 and has 320 after five round trips.
#include "ir/analysis/tcp_rate.h"

#include <algorithm>
#include <cmath>

namespace prepost {
namespace {

constexpr double kBeta = 0.7;  // RFC 9438, as the next
constexpr double kCubic = 0.4;
constexpr double kSlowStartGain = 2;
constexpr uint64_t kRuns = 8;
/// Round trips of a run, of all its streams together; from then on it goes on as it did in the
/// mean.
constexpr uint32_t kStepsMax = 200'000;
constexpr uint32_t kStepsLeast = 500;

double SegmentOf(const Network::Link& path) {
  return std::max<double>(path.mtu, kPacketHeaders + 1) - kPacketHeaders;
}

}  // namespace

Network::Link PathOf(const Network& network, std::span<const uint32_t> links) {
  Network::Link path = network.links[links.front()];
  double queue = path.queue.value_or(0);
  for (const uint32_t index : links.subspan(1)) {
    const Network::Link& link = network.links[index];
    path.to = link.to;
    path.rate = std::min(path.rate, link.rate);
    path.latency += link.latency;
    path.jitter += link.jitter;
    path.loss = 1 - (1 - path.loss) * (1 - link.loss);
    if (link.policer && (!path.policer || link.policer->rate < path.policer->rate))
      path.policer = link.policer;
    if (link.pace) path.pace = std::min(path.pace.value_or(*link.pace), *link.pace);
    queue += link.queue.value_or(0);
    path.streams = std::max(path.streams, link.streams);
    path.mtu = std::min(path.mtu, link.mtu);
  }
  if (queue > 0) path.queue = queue;
  return path;
}

bool IsLong(const Network::Link& path) {
  return 2 * path.latency >= kLongRoundTrip || path.loss > 0 || path.policer;
}

TcpStreams::TcpStreams(const Network::Link& path, uint64_t seed)
    : path_(path),
      round_trip_(std::max(2 * path.latency + path.jitter, 1e-6)),
      segment_(SegmentOf(path)),
      in_pipe_(path.rate * round_trip_ / segment_),
      random_(seed * 2 + 1) {
  const bool is_long = 2 * path.latency >= kLongRoundTrip;
  streams_.resize(path.streams != 0 ? path.streams : is_long ? uint32_t{kLongStreams} : 1);
  if (path.policer) tokens_ = path.policer->burst;
}

double TcpStreams::Chance() {  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
  uint64_t z = random_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

double TcpStreams::window() const {
  double segments = 0;
  for (const Stream& stream : streams_) segments += stream.window;
  return segments * segment_;
}

double TcpStreams::RoundTrip(double all_windows) const {
  return std::max(round_trip_, all_windows / path_.rate);
}

double TcpStreams::rate() const {
  const double most = path_.pace.value_or(path_.rate);
  return std::min(window() / round_trip_, most);
}

/// Of what it has sent the share `through` has arrived.
void TcpStreams::Lose(Stream* stream, double through) {
  const double window = stream->window * through;
  stream->is_starting = false;
  // Fast convergence: one that was stopped below its last peak leaves room for others.
  stream->most = window < stream->most ? window * (1 + kBeta) / 2 : window;
  stream->window = std::max(window * kBeta, 2.0);
  stream->since = 0;
}

void TcpStreams::Grow(Stream* stream, double all_segments, double seconds) {
  if (stream->is_starting) {
    // HyStart: the queue that it has made shows in the round trip.
    if (all_segments >= in_pipe_) {
      stream->is_starting = false;
      stream->most = stream->window;
      stream->since = 0;
      return;
    }
    stream->window *= kSlowStartGain;
    return;
  }
  stream->since += seconds;
  const double until_most = std::cbrt(stream->most * (1 - kBeta) / kCubic);
  const double curve = kCubic * std::pow(stream->since - until_most, 3) + stream->most;
  const double reno =
      stream->most * kBeta + 3 * (1 - kBeta) / (1 + kBeta) * stream->since / seconds;
  stream->window = std::clamp(std::max(curve, reno), stream->window, stream->window * 1.5);
}

void TcpStreams::Step(double all_windows) {
  const double all_segments = all_windows / segment_, seconds = RoundTrip(all_windows);
  const double queue = path_.queue.value_or(path_.rate * round_trip_) / segment_;
  const double paced = path_.pace ? *path_.pace * round_trip_ / segment_ : 1e18;
  const bool is_full = std::min(all_segments, paced * 2) > in_pipe_ + queue;
  bool is_policed = false;
  double through = 1;
  if (path_.policer) {
    const double sent = std::min(rate(), path_.rate) * seconds;
    tokens_ += path_.policer->rate * seconds - sent;
    is_policed = tokens_ < 0;
    if (is_policed) through = 1 + tokens_ / sent;
    tokens_ = std::clamp(tokens_, 0.0, path_.policer->burst);
  }
  const double mean = window() / segment_ / static_cast<double>(streams_.size());
  for (Stream& stream : streams_) {
    const double packets =
        path_.pace ? std::min(stream.window, paced / static_cast<double>(streams_.size()))
                   : stream.window;
    const bool by_chance = path_.loss > 0 && Chance() > std::pow(1 - path_.loss, packets);
    const bool by_others = (is_full || is_policed) && (stream.window >= mean || Chance() < 0.5);
    if (by_chance || by_others) {
      Lose(&stream, through);
    } else if (stream.window * static_cast<double>(streams_.size()) < 2 * paced) {
      Grow(&stream, all_segments, seconds);
    }
  }
}

double LongRunRate(const Network::Link& path) {
  if (path.loss == 0) return path.capacity();
  const TcpStreams streams(path, /*seed=*/0);
  const double one =
      1.054 * SegmentOf(path) / (std::pow(streams.RoundTrip(0), 0.25) * std::pow(path.loss, 0.75));
  return std::min(path.capacity(), one * streams.count());
}

double TcpSecondsOf(const Network::Link& path, uint64_t bytes) {
  const auto all = static_cast<double>(bytes);
  const double alone = all / path.capacity();
  if (!IsLong(path)) return alone;
  double sum = 0;
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    TcpStreams streams(path, seed);
    const uint32_t steps = std::max(kStepsMax / streams.count(), kStepsLeast);
    double sent = 0, seconds = 0;
    for (uint32_t i = 0; sent < all; ++i) {
      double rate = std::min(streams.rate(), path.capacity());
      const double left = all - sent;
      if (i == steps) rate = sent / seconds;
      const double step = streams.RoundTrip(streams.window());
      if (i == steps || left <= rate * step) {
        seconds += left / rate;
        break;
      }
      sent += rate * step;
      seconds += step;
      streams.Step(streams.window());
    }
    sum += seconds;
  }
  return std::max(sum / kRuns, alone);
}

}  // namespace prepost
