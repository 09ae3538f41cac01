// SPDX-License-Identifier: Apache-2.0
#include "prepost/ir/findings.h"

#include <fmt/format.h>

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

Verdict Findings::Take() && {
  Verdict verdict;
  verdict.findings = count_;
  for (auto& [key, diagnostic] : kept_) verdict.diagnostics.push_back(std::move(diagnostic));
  return verdict;
}

}  // namespace prepost
