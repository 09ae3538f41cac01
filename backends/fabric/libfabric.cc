// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric/libfabric.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "runtime/base/shared_library.h"

namespace prepost::fabric {
namespace {

/// What the process does with signals is not the business of what it loads: Debian's libfabric
/// brings libraries of old cards (libinfinipath1, libpsm2-2) whose constructors take SIGINT,
/// SIGTERM and those of crashes for themselves.
class SignalKeeper {
 public:
  SignalKeeper() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &actions_[i]);
  }
  SignalKeeper(const SignalKeeper&) = delete;
  SignalKeeper& operator=(const SignalKeeper&) = delete;
  ~SignalKeeper() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &actions_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGHUP, SIGINT,  SIGQUIT, SIGILL, SIGABRT,
                                          SIGBUS, SIGSEGV, SIGPIPE, SIGTERM};
  std::array<struct sigaction, kSignals.size()> actions_;
};

/// Messages over connections are to go to them as they are: the layer that makes datagrams of them
/// (ofi_rxm, of tcp) otherwise copies each through buffers that it makes and clears for each
/// endpoint, which takes longer than to send some MB. It can only be told by this variable, which
/// it looks at when the library is first used; the user's own value stays.
void PassMessagesThrough() { setenv("FI_OFI_RXM_ENABLE_PASSTHRU", "1", /*overwrite=*/0); }

Result<Libfabric> Load() {
  const SignalKeeper keeper;
  PassMessagesThrough();
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

std::string ReasonOf(int64_t error) { return Loaded()->strerror(static_cast<int>(-error)); }

Status FabricError(StatusCode code, const std::string& what, int64_t error) {
  return {code, fmt::format("cannot {}: {}", what, ReasonOf(error))};
}

}  // namespace prepost::fabric
