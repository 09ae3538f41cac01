// SPDX-License-Identifier: Apache-2.0
//
// What CLI11 gives, as names only: for headers of those who add flags. A .cc that adds some
// includes <CLI/CLI.hpp>, which takes long to compile.
#ifndef PREPOST_TOOLS_FLAGS_CLI_FORWARD_H_
#define PREPOST_TOOLS_FLAGS_CLI_FORWARD_H_

namespace CLI {

class App;
class Validator;

}  // namespace CLI

#endif  // PREPOST_TOOLS_FLAGS_CLI_FORWARD_H_
