// SPDX-License-Identifier: Apache-2.0
//
// A plan as GraphML, for NetworkX, Gephi, yEd and their like: ops are nodes, and what puts one
// before another is an edge.
#ifndef PREPOST_IR_EXCHANGE_GRAPHML_H_
#define PREPOST_IR_EXCHANGE_GRAPHML_H_

#include <iosfwd>

#include "ir/plan.h"

namespace prepost {

/// Writes `plan`, which must be valid. Node ids are "NODE.OP". Edges: "message" from a send to its
/// receive, "after" from an entry of an `after` list to its send, "channel" from an op to the next
/// one of its kind on its channel. The caller checks `out` for I/O errors. Linear.
void WriteGraphml(const Plan& plan, std::ostream& out);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GRAPHML_H_
