// SPDX-License-Identifier: Apache-2.0
//
// QuoteJson: a string as JSON, for writers that stream.
#ifndef PREPOST_IR_JSON_JSON_TEXT_H_
#define PREPOST_IR_JSON_JSON_TEXT_H_

#include <string>

namespace prepost {

/// `text` with quotes and escapes. Bytes that are no UTF-8 become U+FFFD.
std::string QuoteJson(const std::string& text);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_TEXT_H_
