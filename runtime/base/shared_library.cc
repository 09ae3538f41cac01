// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace prepost {
namespace {

std::string LastError() {
  const char* error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

}  // namespace

Result<SharedLibrary> SharedLibrary::Open(const std::string& file, const std::string& package) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return EnvironmentError(
        fmt::format("cannot load {}, which is in package {}: {}", file, package, LastError()));
  }
  return SharedLibrary(handle, file, package);
}

SharedLibrary::SharedLibrary(void* handle, std::string file, std::string package)
    : handle_(handle), file_(std::move(file)), package_(std::move(package)) {}

Result<void*> SharedLibrary::Find(const char* name) const {
  void* address = dlsym(handle_, name);
  if (address == nullptr) {
    return EnvironmentError(
        fmt::format("{} of package {} is another version than prepost was "
                    "built for: {}",
                    file_, package_, LastError()));
  }
  return address;
}

}  // namespace prepost
