// SPDX-License-Identifier: Apache-2.0
//
// Brings a file from member 0 to all others, in C:
//
//     broadcast SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE FILE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prepost/prepost_c.h"

enum { kMembersMax = 64 };

static struct {
  char* memory;
  uint64_t bytes;
  int is_over, is_failed;
} message;

static void* incoming(void* context, uint64_t number, uint64_t bytes) {
  (void)context, (void)number;
  message.bytes = bytes;
  return message.memory = malloc(bytes + 1);
}

static void closed(void* context) { *(int*)context = 1; }

static void failed(void* context, prepost_code code, const char* cause, uint32_t member) {
  (void)code, (void)member;
  fprintf(stderr, "%s\n", cause);
  message.is_failed = *(int*)context = 1;
}

static char* read_file(const char* path, uint64_t* bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return perror(path), exit(1), NULL;
  *bytes = (uint64_t)ftell(file);
  rewind(file);
  char* memory = malloc(*bytes + 1);
  if (memory == NULL || fread(memory, 1, *bytes, file) != *bytes)
    return perror(path), exit(1), NULL;
  fclose(file);
  return memory;
}

static void check(prepost_code code) {
  if (code == PREPOST_OK) return;
  fprintf(stderr, "%s\n", prepost_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: broadcast SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE FILE\n");
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
  prepost_session_options options;
  prepost_session_options_init(&options, sizeof options);
  options.self = (uint32_t)atoi(argv[1]);
  options.members = addresses;
  options.member_count = count;
  uint64_t secret_bytes;
  options.secret = read_file(argv[3], &secret_bytes);
  options.secret_bytes = secret_bytes;
  options.own_thread = 0;  // this thread moves the message and is called back
  prepost_session* session;
  check(prepost_session_open(&options, &session));

  prepost_group_callbacks callbacks;
  prepost_group_callbacks_init(&callbacks, sizeof callbacks);
  callbacks.context = &message.is_over;
  callbacks.incoming = incoming;
  callbacks.closed = closed;
  callbacks.failed = failed;
  check(prepost_create_group(session, 1, numbers, count, /*root=*/0, NULL, &callbacks));
  if (options.self == 0) {
    message.memory = read_file(argv[4], &message.bytes);
    check(prepost_send(session, 1, message.memory, message.bytes, NULL));
  }
  // Closed means that every member has every message.
  check(prepost_destroy_group(session, 1));
  while (!message.is_over) check(prepost_session_poll(session, -1));
  prepost_session_close(session);
  if (message.is_failed) return 1;
  if (options.self == 0) return 0;
  FILE* out = fopen(argv[4], "wb");
  const int is_written =
      out != NULL && fwrite(message.memory, 1, message.bytes, out) == message.bytes;
  return out != NULL && fclose(out) == 0 && is_written ? 0 : (perror(argv[4]), 1);
}
