// SPDX-License-Identifier: Apache-2.0
//
// prepost/prepost_c.h over prepost/prepost.h: structs and function pointers become options and
// functions, a Status becomes a code and a text of the thread.
#include "prepost/prepost_c.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "prepost/prepost.h"
#include "runtime/group/group_key.h"

struct prepost_session {
  std::unique_ptr<prepost::Session> session;
};
struct prepost_memory_pool {
  std::shared_ptr<prepost::MemoryPool> pool;
};

namespace prepost {
namespace {

using std::chrono::milliseconds;

/// What prepost_last_error() returns.
std::string& LastError() {
  thread_local std::string text;
  return text;
}

prepost_code CodeOf(StatusCode code) { return static_cast<prepost_code>(code); }

/// Runs `call`, which returns a Status; nothing is thrown at a caller in C.
template <typename Call>
prepost_code Returned(Call call) {
  try {
    const Status status = call();
    if (!status.ok()) LastError() = status.ToString();
    return CodeOf(status.code());
  } catch (const std::bad_alloc&) {
    LastError().assign("no memory");  // fits into the string itself
    return PREPOST_ENVIRONMENT;
  } catch (const std::exception& error) {
    LastError().assign(error.what());
    return PREPOST_ENVIRONMENT;
  }
}

/// Stores `defaults` in a caller's struct of `bytes` bytes, which may be older or newer than ours.
template <typename Struct>
void Init(Struct* to, size_t bytes, Struct defaults) {
  defaults.struct_bytes = bytes;
  std::memset(to, 0, bytes);
  std::memcpy(to, &defaults, std::min(bytes, sizeof defaults));
}

/// The caller's struct, with the defaults of fields that its header did not have yet; the first
/// version had `first_bytes`. What a newer header added must be 0, since it would have no effect.
template <typename Struct>
Status Read(const Struct* from, Struct defaults, size_t first_bytes, const char* what, Struct* to) {
  if (from == nullptr || from->struct_bytes < first_bytes) {
    return UsageError(std::string(what) + " were not initialised by their _init function");
  }
  const size_t known = std::min(from->struct_bytes, sizeof(Struct));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  if (std::any_of(bytes + known, bytes + from->struct_bytes,
                  [](unsigned char byte) { return byte != 0; })) {
    return UsageError(std::string(what) + " ask for something that this version of libprepost " +
                      "does not have");
  }
  *to = defaults;
  std::memcpy(static_cast<void*>(to), from, known);
  return {};
}

prepost_session_options DefaultSession() {
  const SessionOptions defaults;
  prepost_session_options options = {};
  options.waiting = static_cast<prepost_waiting>(defaults.waiting);
  options.idle_max_ms = static_cast<uint32_t>(defaults.idle_max.count());
  options.failure_max_ms = static_cast<uint32_t>(defaults.failure_max.count());
  options.connect_max_ms = static_cast<uint32_t>(defaults.connect_max.count());
  options.local_copies = defaults.local_copies ? 1 : 0;
  options.own_thread = defaults.own_thread ? 1 : 0;
  return options;
}

static_assert(static_cast<int>(Waiting::kPolling) == PREPOST_POLLING &&
              static_cast<int>(Waiting::kHybrid) == PREPOST_HYBRID &&
              static_cast<int>(Waiting::kInterrupt) == PREPOST_INTERRUPT);
static_assert(static_cast<int>(StatusCode::kRejected) == PREPOST_REJECTED &&
              static_cast<int>(StatusCode::kUsage) == PREPOST_USAGE &&
              static_cast<int>(StatusCode::kEnvironment) == PREPOST_ENVIRONMENT &&
              static_cast<int>(StatusCode::kInterrupted) == PREPOST_INTERRUPTED);

Address AddressOf(const prepost_address& from) {
  return {.host = from.host == nullptr ? "" : from.host, .port = from.port};
}

Result<SessionOptions> OptionsOf(const prepost_session_options* given) {
  prepost_session_options from;
  PREPOST_RETURN_IF_ERROR(Read(given, DefaultSession(), offsetof(prepost_session_options, sites),
                               "options of a session", &from));
  if (from.members == nullptr && from.member_count > 0)
    return UsageError("there are members, but no addresses of them");
  if (from.secret == nullptr && from.secret_bytes > 0)
    return UsageError("the secret has bytes but no memory");
  const auto waiting = static_cast<int>(from.waiting);
  if (waiting < PREPOST_POLLING || waiting > PREPOST_INTERRUPT)
    return UsageError("waiting is none of prepost_waiting: " + std::to_string(waiting));
  SessionOptions options;
  options.self = from.self;
  for (uint32_t i = 0; i < from.member_count; ++i)
    options.members.push_back(AddressOf(from.members[i]));
  if (from.secret != nullptr)
    options.secret.assign(static_cast<const char*>(from.secret), from.secret_bytes);
  if (from.bind != nullptr) options.bind = from.bind;
  options.waiting = static_cast<Waiting>(waiting);
  options.idle_max = milliseconds(from.idle_max_ms);
  options.failure_max = milliseconds(from.failure_max_ms);
  options.connect_max = milliseconds(from.connect_max_ms);
  options.local_copies = from.local_copies != 0;
  options.own_thread = from.own_thread != 0;
  for (uint32_t i = 0; from.sites != nullptr && i < from.member_count; ++i)
    options.sites.emplace_back(from.sites[i] == nullptr ? "" : from.sites[i]);
  if (from.streams > UINT16_MAX)
    return UsageError("a connection cannot have " + std::to_string(from.streams) + " streams");
  options.paths.streams = static_cast<uint16_t>(from.streams);
  options.paths.pace = from.pace;
  if (from.congestion != nullptr) options.paths.congestion = from.congestion;
  return options;
}

GroupCallbacks CallbacksOf(const prepost_group_callbacks& from) {
  void* const context = from.context;
  GroupCallbacks to;
  if (from.incoming != nullptr) {
    to.incoming = [context, call = from.incoming](uint64_t message, uint64_t bytes) {
      return call(context, message, bytes);
    };
  }
  if (from.pool != nullptr) to.pool = from.pool->pool;
  if (from.complete != nullptr) {
    to.complete = [context, call = from.complete](uint64_t message, void* memory, uint64_t bytes) {
      call(context, message, memory, bytes);
    };
  }
  if (from.delivered != nullptr) {
    to.delivered = [context, call = from.delivered](uint64_t message) { call(context, message); };
  }
  if (from.opened != nullptr) to.opened = [context, call = from.opened] { call(context); };
  if (from.closed != nullptr) to.closed = [context, call = from.closed] { call(context); };
  if (from.failed_members != nullptr) {
    to.failed = [context, call = from.failed_members](const Status& cause,
                                                      const FailedMembers& where) {
      call(context, CodeOf(cause.code()), cause.ToString().c_str(), where.members.data(),
           static_cast<uint32_t>(where.members.size()));
    };
  } else if (from.failed != nullptr) {
    to.failed = [context, call = from.failed](const Status& cause, std::optional<uint32_t> member) {
      call(context, CodeOf(cause.code()), cause.ToString().c_str(),
           member.value_or(PREPOST_NO_MEMBER));
    };
  }
  return to;
}

Status CreateGroup(prepost_session* session, uint64_t number, const uint32_t* members,
                   uint32_t member_count, uint32_t root, const prepost_group_options* given,
                   const prepost_group_callbacks* given_callbacks) {
  if (session == nullptr) return UsageError("there is no session");
  if (members == nullptr && member_count > 0)
    return UsageError("a group has members, but no memory with their numbers");
  GroupOptions options;
  if (given != nullptr) {
    prepost_group_options from;
    PREPOST_RETURN_IF_ERROR(
        Read(given, {}, offsetof(prepost_group_options, plan), "options of a group", &from));
    if (from.algorithm != nullptr) options.algorithm = from.algorithm;
    options.block_bytes = from.block_bytes;
    options.notify_delivered = from.notify_delivered != 0;
    if (from.plan != nullptr) options.plan = from.plan;
    if (from.device != nullptr) options.device = from.device;
    if (from.executor != nullptr) options.executor = from.executor;
    options.sync = from.sync != 0;
    options.calls = from.calls != 0;
    options.deterministic = from.deterministic != 0;
    options.seal = from.seal != 0;
    options.root_connects = from.root_connects != 0;
  }
  prepost_group_callbacks callbacks;
  PREPOST_RETURN_IF_ERROR(Read(given_callbacks, {}, offsetof(prepost_group_callbacks, pool),
                               "callbacks of a group", &callbacks));
  return session->session->CreateGroup(number, std::vector(members, members + member_count), root,
                                       options, CallbacksOf(callbacks));
}

static_assert(static_cast<int>(CollectiveKind::kBarrier) == PREPOST_BARRIER &&
              static_cast<int>(CollectiveKind::kMulticast) == PREPOST_BROADCAST &&
              static_cast<int>(CollectiveKind::kAlltoall) == PREPOST_ALLTOALL);
static_assert(static_cast<int>(ElementType::kInt8) == PREPOST_INT8 &&
              static_cast<int>(ElementType::kFloat64) == PREPOST_FLOAT64);
static_assert(static_cast<int>(CombineOp::kSum) == PREPOST_SUM &&
              static_cast<int>(CombineOp::kUserOrdered) == PREPOST_USER_ORDERED);

prepost_call_options DefaultCall() {
  prepost_call_options options = {};
  options.kind = PREPOST_BARRIER;
  options.type = PREPOST_UINT8;
  options.op = PREPOST_SUM;
  return options;
}

Result<Call> CallFrom(const prepost_call_options* given) {
  prepost_call_options from;
  PREPOST_RETURN_IF_ERROR(
      Read(given, DefaultCall(), sizeof(prepost_call_options), "options of a call", &from));
  const auto check = [](const char* what, int value, int low, int high) {
    return value >= low && value <= high
               ? Status()
               : UsageError(std::string(what) + " is none: " + std::to_string(value));
  };
  PREPOST_RETURN_IF_ERROR(check("kind", from.kind, PREPOST_BROADCAST, PREPOST_BARRIER));
  PREPOST_RETURN_IF_ERROR(check("type", from.type, PREPOST_INT8, PREPOST_FLOAT64));
  PREPOST_RETURN_IF_ERROR(check("op", from.op, PREPOST_SUM, PREPOST_USER_ORDERED));
  Call call = {.kind = static_cast<CollectiveKind>(from.kind),
               .root = from.root,
               .input = from.input,
               .output = from.output,
               .count = from.count,
               .type = static_cast<ElementType>(from.type),
               .op = static_cast<CombineOp>(from.op)};
  if (from.operation != nullptr) {
    call.operation = [operation = from.operation, context = from.operation_context](
                         void* out, const void* own, const void* other, uint64_t count) {
      operation(context, out, own, other, count);
    };
  }
  const auto take = [&](const uint64_t* numbers) {
    return numbers == nullptr ? std::vector<uint64_t>()
                              : std::vector(numbers, numbers + from.member_count);
  };
  call.send_counts = take(from.send_counts);
  call.send_places = take(from.send_places);
  call.receive_counts = take(from.receive_counts);
  call.receive_places = take(from.receive_places);
  return call;
}

}  // namespace
}  // namespace prepost

using prepost::Returned;
using prepost::Status;
using prepost::UsageError;

const char* prepost_last_error(void) { return prepost::LastError().c_str(); }

void prepost_session_options_init(prepost_session_options* options, size_t struct_bytes) {
  prepost::Init(options, struct_bytes, prepost::DefaultSession());
}

void prepost_group_options_init(prepost_group_options* options, size_t struct_bytes) {
  prepost::Init(options, struct_bytes, {});
}

void prepost_call_options_init(prepost_call_options* options, size_t struct_bytes) {
  prepost::Init(options, struct_bytes, prepost::DefaultCall());
}

prepost_code prepost_call(prepost_session* session, uint64_t group,
                          const prepost_call_options* options,
                          void (*done)(void* context, prepost_code code, const char* cause),
                          void* context) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    const prepost::Result<prepost::Call> call = prepost::CallFrom(options);
    if (!call.ok()) return call.status();
    if (done == nullptr) return session->session->Await(group, *call).get();
    return session->session->Call(group, *call, [done, context](const Status& status) {
      done(context, prepost::CodeOf(status.code()), status.ok() ? "" : status.ToString().c_str());
    });
  });
}

void prepost_group_callbacks_init(prepost_group_callbacks* callbacks, size_t struct_bytes) {
  prepost::Init(callbacks, struct_bytes, {});
}

prepost_code prepost_memory_pool_make(uint64_t buffer_bytes, uint32_t buffers,
                                      prepost_memory_pool** pool) {
  return Returned([&]() -> Status {
    if (pool == nullptr) return UsageError("there is nowhere to store the pool");
    auto made = prepost::MemoryPool::Make(buffer_bytes, buffers);
    if (!made.ok()) return made.status();
    *pool = new prepost_memory_pool{*std::move(made)};
    return {};
  });
}

prepost_code prepost_memory_pool_give(prepost_memory_pool* pool, void* memory) {
  return Returned([&]() -> Status {
    if (pool == nullptr) return UsageError("there is no pool");
    return pool->pool->Give(memory);
  });
}

uint32_t prepost_memory_pool_free_buffers(const prepost_memory_pool* pool) {
  return pool == nullptr ? 0 : pool->pool->free_buffers();
}

void prepost_memory_pool_close(prepost_memory_pool* pool) { delete pool; }

prepost_code prepost_session_open(const prepost_session_options* options,
                                  prepost_session** session) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is nowhere to store the session");
    prepost::Result<prepost::SessionOptions> read = prepost::OptionsOf(options);
    if (!read.ok()) return read.status();
    auto opened = prepost::Session::Open(*read);
    prepost::Wipe(read->secret);
    if (!opened.ok()) return opened.status();
    *session = new prepost_session{*std::move(opened)};
    return {};
  });
}

void prepost_session_close(prepost_session* session) { delete session; }

uint16_t prepost_session_port(const prepost_session* session) { return session->session->port(); }

prepost_code prepost_set_address(prepost_session* session, uint32_t member,
                                 const prepost_address* address) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    if (address == nullptr) return UsageError("there is no address");
    return session->session->SetAddress(member, prepost::AddressOf(*address));
  });
}

prepost_code prepost_create_group(prepost_session* session, uint64_t number,
                                  const uint32_t* members, uint32_t member_count, uint32_t root,
                                  const prepost_group_options* options,
                                  const prepost_group_callbacks* callbacks) {
  return Returned([&] {
    return prepost::CreateGroup(session, number, members, member_count, root, options, callbacks);
  });
}

prepost_code prepost_send(prepost_session* session, uint64_t group, const void* data,
                          uint64_t bytes, uint64_t* message) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    const prepost::Result<uint64_t> sent = session->session->Send(group, data, bytes);
    if (sent.ok() && message != nullptr) *message = *sent;
    return sent.status();
  });
}

prepost_code prepost_send_many(prepost_session* session, uint64_t group, const struct iovec* parts,
                               size_t part_count, uint64_t* message) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    if (parts == nullptr && part_count > 0) return UsageError("there are no parts");
    std::vector<prepost::MessagePart> all(part_count);
    for (size_t i = 0; i < part_count; ++i)
      all[i] = {.data = parts[i].iov_base, .bytes = parts[i].iov_len};
    const prepost::Result<uint64_t> sent = session->session->SendMany(group, all);
    if (sent.ok() && message != nullptr) *message = *sent;
    return sent.status();
  });
}

prepost_code prepost_barrier(prepost_session* session, uint64_t group,
                             void (*passed)(void* context), void* context) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    return session->session->Barrier(group, [passed, context] {
      if (passed != nullptr) passed(context);
    });
  });
}

prepost_code prepost_destroy_group(prepost_session* session, uint64_t group) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    return session->session->DestroyGroup(group);
  });
}

prepost_code prepost_abort_group(prepost_session* session, uint64_t group, const char* why) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    return session->session->AbortGroup(group, why == nullptr ? "" : why);
  });
}

prepost_code prepost_session_resume(prepost_session* session) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    session->session->Resume();
    return {};
  });
}

prepost_code prepost_group_paths(const prepost_session* session, uint64_t group, uint32_t* memory,
                                 uint32_t* network, uint32_t* forbidden) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    const prepost::Result<prepost::PeerPaths> paths = session->session->Paths(group);
    if (!paths.ok()) return paths.status();
    if (memory != nullptr) *memory = paths->memory;
    if (network != nullptr) *network = paths->network;
    if (forbidden != nullptr) *forbidden = paths->forbidden;
    return {};
  });
}

prepost_code prepost_group_short_paths(const prepost_session* session, uint64_t group,
                                       uint32_t* memory, uint32_t* network) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    const prepost::Result<prepost::PeerPaths> paths = session->session->Paths(group);
    if (!paths.ok()) return paths.status();
    if (memory != nullptr) *memory = paths->short_memory;
    if (network != nullptr) *network = paths->short_network;
    return {};
  });
}

prepost_code prepost_group_note(const prepost_session* session, uint64_t group, uint32_t index,
                                char* text, size_t text_bytes) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    if (text == nullptr || text_bytes == 0) return UsageError("there is no room for a text");
    const prepost::Result<std::vector<std::string>> notes = session->session->Notes(group);
    if (!notes.ok()) return notes.status();
    const std::string note = index < notes->size() ? (*notes)[index] : "";
    const size_t bytes = std::min(note.size(), text_bytes - 1);
    std::memcpy(text, note.data(), bytes);
    text[bytes] = 0;
    return {};
  });
}

int prepost_session_fd(const prepost_session* session) { return session->session->fd(); }

prepost_code prepost_session_poll(prepost_session* session, int64_t timeout_ms) {
  return Returned([&]() -> Status {
    if (session == nullptr) return UsageError("there is no session");
    return session->session->Poll(std::chrono::milliseconds(timeout_ms));
  });
}
