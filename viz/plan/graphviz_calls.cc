// SPDX-License-Identifier: Apache-2.0
#include "viz/plan/graphviz_calls.h"

#include "runtime/base/shared_library.h"

namespace prepost::viz {
namespace {

Result<GraphvizCalls> Load() {
  // It needs libcgraph, so that the functions of both are found in it.
  const Result<SharedLibrary> library = SharedLibrary::Open(PREPOST_GVC_SONAME, "libgvc6");
  if (!library.ok()) return library.status();
  GraphvizCalls calls;
#define PREPOST_FIND(name) PREPOST_RETURN_IF_ERROR(library->Find(#name, &calls.name));
  PREPOST_GRAPHVIZ_CALLS(PREPOST_FIND)
#undef PREPOST_FIND
  PREPOST_RETURN_IF_ERROR(library->Find("Agdirected", &calls.agdirected));
  return calls;
}

const Result<GraphvizCalls>& Loaded() {
  static const Result<GraphvizCalls> loaded = Load();
  return loaded;
}

}  // namespace

Status LoadGraphviz() { return Loaded().status(); }

const GraphvizCalls& Calls() { return Loaded().value(); }

}  // namespace prepost::viz
