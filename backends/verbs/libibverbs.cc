// SPDX-License-Identifier: Apache-2.0
#include "backends/verbs/libibverbs.h"

#include <fmt/format.h>

#include <cerrno>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/shared_library.h"

namespace prepost::verbs {
namespace {

Result<Libibverbs> LoadLibibverbs() {
  const Result<SharedLibrary> library = SharedLibrary::Open("libibverbs.so.1", "libibverbs1");
  if (!library.ok()) return library.status();
  Libibverbs calls;
#define PREPOST_FIND(name) PREPOST_RETURN_IF_ERROR(library->Find(#name, &calls.name));
  PREPOST_LIBIBVERBS_CALLS(PREPOST_FIND)
#undef PREPOST_FIND
  return calls;
}

const Result<Libibverbs>& LoadedLibibverbs() {
  static const Result<Libibverbs> loaded = LoadLibibverbs();
  return loaded;
}

}  // namespace

Result<const Libibverbs*> TheLibibverbs() {
  if (!LoadedLibibverbs().ok()) return LoadedLibibverbs().status();
  return &*LoadedLibibverbs();
}

const Libibverbs& Calls() { return LoadedLibibverbs().value(); }

DeviceList::DeviceList()
    : devices_(Calls().ibv_get_device_list(&count_)), error_(devices_ == nullptr ? errno : 0) {}

DeviceList::~DeviceList() {
  if (devices_ != nullptr) Calls().ibv_free_device_list(devices_);
}

Status DeviceList::status() const {
  if (error_ == 0 || error_ == ENOSYS) return {};
  return SystemError(StatusCode::kEnvironment, "cannot list RDMA devices", error_);
}

int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) {
  *attributes = {};
  const verbs_context* const of_device = verbs_get_ctx_op(context, query_port);
  if (of_device != nullptr)
    return of_device->query_port(context, port, attributes, sizeof *attributes);
  return Calls().ibv_query_port(context, port,
                                reinterpret_cast<_compat_ibv_port_attr*>(attributes));
}

Status CallFailed(const char* what) {
  return SystemError(StatusCode::kEnvironment, fmt::format("cannot {}", what),
                     errno != 0 ? errno : EIO);
}

}  // namespace prepost::verbs
