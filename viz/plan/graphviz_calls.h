// SPDX-License-Identifier: Apache-2.0
//
// GraphvizCalls: the functions of Graphviz that draw graphs, from a library that is loaded when a
// graph is first drawn. Internal to viz/.
#ifndef PREPOST_VIZ_PLAN_GRAPHVIZ_CALLS_H_
#define PREPOST_VIZ_PLAN_GRAPHVIZ_CALLS_H_

#include <gvc.h>

#include "ir/base/status.h"

// clang-format off
#define PREPOST_GRAPHVIZ_CALLS(X) \
  X(agattr) X(agclose) X(agedge) X(aglasterr) X(agnameof) X(agnode) X(agopen) X(agsafeset) \
  X(agseterr) X(agstrdup_html) X(agstrfree) X(agsubg) X(agsubnode) X(agwrite) \
  X(attach_attrs) X(gvContextPlugins) X(gvFreeContext) X(gvFreeLayout) \
  X(gvFreeRenderData) X(gvLayout) X(gvRenderData)
// clang-format on

namespace prepost::viz {

struct GraphvizCalls {
#define PREPOST_MEMBER(name) decltype(&::name) name = nullptr;
  PREPOST_GRAPHVIZ_CALLS(PREPOST_MEMBER)
#undef PREPOST_MEMBER
  const Agdesc_t* agdirected = nullptr;
};

/// Loads the library, once in a process. Errors (kEnvironment): it is not installed.
Status LoadGraphviz();

/// Only after LoadGraphviz() has succeeded.
const GraphvizCalls& Calls();

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PLAN_GRAPHVIZ_CALLS_H_
