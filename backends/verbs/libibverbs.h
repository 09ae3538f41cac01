// SPDX-License-Identifier: Apache-2.0
//
// Libibverbs: the library, loaded when it is first used, and its objects as values that undo
// themselves. What libibverbs defines as inline functions is called as it is; what it exports goes
// through here. Internal to backends/verbs and backends/mlx5.
#ifndef PREPOST_BACKENDS_VERBS_LIBIBVERBS_H_
#define PREPOST_BACKENDS_VERBS_LIBIBVERBS_H_

#include <infiniband/verbs.h>

#include <memory>
#include <span>

#include "ir/base/status.h"

// Macros around functions: the first is QueryPort() below, the second chooses another function for
// access flags that are not used here.
#undef ibv_query_port
#undef ibv_reg_mr

#define PREPOST_LIBIBVERBS_CALLS(X) \
  X(_ibv_query_gid_ex)              \
  X(_ibv_query_gid_table)           \
  X(ibv_ack_async_event)            \
  X(ibv_ack_cq_events)              \
  X(ibv_alloc_pd)                   \
  X(ibv_close_device)               \
  X(ibv_create_ah)                  \
  X(ibv_create_comp_channel)        \
  X(ibv_create_cq)                  \
  X(ibv_create_qp)                  \
  X(ibv_dealloc_pd)                 \
  X(ibv_dereg_mr)                   \
  X(ibv_destroy_ah)                 \
  X(ibv_destroy_comp_channel)       \
  X(ibv_destroy_cq)                 \
  X(ibv_destroy_qp)                 \
  X(ibv_event_type_str)             \
  X(ibv_free_device_list)           \
  X(ibv_get_async_event)            \
  X(ibv_get_cq_event)               \
  X(ibv_get_device_list)            \
  X(ibv_get_device_name)            \
  X(ibv_modify_qp)                  \
  X(ibv_open_device)                \
  X(ibv_port_state_str)             \
  X(ibv_query_device)               \
  X(ibv_query_pkey)                 \
  X(ibv_query_port)                 \
  X(ibv_reg_mr)                     \
  X(ibv_wc_status_str)

namespace prepost::verbs {

struct Libibverbs {
#define PREPOST_MEMBER(name) decltype(&::name) name = nullptr;
  PREPOST_LIBIBVERBS_CALLS(PREPOST_MEMBER)
#undef PREPOST_MEMBER
};

/// Loads it once; any thread may ask. Errors (kEnvironment): it is not installed.
Result<const Libibverbs*> TheLibibverbs();
/// For whoever has an object of it, and so has loaded it.
const Libibverbs& Calls();

template <auto kUndo>
struct Undoer {
  template <typename T>
  void operator()(T* object) const {
    (Calls().*kUndo)(object);
  }
};
// Each goes before what it was made of.
using Context = std::unique_ptr<ibv_context, Undoer<&Libibverbs::ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, Undoer<&Libibverbs::ibv_dealloc_pd>>;
using Region = std::unique_ptr<ibv_mr, Undoer<&Libibverbs::ibv_dereg_mr>>;
using EventChannel =
    std::unique_ptr<ibv_comp_channel, Undoer<&Libibverbs::ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Undoer<&Libibverbs::ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Undoer<&Libibverbs::ibv_destroy_qp>>;

/// The list of devices that libibverbs gives out.
class DeviceList {
 public:
  DeviceList();
  ~DeviceList();
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  /// Errors: kEnvironment. A machine without any support for such devices has none.
  Status status() const;
  std::span<ibv_device* const> devices() const {
    return {devices_, devices_ == nullptr ? 0 : static_cast<size_t>(count_)};
  }

 private:
  int count_ = 0;
  ibv_device** devices_;
  int error_;
};

/// What the macro ibv_query_port does: the device's own function, which fills all fields, or else
/// the library's, which fills the first ones. 0 or an errno value.
int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes);

/// "cannot WHAT: REASON" (kEnvironment), for calls that return an object or null with errno, which
/// some forget to set, before which it is to be 0.
Status CallFailed(const char* what);

}  // namespace prepost::verbs

#endif  // PREPOST_BACKENDS_VERBS_LIBIBVERBS_H_
