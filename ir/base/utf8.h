// SPDX-License-Identifier: Apache-2.0
//
// Text of unknown origin: file names, arguments and strings of files may hold any bytes. What
// people read or other programs parse goes through here.
#ifndef PREPOST_IR_BASE_UTF8_H_
#define PREPOST_IR_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace prepost {

/// Bytes of the well-formed UTF-8 sequence at the start of `text`, which is not empty; 0 when there
/// is none: cut, overlong, a surrogate, or beyond U+10FFFF.
size_t Utf8Length(std::string_view text);

/// The same of a letter that a terminal shows; 0 of control characters (C0, DEL, C1), too.
size_t PrintableLength(std::string_view text);

/// The first `letters` letters of `text`, which is UTF-8.
std::string FirstLetters(std::string_view text, size_t letters);

/// `text` for a terminal, in one line: control characters (C0, DEL, C1) and bytes that are no UTF-8
/// as \x1b.
std::string Printable(std::string_view text);
/// The same of a text that may go on in lines which begin with two spaces.
std::string PrintableLines(std::string_view text);

}  // namespace prepost

#endif  // PREPOST_IR_BASE_UTF8_H_
