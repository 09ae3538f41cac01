// SPDX-License-Identifier: Apache-2.0
#include "ir/verify/findings.h"

#include <fmt/format.h>

#include <algorithm>

namespace prepost {

std::string Place::Pointer() const {
  std::string pointer;
  if (section == Section::kChannels) pointer = fmt::format("/channels/{}", index);
  if (section == Section::kPrograms) pointer = fmt::format("/programs/{}", index);
  if (op != kWhole) pointer += fmt::format("/ops/{}", op);
  if (*leaf != '\0') pointer += fmt::format("/{}", leaf);
  if (element != kWhole) pointer += fmt::format("/{}", element);
  return pointer;
}

Place PlaceOf(const Plan& plan, uint32_t op, const char* leaf) {
  const std::span<const Program> programs = plan.programs();
  // The last program that begins at or before the op and is not empty.
  auto program = std::ranges::upper_bound(programs, op, {}, &Program::op_begin) - 1;
  while (program->op_count == 0) --program;
  return Place::OpAt(static_cast<uint32_t>(program - programs.begin()), op - program->op_begin,
                     leaf);
}

Verdict Findings::Take() && {
  Verdict verdict;
  verdict.findings = count_;
  for (auto& [key, diagnostic] : kept_) verdict.diagnostics.push_back(std::move(diagnostic));
  return verdict;
}

}  // namespace prepost
