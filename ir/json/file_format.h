// SPDX-License-Identifier: Apache-2.0
//
// FormatOf: what kind of JSON file something is, for whoever takes several.
#ifndef PREPOST_IR_JSON_FILE_FORMAT_H_
#define PREPOST_IR_JSON_FILE_FORMAT_H_

#include <iosfwd>
#include <string>

namespace prepost {

/// The "format" of the object in `in`, up to which it is read; a trace has it in its "otherData".
/// "" if it says none or is no JSON: whoever reads it then says what is wrong.
std::string FormatOf(std::istream& in);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_FILE_FORMAT_H_
