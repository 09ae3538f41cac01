// SPDX-License-Identifier: Apache-2.0
//
// The spec file: reading and writing JSON as compiler/spec.schema.json describes it.
#ifndef PREPOST_COMPILER_SPEC_JSON_H_
#define PREPOST_COMPILER_SPEC_JSON_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "compiler/part_rows.h"
#include "compiler/spec.h"
#include "ir/json/json_reader.h"

namespace prepost {

/// The keys of a spec that need nothing beside them, collective to send_window, as keys of a form:
/// for files that have specs inside. Lives longer than the reading, as does what is read; neither
/// copied nor moved.
class SpecKeys {
 public:
  SpecKeys() = default;
  SpecKeys(const SpecKeys&) = delete;
  SpecKeys& operator=(const SpecKeys&) = delete;

  /// `form` reads them into `*spec`. All are optional, but `collective` as `need` says.
  void AddTo(Spec* spec, JsonForm* form, JsonForm::Need need = JsonForm::Need::kOptional);
  /// To be called when such an object ends. Errors: what is wrong with it as a whole.
  Status End();

 private:
  Spec* spec_ = nullptr;
  JsonForm combine_;
  PartRows part_rows_;
};

/// Reads one spec from `in` over the values that `defaults` holds: keys that the file lacks keep
/// them. The form is checked here, the values by CheckSpec(). Errors: "name:line:col: /pointer:
/// ...".
Result<Spec> ReadSpec(std::istream& in, const std::string& name, const Spec& defaults = {},
                      std::vector<std::string>* warnings = nullptr);

/// Writes every key that has a value; reading it back gives the same spec.
void WriteSpec(const Spec& spec, std::ostream& out);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SPEC_JSON_H_
