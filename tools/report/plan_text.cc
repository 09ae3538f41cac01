// SPDX-License-Identifier: Apache-2.0
#include "tools/report/plan_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "ir/count.h"
#include "ir/utf8.h"

namespace prepost::tools {

using Json = nlohmann::ordered_json;

std::string PlanText(const PlanHeader& plan) {
  return fmt::format("{}: {}, root {}; {}", Printable(plan.algorithm), Count(plan.nodes, "node"),
                     plan.collective.root.value, MessageText(plan));
}

std::string MessageText(const PlanHeader& plan) {
  return fmt::format("{} in {} of {}; ready {}, send window {}", Count(plan.payload.bytes, "byte"),
                     Count(plan.payload.blocks, "block"), plan.payload.block_bytes,
                     ToString(plan.ready),
                     plan.send_window ? fmt::to_string(*plan.send_window) : "none");
}

Json PlanJson(const PlanHeader& plan) {
  return {{"algorithm", plan.algorithm},
          {"nodes", plan.nodes},
          {"root", plan.collective.root.value},
          {"message_bytes", plan.payload.bytes},
          {"block_bytes", plan.payload.block_bytes},
          {"blocks", plan.payload.blocks},
          {"ready", ToString(plan.ready)},
          {"send_window", plan.send_window ? Json(*plan.send_window) : Json()}};
}

void PrintJson(const Json& json, std::ostream& out) {
  out << json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) << "\n";
}

}  // namespace prepost::tools
