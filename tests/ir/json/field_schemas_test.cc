// SPDX-License-Identifier: Apache-2.0
//
// The shipped schemas of plans ask for the fields of plan_fields.h and for no others.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "ir/json/json_word.h"
#include "ir/plan_fields.h"
#include "ir/rolled/rolled_fields.h"

namespace prepost {
namespace {

using Json = nlohmann::json;
using Names = std::set<std::string>;

class Schema {
 public:
  explicit Schema(const std::string& name) : name_(name) {
    std::ifstream in(std::string(PREPOST_SOURCE_DIR "/ir/json/") + name);
    root_ = Json::parse(in);
  }

  const Json& root() const { return root_; }
  const Json& Definition(const std::string& name) const { return root_.at("$defs").at(name); }

  /// `object`: the schema of an object that has the fields of `it`, and the keys of `others`.
  template <typename It>
  void ExpectFields(const Json& object, const It& it, const Names& others) const {
    Names keys = others;
    VisitFields(it, [&](const PlanField& field, const auto& value) {
      SCOPED_TRACE(name_ + ": " + field.key);
      keys.insert(field.key);
      ASSERT_TRUE(object.at("properties").contains(field.key));
      ExpectNeed(object, field);
      ExpectValue(Resolved(object.at("properties").at(field.key)), field, value);
    });
    ExpectKeys(object, keys);
  }

  /// `object`: the schema of the same as columns.
  template <typename It>
  void ExpectColumns(const Json& object, const Names& others) const {
    Names keys = others;
    const It any;
    VisitFields(any, [&](const PlanField& field, const auto& value) {
      SCOPED_TRACE(name_ + ", columns: " + field.key);
      keys.insert(field.key);
      ASSERT_TRUE(object.at("properties").contains(field.key));
      ExpectNeed(object, field);
      const Json& column = Resolved(object.at("properties").at(field.key));
      if constexpr (!std::is_same_v<decltype(value), const OpKind&>)
        ExpectValue(Resolved(column.at("items")), field, value);
    });
    ExpectKeys(object, keys);
  }

 private:
  const Json& Resolved(const Json& schema) const {
    if (!schema.contains("$ref")) return schema;
    return root_.at(Json::json_pointer(schema.at("$ref").get<std::string>().substr(1)));
  }

  static void ExpectNeed(const Json& object, const PlanField& field) {
    const auto required = object.at("required").get<Names>();
    EXPECT_EQ(required.contains(field.key), !field.if_absent.has_value());
  }
  void ExpectKeys(const Json& object, const Names& keys) const {
    Names found;
    for (const auto& [key, schema] : object.at("properties").items()) found.insert(key);
    EXPECT_EQ(found, keys) << name_;
    EXPECT_EQ(object.at("additionalProperties"), false) << name_;
  }

  template <typename Value>
  void ExpectValue(const Json& schema, const PlanField& field, const Value& value) const {
    if constexpr (HasFields<const Value>) {
      ExpectFields(schema, value, {});
    } else if constexpr (std::is_enum_v<Value> && !std::is_same_v<Value, Lane>) {
      ExpectWords(schema, kEnumerators<Value>);
    } else if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
      EXPECT_EQ(schema.at("type"), "array");
      EXPECT_EQ(schema.at("items").at("minimum"), field.min);
      EXPECT_EQ(schema.at("items").at("maximum"), field.max);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      EXPECT_EQ(schema.at("type"), "string");
    } else if constexpr (!std::is_same_v<Value, LinearInBlocks>) {
      const bool may_be_null =
          std::is_same_v<Value, std::optional<uint32_t>> || field.null_value.has_value();
      ASSERT_EQ(schema.contains("oneOf"), may_be_null);
      const Json& number = may_be_null ? Resolved(schema.at("oneOf").at(1)) : schema;
      EXPECT_EQ(number.at("type"), "integer");
      // What is valid may be narrower than what is read and then found wrong.
      EXPECT_GE(number.at("minimum"), field.min);
      EXPECT_EQ(number.at("maximum"), field.max);
    }
  }
  template <typename Words>
  static void ExpectWords(const Json& schema, const Words& words) {
    Names names;
    for (const auto word : words) names.insert(Name(word));
    const Names found = schema.contains("enum") ? schema.at("enum").get<Names>()
                                                : Names{schema.at("const").get<std::string>()};
    EXPECT_EQ(found, names);
  }

  const std::string name_;
  Json root_;
};

// Catches a field that a file has and its schema does not, or with other bounds.
TEST(FieldSchemasTest, PlansHaveTheFields) {
  const Schema plan("plan.schema.json");
  plan.ExpectFields(plan.root(), PlanHeader(), {"format", "version", "channels", "programs"});
  plan.ExpectFields(plan.Definition("channel"), Channel(), {});
  plan.ExpectFields(plan.Definition("op"), Op(), {"after"});
  plan.ExpectColumns<Channel>(plan.Definition("channel_columns"), {});
  plan.ExpectColumns<Op>(plan.Definition("op_columns"), {"after_count", "after"});
}

TEST(FieldSchemasTest, ShardsHaveTheFields) {
  const Schema index("plan_index.schema.json");
  index.ExpectFields(index.root(), PlanHeader(),
                     {"format", "version", "channels", "plan_hash", "shards"});
  const Schema shard("plan_shard.schema.json");
  shard.ExpectColumns<Channel>(shard.Definition("channel_columns"), {"id"});
  shard.ExpectColumns<Op>(shard.Definition("op_columns"), {"after_count", "after"});
}

TEST(FieldSchemasTest, RolledPlansHaveTheFields) {
  const Schema rolled("rolled_plan.schema.json");
  rolled.ExpectFields(rolled.root(), RolledPlan(), {"format", "version", "programs"});
}

}  // namespace
}  // namespace prepost
