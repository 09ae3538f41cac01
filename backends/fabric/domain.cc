// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric/domain.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace prepost::fabric {
namespace {

constexpr uint32_t kApiVersion = FI_VERSION(1, 17);

/// The library's name for a provider: that of TCP makes connections only, and messages without them
/// go through a layer above it.
std::string LibraryName(const std::string& provider) {
  return provider == "tcp" ? "tcp;ofi_rxm" : provider;
}

Info Hints(bool needs_triggers) {
  Info hints = MakeHints();
  hints->caps = FI_TAGGED | (needs_triggers ? FI_TRIGGER : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  return hints;
}

bool HasAddresses(const fi_info& info) {
  return info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN ||
         info.addr_format == FI_SOCKADDR_IN6;
}

Result<Info> Find(const Libfabric& library, const DomainSpec& spec) {
  fi_info* found = nullptr;
  Info hints = Hints(spec.needs_triggers);
  hints->fabric_attr->prov_name = strdup(LibraryName(spec.provider).c_str());
  const char* const host = spec.host.empty() ? nullptr : spec.host.c_str();
  int error = library.getinfo(kApiVersion, host, nullptr, host == nullptr ? 0 : FI_SOURCE,
                              hints.get(), &found);
  if (error == 0) return Info(found);
  // Names of providers for one machine are no addresses. Others would listen at all addresses.
  if (host != nullptr)
    error = library.getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &found);
  Info info(found);
  if (error == 0 && (host == nullptr || !HasAddresses(*info))) return info;
  return EnvironmentError(
      fmt::format("provider {} is not there{}, or has no endpoints for tagged messages in order{}",
                  spec.provider, host == nullptr ? "" : " at " + spec.host,
                  spec.needs_triggers ? " that start deferred work" : ""));
}

/// Of an endpoint of the provider shm in /dev/shm, without its number: "plan-PIDS-PROCESS-". PIDS
/// is where the process has its number, as containers may have /dev/shm in common and count for
/// themselves.
std::string NameStem(pid_t process) {
  struct stat pids = {};
  if (stat("/proc/self/ns/pid", &pids) != 0) return "";
  return fmt::format("plan-{}-{}-", pids.st_ino, process);
}

/// Names stay when a process is killed. Nobody connects by them any more.
void RemoveNamesOfTheDead() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error)) {
    const std::string name = entry.path().filename();
    unsigned long pids = 0;
    int process = 0;
    if (std::sscanf(name.c_str(), "plan-%lu-%d-", &pids, &process) != 2) continue;
    const std::string stem = NameStem(process);
    if (stem.empty() || !name.starts_with(stem)) continue;
    if (kill(process, 0) == 0 || errno != ESRCH) continue;
    unlink(entry.path().c_str());
  }
}

/// The highest bit of the format is the highest that is compared.
int TagBits(const fi_info& info) { return 64 - std::countl_zero(info.ep_attr->mem_tag_format); }
/// That cannot be guessed by trying, as each try is a message.
constexpr int kTagBitsMin = 40;

template <typename T>
Result<Fid<T>> Made(const std::string& what, T* object, int error) {
  if (error != 0) return FabricError(StatusCode::kEnvironment, "make " + what, error);
  return Fid<T>(object);
}

}  // namespace

Result<std::vector<Provider>> Providers() {
  const Result<const Libfabric*> library = TheLibfabric();
  if (!library.ok()) return library.status();
  std::vector<Provider> providers;
  for (const bool is_triggered : {true, false}) {
    fi_info* found = nullptr;
    const Info hints = Hints(is_triggered);
    if ((*library)->getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &found) != 0) continue;
    const Info all(found);
    for (const fi_info* info = found; info != nullptr; info = info->next) {
      const std::string full = info->fabric_attr->prov_name;
      const std::string name = full == LibraryName("tcp") ? "tcp" : full;
      if (name.find(';') != std::string::npos) continue;
      if (std::ranges::find(providers, name, &Provider::name) != providers.end()) continue;
      providers.push_back({.name = name,
                           .is_triggered = is_triggered,
                           .is_automatic = info->domain_attr->data_progress == FI_PROGRESS_AUTO,
                           .counters_max = static_cast<uint32_t>(info->domain_attr->cntr_cnt)});
    }
  }
  std::ranges::sort(providers, {}, &Provider::name);
  return providers;
}

Result<std::unique_ptr<Domain>> Domain::Open(const DomainSpec& spec) {
  const Result<const Libfabric*> library = TheLibfabric();
  if (!library.ok()) return library.status();
  std::unique_ptr<Domain> made(new Domain());
  Result<Info> info = Find(**library, spec);
  if (!info.ok()) return info.status();
  made->info_ = *std::move(info);
  if (const int bits = TagBits(*made->info_); bits < kTagBitsMin)
    return EnvironmentError(fmt::format("provider {} has tags of {} bits, expected at least {}",
                                        spec.provider, bits, kTagBitsMin));
  const auto failed = [&](const char* what, int error) {
    return FabricError(StatusCode::kEnvironment, fmt::format("{} {}", what, spec.provider), error);
  };
  if (made->info_->addr_format == FI_ADDR_STR) RemoveNamesOfTheDead();
  fid_fabric* fabric = nullptr;
  if (const int error = (*library)->fabric(made->info_->fabric_attr, &fabric, nullptr); error != 0)
    return failed("open provider", error);
  made->fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (const int error = fi_domain(fabric, made->info_.get(), &domain, nullptr); error != 0)
    return failed("open a domain of provider", error);
  made->domain_.reset(domain);
  fi_av_attr attributes = {};
  attributes.type = FI_AV_UNSPEC;
  fid_av* addresses = nullptr;
  if (const int error = fi_av_open(domain, &attributes, &addresses, nullptr); error != 0)
    return failed("make a table of addresses of provider", error);
  made->addresses_.reset(addresses);
  made->counters_max_ =
      static_cast<uint32_t>(std::max<size_t>(made->info_->domain_attr->cntr_cnt, 1));
  return made;
}

Result<Fid<fid_ep>> Domain::MakeEndpoint() const {
  Info named;
  if (info_->addr_format == FI_ADDR_STR) {
    static std::atomic<uint32_t> number{0};
    const std::string name = fmt::format("fi_shm://{}{}", NameStem(getpid()), number++);
    named = Info((*TheLibfabric())->dupinfo(info_.get()));
    free(named->src_addr);
    named->src_addr = strdup(name.c_str());
    named->src_addrlen = name.size() + 1;
  }
  fid_ep* endpoint = nullptr;
  const int error =
      fi_endpoint(domain_.get(), named != nullptr ? named.get() : info_.get(), &endpoint, nullptr);
  return Made("an endpoint", endpoint, error);
}

Result<Fid<fid_mr>> Domain::Register(std::span<const std::byte> memory) const {
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0 || memory.empty()) return Fid<fid_mr>();
  fid_mr* region = nullptr;
  const int error = fi_mr_reg(domain_.get(), memory.data(), memory.size(), FI_SEND | FI_RECV, 0, 0,
                              0, &region, nullptr);
  return Made("a memory region", region, error);
}

Result<Fid<fid_cq>> Domain::MakeQueue(size_t entries) const {
  fi_cq_attr attributes = {};
  attributes.size = entries;
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  int error = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  attributes.wait_obj = FI_WAIT_NONE;
  if (error != 0) error = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  return Made("a completion queue", queue, error);
}

Result<Fid<fid_cntr>> Domain::MakeCounter(bool is_awaited) const {
  fi_cntr_attr attributes = {};
  attributes.events = FI_CNTR_EVENTS_COMP;
  attributes.wait_obj = is_awaited ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cntr* counter = nullptr;
  const int error = fi_cntr_open(domain_.get(), &attributes, &counter, nullptr);
  return Made("a counter", counter, error);
}

uint64_t Domain::NewTag() const {
  uint64_t tag = 0;
  randombytes_buf(&tag, sizeof(tag));
  return tag >> (64 - TagBits(*info_));
}

Result<fi_addr_t> Domain::Insert(std::span<const std::byte> name) const {
  fi_addr_t address = FI_ADDR_UNSPEC;
  if (fi_av_insert(addresses_.get(), name.data(), 1, &address, 0, nullptr) == 1) return address;
  return Rejected("its endpoint's name is none of this provider");
}

Result<std::vector<std::byte>> NameOf(fid_ep* endpoint) {
  std::vector<std::byte> name(64);
  size_t bytes = name.size();
  int error = fi_getname(&endpoint->fid, name.data(), &bytes);
  if (error == -FI_ETOOSMALL) {
    name.resize(bytes);
    error = fi_getname(&endpoint->fid, name.data(), &bytes);
  }
  if (error != 0) return FabricError(StatusCode::kEnvironment, "learn an endpoint's name", error);
  name.resize(bytes);
  return name;
}

}  // namespace prepost::fabric
