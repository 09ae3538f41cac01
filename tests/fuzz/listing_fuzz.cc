// SPDX-License-Identifier: Apache-2.0
//
// A listing from a stranger: read or refused with a place; what was read can be compared with a
// plan that is known, and written.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "backends/nic/program/listing_parse.h"
#include "backends/nic/program/queue_program_file.h"
#include "backends/nic/validate/object_table.h"
#include "compiler/compile.h"

namespace {

const prepost::Plan& ThePlan() {
  static const prepost::Plan plan = *prepost::Compile(
      {.nodes = 3, .message_bytes = 20, .block_bytes = 10, .algorithm = "binomial_pipeline"});
  return plan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto program = prepost::nic::ParseListing(in, "listing");
  if (!program.ok()) {
    PREPOST_CHECK(!program.status().message().empty() && !program.status().where().empty());
    return 0;
  }
  PREPOST_CHECK(!prepost::nic::ToBinary(*program).empty());
  const auto report = prepost::nic::ValidateProgram(ThePlan(), *program);
  PREPOST_CHECK(report.ok() || !report.status().message().empty());
  return 0;
}
