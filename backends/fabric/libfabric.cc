// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric/libfabric.h"

#include <fmt/format.h>

#include "runtime/shared_library.h"

namespace prepost::fabric {
namespace {

Result<Libfabric> Load() {
  const Result<SharedLibrary> library = SharedLibrary::Open("libfabric.so.1", "libfabric1");
  if (!library.ok()) return library.status();
  Libfabric calls;
  PREPOST_RETURN_IF_ERROR(library->Find("fi_getinfo", &calls.getinfo));
  PREPOST_RETURN_IF_ERROR(library->Find("fi_freeinfo", &calls.freeinfo));
  PREPOST_RETURN_IF_ERROR(library->Find("fi_dupinfo", &calls.dupinfo));
  PREPOST_RETURN_IF_ERROR(library->Find("fi_fabric", &calls.fabric));
  PREPOST_RETURN_IF_ERROR(library->Find("fi_strerror", &calls.strerror));
  return calls;
}

const Result<Libfabric>& Loaded() {
  static const Result<Libfabric> loaded = Load();
  return loaded;
}

}  // namespace

Result<const Libfabric*> TheLibfabric() {
  if (!Loaded().ok()) return Loaded().status();
  return &*Loaded();
}

void InfoFreer::operator()(fi_info* info) const { Loaded()->freeinfo(info); }

Info MakeHints() { return Info(Loaded()->dupinfo(nullptr)); }

Status FabricError(StatusCode code, const std::string& what, int64_t error) {
  return {code, fmt::format("cannot {}: {}", what, Loaded()->strerror(static_cast<int>(-error)))};
}

}  // namespace prepost::fabric
