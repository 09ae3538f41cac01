// SPDX-License-Identifier: Apache-2.0
//
// A rule is a rectangle, nodes by bytes, and the first that holds a spec's point wins. A rule can
// never match if the rectangles before it cover it together. To find out, each of them is cut out
// of it in turn: of a rectangle at most four are left, above, below, and the sides between.
#include "compiler/choice/choice_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/schedules/schedule.h"
#include "ir/json/json_reader.h"

namespace prepost {
namespace {

constexpr const char* kRulesFormat = "prepost.choice_rules";
constexpr uint32_t kRulesMajor = 1;
constexpr uint32_t kRulesMinor = 0;

struct Rectangle {
  NumberRange nodes;
  NumberRange bytes;
};

/// What is left of `whole` outside of `cut`, added to `left`.
void CutOut(const Rectangle& cut, Rectangle whole, std::vector<Rectangle>* left) {
  const auto is_apart = [](const NumberRange& a, const NumberRange& b) {
    return a.max < b.min || b.max < a.min;
  };
  if (is_apart(cut.nodes, whole.nodes) || is_apart(cut.bytes, whole.bytes)) {
    left->push_back(whole);
    return;
  }
  if (whole.nodes.min < cut.nodes.min)
    left->push_back({{whole.nodes.min, cut.nodes.min - 1}, whole.bytes});
  if (whole.nodes.max > cut.nodes.max)
    left->push_back({{cut.nodes.max + 1, whole.nodes.max}, whole.bytes});
  whole.nodes = {std::max(whole.nodes.min, cut.nodes.min),
                 std::min(whole.nodes.max, cut.nodes.max)};
  if (whole.bytes.min < cut.bytes.min)
    left->push_back({whole.nodes, {whole.bytes.min, cut.bytes.min - 1}});
  if (whole.bytes.max > cut.bytes.max)
    left->push_back({whole.nodes, {cut.bytes.max + 1, whole.bytes.max}});
}

/// Whether `rules` take all that `rule` is for.
bool AreCovering(const std::vector<ChoiceRule>& rules, const ChoiceRule& rule) {
  std::vector<Rectangle> left = {{rule.nodes, rule.bytes}};
  for (const ChoiceRule& earlier : rules) {
    std::vector<Rectangle> rest;
    for (const Rectangle& it : left) CutOut({earlier.nodes, earlier.bytes}, it, &rest);
    left = std::move(rest);
    if (left.empty()) return true;
  }
  return false;
}

/// [min, max].
class RangeReader {
 public:
  RangeReader(const char* what, uint64_t most) : what_(what), most_(most) {}

  void Begin() { numbers_.clear(); }
  JsonForm::ReadScalar Element() {
    return [this](const JsonScalar& scalar) -> Status {
      if (numbers_.size() == 2)
        return Rejected(fmt::format("{}: a range is [min, max], found a third number", what_));
      return ReadUint64(&numbers_.emplace_back(), most_)(scalar);
    };
  }
  Result<NumberRange> Finish() const {
    if (numbers_.empty()) return NumberRange{.min = 0, .max = most_};  // not given
    if (numbers_[0] > numbers_[1]) {
      return Rejected(
          fmt::format("{}: the range [{}, {}] is empty", what_, numbers_[0], numbers_[1]));
    }
    return NumberRange{.min = numbers_[0], .max = numbers_[1]};
  }

 private:
  const char* what_;
  uint64_t most_;
  std::vector<uint64_t> numbers_;
};

class RulesReader {
 public:
  explicit RulesReader(std::vector<std::string>* warnings) {
    rule_
        .OnBegin([this] {
          read_ = {};
          nodes_.Begin();
          bytes_.Begin();
        })
        .Scalars("nodes", nodes_.Element(), JsonForm::Need::kOptional, 2)
        .Scalars("bytes", bytes_.Element(), JsonForm::Need::kOptional, 2)
        .Scalar(
            "algorithm", [this](const JsonScalar& it) { return ReadAlgorithm(it); },
            JsonForm::Need::kOptional)
        .Scalar(
            "block_bytes", [this](const JsonScalar& it) { return ReadBlockBytes(it); },
            JsonForm::Need::kOptional)
        .OnEnd([this] { return EndRule(); });
    form_.Scalar("format", ExpectString(kRulesFormat))
        .Scalar("version", ExpectVersion(kRulesMajor, kRulesMinor, warnings))
        .Objects("rules", &rule_);
  }

  JsonForm* form() { return &form_; }
  std::vector<ChoiceRule> Take() { return std::move(rules_); }

 private:
  Status ReadAlgorithm(const JsonScalar& scalar) {
    std::string name;
    PREPOST_RETURN_IF_ERROR(ReadString(&name)(scalar));
    if (name == kAutoAlgorithm) return {};
    if (const Result<Algorithm> algorithm = FindAlgorithm(name); !algorithm.ok())
      return algorithm.status();
    read_.algorithm = std::move(name);
    return {};
  }
  Status ReadBlockBytes(const JsonScalar& scalar) {
    if (scalar.kind == JsonScalar::Kind::kString && scalar.text == kAutoAlgorithm) return {};
    return ReadUint64(&read_.block_bytes.emplace(), kMessageBytesMax, 1)(scalar);
  }
  Status EndRule() {
    if (rules_.size() == kChoiceRulesMax)
      return Rejected(fmt::format("more than {} rules", kChoiceRulesMax));
    const Result<NumberRange> nodes = nodes_.Finish();
    if (!nodes.ok()) return nodes.status();
    const Result<NumberRange> bytes = bytes_.Finish();
    if (!bytes.ok()) return bytes.status();
    read_.nodes = *nodes;
    read_.bytes = *bytes;
    if (!read_.algorithm && !read_.block_bytes)
      return Rejected("a rule pins algorithm, block_bytes or both, this one neither");
    if (AreCovering(rules_, read_))
      return Rejected("this rule can never match: earlier ones take all its nodes and bytes");
    rules_.push_back(read_);
    return {};
  }

  JsonForm form_, rule_;
  ChoiceRule read_;
  RangeReader nodes_{"nodes", kNodesMax};
  RangeReader bytes_{"bytes", kMessageBytesMax};
  std::vector<ChoiceRule> rules_;
};

}  // namespace

ChoiceRule ChoiceRule::For(const Spec& spec) const {
  ChoiceRule used = *this;
  if (spec.algorithm != kAutoAlgorithm) used.algorithm.reset();
  if (!spec.choose_block_bytes) used.block_bytes.reset();
  return used;
}

std::string ChoiceRule::Describe() const {
  std::vector<std::string> pinned;
  if (algorithm) pinned.push_back("algorithm " + *algorithm);
  if (block_bytes) pinned.push_back(fmt::format("block_bytes {}", *block_bytes));
  return fmt::format("{}", fmt::join(pinned, ", "));
}

std::optional<size_t> ChoiceRules::Apply(Spec* spec) const {
  const auto match = std::ranges::find_if(rules, [&](const ChoiceRule& rule) {
    return rule.nodes.Holds(spec->nodes) && rule.bytes.Holds(spec->message_bytes.value_or(0));
  });
  if (match == rules.end()) return std::nullopt;
  const ChoiceRule used = match->For(*spec);
  if (!used.algorithm && !used.block_bytes) return std::nullopt;
  if (used.algorithm) spec->algorithm = *used.algorithm;
  if (used.block_bytes) {
    spec->block_bytes = *used.block_bytes;
    spec->choose_block_bytes = false;
  }
  return static_cast<size_t>(match - rules.begin());
}

Result<ChoiceRules> ReadChoiceRules(std::istream& in, const std::string& name,
                                    std::vector<std::string>* warnings) {
  RulesReader reader(warnings);
  PREPOST_RETURN_IF_ERROR(ReadJson(in, name, reader.form()));
  return ChoiceRules{.name = name, .rules = reader.Take()};
}

}  // namespace prepost
