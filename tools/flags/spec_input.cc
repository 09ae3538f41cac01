// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/spec_input.h"

#include <CLI/CLI.hpp>

namespace prepost::tools {

void SpecInput::AddTo(CLI::App& command, bool takes_any) {
  command.add_option("SPEC", path, "Spec file, - for stdin");
  flags.AddTo(command);
  size.AddTo(command, takes_any);
}

Result<Spec> SpecInput::ToSpec() const {
  const Result<std::optional<uint64_t>> bytes = size.Bytes();
  if (!bytes.ok()) return bytes.status();
  return flags.ToSpec(path, *bytes);
}

Result<Spec> SpecInput::Read(const Spec& defaults) const {
  const Result<std::optional<uint64_t>> bytes = size.Bytes();
  if (!bytes.ok()) return bytes.status();
  return flags.Read(path, *bytes, defaults);
}

}  // namespace prepost::tools
