// SPDX-License-Identifier: Apache-2.0
//
// Findings: what the verifier collects: all are counted, the first few by place are kept. Internal
// to ir/.
#ifndef PREPOST_IR_VERIFY_FINDINGS_H_
#define PREPOST_IR_VERIFY_FINDINGS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/place.h"
#include "ir/verify/verify.h"

namespace prepost {

/// The place of an op given by its index into Plan::ops().
Place PlaceOf(const Plan& plan, uint32_t op, const char* leaf = "");

class Findings {
 public:
  explicit Findings(uint32_t kept_max) : kept_max_(kept_max) {}
  /// Among findings in programs, keeps only those in `program`.
  Findings(uint32_t kept_max, uint32_t program) : kept_max_(kept_max), program_(program) {}

  /// Counts a finding; `message` (a function that returns the text) is only called if the finding
  /// is kept.
  template <typename MakePayload>
  void Add(const Place& place, Rule rule, MakePayload message) {
    AddWithNotes(place, rule, [&] { return std::pair(message(), std::vector<std::string>()); });
  }
  template <typename MakeMessageAndNotes>
  void AddWithNotes(const Place& place, Rule rule, MakeMessageAndNotes make) {
    if (program_ && place.section == Place::Section::kPrograms && place.index != *program_) return;
    ++count_;
    const Key key{place.section, place.index,       place.op + 1, rule,
                  place.leaf,    place.element + 1, count_};
    if (kept_.size() >= kept_max_ && (kept_.empty() || kept_.rbegin()->first < key)) return;
    auto [message, notes] = make();
    kept_.emplace(key,
                  Diagnostic{rule, place, place.Pointer(), std::move(message), std::move(notes)});
    if (kept_.size() > kept_max_) kept_.erase(std::prev(kept_.end()));
  }

  uint64_t count() const { return count_; }
  Verdict Take() &&;

 private:
  /// Sort order. Ops + 1 so that the program itself (kWhole) comes before its ops; the count keeps
  /// equal places apart.
  struct Key {
    Place::Section section;
    uint32_t index;
    uint32_t op;
    Rule rule;
    std::string_view leaf;
    uint32_t element;
    uint64_t serial;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  uint32_t kept_max_;
  std::optional<uint32_t> program_;
  uint64_t count_ = 0;
  std::map<Key, Diagnostic> kept_;
};

}  // namespace prepost

#endif  // PREPOST_IR_VERIFY_FINDINGS_H_
