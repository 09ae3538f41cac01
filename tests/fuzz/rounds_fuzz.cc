// SPDX-License-Identifier: Apache-2.0
//
// A file of rounds from a stranger, text or JSON: refused with its place, or read as a plan that is
// valid and stays so when it gets credits and windows; where values are combined it may be refused
// then, with its place.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "compiler/pass_manager.h"
#include "compiler/passes/scratch.h"
#include "compiler/rounds/rounds_reader.h"

namespace {

/// Verifying a million blocks, which a range has in a few letters, takes its time.
constexpr uint32_t kCheckedBlocksMax = 1 << 16;

bool HasPlace(const prepost::Status& status) {
  return status.where().starts_with("rounds") || status.where().starts_with("/");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  prepost::Result<prepost::RoundsPlan> read = prepost::ReadRounds(in, "rounds");
  if (!read.ok()) {
    PREPOST_CHECK(HasPlace(read.status()) && !read.status().message().empty());
    return 0;
  }
  const prepost::PlanHeader& header = read->plan.header();
  if (header.payload.blocks > kCheckedBlocksMax) return 0;
  const bool combines = prepost::Combines(header.collective.kind);
  // Each receive that fills a buffer has its own in a barrier's mode: there may be too many.
  const bool is_placed = prepost::AssignScratch(prepost::Plan(read->plan)).ok();
  const prepost::CompileOptions options;
  const prepost::Result<prepost::VerifiedPlan> plan =
      prepost::CompletePlan(std::move(read->plan), {}, {}, options, read->where_of);
  PREPOST_CHECK(plan.ok() || !is_placed || (combines && HasPlace(plan.status())));
  return 0;
}
