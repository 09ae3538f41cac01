// SPDX-License-Identifier: Apache-2.0
//
// What sealing costs (runtime/transport/sealing/sealed_stream.h): the processor time of both ends
// of one connection over loopback that carry a message from memory to memory, with nothing sealed
// and with each cipher, in seconds per GB (10^9 bytes), and how many GB go through in a second. The
// bound beside it is the same with nothing sealed plus the cipher alone, sealing and opening as
// many records in the cache. One repetition measures each of them once, so that whatever else the
// machine does hits all alike: read the ratios.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/provenance.h"
#include "compiler/compile.h"
#include "runtime/base/clock.h"
#include "runtime/executor/executor.h"
#include "runtime/transport/sealing/sealed_stream.h"
#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kCiphers = {SealCipher::kNone, SealCipher::kChaCha20Poly1305,
                                 SealCipher::kAes256Gcm};
constexpr std::array kNames = {"plain", "ChaCha20-Poly1305", "AES-256-GCM"};

/// One way's samples, by repetition.
struct Samples {
  std::vector<double> seconds_per_gigabyte;  ///< of processor time, both ends
  std::vector<double> cipher_alone;          ///< the same
  std::vector<double> gigabytes_per_second;
};

class Bench {
 public:
  explicit Bench(uint64_t bytes)
      : plan_(Compile({.nodes = 2,
                       .message_bytes = bytes,
                       .block_bytes = uint64_t{1} << 20,
                       .algorithm = "chain"})
                  .value()),
        key_(GroupKey::FromSecret("a secret of 20 bytes", "").value()),
        message_(bytes, std::byte{1}),
        copy_(bytes) {}

  void Measure(SealCipher cipher, Samples* samples) {
    TcpMesh mesh = MakeTcpMesh(plan_).value();
    std::vector<std::unique_ptr<TcpEndpoint>> endpoints;
    std::vector<std::unique_ptr<CpuExecutor>> executors;
    for (const size_t node : {size_t{0}, size_t{1}}) {
      const NodeId id = NodeId::FromIndex(node);
      if (cipher != SealCipher::kNone) SealSockets(id, mesh[node], key_, cipher);
      endpoints.push_back(TcpEndpoint::Make(plan_, id, std::move(mesh[node]), -1).value());
      executors.push_back(std::make_unique<CpuExecutor>(plan_, id, *endpoints.back()));
      executors.back()->Prepare(node == 0 ? NodeMemory{.source = message_, .target = {}}
                                          : NodeMemory{.source = copy_, .target = copy_});
      executors.back()->Arm();
    }
    std::array<uint64_t, 2> cpu_ns = {};
    const uint64_t begin_ns = MonotonicNs();
    std::vector<std::thread> threads;
    for (const size_t node : {size_t{0}, size_t{1}}) {
      threads.emplace_back([&executor = *executors[node], &spent = cpu_ns[node]] {
        const uint64_t before_ns = ThreadCpuNs();
        executor.Start();
        while (!executor.done()) PREPOST_CHECK(executor.Poll(std::chrono::milliseconds(-1)).ok());
        spent = ThreadCpuNs() - before_ns;
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto elapsed_ns = static_cast<double>(MonotonicNs() - begin_ns);
    const auto bytes = static_cast<double>(message_.size());
    samples->seconds_per_gigabyte.push_back(static_cast<double>(cpu_ns[0] + cpu_ns[1]) / bytes);
    samples->gigabytes_per_second.push_back(bytes / elapsed_ns);
    samples->cipher_alone.push_back(CipherAlone(cipher) / bytes);
  }

 private:
  /// Nanoseconds.
  double CipherAlone(SealCipher cipher) const {
    if (cipher == SealCipher::kNone) return 0;
    LinkSeal from(key_, cipher, true), to(key_, cipher, false);
    std::vector<std::byte> plain(SealedStream::kRecordBytesMax), opened(plain.size());
    std::vector<std::byte> record(plain.size() + kSealTagBytes);
    const uint64_t before_ns = ThreadCpuNs();
    for (uint64_t done = 0; done < message_.size(); done += plain.size()) {
      PREPOST_CHECK(from.out().Seal(plain, {}, record));
      PREPOST_CHECK(to.in().Open(record, {}, opened));
    }
    return static_cast<double>(ThreadCpuNs() - before_ns);
  }

  const VerifiedPlan plan_;
  const GroupKey key_;
  std::vector<std::byte> message_;
  std::vector<std::byte> copy_;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int Main(int argc, char** argv) {
  CLI::App app("Processor time of sealed connections");
  uint64_t mebibytes = 256;
  uint32_t repetitions = 15;
  bool json = false;
  app.add_option("--mebibytes", mebibytes, "The message [256]")->check(CLI::Range(1, 65536));
  app.add_option("--repeat", repetitions, "Repetitions, after one that does not count [15]")
      ->check(CLI::Range(1, 10000));
  app.add_flag("--json", json, "Print all samples as JSON");
  CLI11_PARSE(app, argc, argv);

  Bench bench(mebibytes << 20);
  std::array<Samples, kCiphers.size()> all;
  for (uint32_t i = 0; i <= repetitions; ++i) {
    if (i == 1) all = {};
    for (size_t way = 0; way < kCiphers.size(); ++way) {
      const bool is_here =
          kCiphers[way] == SealCipher::kNone || (SealCiphersHere() & BitOf(kCiphers[way])) != 0;
      if (is_here) bench.Measure(kCiphers[way], &all[way]);
    }
  }
  Json out = {{"provenance", Provenance()}, {"mebibytes", mebibytes}, {"ways", Json::array()}};
  if (!json) std::cout << fmt::format("{}; {} MiB\n", Provenance(), mebibytes);
  for (size_t way = 0; way < kCiphers.size(); ++way) {
    const Samples& it = all[way];
    if (it.cipher_alone.empty()) continue;
    out["ways"].push_back({{"way", kNames[way]},
                           {"seconds_per_gigabyte", it.seconds_per_gigabyte},
                           {"cipher_alone", it.cipher_alone},
                           {"gigabytes_per_second", it.gigabytes_per_second}});
    if (json) continue;
    std::cout << fmt::format("{:<18} {:.2f} s/GB of processor time, bound {:.2f}; {:.2f} GB/s\n",
                             kNames[way], Median(it.seconds_per_gigabyte),
                             Median(all.front().seconds_per_gigabyte) + Median(it.cipher_alone),
                             Median(it.gigabytes_per_second));
  }
  if (json) std::cout << out.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace prepost

int main(int argc, char** argv) { return prepost::Main(argc, argv); }
