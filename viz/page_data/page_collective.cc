// SPDX-License-Identifier: Apache-2.0
#include "viz/page_data/page_collective.h"

#include <nlohmann/json.hpp>

namespace prepost::viz {
namespace {

using Json = nlohmann::ordered_json;

struct Contract {
  const char* at_first = "";
  const char* at_end = "";
};

Contract ContractOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kMulticast:
      return {"the root has all blocks", "each member has all blocks"};
    case CollectiveKind::kReduce:
      return {"each member contributes to all blocks", "the root has all blocks, combined"};
    case CollectiveKind::kAllreduce:
      return {"each member contributes to all blocks", "each member has all blocks, combined"};
    case CollectiveKind::kReduceScatter:
      return {"each member contributes to all blocks", "member m has part m, combined"};
    case CollectiveKind::kAllgather:
      return {"member m has part m", "each member has all parts"};
    case CollectiveKind::kGather:
      return {"member m has part m", "the root has all parts"};
    case CollectiveKind::kScatter:
      return {"the root has all parts", "member m has part m"};
    case CollectiveKind::kAlltoall:
      return {"member f has a part for each member", "member t has a part from each member"};
    case CollectiveKind::kBarrier:
      return {"each member has something to say: that it is there",
              "each member knows that all are there"};
  }
  PREPOST_CHECK(false);
  return {};
}

}  // namespace

nlohmann::ordered_json CollectiveJson(const Plan& plan) {
  const PlanHeader& header = plan.header();
  if (IsPlainMulticast(plan)) return {};
  const CollectiveKind kind = header.collective.kind;
  const Roles roles = header.roles();
  const Contract contract = ContractOf(kind);
  Json json = {{"kind", Name(kind)}};
  json["root"] = HasRoot(kind) ? Json(header.collective.root.value) : Json();
  json["members"] = roles.members();
  json["parts"] = header.payload.parts;
  json["blocks_per_part"] = header.payload.blocks / header.payload.parts;
  json["combine"] =
      header.combine.is_none()
          ? Json()
          : Json({{"text", ToString(header.combine)}, {"op", Name(header.combine.op)}});
  json["at_first"] = contract.at_first;
  json["at_end"] = contract.at_end;
  return json;
}

void AddCollective(const PlanTables& tables, const EventTimes& times, const std::string& prefix,
                   PageColumns* columns) {
  const Plan& plan = tables.plan();
  const PlanHeader& header = plan.header();
  if (IsPlainMulticast(plan)) return;
  const Roles roles = header.roles();
  const auto add_rows = [&](const std::string& name, const auto& row_of) {
    const auto add = [&](const char* field, auto member) {
      columns->Begin(prefix + name + field);
      for (uint32_t node = 0; node < header.nodes; ++node)
        columns->Add(row_of(NodeId(node)).*member);
    };
    add(".first", &PartRow::first);
    add(".step", &PartRow::step);
    add(".count", &PartRow::count);
  };
  add_rows("node.has", [&](NodeId node) { return roles.Contributed(node); });
  add_rows("node.wants", [&](NodeId node) { return roles.Wanted(node); });
  columns->Begin(prefix + "block.bytes");
  for (uint32_t block = 0; block < header.payload.blocks; ++block)
    columns->Add(static_cast<int64_t>(header.payload.BlockSize(block)));
  if (header.combine.is_none()) return;
  columns->Begin(prefix + "op.combine");
  for (const Op& op : plan.ops()) columns->Add(op.is_combine() ? 1 : 0);
  columns->Begin(prefix + "send.combined");
  for (uint32_t i = 0; i < plan.ops().size(); ++i) {
    if (!plan.ops()[i].is_send()) continue;
    const uint32_t recv = tables.messages().recv(tables.messages().MessageOf(i));
    columns->Add(static_cast<int64_t>(times.Earliest(tables.graph().CompletionOf(recv))));
  }
}

}  // namespace prepost::viz
