// SPDX-License-Identifier: Apache-2.0
#include "ir/json/json_text.h"

#include <nlohmann/json.hpp>

namespace prepost {

std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

std::string QuoteJson(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

}  // namespace prepost
