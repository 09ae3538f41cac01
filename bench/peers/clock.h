// SPDX-License-Identifier: Apache-2.0
//
// What the programs of peers measure with, in C and C++.
#ifndef PREPOST_BENCH_PEERS_CLOCK_H_
#define PREPOST_BENCH_PEERS_CLOCK_H_

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

/* Of this process, in all. */
static inline double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* In seconds, by the clock that all processes of one machine have in common. */
static inline double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Behind a barrier, which others leave later, and before the next, so that what a member does there
 * is not in the time of another. */
static inline void settle(void) {
  const double end = now() + 200e-6;
  while (now() < end) sched_yield();
}

#endif /* PREPOST_BENCH_PEERS_CLOCK_H_ */
