// SPDX-License-Identifier: Apache-2.0
//
// PlanGraph: the events of a plan and what must precede what. A cycle in it is a deadlock. The
// verifier and the analyses (event_times.h, reasons.h) use the same one.
//
// Three events per message: post (its receive is posted), start (its send starts), deliver (its
// bytes are in place); where its receive is a combine, a fourth: combine (what came is in the
// node's own value). Edges:
// * start -> deliver and post -> deliver, deliver -> combine of one message;
// * start, post and deliver each in channel order, and the combines of a channel;
// * completion -> start of every send, and -> combine of every combine, whose `after` names an op:
//   a combine has completed when it has combined, all others when they are delivered. A combine's
//   send has completed before: two nodes that exchange values would wait for each other for ever;
// * post of the granted receives -> start of the credit;
// * barrier: every post -> every start, through one more vertex;
// * with depths S and R per channel: deliver(i) -> start(i + S), completion(i) of the receive ->
//   post(i + R);
// * optionally each node's sends chained in id order, start -> start: what a managed queue adds.
#ifndef PREPOST_IR_PLAN_GRAPH_H_
#define PREPOST_IR_PLAN_GRAPH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/credits.h"
#include "ir/messages.h"
#include "ir/plan.h"

namespace prepost {

struct PlanGraphOptions {
  std::optional<uint32_t> send_depth;
  std::optional<uint32_t> recv_depth;
  bool chain_sends = false;
};

class PlanGraph {
 public:
  using Vertex = uint32_t;
  enum class Event : uint8_t { kPost, kStart, kDeliver, kCombine, kBarrier };

  /// Needs a plan without findings of `shape` and `match`. Linear in ops and `after` entries.
  PlanGraph(const Plan& plan, const MessageTable& messages, const CreditTable& credits,
            const PlanGraphOptions& options);

  uint32_t size() const { return static_cast<uint32_t>(begin_.size()) - 1; }
  std::span<const Vertex> Successors(Vertex v) const {
    return std::span(edges_).subspan(begin_[v], begin_[v + 1] - begin_[v]);
  }
  /// kCombine: of a message whose receive is one.
  Vertex At(uint32_t message, Event event) const {
    return message * events_ + static_cast<uint32_t>(event);
  }
  /// When an op (by its index into Plan::ops()) has completed.
  Vertex CompletionOf(uint32_t op) const {
    return At(messages_.MessageOf(op),
              plan_.ops()[op].is_combine() ? Event::kCombine : Event::kDeliver);
  }
  Vertex barrier() const { return messages_.size() * events_; }
  Event EventOf(Vertex v) const {
    return v == barrier() ? Event::kBarrier : static_cast<Event>(v % events_);
  }
  /// The message of any vertex but the barrier.
  uint32_t MessageOf(Vertex v) const { return v / events_; }
  /// The vertices, each behind all that it waits for. What is in a cycle or behind one is left out.
  std::vector<Vertex> TopologicalOrder() const;
  /// A shortest cycle, or empty. Linear when there is none (Kahn's algorithm). Otherwise every
  /// strongly connected component is searched, the smallest first: exactly up to a bounded number
  /// of steps, and what was found until then beyond.
  std::vector<Vertex> FindCycle() const;
  /// The op whose event this is (global index), or kNone for the barrier.
  uint32_t OpOf(Vertex v) const;
  /// "post of node 3 op 5 (recv 2>3:1)".
  std::string Describe(Vertex v) const;

 private:
  template <typename Sink>
  void ForEachEdge(const PlanGraphOptions& options, Sink sink) const;
  struct CycleSearch;
  void SearchComponent(std::span<const Vertex> component, CycleSearch* search) const;
  void SearchFrom(Vertex origin, CycleSearch* search) const;

  const Plan& plan_;
  const MessageTable& messages_;
  const CreditTable& credits_;
  const uint32_t events_;        // of a message: 4 if any is combined
  std::vector<uint32_t> begin_;  // CSR
  std::vector<Vertex> edges_;
};

}  // namespace prepost

#endif  // PREPOST_IR_PLAN_GRAPH_H_
