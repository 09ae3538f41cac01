// SPDX-License-Identifier: Apache-2.0
//
// The spec file: reading and writing JSON as compiler/spec.schema.json describes it.
#ifndef PREPOST_COMPILER_SPEC_JSON_H_
#define PREPOST_COMPILER_SPEC_JSON_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "compiler/spec.h"
#include "ir/json/json_reader.h"

namespace prepost {

/// The keys of a spec that need nothing beside them, nodes to send_window, all optional, as keys of
/// `form`, which reads them into `*spec`: for files that have specs inside.
void AddSpecKeys(Spec* spec, JsonForm* form);

/// Reads one spec from `in` over the values that `defaults` holds: keys that the file lacks keep
/// them. The form is checked here, the values by CheckSpec(). Errors: "name:line:col: /pointer:
/// ...".
Result<Spec> ReadSpec(std::istream& in, const std::string& name, const Spec& defaults = {},
                      std::vector<std::string>* warnings = nullptr);

/// Writes every key that has a value; reading it back gives the same spec.
void WriteSpec(const Spec& spec, std::ostream& out);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SPEC_JSON_H_
