// SPDX-License-Identifier: Apache-2.0
//
// prepost.h for C99 and for whatever calls C: the same sessions and groups, functions and errors.
// docs/library.md explains them, examples/library/broadcast.c is a program.
//
//     prepost_session_options options;
//     prepost_session_options_init(&options, sizeof options);
//     options.self = 1;
//     options.members = addresses;
//     options.member_count = 3;
//     options.secret = secret;
//     options.secret_bytes = sizeof secret;
//     prepost_session* session;
//     if (prepost_session_open(&options, &session) != PREPOST_OK) puts(prepost_last_error());
//
// Structs of options begin with their size, which *_init() stores with every default: a program
// that was built with an older header runs with a newer library. All memory that is passed in is
// the caller's and is copied, except that of messages. Functions may be called by any thread, also
// in callbacks, except that prepost_session_poll() is one thread's and prepost_session_close() none
// of the callbacks'.
#ifndef PREPOST_PREPOST_C_H_
#define PREPOST_PREPOST_C_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* NOLINTBEGIN(readability-identifier-naming): names as C has them. */
#ifdef __cplusplus
extern "C" {
#endif

/** What went wrong; the value is the exit code of the command. */
typedef enum prepost_code {
  PREPOST_OK = 0,
  PREPOST_REJECTED = 1,     /**< an input that is wrong, or a check or transfer that failed */
  PREPOST_USAGE = 2,        /**< the call itself */
  PREPOST_ENVIRONMENT = 3,  /**< something this machine lacks: a permission, a limit, a port */
  PREPOST_INTERRUPTED = 130 /**< the user stopped it */
} prepost_code;

/** What the last function that failed in this thread reported, in lower case, without a final
 * period; "" before. Valid until the next failure in this thread. Never null. */
const char* prepost_last_error(void);

/** Where a member listens. At this member port 0 means any that is free, and no host all addresses
 * of this machine. */
typedef struct prepost_address {
  const char* host; /**< a name or an address; IPv6 without brackets */
  uint16_t port;    /**< PREPOST_PORT unless you chose another */
} prepost_address;

#define PREPOST_PORT 7811

/** How a session waits for something to happen. */
typedef enum prepost_waiting {
  PREPOST_POLLING = 0,  /**< polls while a message is under way, and idle_max_ms after the last */
  PREPOST_HYBRID = 1,   /**< polls for as long as that has lately paid, idle_max_ms at most */
  PREPOST_INTERRUPT = 2 /**< sleeps whenever there is nothing to do */
} prepost_waiting;

typedef struct prepost_session_options {
  size_t struct_bytes;
  uint32_t self; /**< this member's number: its place in `members` */
  uint32_t member_count;
  /** By number, as many at all members; one alone is fine. Those that are not known yet have no
   * host: prepost_set_address() says it later. */
  const prepost_address* members;
  /** What members prove to each other that they have: 16 to 4096 bytes, best random ones. Whoever
   * has it is trusted. Messages are encrypted in groups with `seal` alone. */
  const void* secret;
  size_t secret_bytes;
  /** Address to listen at. Null or "": the member's own or, if that is a name, all of this
   * machine. */
  const char* bind;
  /** How the thread of the session waits or, without own_thread, the caller's in
   * prepost_session_poll(). [PREPOST_HYBRID] */
  prepost_waiting waiting;
  uint32_t idle_max_ms;    /**< [50] */
  uint32_t failure_max_ms; /**< every survivor of a failure hears of it within, but for the
                              exceptions of prepost.h; at least 100 [2000] */
  uint32_t connect_max_ms; /**< how long a group waits for members that are not there yet [30000] */
  int local_copies;        /**< between members on one machine, through memory [1] */
  /** 1: a thread of the session moves messages and calls back. 0: the caller does both, in
   * prepost_session_poll(), whenever prepost_session_fd() is readable. [1] */
  int own_thread;
  /** The name of each member's site, by number, the same at all members; null: all are at one
   * (prepost::SessionOptions::sites). [null] */
  const char* const* sites;
  /** How blocks go over long paths: prepost::PathOptions. Streams of a connection, 1 to 16; 0: as
   * many as are good [0]. What this member sends to another at most, bytes/s; 0: no limit [0]. The
   * kernel's congestion control by name; null: the system's [null]. */
  uint32_t streams;
  double pace;
  const char* congestion;
} prepost_session_options;

/** To be the same at all members of the group. */
typedef struct prepost_group_options {
  size_t struct_bytes;
  const char* algorithm; /**< a schedule of `prepost compile --algorithm`; null: "auto" [null] */
  uint64_t block_bytes;  /**< 0: chosen for each message [0] */
  int notify_delivered;  /**< `delivered` is called; costs a notice from every member [0] */
  /** A file of `prepost compile -o` instead of algorithm and block_bytes: a rolled plan, for
   * messages of any size, or a flat one, for messages of its own size; null: none [null] */
  const char* plan;
  /** What messages go over, "mlx5_0", "verbs:NAME", "fabric:PROVIDER" or "emulated"
   * (prepost::GroupOptions::device); null: none, over TCP [null] */
  const char* device;
  const char* executor; /**< over a device: "offload", "cpu"; null: "auto" [null] */
  /** 1: `incoming` returns mappings of files, and a message is complete when it is on the file's
   * disk. [0] */
  int sync;
  /** 1: the group is for prepost_call() instead of prepost_send(). [0] */
  int calls;
  /** 1: of such a group, sums of floats do not depend on their size. [0] */
  int deterministic;
  /** 1: all that members say to each other in the group is encrypted and authenticated
   * (prepost::GroupOptions::seal); without a device. [0] */
  int seal;
  /** 1: the root opens all connections, with algorithm "sequential"
   * (prepost::GroupOptions::root_connects). [0] */
  int root_connects;
} prepost_group_options;

/** Buffers of one size, for messages of one group or several. */
typedef struct prepost_memory_pool prepost_memory_pool;

#define PREPOST_NO_MEMBER UINT32_MAX
/** What `incoming` may return in place of memory. */
#define PREPOST_NOT_YET ((void*)UINTPTR_MAX)

/** All of them may be null, except `incoming` at members that receive. They are called one at a
 * time, by the session's thread or in prepost_session_poll(), with `context`. Messages of a group
 * are numbered from 0. */
typedef struct prepost_group_callbacks {
  size_t struct_bytes;
  void* context;
  /** A message of `bytes` bytes begins; the memory for it, which is the library's until `complete`
   * or `failed`. Null, unless there are 0 bytes, ends the group: this member cannot take it.
   * PREPOST_NOT_YET: the message waits, and so do its senders; nothing fails. `incoming` is called
   * for it again after prepost_session_resume(), or earlier. */
  void* (*incoming)(void* context, uint64_t message, uint64_t bytes);
  /** Elsewhere than at the root: the message is there, in `memory`. At the root: its memory may be
   * reused. */
  void (*complete)(void* context, uint64_t message, void* memory, uint64_t bytes);
  /** At the root: all members have the message. See prepost_group_options. */
  void (*delivered)(void* context, uint64_t message);
  /** This member's connections of the group are there. */
  void (*opened)(void* context);
  /** After prepost_destroy_group() at all members: all messages are there, at all members. */
  void (*closed)(void* context);
  /** Something failed anywhere in the group; `cause`, which is valid until this returns, names it,
   * and `member` is where: the member to leave out, or PREPOST_NO_MEMBER where that is not known.
   * Called once, and then nothing of the group is called any more: all memory is the caller's
   * again, the number is free, and a new group of the survivors can be created at once. This
   * member has the messages that `complete` was called for, and no others. */
  void (*failed)(void* context, prepost_code code, const char* cause, uint32_t member);
  /** Instead of `incoming`: each message takes a buffer, which is to be given back after
   * `complete`. While none is free the message waits; one that is larger than a buffer ends the
   * group. After `failed` the buffer of a message under way is back in the pool. The group keeps
   * the pool. */
  prepost_memory_pool* pool;
  /** Instead of `failed`, where it is not null: `members`, which are valid until this returns, are
   * those to leave out: first the one where it failed, then all that are known to be gone as well;
   * none where that is not known. */
  void (*failed_members)(void* context, prepost_code code, const char* cause,
                         const uint32_t* members, uint32_t member_count);
} prepost_group_callbacks;

/** Fill in `struct_bytes` (sizeof the struct) and the defaults, which are in brackets above. */
void prepost_session_options_init(prepost_session_options* options, size_t struct_bytes);
void prepost_group_options_init(prepost_group_options* options, size_t struct_bytes);
void prepost_group_callbacks_init(prepost_group_callbacks* callbacks, size_t struct_bytes);

/** `*pool` is set only on success, and is to be freed. Errors: PREPOST_USAGE: no buffers;
 * PREPOST_ENVIRONMENT: no memory. */
prepost_code prepost_memory_pool_make(uint64_t buffer_bytes, uint32_t buffers,
                                      prepost_memory_pool** pool);
/** Takes back what `complete` was called with; null is nothing. Errors (PREPOST_USAGE): it is no
 * buffer of this pool, or is free. */
prepost_code prepost_memory_pool_give(prepost_memory_pool* pool, void* memory);
/** How many buffers are free. */
uint32_t prepost_memory_pool_free_buffers(const prepost_memory_pool* pool);
/** Its buffers go when no group has it any more. Null: does nothing. */
void prepost_memory_pool_close(prepost_memory_pool* pool);

/** One member of a session. */
typedef struct prepost_session prepost_session;

/** Listens. `*session` is set only on success, and is to be closed. Errors: PREPOST_USAGE: options;
 * PREPOST_ENVIRONMENT: the port is taken, no memory. It and prepost_create_group() raise this
 * process's limit of open files, by as many as they may need, up to the hard limit. */
prepost_code prepost_session_open(const prepost_session_options* options,
                                  prepost_session** session);
/** Leaves all groups; where they were not destroyed, the other members hear of a failure. Nothing
 * is called back when it has returned. Null: does nothing. In a process that was forked since it
 * was opened a session is nothing any more: its files are closed there, calls are PREPOST_USAGE,
 * prepost_session_fd() is -1, and this frees nothing. */
void prepost_session_close(prepost_session* session);

/** The port that it listens at. */
uint16_t prepost_session_port(const prepost_session* session);
/** Where another member listens, for the groups that are created from now on. Errors
 * (PREPOST_USAGE): no such member, this member itself, no host or no port. */
prepost_code prepost_set_address(prepost_session* session, uint32_t member,
                                 const prepost_address* address);

/** To be called by all `members` (numbers of the session's members, this one among them), each in
 * its own time, with the same arguments but for the callbacks. `number` is free here. `options` may
 * be null: the defaults. Returns at once: messages may be sent before the group is open. Errors
 * (PREPOST_USAGE): a number in use, members twice or unknown, options. */
prepost_code prepost_create_group(prepost_session* session, uint64_t number,
                                  const uint32_t* members, uint32_t member_count, uint32_t root,
                                  const prepost_group_options* options,
                                  const prepost_group_callbacks* callbacks);
/** At the root: queues a message; the one after the last, whose number is stored in `*message` if
 * that is not null. `data` must stay as it is until `complete` (or `failed`). Errors
 * (PREPOST_USAGE): no such group, not its root, it is being destroyed; PREPOST_REJECTED: it has
 * failed, and `failed`, which has not returned yet, names the same cause. */
prepost_code prepost_send(prepost_session* session, uint64_t group, const void* data,
                          uint64_t bytes, uint64_t* message);
/** Several messages at once, one right after the other: nobody's come between. `*message` becomes
 * the first one's number. Errors: as prepost_send(), and then none is sent. */
prepost_code prepost_send_many(prepost_session* session, uint64_t group, const struct iovec* parts,
                               size_t part_count, uint64_t* message);
/** `passed` is called once all members have called prepost_barrier() as often as this one has. It
 * says nothing about messages. One that not all members have called when the group is closed, or
 * fails, does not pass: `passed` is never called. Errors: as prepost_send(), but anywhere. */
prepost_code prepost_barrier(prepost_session* session, uint64_t group,
                             void (*passed)(void* context), void* context);
/** Collectives: prepost::CollectiveKind, ElementType and CombineOp, with the same numbers. */
typedef enum prepost_kind {
  PREPOST_BROADCAST = 0,
  PREPOST_REDUCE = 1,
  PREPOST_ALLREDUCE = 2,
  PREPOST_REDUCE_SCATTER = 3,
  PREPOST_ALLGATHER = 4,
  PREPOST_GATHER = 5,
  PREPOST_SCATTER = 6,
  PREPOST_ALLTOALL = 7,
  PREPOST_BARRIER = 8
} prepost_kind;
typedef enum prepost_type {
  PREPOST_INT8 = 1,
  PREPOST_UINT8 = 2,
  PREPOST_INT16 = 3,
  PREPOST_UINT16 = 4,
  PREPOST_INT32 = 5,
  PREPOST_UINT32 = 6,
  PREPOST_INT64 = 7,
  PREPOST_UINT64 = 8,
  PREPOST_FLOAT16 = 9,
  PREPOST_BFLOAT16 = 10,
  PREPOST_FLOAT32 = 11,
  PREPOST_FLOAT64 = 12
} prepost_type;
typedef enum prepost_op {
  PREPOST_SUM = 1,
  PREPOST_PROD = 2,
  PREPOST_MIN = 3,
  PREPOST_MAX = 4,
  PREPOST_AND = 5,
  PREPOST_OR = 6,
  PREPOST_XOR = 7,
  PREPOST_USER = 8,        /**< `operation`, which commutes */
  PREPOST_USER_ORDERED = 9 /**< one that does not: operands are in the order of the group's list */
} prepost_op;

/** A call of a collective (prepost::Call, which says what input and output are). */
typedef struct prepost_call_options {
  size_t struct_bytes;
  prepost_kind kind;
  uint32_t root; /**< a member: of broadcast, reduce, gather and scatter [0] */
  const void* input;
  void* output;
  uint64_t count;    /**< of elements of a part [0] */
  prepost_type type; /**< [PREPOST_UINT8] */
  prepost_op op;     /**< [PREPOST_SUM] */
  /** out[i] = own[i] op other[i] for `count` elements; called by the session's thread or in
   * prepost_session_poll(), with `operation_context`. [null] */
  void (*operation)(void* context, void* out, const void* own, const void* other, uint64_t count);
  void* operation_context;
  /** Of an alltoall, instead of count: elements for and from each member of the group's list, and
   * where they begin; null: count, and one part after the other. [null] */
  const uint64_t* send_counts;
  const uint64_t* send_places;
  const uint64_t* receive_counts;
  const uint64_t* receive_places;
  uint32_t member_count; /**< how many numbers each of the four has [0] */
} prepost_call_options;
void prepost_call_options_init(prepost_call_options* options, size_t struct_bytes);

/** To be called by all members in the same order; many may be under way. `done` is called once,
 * when this member's part is over and the memory is the caller's again: with PREPOST_OK, or with a
 * code and a cause, which is valid until it returns, if the group has failed; then before
 * `failed`; not any more once the session is closed. What was sent may still be on the way: a
 * member that leaves then, without prepost_group_destroy() and `closed`, may take it back. Null
 * `done`: waits for that instead, and returns it; only with own_thread, and not in callbacks.
 * Errors: as prepost_barrier(); PREPOST_USAGE: memory, a type without the operation. */
prepost_code prepost_call(prepost_session* session, uint64_t group,
                          const prepost_call_options* options,
                          void (*done)(void* context, prepost_code code, const char* cause),
                          void* context);

/** Once all members have called it and every message is at every member, `closed` is called at all
 * of them. Errors: as prepost_barrier(). */
prepost_code prepost_destroy_group(prepost_session* session, uint64_t group);
/** Ends the group at once, at all members, also while it is being destroyed: `failed` is called
 * everywhere, here as well, with a cause that names this member and says `why`; null or "": nothing
 * more. Of those that do not have it yet nobody hears that it is over before they create it.
 * Errors: as prepost_barrier(). */
prepost_code prepost_abort_group(prepost_session* session, uint64_t group, const char* why);

/** Has `incoming` be called again for the messages for which it returned PREPOST_NOT_YET, in all
 * groups. */
prepost_code prepost_session_resume(prepost_session* session);

/** How blocks come to this member: from how many peers through memory, from how many over TCP, and
 * how many of the latter are on this machine, but the system does not let this process share memory
 * with them: other users', or all where memory cannot be handed over and Yama's ptrace_scope is 1
 * or more. Known when `opened` is called, before that and over a device all 0. Pointers may be
 * null. Errors: as prepost_barrier(). */
prepost_code prepost_group_paths(const prepost_session* session, uint64_t group, uint32_t* memory,
                                 uint32_t* network, uint32_t* forbidden);

/** With how many neighbours in their tree short messages, which are not moved by plans, go through
 * memory that both map, and over TCP. Both 0: there are no short messages. Otherwise as
 * prepost_group_paths(). */
prepost_code prepost_group_short_paths(const prepost_session* session, uint64_t group,
                                       uint32_t* memory, uint32_t* network);

/** What whoever runs the program may want to know of the group's paths (prepost::Session::Notes()):
 * puts the one with this `index` from 0 on into `text`, cut off at `text_bytes` - 1 bytes; "" where
 * there are no more. Errors: as prepost_barrier(). */
prepost_code prepost_group_note(const prepost_session* session, uint64_t group, uint32_t index,
                                char* text, size_t text_bytes);

/** Without own_thread: readable when prepost_session_poll() has something to do. Programs that do
 * not ask for it spare other members the system calls that make it so. */
int prepost_session_fd(const prepost_session* session);
/** Without own_thread: does what there is to do, callbacks included; waits for something as
 * `waiting` says, up to `timeout_ms` (negative: for ever). Not in callbacks. Errors:
 * PREPOST_ENVIRONMENT. */
prepost_code prepost_session_poll(prepost_session* session, int64_t timeout_ms);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */

#endif /* PREPOST_PREPOST_C_H_ */
