// SPDX-License-Identifier: Apache-2.0
#include "ir/json/json_text.h"

#include <nlohmann/json.hpp>

namespace prepost {

std::string QuoteJson(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

}  // namespace prepost
