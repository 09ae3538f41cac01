// SPDX-License-Identifier: Apache-2.0
//
// The cases of a grid stand in an order that is the same in every run; run s takes the slice
// (hash of the test + s) % parts of it. 8 cases with the labels a a a a b b c c in 4 parts: those
// of a label stand in an order of their hashes, a2 a0 a3 a1, b5 b4, c6 c7, and each label's are
// spread evenly over the whole, a2 b5 | a0 c6 | a3 b4 | a1 c7: slices in each of which labels are
// as different as they can be.
#include "tests/support/sample.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <tuple>

#include "ir/base/status.h"

namespace prepost::test {
namespace {

/// splitmix64
uint64_t Mix(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same on every machine
  for (const char letter : text) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  return Mix(hash);
}

uint64_t HashOfThisTest() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return HashOf(std::string(test.test_suite_name()) + "." + test.name());
}

/// Schedules in slots are the same in every kTurns-th run.
bool TakesTurns() { return kIsSanitized && !IsLongRun(); }
uint64_t Stride() { return TakesTurns() ? kTurns : 1; }

/// Where schedules take turns, each must meet every part.
uint64_t PartsOf(uint64_t cases, uint64_t divisor) {
  uint64_t parts = std::max<uint64_t>(1, std::min(divisor, cases));
  while (std::gcd(parts, Stride()) != 1) --parts;
  return parts;
}

/// The numbers of the cases, those of a label far apart.
std::vector<size_t> Ordered(const std::vector<std::string>& labels, uint64_t hash) {
  std::map<std::string, std::vector<std::pair<uint64_t, size_t>>> cases;
  for (size_t i = 0; i < labels.size(); ++i) cases[labels[i]].emplace_back(Mix(hash + i), i);
  std::vector<std::pair<uint64_t, std::string>> turns;
  for (const auto& [label, of_label] : cases) turns.emplace_back(Mix(hash ^ HashOf(label)), label);
  std::ranges::sort(turns);
  std::vector<std::tuple<double, size_t, size_t>> places;  // 0 to 1, the label's turn, the case
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    auto& of_label = cases[turns[turn].second];
    std::ranges::sort(of_label);
    for (size_t i = 0; i < of_label.size(); ++i) {
      const double within = static_cast<double>(turn) / static_cast<double>(turns.size());
      places.emplace_back((static_cast<double>(i) + within) / static_cast<double>(of_label.size()),
                          turn, of_label[i].second);
    }
  }
  std::ranges::sort(places);
  std::vector<size_t> order;
  for (const auto& [place, turn, number] : places) order.push_back(number);
  return order;
}

/// Parts of an order of cases.
struct Slices {
  uint64_t cases = 0;
  uint64_t parts = 1;
  uint64_t begin(uint64_t part) const { return part * cases / parts; }
};

std::string Commits(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " commit" : " commits");
}

/// In how many commits each of the values of a key is met: for the one that is met most seldom.
uint64_t CommitsOfEach(const std::map<std::string, std::set<uint64_t>>& parts_of_value,
                       uint64_t parts) {
  uint64_t most = 1;
  for (const auto& [value, has] : parts_of_value) {
    uint64_t gap = 1, longest = 1;
    for (uint64_t turn = 1, part = *has.begin(); turn <= parts; ++turn) {
      part = (part + Stride()) % parts;
      longest = std::max(longest, gap);
      gap = has.contains(part) ? 1 : gap + 1;
    }
    most = std::max(most, longest);
  }
  return most * Stride();
}

/// "; each schedule of 12 within 3 commits, each ring of 2 within 1 commits"
std::string Coverage(const std::vector<std::string>& labels, const std::vector<size_t>& order,
                     const Slices& slices) {
  std::map<std::string, std::map<std::string, std::set<uint64_t>>> keys;  // key, value, parts
  for (uint64_t part = 0; part < slices.parts; ++part) {
    for (uint64_t i = slices.begin(part); i < slices.begin(part + 1); ++i) {
      std::istringstream words(labels[order[i]]);
      for (std::string word; words >> word;) {
        const size_t equals = std::min(word.find('='), word.size());
        keys[word.substr(0, equals)][word.substr(equals)].insert(part);
      }
    }
  }
  std::ostringstream text;
  for (const auto& [key, values] : keys) {
    text << (&key == &keys.begin()->first ? "; " : ", ") << "each " << key << " of "
         << values.size() << " within " << Commits(CommitsOfEach(values, slices.parts));
  }
  return text.str();
}

void Print(uint64_t taken, uint64_t cases, uint64_t part, uint64_t parts,
           const std::string& coverage) {
  std::cout << "sampled: " << taken << " of " << cases << " cases, part " << part + 1 << " of "
            << parts << ", all within " << Commits(parts * Stride()) << coverage
            << "; PREPOST_GRID_SEED=" << GridSeed() << std::endl;
}

/// How many names there are at a time.
size_t SlotsOf(size_t names) {
  return TakesTurns() ? static_cast<size_t>((names + kTurns - 1) / kTurns) : names;
}

}  // namespace

bool IsLongRun() { return std::getenv("PREPOST_TEST_LONG") != nullptr; }

uint64_t GridSeed() {
  const char* seed = std::getenv("PREPOST_GRID_SEED");
  return seed == nullptr ? 0 : std::strtoull(seed, nullptr, 0);
}

std::vector<std::string> Turns(const std::vector<std::string>& names) {
  const size_t slots = SlotsOf(names.size());
  const size_t first = TakesTurns() ? GridSeed() % kTurns * slots : 0;
  std::vector<std::string> there;
  for (size_t slot = 0; slot < slots; ++slot) there.push_back(names[(first + slot) % names.size()]);
  return there;
}

std::vector<std::string> TurnParameters(const std::vector<std::string>& names) {
  if (!TakesTurns()) return names;
  std::vector<std::string> parameters;
  for (size_t slot = 0; slot < SlotsOf(names.size()); ++slot)
    parameters.push_back("slot_" + std::to_string(slot));
  return parameters;
}

std::string NameInTurn(const std::string& parameter, const std::vector<std::string>& names) {
  const std::vector<std::string> parameters = TurnParameters(names);
  const auto at = std::ranges::find(parameters, parameter);
  PREPOST_CHECK(at != parameters.end());
  const std::string name = Turns(names)[static_cast<size_t>(at - parameters.begin())];
  if (TakesTurns()) {
    std::cout << parameter << " is " << name << ": each schedule of " << names.size() << " within "
              << Commits(kTurns) << "; PREPOST_GRID_SEED=" << GridSeed() << std::endl;
  }
  return name;
}

Sample::Sample(const std::vector<std::string>& labels, uint64_t divisor)
    : is_taken_(labels.size(), divisor == 1) {
  if (labels.empty()) ADD_FAILURE() << "a sample of no cases tests nothing";
  if (divisor == 1 || labels.empty()) return;
  const uint64_t hash = HashOfThisTest();
  const Slices slices{.cases = labels.size(), .parts = PartsOf(labels.size(), divisor)};
  const std::vector<size_t> order = Ordered(labels, hash);
  const uint64_t part = (hash % slices.parts + GridSeed() % slices.parts) % slices.parts;
  const uint64_t begin = slices.begin(part), end = slices.begin(part + 1);
  for (uint64_t i = begin; i < end; ++i) is_taken_[order[i]] = true;
  Print(end - begin, slices.cases, part, slices.parts, Coverage(labels, order, slices));
}

Sample::~Sample() {
  if (asked_ != is_taken_.size() && !testing::Test::HasFailure() && !testing::Test::IsSkipped())
    ADD_FAILURE() << "a sample of " << is_taken_.size() << " cases was asked for " << asked_;
}

bool Sample::Takes() {
  const size_t next = asked_++;
  return next < is_taken_.size() && is_taken_[next];
}

bool SampleTakesThisTest() {
  const uint64_t parts = PartsOf(SampleDivisor(), SampleDivisor());
  const uint64_t part = (HashOfThisTest() % parts + GridSeed() % parts) % parts;
  if (parts != 1) Print(part == 0 ? 1 : 0, 1, part, parts, "");
  return part == 0;
}

}  // namespace prepost::test
