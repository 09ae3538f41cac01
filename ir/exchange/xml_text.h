// SPDX-License-Identifier: Apache-2.0
//
// EscapeXml: a string as XML, for everything that writes it.
#ifndef PREPOST_IR_EXCHANGE_XML_TEXT_H_
#define PREPOST_IR_EXCHANGE_XML_TEXT_H_

#include <string>
#include <string_view>

namespace prepost {

/// `text` for XML content and attributes. Bytes that XML or UTF-8 forbid become U+FFFD, so that any
/// string is safe.
std::string EscapeXml(std::string_view text);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_XML_TEXT_H_
