// SPDX-License-Identifier: Apache-2.0
//
// How fast the emulated NIC is: WQEs per second of each kind, and a whole transfer beside the bare
// copies that it cannot avoid. These are figures of the emulation on this machine, never of
// hardware.
//
//   build/bench/bench/emulated_nic_bench                              a table
//   build/bench/bench/emulated_nic_bench --benchmark_format=json      the same as JSON, with
//   machine and date
//   ... --benchmark_repetitions=9 --benchmark_report_aggregates_only    median and spread
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/local/offload_run.h"
#include "backends/nic/program/encode.h"
#include "compiler/compile.h"

namespace prepost {
namespace {

constexpr uint32_t kWqes = 16384;

template <typename T>
T Must(Result<T> result) {
  PREPOST_CHECK(result.ok());
  return *std::move(result);
}

/// Two NICs with a QP each, connected; the near one's send queue is full of one kind of WQE.
class FullQueue {
 public:
  explicit FullQueue(nic::Opcode opcode) : fabric_(2, {}) {
    nic::Device& near = fabric_.device(NodeId(0));
    nic::Device& far = fabric_.device(NodeId(1));
    near_ = MakeQp(near);
    far_ = MakeQp(far);
    PREPOST_CHECK(near.Connect(near_.number, {far.port_address(), far_.number}).ok());
    PREPOST_CHECK(far.Connect(far_.number, {near.port_address(), near_.number}).ok());
    const nic::Cq cq = Must(near.CreateCq({}));
    for (uint32_t i = 0; i < kWqes; ++i) {
      std::byte* at = near_.sq.data() + i * nic::kWqebbBytes;
      const bool waits = opcode == nic::Opcode::kWait;
      nic::EncodeSegment(nic::ControlSegment{.wqe_index = static_cast<uint16_t>(i),
                                             .opcode = opcode,
                                             .qpn = near_.number,
                                             .segments = static_cast<uint8_t>(waits ? 2 : 1)},
                         at);
      if (waits) {  // for nothing: passes at once
        nic::EncodeSegment(nic::CoordinationSegment{nic::kCqIndexMask, cq.number},
                           at + nic::kSegmentBytes);
      }
      nic::EncodeSegment(nic::DataSegment{.lkey = nic::kInvalidLkey},
                         far_.rq.data() + i * nic::kReceiveStrideBytes);
    }
    nic::PostReceives(far_, kWqes);
  }

  void Run() {
    nic::PostSends(fabric_.device(NodeId(0)), near_, kWqes, kWqes - 1);
    fabric_.RunUntilIdle();
    PREPOST_CHECK(fabric_.engine().counters().wqes == kWqes);
  }

 private:
  static nic::Qp MakeQp(nic::Device& device) {
    const uint32_t cq = Must(device.CreateCq({.entries = 64, .ignore_overrun = true})).number;
    return Must(device.CreateQp(
        {.send_cq = cq, .recv_cq = cq, .sq_wqebbs = kWqes, .rq_wqes = kWqes, .cd_master = true}));
  }

  emulated::Fabric fabric_;
  nic::Qp near_;
  nic::Qp far_;
};

void Wqes(benchmark::State& state, nic::Opcode opcode) {
  for (auto _ : state) {
    state.PauseTiming();
    FullQueue queue(opcode);
    state.ResumeTiming();
    queue.Run();
  }
  state.SetItemsProcessed(state.iterations() * kWqes);
}
BENCHMARK_CAPTURE(Wqes, nop, nic::Opcode::kNop);
BENCHMARK_CAPTURE(Wqes, wait, nic::Opcode::kWait);
BENCHMARK_CAPTURE(Wqes, empty_send, nic::Opcode::kSend);

constexpr uint64_t kMessageBytes = 64 << 20;
constexpr uint32_t kNodes = 8;

struct Buffers {
  std::vector<std::byte> message = std::vector<std::byte>(kMessageBytes, std::byte{1});
  std::vector<std::vector<std::byte>> memory =
      std::vector(kNodes, std::vector<std::byte>(kMessageBytes));
};

/// The bound: every node's copy, one after another.
void CopyTo7(benchmark::State& state) {
  Buffers buffers;
  for (auto _ : state) {
    for (size_t node = 1; node < kNodes; ++node) {
      std::memcpy(buffers.memory[node].data(), buffers.message.data(), kMessageBytes);
      benchmark::ClobberMemory();
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kMessageBytes * (kNodes - 1)));
}
BENCHMARK(CopyTo7)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The whole run with arming and checks: binomial_pipeline, blocks of 1 MiB.
void DeliverTo7(benchmark::State& state) {
  Spec spec;
  spec.nodes = kNodes;
  spec.message_bytes = kMessageBytes;
  const VerifiedPlan plan = Must(Compile(spec));
  Buffers buffers;
  std::vector<std::span<std::byte>> spans(buffers.memory.begin(), buffers.memory.end());
  for (auto _ : state) {
    PREPOST_CHECK(local::RunOffload(plan, buffers.message, spans).ok());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kMessageBytes * (kNodes - 1)));
}
BENCHMARK(DeliverTo7)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace prepost

BENCHMARK_MAIN();
