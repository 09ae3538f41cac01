// SPDX-License-Identifier: Apache-2.0
#include "ir/plan_graph.h"

#include <fmt/format.h>
#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/GraphTraits.h>
#include <llvm/ADT/SCCIterator.h>

#include <algorithm>
#include <deque>

namespace prepost {
namespace {

/// A vertex as LLVM's graph algorithms want it: with its graph. Every vertex is a successor of the
/// entry vertex, whose id is the graph's size, so that a search from there sees all.
struct NodeRef {
  const PlanGraph* graph = nullptr;
  uint32_t vertex = 0;
  friend bool operator==(NodeRef, NodeRef) = default;
};

/// Iterates over successors; those of the entry are all vertices.
class SuccessorIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = NodeRef;
  using difference_type = std::ptrdiff_t;
  using pointer = const NodeRef*;
  using reference = NodeRef;

  SuccessorIterator(NodeRef of, size_t index) : of_(of), index_(index) {}
  NodeRef operator*() const {
    const bool is_entry = of_.vertex == of_.graph->size();
    return {of_.graph,
            is_entry ? static_cast<uint32_t>(index_) : of_.graph->Successors(of_.vertex)[index_]};
  }
  SuccessorIterator& operator++() {
    ++index_;
    return *this;
  }
  SuccessorIterator operator++(int) {
    SuccessorIterator old = *this;
    ++index_;
    return old;
  }
  friend bool operator==(const SuccessorIterator& a, const SuccessorIterator& b) {
    return a.index_ == b.index_;
  }

 private:
  NodeRef of_;
  size_t index_;
};

}  // namespace
}  // namespace prepost

template <>
struct llvm::DenseMapInfo<prepost::NodeRef> {
  static prepost::NodeRef getEmptyKey() { return {nullptr, 0xffffffff}; }
  static prepost::NodeRef getTombstoneKey() { return {nullptr, 0xfffffffe}; }
  static unsigned getHashValue(prepost::NodeRef node) {
    return DenseMapInfo<uint32_t>::getHashValue(node.vertex);
  }
  static bool isEqual(prepost::NodeRef a, prepost::NodeRef b) { return a == b; }
};

template <>
struct llvm::GraphTraits<const prepost::PlanGraph*> {
  using NodeRef = prepost::NodeRef;
  using ChildIteratorType = prepost::SuccessorIterator;
  static NodeRef getEntryNode(const prepost::PlanGraph* graph) { return {graph, graph->size()}; }
  static ChildIteratorType child_begin(NodeRef node) { return {node, 0}; }
  static ChildIteratorType child_end(NodeRef node) {
    const bool is_entry = node.vertex == node.graph->size();
    return {node, is_entry ? node.graph->size() : node.graph->Successors(node.vertex).size()};
  }
};

namespace prepost {

PlanGraph::PlanGraph(const Plan& plan, const MessageTable& messages, const CreditTable& credits,
                     const PlanGraphOptions& options)
    : plan_(plan),
      messages_(messages),
      credits_(credits),
      events_(std::ranges::any_of(plan.ops(), &Op::is_combine) ? 4 : 3) {
  const size_t vertices = size_t{messages.size()} * events_ + 1;
  PREPOST_CHECK(vertices < 0xffffffff);
  begin_.assign(vertices + 1, 0);
  ForEachEdge(options, [&](Vertex from, Vertex) { ++begin_[from + 1]; });
  for (size_t v = 0; v < vertices; ++v) begin_[v + 1] += begin_[v];
  edges_.resize(begin_.back());
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  ForEachEdge(options, [&](Vertex from, Vertex to) { edges_[next[from]++] = to; });
}

template <typename Sink>
void PlanGraph::ForEachEdge(const PlanGraphOptions& options, Sink sink) const {
  constexpr Event kPost = Event::kPost, kStart = Event::kStart, kDeliver = Event::kDeliver;
  const bool has_barrier = plan_.header().ready.mode == ReadyMode::kBarrier;
  for (uint32_t c = 0; c < plan_.channels().size(); ++c) {
    const uint32_t begin = messages_.ChannelBegin(ChannelId(c));
    const uint32_t end = messages_.ChannelEnd(ChannelId(c));
    uint32_t last_combine = MessageTable::kNone;
    for (uint32_t m = begin; m < end; ++m) {
      const Vertex received = CompletionOf(messages_.recv(m));
      sink(At(m, kStart), At(m, kDeliver));
      sink(At(m, kPost), At(m, kDeliver));
      if (has_barrier) {
        sink(At(m, kPost), barrier());
        sink(barrier(), At(m, kStart));
      }
      if (m + 1 < end) {
        sink(At(m, kPost), At(m + 1, kPost));
        sink(At(m, kStart), At(m + 1, kStart));
        sink(At(m, kDeliver), At(m + 1, kDeliver));
      }
      if (options.send_depth && *options.send_depth < end - m)
        sink(At(m, kDeliver), At(m + *options.send_depth, kStart));
      if (options.recv_depth && *options.recv_depth < end - m)
        sink(received, At(m + *options.recv_depth, kPost));
      if (!plan_.ops()[messages_.recv(m)].is_combine()) continue;
      sink(At(m, kDeliver), received);
      if (last_combine != MessageTable::kNone) sink(At(last_combine, Event::kCombine), received);
      last_combine = m;
    }
  }

  for (const Program& program : plan_.programs()) {
    uint32_t previous_send = MessageTable::kNone;
    for (uint32_t i = program.op_begin; i < program.op_begin + program.op_count; ++i) {
      const Op& op = plan_.ops()[i];
      if (!op.may_wait()) continue;
      const Vertex start = op.is_send() ? At(messages_.MessageOf(i), kStart) : CompletionOf(i);
      for (OpId before : plan_.after(op))
        sink(CompletionOf(program.op_begin + before.value), start);
      if (!op.is_send()) continue;
      if (options.chain_sends && previous_send != MessageTable::kNone) sink(previous_send, start);
      previous_send = start;
      if (!op.is_credit() || credits_.Partner(op.channel) == CreditTable::kNone) continue;
      const ChannelId blocks(credits_.Partner(op.channel));
      const uint32_t begin = messages_.ChannelBegin(blocks);
      const uint64_t granted = std::min<uint64_t>(credits_.GrantedUpTo(messages_.MessageOf(i)),
                                                  messages_.ChannelEnd(blocks) - begin);
      // Posts are in channel order, so the last one granted stands for all.
      if (granted != 0) sink(At(begin + static_cast<uint32_t>(granted) - 1, kPost), start);
    }
  }
}

/// What a search for the shortest cycle carries along.
struct PlanGraph::CycleSearch {
  llvm::BitVector inside;      // the component in hand
  std::vector<Vertex> parent;  // of the breadth-first search in hand
  uint64_t steps = 0;          // edges visited, in all
  std::vector<Vertex> best;
};

std::vector<PlanGraph::Vertex> PlanGraph::TopologicalOrder() const {
  std::vector<uint32_t> waits_for(size(), 0);
  for (Vertex to : edges_) ++waits_for[to];
  std::vector<Vertex> ready;
  ready.reserve(size());
  for (Vertex v = 0; v < size(); ++v) {
    if (waits_for[v] == 0) ready.push_back(v);
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    for (Vertex to : Successors(ready[next])) {
      if (--waits_for[to] == 0) ready.push_back(to);
    }
  }
  return ready;
}

std::vector<PlanGraph::Vertex> PlanGraph::FindCycle() const {
  if (TopologicalOrder().size() == size()) return {};
  std::vector<std::vector<Vertex>> components;
  for (auto it = llvm::scc_begin(this); !it.isAtEnd(); ++it) {
    if (!it.hasCycle()) continue;
    std::vector<Vertex>& component = components.emplace_back();
    for (NodeRef node : *it) component.push_back(node.vertex);
    std::ranges::sort(component);
  }
  std::ranges::stable_sort(components, {}, &std::vector<Vertex>::size);
  CycleSearch search{.inside = llvm::BitVector(size()), .parent = std::vector<Vertex>(size())};
  for (const std::vector<Vertex>& component : components) SearchComponent(component, &search);
  PREPOST_CHECK(!search.best.empty());
  return std::move(search.best);
}

/// Breadth-first search from each vertex of a strongly connected component, until the steps of all
/// components together are used up. The very first search always completes, so there is always an
/// answer.
void PlanGraph::SearchComponent(std::span<const Vertex> component, CycleSearch* search) const {
  constexpr uint64_t kStepsMax = 50'000'000;
  search->inside.reset();
  for (Vertex v : component) search->inside.set(v);
  for (Vertex origin : component) {
    if (!search->best.empty() && search->steps > kStepsMax) return;
    SearchFrom(origin, search);
  }
}

/// `origin` lies in the component in hand, so there is a cycle through it; the first one met is a
/// shortest.
void PlanGraph::SearchFrom(Vertex origin, CycleSearch* search) const {
  llvm::BitVector seen(size());
  search->steps += size() / 64;
  std::deque<Vertex> queue{origin};
  while (!queue.empty()) {
    const Vertex v = queue.front();
    queue.pop_front();
    for (Vertex to : Successors(v)) {
      ++search->steps;
      if (to == origin) {
        std::vector<Vertex> cycle{v};
        while (cycle.back() != origin) cycle.push_back(search->parent[cycle.back()]);
        std::ranges::reverse(cycle);
        if (search->best.empty() || cycle.size() < search->best.size())
          search->best = std::move(cycle);
        return;
      }
      if (!search->inside.test(to) || seen.test(to)) continue;
      seen.set(to);
      search->parent[to] = v;
      queue.push_back(to);
    }
  }
  PREPOST_CHECK(false);
}

uint32_t PlanGraph::OpOf(Vertex v) const {
  if (v == barrier()) return MessageTable::kNone;
  const uint32_t message = MessageOf(v);
  return EventOf(v) == Event::kStart ? messages_.send(message) : messages_.recv(message);
}

std::string PlanGraph::Describe(Vertex v) const {
  if (v == barrier()) return "the barrier after all posts";
  const uint32_t op = OpOf(v);
  const auto programs = plan_.programs();
  // The last program that begins at or before the op and is not empty.
  auto program = std::ranges::upper_bound(programs, op, {}, &Program::op_begin) - 1;
  while (program->op_count == 0) --program;
  static constexpr const char* kNames[] = {"post", "start", "delivery", "combination"};
  return fmt::format("{} of {}", kNames[v % events_],
                     prepost::Describe(plan_, *program, OpId(op - program->op_begin)));
}

}  // namespace prepost
