/* SPDX-License-Identifier: Apache-2.0 */
/* MPI's collectives as bench/calls_bench measures ours: COLLECTIVE, then SIZE REPEAT of each size;
 * a JSON line each, at rank 0. SIZE is that of the whole vector. The time of a call is from when
 * the last rank makes it, behind a barrier, to when the last one has its result, by the clock that
 * all ranks of one machine have in common. The first of each size is not counted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

static void call(const char* kind, float* in, float* out, int values, int part) {
  if (strcmp(kind, "allreduce") == 0) {
    MPI_Allreduce(in, out, values, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(kind, "allgather") == 0) {
    MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (strcmp(kind, "reduce_scatter") == 0) {
    MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(kind, "alltoall") == 0) {
    MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (strcmp(kind, "broadcast") == 0) {
    MPI_Bcast(in, values, MPI_FLOAT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int a = 2; a + 1 < argc; a += 2) {
    const size_t bytes = strtoull(argv[a], NULL, 10);
    const int repeat = atoi(argv[a + 1]);
    const int values = (int)(bytes / 4), part = values / ranks;
    float* in = malloc(bytes + 4);
    float* out = malloc(bytes + 4);
    for (int i = 0; i <= values; ++i) in[i] = 1, out[i] = 0;
    if (rank == 0) printf("{\"bytes\": %zu, \"members\": %d, \"seconds\": [", bytes, ranks);
    double cpu = 0;
    for (int i = -1; i < repeat; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (i == 0) cpu = cpu_seconds();
      const double start = now();
      call(argv[1], in, out, values, part);
      const double end = now();
      double last_start = 0, last_end = 0;
      MPI_Reduce(&start, &last_start, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      MPI_Reduce(&end, &last_end, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (strcmp(argv[1], "allreduce") == 0 && values > 0 && out[values - 1] != (float)ranks)
        MPI_Abort(MPI_COMM_WORLD, 1);
      if (rank == 0 && i >= 0) printf("%s%.9f", i > 0 ? ", " : "", last_end - last_start);
    }
    cpu = cpu_seconds() - cpu;
    double cpu_of_all = 0;
    MPI_Reduce(&cpu, &cpu_of_all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("], \"cpu_seconds\": %f}\n", cpu_of_all);
      fflush(stdout);
    }
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
