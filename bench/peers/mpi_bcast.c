/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Bcast as bench/session_bench measures a group: BURST, then SIZE REPEAT of each size; a JSON
 * line each, at rank 0. The time of BURST broadcasts, one right after the other, is from when the
 * root begins the first, 200 us behind a barrier, to when the slowest rank has the last, by the
 * clock that all ranks of one machine have in common: a rank that leaves the barrier late is no
 * faster for that. The first of each size is not counted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int burst = atoi(argv[1]);
  for (int a = 2; a + 1 < argc; a += 2) {
    const size_t bytes = strtoull(argv[a], NULL, 10);
    const int repeat = atoi(argv[a + 1]);
    char* memory = malloc(bytes > 0 ? bytes : 1);
    memset(memory, rank == 0 ? 1 : 0, bytes);
    if (rank == 0) printf("{\"bytes\": %zu, \"members\": %d, \"seconds\": [", bytes, ranks);
    double cpu = 0;
    for (int i = -1; i < repeat; ++i) {
      if (i == 0) cpu = cpu_seconds();
      if (rank == 0 && bytes > 0) memory[bytes / 2] = (char)(i + 2);
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 0) settle();
      const double start = now();
      for (int k = 0; k < burst; ++k) MPI_Bcast(memory, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
      const double end = now();
      settle();
      double last = 0;
      MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (bytes > 0 && memory[bytes / 2] != (char)(i + 2)) MPI_Abort(MPI_COMM_WORLD, 1);
      if (rank == 0 && i >= 0) printf("%s%.9f", i > 0 ? ", " : "", (last - start) / burst);
    }
    cpu = cpu_seconds() - cpu;
    double cpu_of_all = 0;
    MPI_Reduce(&cpu, &cpu_of_all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("], \"cpu_seconds\": %f}\n", cpu_of_all);
      fflush(stdout);
    }
    free(memory);
  }
  MPI_Finalize();
  return 0;
}
