// SPDX-License-Identifier: Apache-2.0
//
// gloo's broadcast, as mpi_bcast.c measures MPI's: RANK RANKS ADDRESS FOLDER BURST, then SIZE
// REPEAT of each size; a JSON line each, at rank 0. ADDRESS is this rank's own, FOLDER is empty and
// all ranks'.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "clock.h"

namespace {

using Reduction = void (*)(void*, const void*, const void*, size_t);

double AllReduce(const std::shared_ptr<gloo::Context>& context, double value, Reduction reduce) {
  gloo::AllreduceOptions options(context);
  options.setOutput(&value, 1);
  options.setReduceFunction(reduce);
  gloo::allreduce(options);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = std::atoi(argv[1]);
  const int ranks = std::atoi(argv[2]);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = argv[3];
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[4]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  const int burst = std::atoi(argv[5]);
  for (int a = 6; a + 1 < argc; a += 2) {
    const size_t bytes = std::strtoull(argv[a], nullptr, 10);
    const int repeat = std::atoi(argv[a + 1]);
    std::vector<char> memory(bytes, rank == 0);
    double cpu = 0;
    std::string seconds;
    for (int i = -1; i < repeat; ++i) {
      gloo::BarrierOptions barrier(context);
      gloo::barrier(barrier);
      if (i == 0) cpu = cpu_seconds();
      const char sign = static_cast<char>(i + 2);
      if (rank == 0) memory[bytes / 2] = sign;
      if (rank == 0) settle();
      const double start = now();
      gloo::BroadcastOptions options(context);
      options.setOutput(memory.data(), bytes);
      options.setRoot(0);
      for (int k = 0; k < burst; ++k) gloo::broadcast(options);
      // By the clock that all ranks of one machine have in common: one that leaves the barrier late
      // is no faster for that.
      const double end = now();
      if (memory[bytes / 2] != sign) std::abort();
      settle();
      const double last = AllReduce(context, end, &gloo::max<double>);
      if (i >= 0) seconds += (i > 0 ? ", " : "") + std::to_string((last - start) / burst);
    }
    const double all = AllReduce(context, cpu_seconds() - cpu, &gloo::sum<double>);
    if (rank == 0)
      std::printf("{\"bytes\": %zu, \"members\": %d, \"cpu_seconds\": %f, \"seconds\": [%s]}\n",
                  bytes, ranks, all, seconds.c_str());
  }
  return 0;
}
