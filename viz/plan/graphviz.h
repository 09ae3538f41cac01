// SPDX-License-Identifier: Apache-2.0
//
// Graphviz: its library as we use it, to place the nodes of a graph, to route the edges added
// later, and to write it out. All of it only after LoadGraphviz() (viz/plan/graphviz_calls.h). Text
// is measured by TextWidth() instead of the installed fonts, so that a picture is the same on every
// machine with the same Graphviz. One at a time: the library keeps state of its own and is not
// thread-safe.
#ifndef PREPOST_VIZ_PLAN_GRAPHVIZ_H_
#define PREPOST_VIZ_PLAN_GRAPHVIZ_H_

#include <memory>
#include <string>

#include "ir/base/status.h"

struct Agraph_s;
struct GVC_s;

namespace prepost::viz {

struct CloseGraph {
  void operator()(Agraph_s* graph) const;
};
using GraphPtr = std::unique_ptr<Agraph_s, CloseGraph>;

/// An empty directed graph whose subgraphs Graphviz walks in the order in which they were made.
GraphPtr NewGraph();

/// `graph` in the dot language.
Result<std::string> WriteDot(Agraph_s* graph);

class Graphviz {
 public:
  Graphviz();

  /// Lays `graph` out with dot and stores the positions in its attributes. Errors: kEnvironment,
  /// when the library lacks its plugins.
  Status Place(Agraph_s* graph);
  /// `graph`, with the positions of Place(), as SVG; edges without a position are routed as
  /// straight lines.
  Result<std::string> RenderPlaced(Agraph_s* graph);

 private:
  struct FreeContext {
    void operator()(GVC_s* context) const;
  };
  std::unique_ptr<GVC_s, FreeContext> context_;
};

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PLAN_GRAPHVIZ_H_
