# SPDX-License-Identifier: Apache-2.0
# cmake -D IN=FILE -D OUT=FILE.cc -D HEADER=... -D FUNCTION=... -P: a source file with a function that returns the text of IN. In raw
# strings, which must not hold )TEXT"; string literals of this length are no standard's, but compilers take them.
file(READ "${IN}" text)
string(FIND "${text}" ")TEXT\"" at)
if(NOT at EQUAL -1)
  message(FATAL_ERROR "${IN} holds )TEXT\"")
endif()
file(WRITE "${OUT}" "// Made of ${IN}.
#include \"${HEADER}\"

namespace prepost::viz {

std::string_view ${FUNCTION}() { return R\"TEXT(${text})TEXT\"; }

}  // namespace prepost::viz
")
