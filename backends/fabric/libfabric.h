// SPDX-License-Identifier: Apache-2.0
//
// Libfabric: the library, loaded when it is first used, and its objects as values that close
// themselves. What libfabric defines as inline functions is called as it is; what it exports goes
// through here. Included only by files of this room and backends/triggered/.
#ifndef PREPOST_BACKENDS_FABRIC_LIBFABRIC_H_
#define PREPOST_BACKENDS_FABRIC_LIBFABRIC_H_

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include <memory>
#include <string>

#include "ir/base/status.h"

namespace prepost::fabric {

struct FidCloser {
  template <typename T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
/// An object of the library. It goes before what it was made of.
template <typename T>
using Fid = std::unique_ptr<T, FidCloser>;

struct InfoFreer {
  void operator()(fi_info* info) const;
};
using Info = std::unique_ptr<fi_info, InfoFreer>;

/// What the library exports.
struct Libfabric {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

/// Loads it once; any thread may ask. Errors (kEnvironment): it is not installed.
Result<const Libfabric*> TheLibfabric();

/// What the library says of a negative return code.
std::string ReasonOf(int64_t error);

/// "cannot WHAT: REASON", of a negative return code.
Status FabricError(StatusCode code, const std::string& what, int64_t error);

/// A hint, zeroed. The library must be loaded.
Info MakeHints();

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_LIBFABRIC_H_
