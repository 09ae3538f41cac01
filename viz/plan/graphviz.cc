// SPDX-License-Identifier: Apache-2.0
#include "viz/plan/graphviz.h"

#include <fmt/format.h>
#include <gvplugin.h>
#include <gvplugin_textlayout.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "viz/plan/graphviz_calls.h"
#include "viz/svg/svg.h"

namespace prepost::viz {
namespace {

/// Graphviz's hook for measuring a piece of text; line height and base line are those of its own
/// estimate.
boolean MeasureText(textspan_t* span, char** /*font_path*/) {
  span->size.x = TextWidth(span->str, span->font->size);
  span->size.y = span->font->size * 1.2;
  span->yoffset_layout = 0;
  span->yoffset_centerline = span->font->size * 0.1;
  span->layout = nullptr;
  span->free_layout = nullptr;
  return 1;
}

// The C interface asks for pointers to non-const; Graphviz only reads what they point to.
template <typename T>
T* Mutable(const T* value) {
  return const_cast<T*>(value);
}

const gvtextlayout_engine_t kTextEngine = {MeasureText};
const gvplugin_installed_t kTextTypes[] = {
    {0, "textlayout", /*quality=*/1000, Mutable(&kTextEngine), nullptr},
    {0, nullptr, 0, nullptr, nullptr}};
const gvplugin_api_t kTextApis[] = {{API_textlayout, Mutable(kTextTypes)},
                                    {static_cast<api_t>(0), nullptr}};
const gvplugin_library_t kTextLibrary = {Mutable("prepost"), Mutable(kTextApis)};
const lt_symlist_t kBuiltins[] = {{"gvplugin_prepost_LTX_library", Mutable(&kTextLibrary)},
                                  {nullptr, nullptr}};

// Graphviz walks subgraphs in the order of their internal ids. Its own are addresses, which change
// from run to run; these count up. Names are kept by Graphviz where `map` refuses a string.
void* OpenIds(Agraph_t* /*graph*/, Agdisc_t* /*discipline*/) { return new IDTYPE(0); }
void CloseIds(void* state) { delete static_cast<IDTYPE*>(state); }
long MapId(void* state, int /*kind*/, char* name, IDTYPE* id, int create) {
  if (name != nullptr || create == 0) return 0;
  *id = ++*static_cast<IDTYPE*>(state);
  return 1;
}
long AllocateId(void* /*state*/, int /*kind*/, IDTYPE /*id*/) { return 0; }
void FreeId(void* /*state*/, int /*kind*/, IDTYPE /*id*/) {}
char* PrintId(void* /*state*/, int /*kind*/, IDTYPE /*id*/) { return nullptr; }
void RegisterId(void* /*state*/, int /*kind*/, void* /*object*/) {}

const Agiddisc_t kIds = {OpenIds, MapId, AllocateId, FreeId, PrintId, CloseIds, RegisterId};

Status GraphvizError(std::string_view doing) {
  const char* error = Calls().aglasterr();
  std::string detail = error == nullptr ? "" : error;
  while (!detail.empty() && detail.back() == '\n') detail.pop_back();
  return EnvironmentError(
      fmt::format("graphviz cannot {}{}{}; are its plugins installed (libgvc6)?", doing,
                  detail.empty() ? "" : ": ", detail));
}

/// Frees what a layout attached to a graph.
class Layout {
 public:
  Layout(GVC_t* context, Agraph_t* graph, const char* engine)
      : context_(context), graph_(graph), ok_(Calls().gvLayout(context, graph, engine) == 0) {}
  ~Layout() { Calls().gvFreeLayout(context_, graph_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  bool ok() const { return ok_; }

 private:
  GVC_t* context_;
  Agraph_t* graph_;
  bool ok_;
};

}  // namespace

GraphPtr NewGraph() {
  Agdisc_t discipline = {nullptr, Mutable(&kIds), nullptr};
  return GraphPtr(Calls().agopen(Mutable("plan"), *Calls().agdirected, &discipline));
}

Result<std::string> WriteDot(Agraph_s* graph) {
  char* data = nullptr;
  size_t length = 0;
  FILE* stream = open_memstream(&data, &length);
  if (stream == nullptr) return EnvironmentError("no memory for the graph's text");
  const int written = Calls().agwrite(graph, stream);
  const int closed = std::fclose(stream);
  std::string out(data, length);
  std::free(data);
  if (written != 0 || closed != 0) return EnvironmentError("no memory for the graph's text");
  return out;
}

void CloseGraph::operator()(Agraph_s* graph) const { Calls().agclose(graph); }

void Graphviz::FreeContext::operator()(GVC_s* context) const { Calls().gvFreeContext(context); }

Graphviz::Graphviz() : context_(Calls().gvContextPlugins(kBuiltins, /*demand_loading=*/1)) {
  Calls().agseterr(AGMAX);  // nothing on stderr; GraphvizError() asks for the last message
}

Status Graphviz::Place(Agraph_s* graph) {
  const Layout layout(context_.get(), graph, "dot");
  if (!layout.ok()) return GraphvizError("lay the graph out");
  Calls().attach_attrs(graph);
  return {};
}

Result<std::string> Graphviz::RenderPlaced(Agraph_s* graph) {
  const Layout layout(context_.get(), graph, "nop2");
  if (!layout.ok()) return GraphvizError("route the edges");
  char* data = nullptr;
  unsigned length = 0;
  if (Calls().gvRenderData(context_.get(), graph, "svg", &data, &length) != 0) {
    return GraphvizError("write svg");
  }
  std::string out(data, length);
  Calls().gvFreeRenderData(data);
  return out;
}

}  // namespace prepost::viz
