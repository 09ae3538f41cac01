// SPDX-License-Identifier: Apache-2.0
#include "tests/mutation/kill_table.h"

#include <fmt/format.h>

namespace prepost::test {
namespace {

std::string Line(const std::string& kind, const KillRow& row) {
  std::string line =
      fmt::format("{:<32}{:>8}{:>9}{:>10}{:>20}{:>20}", kind, row.mutants, row.harmful,
                  row.harmful_rejected, row.harmless_accepted, row.harmless_rejected);
  const char* separator = "  by ";
  for (const auto& [rule, count] : row.policies) {
    line += fmt::format("{}{} {}", separator, Name(rule), count);
    separator = ", ";
  }
  return line + "\n";
}

}  // namespace

void KillTable::Add(const std::string& kind, bool is_harmful, const std::set<Rule>& broken) {
  KillRow& row = rows_[kind];
  ++row.mutants;
  if (is_harmful) {
    ++row.harmful;
    row.harmful_rejected += broken.empty() ? 0u : 1u;
    return;
  }
  ++(broken.empty() ? row.harmless_accepted : row.harmless_rejected);
  for (const Rule rule : broken) ++row.policies[rule];
}

KillRow KillTable::Row(const std::string& kind) const {
  const auto found = rows_.find(kind);
  return found == rows_.end() ? KillRow() : found->second;
}

KillRow KillTable::Total() const {
  KillRow total;
  for (const auto& [kind, row] : rows_) {
    total.mutants += row.mutants;
    total.harmful += row.harmful;
    total.harmful_rejected += row.harmful_rejected;
    total.harmless_accepted += row.harmless_accepted;
    total.harmless_rejected += row.harmless_rejected;
    for (const auto& [rule, count] : row.policies) total.policies[rule] += count;
  }
  return total;
}

std::string KillTable::ToString(const std::vector<std::string>& kinds) const {
  std::string text = fmt::format("{:<32}{:>8}{:>9}{:>10}{:>20}{:>20}\n", "kind", "mutants",
                                 "harmful", "rejected", "harmless accepted", "harmless rejected");
  for (const std::string& kind : kinds) text += Line(kind, Row(kind));
  return text + Line("total", Total());
}

}  // namespace prepost::test
