// SPDX-License-Identifier: Apache-2.0
//
// The C interface, from C99: three members in one process, two with a thread of their own and one
// that polls. Catches functions without C linkage, contexts and texts that are mixed up, defaults
// that differ from those of C++, and structs of another size that are misread.
#define _POSIX_C_SOURCE 200809L
#include "prepost/prepost_c.h"

#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS 3
#define BYTES 1000003u

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
              prepost_last_error());                                                 \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

typedef struct member {
  prepost_session* session;
  int polls; /* has no thread */
  int has_refused;
  unsigned char* memory;
  int opened, closed, failed, passed;
  uint64_t completed, delivered, last_bytes;
  prepost_code code;
  uint32_t failed_member;
  char cause[200];
} member;

static member members[MEMBERS];
static char hosts[MEMBERS][32];
static prepost_address addresses[MEMBERS];
static const char kSecret[] = "a secret\0 of more than 16 bytes";

static void note(int* counter) {
  pthread_mutex_lock(&mutex);
  ++*counter;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static void* incoming(void* context, uint64_t message, uint64_t bytes) {
  member* self = context;
  if (message == 1 && !self->has_refused) {
    self->has_refused = 1;
    CHECK(prepost_session_resume(self->session) == PREPOST_OK);
    return PREPOST_NOT_YET;
  }
  self->memory = realloc(self->memory, bytes == 0 ? 1 : (size_t)bytes);
  return self->memory;
}
static void complete(void* context, uint64_t message, void* memory, uint64_t bytes) {
  member* self = context;
  const int is_pooled = self == &members[1] && bytes > 0;
  CHECK(bytes == 0 || self == &members[0] || is_pooled || memory == self->memory);
  if (is_pooled) self->memory = memory; /* a buffer of the pool */
  pthread_mutex_lock(&mutex);
  CHECK(message == self->completed);
  ++self->completed;
  self->last_bytes = bytes;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}
static void delivered(void* context, uint64_t message) {
  member* self = context;
  pthread_mutex_lock(&mutex);
  self->delivered = message + 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}
static void opened(void* context) { note(&((member*)context)->opened); }
static void closed(void* context) { note(&((member*)context)->closed); }
static void passed(void* context) { note(&((member*)context)->passed); }
static void failed(void* context, prepost_code code, const char* cause, uint32_t at) {
  member* self = context;
  self->code = code;
  self->failed_member = at;
  snprintf(self->cause, sizeof self->cause, "%s", cause);
  note(&self->failed);
}

static void failed_members(void* context, prepost_code code, const char* cause, const uint32_t* at,
                           uint32_t count) {
  failed(context, code, cause, count == 1 ? at[0] : PREPOST_NO_MEMBER);
}

static int all_completed(void) {
  return members[0].completed == 2 && members[1].completed == 2 && members[2].completed == 2;
}
static int all_opened(void) { return members[0].opened && members[1].opened && members[2].opened; }
static int root_delivered(void) { return members[0].delivered == 2; }
static int all_passed(void) { return members[0].passed && members[1].passed && members[2].passed; }
static int all_closed(void) { return members[0].closed && members[1].closed && members[2].closed; }
static int others_failed(void) { return members[1].failed && members[2].failed; }

/* Waits for up to 20 s, and moves what the member that polls has to move. */
static void wait_until(int (*is_there)(void)) {
  for (int i = 0; i < 20000; ++i) {
    pthread_mutex_lock(&mutex);
    const int there = is_there();
    pthread_mutex_unlock(&mutex);
    if (there) return;
    if (members[2].session == NULL) continue;
    struct pollfd file = {prepost_session_fd(members[2].session), POLLIN, 0};
    CHECK(poll(&file, 1, 1) >= 0);
    CHECK(prepost_session_poll(members[2].session, 0) == PREPOST_OK);
  }
  fprintf(stderr, "waited in vain; causes: %s; %s\n", members[1].cause, members[2].cause);
  exit(1);
}

static prepost_session_options options_of(uint32_t self) {
  prepost_session_options options;
  prepost_session_options_init(&options, sizeof options);
  options.self = self;
  options.members = addresses;
  options.member_count = MEMBERS;
  options.secret = kSecret;
  options.secret_bytes = sizeof kSecret;
  return options;
}

static void check_options(void) {
  CHECK(strcmp(prepost_last_error(), "") == 0);
  prepost_session_options options = options_of(0);
  CHECK(options.waiting == PREPOST_HYBRID && options.idle_max_ms == 50);
  CHECK(options.failure_max_ms == 2000 && options.connect_max_ms == 30000);
  CHECK(options.local_copies == 1 && options.own_thread == 1);

  prepost_session* session = NULL;
  options.member_count = 0;
  CHECK(prepost_session_open(&options, &session) == PREPOST_USAGE && session == NULL);
  CHECK(strcmp(prepost_last_error(), "a session needs members") == 0);
  CHECK(prepost_session_open(NULL, &session) == PREPOST_USAGE);
  CHECK(prepost_session_open(&options, NULL) == PREPOST_USAGE);
  options = options_of(0);
  options.waiting = (prepost_waiting)3;
  CHECK(prepost_session_open(&options, &session) == PREPOST_USAGE);
  options = options_of(0);
  options.secret_bytes = 15;
  CHECK(prepost_session_open(&options, &session) != PREPOST_OK && session == NULL);
  CHECK(strstr(prepost_last_error(), "15 bytes") != NULL);
  options = options_of(0);
  options.struct_bytes = 8;
  CHECK(prepost_session_open(&options, &session) == PREPOST_USAGE);
  CHECK(strstr(prepost_last_error(), "_init") != NULL);

  /* A newer header: more fields, which this library does not know, are refused unless 0. */
  struct {
    prepost_session_options options;
    int added;
  } newer;
  prepost_session_options_init(&newer.options, sizeof newer);
  CHECK(newer.added == 0);
  options = options_of(0);
  options.struct_bytes = sizeof newer;
  newer.options = options;
  newer.added = 1;
  CHECK(prepost_session_open(&newer.options, &session) == PREPOST_USAGE && session == NULL);
  newer.added = 0;
  CHECK(prepost_session_open(&newer.options, &session) == PREPOST_OK && session != NULL);
  CHECK(prepost_session_port(session) == PREPOST_PORT);
  CHECK(prepost_session_poll(session, 0) == PREPOST_USAGE); /* it has a thread */
  prepost_session_close(session);
  prepost_session_close(NULL);
  CHECK(prepost_send(NULL, 1, NULL, 0, NULL) == PREPOST_USAGE);
}

static prepost_memory_pool* pool;

static void check_group_options(void) {
  const uint32_t alone = 0;
  prepost_group_options options;
  prepost_group_callbacks callbacks;
  prepost_group_options_init(&options, sizeof options);
  prepost_group_callbacks_init(&callbacks, sizeof callbacks);
  CHECK(options.plan == NULL && options.device == NULL && options.executor == NULL &&
        options.sync == 0 && callbacks.pool == NULL);
  options.executor = "gpu";
  CHECK(prepost_create_group(members[0].session, 1, &alone, 1, 0, &options, &callbacks) ==
        PREPOST_USAGE);
  CHECK(strstr(prepost_last_error(), "gpu") != NULL);
  options.executor = NULL;
  options.plan = "/nowhere/plan.json";
  CHECK(prepost_create_group(members[0].session, 1, &alone, 1, 0, &options, &callbacks) ==
        PREPOST_USAGE);
  CHECK(strstr(prepost_last_error(), "/nowhere/plan.json") != NULL);
  options.plan = NULL;
  callbacks.pool = pool;
  options.sync = 1;
  CHECK(prepost_create_group(members[0].session, 1, &alone, 1, 0, &options, &callbacks) ==
        PREPOST_USAGE);
  CHECK(strstr(prepost_last_error(), "synced") != NULL);
  options.sync = 0;
  options.device = "mlx5_77";
  CHECK(prepost_create_group(members[0].session, 1, &alone, 1, 0, &options, &callbacks) ==
        PREPOST_ENVIRONMENT);
  options.seal = 1;
  CHECK(prepost_create_group(members[0].session, 1, &alone, 1, 0, &options, &callbacks) ==
        PREPOST_USAGE);
  CHECK(strstr(prepost_last_error(), "seals nothing") != NULL);
  /* Built with the first header, which had neither; what stands behind it is not read. */
  options.struct_bytes = offsetof(prepost_group_options, plan);
  callbacks.struct_bytes = offsetof(prepost_group_callbacks, pool);
  CHECK(prepost_create_group(members[0].session, 1, &alone, 1, 0, &options, &callbacks) ==
        PREPOST_OK);
  options.struct_bytes = 8;
  CHECK(prepost_create_group(members[0].session, 2, &alone, 1, 0, &options, &callbacks) ==
        PREPOST_USAGE);

  prepost_memory_pool* none = NULL;
  CHECK(prepost_memory_pool_make(0, 1, &none) == PREPOST_USAGE && none == NULL);
  CHECK(prepost_memory_pool_make(1, 1, NULL) == PREPOST_USAGE);
  CHECK(prepost_memory_pool_give(NULL, NULL) == PREPOST_USAGE);
  CHECK(prepost_memory_pool_give(pool, &options) == PREPOST_USAGE);
  CHECK(prepost_memory_pool_free_buffers(pool) == 2);
  prepost_memory_pool_close(NULL);
}

static void create_groups(uint64_t number) {
  const uint32_t all[MEMBERS] = {0, 1, 2};
  prepost_group_options options;
  prepost_group_options_init(&options, sizeof options);
  options.notify_delivered = 1;
  options.algorithm = "chain";
  options.block_bytes = 65536;
  for (int i = 0; i < MEMBERS; ++i) {
    prepost_group_callbacks callbacks;
    prepost_group_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.context = &members[i];
    callbacks.incoming = i == 1 ? NULL : incoming;
    callbacks.pool = i == 1 ? pool : NULL;
    callbacks.complete = complete;
    callbacks.delivered = delivered;
    callbacks.opened = opened;
    callbacks.closed = closed;
    callbacks.failed = i == 1 ? NULL : failed;
    callbacks.failed_members = i == 1 ? failed_members : NULL;
    CHECK(prepost_create_group(members[i].session, number, all, MEMBERS, 0, &options, &callbacks) ==
          PREPOST_OK);
    CHECK(prepost_create_group(members[i].session, number, all, MEMBERS, 0, &options, &callbacks) ==
          PREPOST_USAGE);
    CHECK(prepost_create_group(members[i].session, number + 1, all, MEMBERS, 0, &options, NULL) ==
          PREPOST_USAGE);
  }
}

#define COUNT 5u
static int calls_done;
static void done(void* context, prepost_code code, const char* cause) {
  CHECK(code == PREPOST_OK && strcmp(cause, "") == 0);
  note(context);
}
static int all_called(void) { return calls_done == MEMBERS; }

/* "0 then 1 then 2" of the digits 1, 2 and 3 is 123: another order, or one twice, is not. */
static void append(void* context, void* out, const void* own, const void* other, uint64_t count) {
  CHECK(context == &calls_done);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t scale = 1, left = ((const uint64_t*)other)[i];
    for (uint64_t rest = left; rest > 0; rest /= 10) scale *= 10;
    ((uint64_t*)out)[i] = ((const uint64_t*)own)[i] * scale + left;
  }
}

/* Element i of what member `from` has, or has for member `to`. */
static uint64_t element(uint32_t from, uint32_t to, uint32_t i) {
  return 1000 * (from + 1) + 100 * to + i;
}

/* Every collective, with callbacks: catches kinds, fields and numbers of the C interface that are
 * mixed up. */
static void check_calls(uint64_t number) {
  static const prepost_kind kinds[] = {PREPOST_BROADCAST,      PREPOST_REDUCE,    PREPOST_ALLREDUCE,
                                       PREPOST_REDUCE_SCATTER, PREPOST_ALLGATHER, PREPOST_GATHER,
                                       PREPOST_SCATTER,        PREPOST_ALLTOALL,  PREPOST_BARRIER};
  static const uint64_t counts[MEMBERS][MEMBERS] = {{1, 0, 4}, {2, 3, 0}, {0, 5, 1}};
  const uint32_t all[MEMBERS] = {0, 1, 2}, root = 2;
  static uint64_t in[MEMBERS][MEMBERS * COUNT], out[MEMBERS][MEMBERS * COUNT];
  prepost_group_options options;
  prepost_group_options_init(&options, sizeof options);
  options.calls = 1;
  for (int m = 0; m < MEMBERS; ++m) {
    prepost_group_callbacks callbacks;
    prepost_group_callbacks_init(&callbacks, sizeof callbacks);
    members[m].closed = 0;
    callbacks.context = &members[m];
    callbacks.closed = closed;
    callbacks.failed = failed;
    CHECK(prepost_create_group(members[m].session, number, all, MEMBERS, 0, &options, &callbacks) ==
          PREPOST_OK);
  }
  const size_t kind_count = sizeof kinds / sizeof kinds[0];
  for (size_t k = 0; k < kind_count + 2; ++k) {
    const int is_uneven = k == kind_count, is_ordered = k == kind_count + 1;
    const prepost_kind kind = is_uneven ? PREPOST_ALLTOALL : is_ordered ? PREPOST_REDUCE : kinds[k];
    uint64_t columns[MEMBERS][MEMBERS];
    calls_done = 0;
    for (uint32_t m = 0; m < MEMBERS; ++m) {
      uint32_t at = 0;
      for (uint32_t to = 0; to < MEMBERS; ++to) {
        columns[m][to] = counts[to][m];
        const uint32_t here = is_uneven ? (uint32_t)counts[m][to] : COUNT;
        for (uint32_t i = 0; i < here; ++i) in[m][at++] = is_ordered ? m + 1 : element(m, to, i);
      }
      memset(out[m], 0, sizeof out[m]);
      prepost_call_options call;
      prepost_call_options_init(&call, sizeof call);
      call.kind = kind;
      call.root = root;
      call.input = in[m];
      call.output = kind == PREPOST_BROADCAST && m == root ? NULL : out[m];
      call.count = is_uneven ? 0 : COUNT;
      call.type = PREPOST_UINT64;
      if (is_uneven) {
        call.send_counts = counts[m];
        call.receive_counts = columns[m];
        call.member_count = MEMBERS;
      }
      if (is_ordered) {
        call.op = PREPOST_USER_ORDERED;
        call.operation = append;
        call.operation_context = &calls_done;
      }
      CHECK(prepost_call(members[m].session, number, &call, done, &calls_done) == PREPOST_OK);
    }
    wait_until(all_called);
    for (uint32_t m = 0; m < MEMBERS; ++m) {
      uint32_t at = 0;
      for (uint32_t from = 0; from < MEMBERS; ++from) {
        for (uint32_t i = 0; i < (is_uneven ? counts[from][m] : COUNT); ++i, ++at) {
          const uint64_t sum =
              element(0, from, i) + element(1, from, i) + element(2, from, i); /* for `from` */
          uint64_t expected = 0;
          const int is_first = from == 0;
          switch (kind) {
            case PREPOST_BROADCAST:
              expected = is_first && m != root ? element(root, 0, i) : 0;
              break;
            case PREPOST_REDUCE:
              expected = !is_first || m != root ? 0 : is_ordered ? 123 : sum;
              break;
            case PREPOST_ALLREDUCE:
              expected = is_first ? sum : 0;
              break;
            case PREPOST_REDUCE_SCATTER:
              expected = is_first ? element(0, m, i) + element(1, m, i) + element(2, m, i) : 0;
              break;
            case PREPOST_ALLGATHER:
              expected = element(from, 0, i);
              break;
            case PREPOST_GATHER:
              expected = m == root ? element(from, 0, i) : 0;
              break;
            case PREPOST_SCATTER:
              expected = is_first ? element(root, m, i) : 0;
              break;
            case PREPOST_ALLTOALL:
              expected = element(from, m, i);
              break;
            case PREPOST_BARRIER:
              break;
          }
          CHECK(out[m][at] == expected);
        }
      }
    }
  }
  for (int m = 0; m < MEMBERS; ++m)
    CHECK(prepost_destroy_group(members[m].session, number) == PREPOST_OK);
  wait_until(all_closed);
}

int main(void) {
  for (int i = 0; i < MEMBERS; ++i) {
    snprintf(hosts[i], sizeof hosts[i], "127.%d.%d.%d", 200 + i, (int)(getpid() >> 8 & 255),
             (int)(getpid() & 255));
    addresses[i].host = hosts[i];
    addresses[i].port = PREPOST_PORT;
  }
  check_options();

  /* Nobody knows yet where member 1 listens. */
  addresses[1].port = 0;
  for (uint32_t i = 0; i < MEMBERS; ++i) {
    prepost_session_options options = options_of(i);
    options.own_thread = i != 2;
    if (i != 1) addresses[1].host = NULL;
    CHECK(prepost_session_open(&options, &members[i].session) == PREPOST_OK);
    addresses[1].host = hosts[1];
  }
  addresses[1].port = prepost_session_port(members[1].session);
  CHECK(addresses[1].port != 0);
  CHECK(prepost_set_address(members[1].session, 1, &addresses[1]) == PREPOST_USAGE);
  CHECK(prepost_set_address(members[0].session, 1, NULL) == PREPOST_USAGE);
  CHECK(prepost_set_address(members[0].session, 1, &addresses[1]) == PREPOST_OK);
  CHECK(prepost_set_address(members[2].session, 1, &addresses[1]) == PREPOST_OK);
  CHECK(prepost_memory_pool_make(BYTES, 2, &pool) == PREPOST_OK);
  check_group_options();
  create_groups(7);
  unsigned char* message = malloc(BYTES);
  CHECK(message != NULL);
  for (size_t i = 0; i < BYTES; ++i) message[i] = (unsigned char)(i * 2654435761u >> 11);
  uint64_t number = 99;
  const struct iovec both[2] = {{NULL, 0}, {message, BYTES}}, bad[2] = {{message, 1}, {NULL, 1}};
  CHECK(prepost_send_many(members[0].session, 7, bad, 2, &number) == PREPOST_USAGE && number == 99);
  CHECK(prepost_send_many(members[0].session, 7, NULL, 1, NULL) == PREPOST_USAGE);
  CHECK(prepost_send_many(NULL, 7, both, 2, NULL) == PREPOST_USAGE);
  CHECK(prepost_send_many(members[0].session, 7, both, 2, &number) == PREPOST_OK && number == 0);
  CHECK(prepost_send(members[1].session, 7, message, BYTES, NULL) == PREPOST_USAGE);
  CHECK(prepost_send(members[0].session, 7, NULL, 1, NULL) == PREPOST_USAGE);
  wait_until(all_completed);
  for (int i = 1; i < MEMBERS; ++i)
    CHECK(members[i].last_bytes == BYTES && memcmp(members[i].memory, message, BYTES) == 0);
  CHECK(members[2].has_refused && prepost_session_resume(NULL) == PREPOST_USAGE);
  CHECK(prepost_memory_pool_free_buffers(pool) == 1);
  CHECK(prepost_memory_pool_give(pool, members[1].memory) == PREPOST_OK);
  CHECK(prepost_memory_pool_give(pool, members[1].memory) == PREPOST_USAGE);
  members[1].memory = NULL;
  wait_until(all_opened);
  wait_until(root_delivered);
  for (int i = 0; i < MEMBERS; ++i)
    CHECK(prepost_barrier(members[i].session, 7, passed, &members[i]) == PREPOST_OK);
  wait_until(all_passed);
  for (int i = 0; i < MEMBERS; ++i)
    CHECK(prepost_destroy_group(members[i].session, 7) == PREPOST_OK);
  wait_until(all_closed);
  CHECK(prepost_destroy_group(members[0].session, 7) == PREPOST_USAGE);

  CHECK(prepost_abort_group(members[0].session, 7, "late") == PREPOST_USAGE);
  CHECK(prepost_abort_group(NULL, 7, "") == PREPOST_USAGE);

  check_calls(9);

  /* The root aborts: the others hear why. */
  for (int i = 0; i < MEMBERS; ++i) members[i].opened = 0;
  create_groups(8);
  wait_until(all_opened);
  CHECK(prepost_abort_group(members[0].session, 8, "enough") == PREPOST_OK);
  wait_until(others_failed);
  for (int i = 1; i < MEMBERS; ++i) {
    CHECK(members[i].code == PREPOST_REJECTED || members[i].code == PREPOST_ENVIRONMENT);
    CHECK(strstr(members[i].cause, "member 0 has aborted the group: enough") != NULL);
    CHECK(members[i].failed_member == 0);
    prepost_session_close(members[i].session);
    free(members[i].memory);
  }
  prepost_session_close(members[0].session);
  free(message);
  prepost_memory_pool_close(pool);
  return 0;
}
