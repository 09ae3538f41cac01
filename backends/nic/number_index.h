// SPDX-License-Identifier: Apache-2.0
//
// NumberIndex: where in a node's list of objects the one with a QPN or CQN is.
#ifndef PREPOST_BACKENDS_NIC_NUMBER_INDEX_H_
#define PREPOST_BACKENDS_NIC_NUMBER_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <utility>
#include <vector>

namespace prepost::nic {

/// Positions by number: nothing to look up when the numbers follow one another, as devices hand them
/// out, a table when they lie close together.
class NumberIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  /// False when a number occurs twice.
  template <typename Object>
  bool Build(const std::vector<Object>& objects) {
    if (objects.empty()) return true;
    const auto [low, high] = std::ranges::minmax(objects, {}, &Object::number);
    low_ = low.number;
    const auto lies_at_its_number = [&](size_t i) { return objects[i].number - low_ == i; };
    if (std::ranges::all_of(std::views::iota(size_t{0}, objects.size()), lies_at_its_number)) {
      in_order_ = static_cast<uint32_t>(objects.size());
      return true;
    }
    for (size_t i = 0; i < objects.size(); ++i) {
      sorted_.emplace_back(objects[i].number, static_cast<uint32_t>(i));
    }
    std::ranges::sort(sorted_);
    if (high.number - low_ < 4 * objects.size() + 64) {
      table_.assign(size_t{high.number} - low_ + 1, kNone);
      for (const auto& [number, position] : sorted_) table_[number - low_] = position;
    }
    return std::ranges::adjacent_find(sorted_, {}, &std::pair<uint32_t, uint32_t>::first) ==
           sorted_.end();
  }

  /// kNone: no object has the number.
  uint32_t Find(uint32_t number) const {
    if (number - low_ < in_order_) return number - low_;
    if (!table_.empty()) {
      return number - low_ < table_.size() ? table_[number - low_] : kNone;
    }
    const auto found =
        std::ranges::lower_bound(sorted_, number, {}, &std::pair<uint32_t, uint32_t>::first);
    return found != sorted_.end() && found->first == number ? found->second : kNone;
  }

 private:
  uint32_t low_ = 0;
  uint32_t in_order_ = 0;  // so many are at their number - low_
  std::vector<uint32_t> table_;
  std::vector<std::pair<uint32_t, uint32_t>> sorted_;  // (number, position)
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_NUMBER_INDEX_H_
