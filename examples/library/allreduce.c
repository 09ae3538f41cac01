// SPDX-License-Identifier: Apache-2.0
//
// Adds up one number per member and a vector of floats, at all members, in C:
//
//     allreduce SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prepost/prepost_c.h"

enum { kMembersMax = 64, kSecretMax = 4096, kValues = 1000000 };

static int is_over;
static float values[kValues], sums[kValues];

static void done(void* context, prepost_code code, const char* cause) {
  if (code != PREPOST_OK) fprintf(stderr, "%s\n", cause), exit(1);
  ++*(int*)context;
}

static void closed(void* context) { *(int*)context = 1; }

static void failed(void* context, prepost_code code, const char* cause, uint32_t member) {
  (void)context, (void)code, (void)member;
  fprintf(stderr, "%s\n", cause);
  exit(1);
}

static void check(prepost_code code) {
  if (code == PREPOST_OK) return;
  fprintf(stderr, "%s\n", prepost_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: allreduce SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE\n");
    return 2;
  }
  prepost_address addresses[kMembersMax];
  uint32_t numbers[kMembersMax], count = 0;
  for (char* host = strtok(argv[2], ","); host != NULL && count < kMembersMax; ++count) {
    addresses[count] = (prepost_address){host, PREPOST_PORT};
    char* colon = strchr(host, ':');
    if (colon != NULL) *colon = '\0', addresses[count].port = (uint16_t)atoi(colon + 1);
    numbers[count] = count;
    host = strtok(NULL, ",");
  }
  char secret[kSecretMax];
  FILE* file = fopen(argv[3], "rb");
  if (file == NULL) return perror(argv[3]), 1;
  prepost_session_options options;
  prepost_session_options_init(&options, sizeof options);
  options.self = (uint32_t)atoi(argv[1]);
  options.members = addresses;
  options.member_count = count;
  options.secret = secret;
  options.secret_bytes = fread(secret, 1, sizeof secret, file);
  fclose(file);
  options.own_thread = 0;  // this thread makes progress and is called back
  prepost_session* session;
  check(prepost_session_open(&options, &session));

  prepost_group_options group;
  prepost_group_options_init(&group, sizeof group);
  group.calls = 1;
  prepost_group_callbacks callbacks;
  prepost_group_callbacks_init(&callbacks, sizeof callbacks);
  callbacks.context = &is_over;
  callbacks.closed = closed;
  callbacks.failed = failed;
  check(prepost_create_group(session, 1, numbers, count, /*root=*/0, &group, &callbacks));

  // Both calls are under way at once; every member makes them in this order.
  int calls = 0;
  uint64_t rank = options.self, ranks = 0;
  for (size_t i = 0; i < kValues; ++i) values[i] = 0.5f + (float)options.self;
  prepost_call_options call;
  prepost_call_options_init(&call, sizeof call);
  call.kind = PREPOST_ALLREDUCE;
  call.op = PREPOST_SUM;
  call.input = &rank;
  call.output = &ranks;
  call.count = 1;
  call.type = PREPOST_UINT64;
  check(prepost_call(session, 1, &call, done, &calls));
  call.input = values;
  call.output = sums;
  call.count = kValues;
  call.type = PREPOST_FLOAT32;
  check(prepost_call(session, 1, &call, done, &calls));
  while (calls < 2) check(prepost_session_poll(session, -1));
  printf("ranks add up to %llu, values to %g\n", (unsigned long long)ranks, (double)sums[0]);

  // No member leaves before all have their results.
  check(prepost_destroy_group(session, 1));
  while (!is_over) check(prepost_session_poll(session, -1));
  prepost_session_close(session);
  return 0;
}
