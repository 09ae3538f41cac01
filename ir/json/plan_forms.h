// SPDX-License-Identifier: Apache-2.0
//
// What the files of plans have in common, read (as JsonForms) and written: channels and ops as
// columns. For plan_json.cc, where a file holds a plan, and plan_shard.cc,
// where it holds a part of one. Internal to ir/.
#ifndef PREPOST_IR_JSON_PLAN_FORMS_H_
#define PREPOST_IR_JSON_PLAN_FORMS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/json/json_reader.h"
#include "ir/json/json_writer.h"
#include "ir/plan.h"

namespace prepost {

/// Counts what a reader adds to a plan, where ops and `after` entries are counted in 32 bits.
class EntryCount {
 public:
  /// Refuses what would not fit.
  Status Add(uint64_t ops, uint64_t afters);

 private:
  uint64_t ops_ = 0, afters_ = 0;
};

/// The columns of ListColumns().
template <typename It>
class FieldColumns {
 public:
  /// Reads them as keys of `*form`, to be read until Clear().
  void AddTo(JsonForm* form);
  void Clear() {
    for (std::vector<uint32_t>& column : columns_) column.clear();
  }
  /// Whether all have `expected` elements, as the column `other` has, or are absent where they may.
  Status CheckLengths(const char* other, size_t expected) const;
  size_t size() const { return columns_[0].size(); }
  /// Element i of each; needs columns whose lengths were checked.
  It At(size_t i) const;

 private:
  std::array<std::vector<uint32_t>, 8> columns_;  // in the order of ListColumns()
};

/// Channels as one object of arrays.
class ChannelColumns {
 public:
  enum class Ids : uint8_t { kPositions, kListed };

  /// With Ids::kListed there is a column of ids.
  explicit ChannelColumns(Ids ids);

  /// Reads them; complete and of one length when the object ends. To be read once.
  JsonForm* form() { return &form_; }
  size_t size() const { return columns_.size(); }
  uint32_t id(size_t i) const { return id_[i]; }
  Channel channel(size_t i) const { return columns_.At(i); }

 private:
  JsonForm form_;
  std::vector<uint32_t> id_;
  FieldColumns<Channel> columns_;
};
/// `ids`, if given, has one for each channel.
void WriteChannelColumns(std::span<const Channel> channels,
                         std::optional<std::span<const uint32_t>> ids, JsonWriter& json);

/// The ops of one program as one object of arrays.
class OpColumns {
 public:
  /// Adds each program's ops to `*builder` and `*count` when its object ends; the program has begun
  /// then.
  OpColumns(PlanBuilder* builder, EntryCount* count);

  JsonForm* form() { return &form_; }

 private:
  Status ReadKinds(const JsonScalar& scalar);
  Status CheckLengths() const;
  Status AddOps();

  PlanBuilder* builder_;
  EntryCount* count_;
  JsonForm form_;
  std::vector<OpKind> kinds_;
  FieldColumns<Op> columns_;
  std::vector<uint32_t> after_count_, after_;
};
void WriteOpColumns(const Plan& plan, const Program& program, JsonWriter& json);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_PLAN_FORMS_H_
