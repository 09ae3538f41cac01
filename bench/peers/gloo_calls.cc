// SPDX-License-Identifier: Apache-2.0
//
// gloo's collectives, as mpi_calls.c measures MPI's: RANK RANKS ADDRESS FOLDER COLLECTIVE, then
// SIZE REPEAT of each size; a JSON line each, at rank 0. ADDRESS is this rank's own, FOLDER is
// empty and all ranks'. It has no reduce_scatter for a context.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using Context = std::shared_ptr<gloo::Context>;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return double(time.tv_sec) + 1e-6 * double(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Reduced(const Context& context, double value,
               void (*reduce)(void*, const void*, const void*, size_t)) {
  gloo::AllreduceOptions options(context);
  options.setOutput(&value, 1);
  options.setReduceFunction(reduce);
  gloo::allreduce(options);
  return value;
}

void Barrier(const Context& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

void Call(const Context& context, const std::string& kind, std::vector<float>& in,
          std::vector<float>& out, size_t values) {
  const size_t part = values / static_cast<size_t>(context->size);
  if (kind == "allreduce") {
    gloo::AllreduceOptions options(context);
    options.setInput(in.data(), values);
    options.setOutput(out.data(), values);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  } else if (kind == "allgather") {
    gloo::AllgatherOptions options(context);
    options.setInput(in.data(), part);
    options.setOutput(out.data(), part * static_cast<size_t>(context->size));
    gloo::allgather(options);
  } else if (kind == "alltoall") {
    gloo::AlltoallOptions options(context);
    options.setInput(in.data(), part * static_cast<size_t>(context->size));
    options.setOutput(out.data(), part * static_cast<size_t>(context->size));
    gloo::alltoall(options);
  } else if (kind == "broadcast") {
    gloo::BroadcastOptions options(context);
    options.setOutput(in.data(), values);
    options.setRoot(0);
    gloo::broadcast(options);
  } else {
    Barrier(context);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = std::atoi(argv[1]);
  const int ranks = std::atoi(argv[2]);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = argv[3];
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[4]);
  auto connected = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  connected->connectFullMesh(store, device);
  const Context context = connected;
  for (int a = 6; a + 1 < argc; a += 2) {
    const size_t bytes = std::strtoull(argv[a], nullptr, 10);
    const int repeat = std::atoi(argv[a + 1]);
    std::vector<float> in(bytes / 4 + 1, 1.0f), out(bytes / 4 + 1);
    double cpu = 0;
    std::string seconds;
    for (int i = -1; i < repeat; ++i) {
      Barrier(context);
      if (i == 0) cpu = CpuSeconds();
      const double start = Now();
      Call(context, argv[5], in, out, bytes / 4);
      const double end = Now();
      const double taken =
          Reduced(context, end, &gloo::max<double>) - Reduced(context, start, &gloo::max<double>);
      if (i >= 0) seconds += (i > 0 ? ", " : "") + std::to_string(taken);
    }
    const double all = Reduced(context, CpuSeconds() - cpu, &gloo::sum<double>);
    if (rank == 0)
      std::printf("{\"bytes\": %zu, \"members\": %d, \"cpu_seconds\": %f, \"seconds\": [%s]}\n",
                  bytes, ranks, all, seconds.c_str());
  }
  return 0;
}
