// SPDX-License-Identifier: Apache-2.0
//
// Domain: a provider of libfabric, opened: what endpoints, counters and queues are made of.
#ifndef PREPOST_BACKENDS_FABRIC_DOMAIN_H_
#define PREPOST_BACKENDS_FABRIC_DOMAIN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/fabric/libfabric.h"
#include "ir/base/status.h"

namespace prepost::fabric {

/// A provider that endpoints for messages can be made of, and what it can do.
struct Provider {
  std::string name;           ///< as devices name it: "sockets", "tcp"
  bool is_triggered = false;  ///< starts deferred work by itself
  bool is_automatic = false;  ///< makes progress by itself, and not only when it is asked
  uint32_t counters_max = 0;  ///< of a domain; 0: it says nothing, or has none
};
/// Of this machine, by name. Errors (kEnvironment): there is no libfabric.
Result<std::vector<Provider>> Providers();

struct DomainSpec {
  std::string provider;  ///< as Provider::name
  bool needs_triggers = false;
  std::string host;  ///< the numeric address that peers reach this node at; "": any
};

/// Used by one thread; so is all that is made of it, which goes before it does.
class Domain {
 public:
  /// Errors (kEnvironment): no such provider, or it lacks what is needed.
  static Result<std::unique_ptr<Domain>> Open(const DomainSpec& spec);

  fi_info* info() const { return info_.get(); }
  fid_fabric* fabric() const { return fabric_.get(); }
  fid_domain* get() const { return domain_.get(); }
  fid_av* addresses() const { return addresses_.get(); }
  /// Of one domain; at least 1.
  uint32_t counters_max() const { return counters_max_; }

  /// Not bound to anything. Where names are texts, one that no other endpoint of this machine has.
  Result<Fid<fid_ep>> MakeEndpoint() const;
  /// Makes `memory` known to the provider, if it wants that; null if not.
  Result<Fid<fid_mr>> Register(std::span<const std::byte> memory) const;
  /// A queue for `entries` completions with their data, with a file to wait for if the
  /// provider has such.
  Result<Fid<fid_cq>> MakeQueue(size_t entries) const;
  /// `is_awaited`: with a file to wait for.
  Result<Fid<fid_cntr>> MakeCounter(bool is_awaited) const;
  /// A random tag, of as many bits as the provider compares.
  uint64_t NewTag() const;
  /// Where a peer's endpoint is. Errors: kRejected.
  Result<fi_addr_t> Insert(std::span<const std::byte> name) const;

 private:
  Domain() = default;

  Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> addresses_;
  uint32_t counters_max_ = 1;
};

/// Of an endpoint that is enabled. Errors: kEnvironment.
Result<std::vector<std::byte>> NameOf(fid_ep* endpoint);

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_DOMAIN_H_
