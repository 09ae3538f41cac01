// SPDX-License-Identifier: Apache-2.0
//
// JSON as text: whole documents, and strings for writers that stream. Internal to writers of JSON.
#ifndef PREPOST_IR_JSON_JSON_TEXT_H_
#define PREPOST_IR_JSON_JSON_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace prepost {

/// A document, two spaces deeper at each level. Bytes that are no UTF-8 become U+FFFD.
std::string JsonText(const nlohmann::ordered_json& json);

/// `text` with quotes and escapes. Bytes that are no UTF-8 become U+FFFD.
std::string QuoteJson(const std::string& text);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_TEXT_H_
