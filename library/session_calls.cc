// SPDX-License-Identifier: Apache-2.0
//
// Calls of collectives, checked and handed to the engine.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/combine.h"
#include "library/session_impl.h"
#include "runtime/session/group_call.h"

namespace prepost {
namespace {

/// [begin, end) of addresses.
struct Memory {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool Overlaps(const Memory& other) const { return begin < other.end && other.begin < end; }
};
Memory MemoryOf(const void* data, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(data);
  return {.begin = begin, .end = begin + bytes};
}

/// What a call is at this member: bytes of its input and output, and where they may be one.
struct CallBytes {
  uint64_t input = 0;
  uint64_t output = 0;
  /// In place: where the input begins in the output, or the output in the input.
  std::optional<uint64_t> input_in_output;
  std::optional<uint64_t> output_in_input;
};

CallBytes BytesOf(const CallShape& shape, uint32_t members, NodeId self, bool is_root) {
  const uint64_t part = shape.bytes, all = part * members, own = part * self.value;
  switch (shape.kind) {
    case CollectiveKind::kMulticast:
      return {.input = is_root ? part : 0, .output = part, .input_in_output = 0};
    case CollectiveKind::kReduce:
      return {.input = part, .output = is_root ? part : 0, .input_in_output = 0};
    case CollectiveKind::kAllreduce:
      return {.input = part, .output = part, .input_in_output = 0};
    case CollectiveKind::kReduceScatter:
      return {.input = all, .output = part, .output_in_input = own};
    case CollectiveKind::kAllgather:
      return {.input = part, .output = all, .input_in_output = own};
    case CollectiveKind::kGather:
      return {.input = part, .output = is_root ? all : 0, .input_in_output = own};
    case CollectiveKind::kScatter:
      return {.input = is_root ? all : 0, .output = part, .output_in_input = own};
    case CollectiveKind::kAlltoall:
      return {.input = all, .output = all};
    case CollectiveKind::kBarrier:
      return {};
  }
  PREPOST_CHECK(false);
  return {};
}

/// The parts of one side, and the bytes that they take.
Result<std::vector<UnevenParts::Part>> PartsOf(const std::vector<uint64_t>& counts,
                                               const std::vector<uint64_t>& places,
                                               uint64_t element, uint32_t members, const char* side,
                                               uint64_t* bytes) {
  if (counts.size() != members || (!places.empty() && places.size() != members)) {
    return UsageError(fmt::format("{} {} counts and {} places for {} members", side, counts.size(),
                                  places.size(), members));
  }
  constexpr uint64_t kMax = kGroupMessageBytesMax;
  std::vector<UnevenParts::Part> parts(members);
  uint64_t next = 0;
  for (uint32_t member = 0; member < members; ++member) {
    const uint64_t place = places.empty() ? next : places[member];
    if (counts[member] > kMax / element || place > kMax / element)
      return UsageError(fmt::format("{} part {} is beyond 256 TiB", side, member));
    next = place + counts[member];
    parts[member] = {.bytes = counts[member] * element, .offset = place * element};
    *bytes = std::max(*bytes, next * element);
  }
  return parts;
}

/// `overlap`: two received parts that share a byte.
Status CheckApart(const std::vector<UnevenParts::Part>& parts) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const UnevenParts::Part& part : parts)
    if (part.bytes != 0) ranges.emplace_back(part.offset, part.offset + part.bytes);
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return UsageError("two received parts overlap");
  }
  return {};
}

Status CheckMemory(const Call& call, const CallBytes& bytes) {
  if (call.input == nullptr && bytes.input > 0)
    return UsageError(fmt::format("{} bytes of input have no memory", bytes.input));
  if (call.output == nullptr && bytes.output > 0)
    return UsageError(fmt::format("{} bytes of output have no memory", bytes.output));
  const Memory input = MemoryOf(call.input, bytes.input),
               output = MemoryOf(call.output, bytes.output);
  if (input.end < input.begin || output.end < output.begin)
    return UsageError("memory that goes beyond the last address");
  if (bytes.input == 0 || bytes.output == 0 || !input.Overlaps(output)) return {};
  if (bytes.input_in_output && input.begin == output.begin + *bytes.input_in_output) return {};
  if (bytes.output_in_input && output.begin == input.begin + *bytes.output_in_input) return {};
  if (call.kind == CollectiveKind::kAlltoall) {
    return UsageError(
        "an alltoall cannot be in place: a part could come where one lies that is "
        "still to be sent");
  }
  return UsageError("input and output overlap, and not as they do in place (prepost.h)");
}

constexpr uint32_t kNoRoot = 0;  ///< of a call whose collective has none

bool IsUser(CombineOp op) { return op == CombineOp::kUser || op == CombineOp::kUserOrdered; }

/// The future of a call; it is resolved whatever becomes of the call.
class Promise {
 public:
  Promise() = default;
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  ~Promise() { Set(Rejected("the session has ended")); }

  void Set(const Status& status) {
    if (!std::exchange(is_set_, true)) promise_.set_value(status);
  }
  std::future<Status> future() { return promise_.get_future(); }

 private:
  std::promise<Status> promise_;
  bool is_set_ = false;
};

}  // namespace

Status Session::Call(uint64_t group, const prepost::Call& call,
                     std::function<void(const Status&)> done) {
  PREPOST_RETURN_IF_ERROR(impl_->CheckProcess());
  if (call.kind > CollectiveKind::kBarrier || call.op > CombineOp::kUserOrdered ||
      call.type > ElementType::kFloat64) {
    return UsageError(fmt::format("cannot call in group {}: no such kind, op or type: {}, {}, {}",
                                  group, static_cast<int>(call.kind), static_cast<int>(call.op),
                                  static_cast<int>(call.type)));
  }
  const auto fail = [&](const std::string& why) {
    return UsageError(fmt::format(
        "cannot call {} in group {}: {}",
        call.kind == CollectiveKind::kMulticast ? "broadcast" : Name(call.kind), group, why));
  };
  const Result<std::vector<uint32_t>> members = impl_->engine->MembersOf(group);
  if (!members.ok()) return members.status();
  const auto place_of = [&](uint32_t member) {
    return static_cast<uint32_t>(std::ranges::find(*members, member) - members->begin());
  };
  const auto count = static_cast<uint32_t>(members->size());
  const NodeId self(place_of(impl_->options.self));
  if (HasRoot(call.kind) && place_of(call.root) == count)
    return fail(fmt::format("its root, member {}, is not in it", call.root));
  const uint64_t element = SizeOf(call.type);
  if (element == 0 && call.kind != CollectiveKind::kBarrier) return fail("a type is missing");
  GroupCall made;
  made.done = std::move(done);
  made.shape.kind = call.kind;
  if (HasRoot(call.kind)) made.shape.root = NodeId(place_of(call.root));
  const bool is_root = made.shape.root == self;
  if (call.kind == CollectiveKind::kBarrier) {
    made.shape.combine = {.op = CombineOp::kAnd, .type = ElementType::kUint8};
    return impl_->engine->Call(group, std::move(made));
  }
  if (Combines(call.kind)) {
    made.shape.combine = {.op = call.op, .type = call.type};
    if (const Status status = CheckCombine(made.shape.combine); !status.ok())
      return fail(status.message());
    if (IsUser(call.op) != static_cast<bool>(call.operation))
      return fail(IsUser(call.op) ? "its operation is missing"
                                  : "it has an operation, and its op is another");
    if (call.operation) {
      made.combine = [operation = call.operation](std::byte* out, const std::byte* own,
                                                  const std::byte* other, size_t elements) {
        operation(out, own, other, elements);
      };
    }
  }
  const bool is_uneven = !call.send_counts.empty() || !call.receive_counts.empty();
  CallBytes bytes;
  if (is_uneven) {
    if (call.kind != CollectiveKind::kAlltoall) return fail("parts of any sizes are an alltoall's");
    auto sent = PartsOf(call.send_counts, call.send_places, element, count, "sent:", &bytes.input);
    if (!sent.ok()) return fail(sent.status().message());
    auto received = PartsOf(call.receive_counts, call.receive_places, element, count,
                            "received:", &bytes.output);
    if (!received.ok()) return fail(received.status().message());
    if (const Status status = CheckApart(*received); !status.ok()) return fail(status.message());
    const uint64_t out = (*sent)[self.index()].bytes, in = (*received)[self.index()].bytes;
    if (out != in) {
      return fail(fmt::format("this member sends itself {} bytes and expects {}", out, in));
    }
    made.shape.is_uneven = true;
    made.shape.bytes = 1;
    made.uneven = UnevenParts{.sent = *std::move(sent), .received = *std::move(received)};
  } else {
    if (call.count > kGroupMessageBytesMax / element / count)
      return fail("all parts together have 256 TiB at most");
    made.shape.bytes = call.count * element;
    bytes = BytesOf(made.shape, count, self, is_root);
  }
  const bool is_multicast = call.kind == CollectiveKind::kMulticast;
  if (is_multicast && is_root) bytes.output = 0;
  if (const Status status = CheckMemory(call, bytes); !status.ok()) return fail(status.message());
  made.input = {static_cast<const std::byte*>(call.input), static_cast<size_t>(bytes.input)};
  made.output = {static_cast<std::byte*>(call.output), static_cast<size_t>(bytes.output)};
  if (is_multicast && !is_root) made.input = made.output;
  return impl_->engine->Call(group, std::move(made));
}

std::future<Status> Session::Await(uint64_t group, const prepost::Call& call) {
  auto promise = std::make_shared<Promise>();
  std::future<Status> future = promise->future();
  const Status status =
      Call(group, call, [promise](const Status& result) { promise->Set(result); });
  if (!status.ok()) promise->Set(status);
  return future;
}

std::future<Status> Session::Broadcast(uint64_t group, uint32_t root, void* data, uint64_t bytes) {
  return Await(group, {CollectiveKind::kMulticast, root, data, data, bytes});
}
std::future<Status> Session::Reduce(uint64_t group, uint32_t root, const void* input, void* output,
                                    uint64_t count, ElementType type, CombineOp op) {
  return Await(group, {CollectiveKind::kReduce, root, input, output, count, type, op});
}
std::future<Status> Session::Allreduce(uint64_t group, const void* input, void* output,
                                       uint64_t count, ElementType type, CombineOp op) {
  return Await(group, {CollectiveKind::kAllreduce, kNoRoot, input, output, count, type, op});
}
std::future<Status> Session::ReduceScatter(uint64_t group, const void* input, void* output,
                                           uint64_t count, ElementType type, CombineOp op) {
  return Await(group, {CollectiveKind::kReduceScatter, kNoRoot, input, output, count, type, op});
}
std::future<Status> Session::Allgather(uint64_t group, const void* input, void* output,
                                       uint64_t bytes) {
  return Await(group, {CollectiveKind::kAllgather, kNoRoot, input, output, bytes});
}
std::future<Status> Session::Gather(uint64_t group, uint32_t root, const void* input, void* output,
                                    uint64_t bytes) {
  return Await(group, {CollectiveKind::kGather, root, input, output, bytes});
}
std::future<Status> Session::Scatter(uint64_t group, uint32_t root, const void* input, void* output,
                                     uint64_t bytes) {
  return Await(group, {CollectiveKind::kScatter, root, input, output, bytes});
}
std::future<Status> Session::Alltoall(uint64_t group, const void* input, void* output,
                                      uint64_t bytes) {
  return Await(group, {CollectiveKind::kAlltoall, kNoRoot, input, output, bytes});
}
std::future<Status> Session::Barrier(uint64_t group) {
  return Await(group, {.kind = CollectiveKind::kBarrier});
}

}  // namespace prepost
