// SPDX-License-Identifier: Apache-2.0
//
// SharedLibrary: a library of this machine that is loaded when it is first needed, so that the
// command and libprepost run where it is not installed. Drawing of graphs and mlx5 devices use it.
#ifndef PREPOST_RUNTIME_BASE_SHARED_LIBRARY_H_
#define PREPOST_RUNTIME_BASE_SHARED_LIBRARY_H_

#include <string>

#include "ir/base/status.h"

namespace prepost {

/// Stays loaded until the process ends. Copies are the same library.
class SharedLibrary {
 public:
  /// Loads `file` (a soname, as "libgvc.so.6") and what it needs. Errors (kEnvironment): it is not
  /// there or does not load; the message names `package`, the Debian package that has it.
  static Result<SharedLibrary> Open(const std::string& file, const std::string& package);

  /// Stores the address of `name`, of this library or of one that it needs. The caller answers for
  /// the type. Errors (kEnvironment): neither has it.
  template <typename T>
  Status Find(const char* name, T** address) const {
    Result<void*> found = Find(name);
    if (!found.ok()) return found.status();
    *address = reinterpret_cast<T*>(*found);
    return {};
  }

 private:
  SharedLibrary(void* handle, std::string file, std::string package);
  Result<void*> Find(const char* name) const;

  void* handle_;
  std::string file_;
  std::string package_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_SHARED_LIBRARY_H_
