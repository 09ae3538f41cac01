// SPDX-License-Identifier: Apache-2.0
//
// A file of rounds from a stranger, text or JSON: refused with its place, or read as a valid plan
// that stays one when it gets credits and windows.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "compiler/pass_manager.h"
#include "compiler/rounds/rounds_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  prepost::Result<prepost::RoundsPlan> read = prepost::ReadRounds(in, "rounds");
  if (!read.ok()) {
    PREPOST_CHECK(read.status().where().starts_with("rounds") && !read.status().message().empty());
    return 0;
  }
  PREPOST_CHECK(prepost::Verify(read->plan).ok());
  const prepost::CompileOptions options;
  prepost::PassManager passes(options);
  passes.AddAll({}, {});
  PREPOST_CHECK(passes.Run(std::move(read->plan)).ok());
  return 0;
}
