// SPDX-License-Identifier: Apache-2.0
#include "planning/text/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "ir/json/json_text.h"

namespace prepost {

using Json = nlohmann::ordered_json;

std::string PlanText(const PlanHeader& plan) {
  const Collective& it = plan.collective;
  std::string text;
  if (it.kind != CollectiveKind::kMulticast) {
    text = Name(it.kind);
    if (!plan.combine.is_none()) text += " " + ToString(plan.combine);
    text += ", ";
  }
  text += fmt::format("{}: {}", Printable(plan.algorithm), Count(plan.nodes, "node"));
  if (HasRoot(it.kind)) text += fmt::format(", root {}", it.root.value);
  return text + "; " + MessageText(plan);
}

std::string MessageText(const PlanHeader& plan) {
  const Payload& it = plan.payload;
  std::string size =
      it.parts == 1 ? Count(it.bytes, "byte")
                    : fmt::format("{} of {}", Count(it.parts, "part"), Count(it.bytes, "byte"));
  if (it.is_uneven()) {
    size = fmt::format("{} of {} to {}, {} in all", Count(it.parts, "part"),
                       *std::ranges::min_element(it.part_bytes), Count(it.bytes, "byte"),
                       it.AllBytes());
  }
  return fmt::format("{} in {} of {}; ready {}, send window {}", size, Count(it.blocks, "block"),
                     it.block_bytes, ToString(plan.ready),
                     plan.send_window ? fmt::to_string(*plan.send_window) : "none");
}

Json PlanJson(const PlanHeader& plan) {
  Json json;
  if (plan.collective.kind != CollectiveKind::kMulticast)
    json["collective"] = Name(plan.collective.kind);
  json["algorithm"] = plan.algorithm;
  json["nodes"] = plan.nodes;
  if (plan.collective.helpers != 0) json["helpers"] = plan.collective.helpers;
  json["root"] = plan.collective.root.value;
  json["message_bytes"] = plan.payload.bytes;
  json["block_bytes"] = plan.payload.block_bytes;
  json["blocks"] = plan.payload.blocks;
  if (plan.payload.parts != 1) json["parts"] = plan.payload.parts;
  if (plan.payload.is_uneven()) json["part_bytes"] = plan.payload.part_bytes;
  if (!plan.combine.is_none())
    json["combine"] = {{"op", Name(plan.combine.op)}, {"type", Name(plan.combine.type)}};
  if (plan.scratch != 0) json["scratch"] = plan.scratch;
  json["ready"] = ToString(plan.ready);
  json["send_window"] = plan.send_window ? Json(*plan.send_window) : Json();
  return json;
}

void PrintJson(const Json& json, std::ostream& out) { out << JsonText(json) << "\n"; }

}  // namespace prepost
