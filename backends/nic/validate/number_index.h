// SPDX-License-Identifier: Apache-2.0
//
// NumberIndex: where in a node's list of objects the one with a QPN or CQN is.
#ifndef PREPOST_BACKENDS_NIC_VALIDATE_NUMBER_INDEX_H_
#define PREPOST_BACKENDS_NIC_VALIDATE_NUMBER_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

namespace prepost::nic {

/// Positions by number: nothing to look up when the numbers follow one another, as devices hand
/// them out, a table when they lie close together.
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
    scattered_ = std::make_unique<Scattered>();
    auto& [table, sorted] = *scattered_;
    for (size_t i = 0; i < objects.size(); ++i) {
      sorted.emplace_back(objects[i].number, static_cast<uint32_t>(i));
    }
    std::ranges::sort(sorted);
    if (high.number - low_ < 4 * objects.size() + 64) {
      table.assign(size_t{high.number} - low_ + 1, kNone);
      for (const auto& [number, position] : sorted) table[number - low_] = position;
    }
    return std::ranges::adjacent_find(sorted, {}, &std::pair<uint32_t, uint32_t>::first) ==
           sorted.end();
  }

  /// kNone: no object has the number.
  uint32_t Find(uint32_t number) const {
    if (number - low_ < in_order_) return number - low_;
    return scattered_ == nullptr ? kNone : scattered_->Find(number, low_);
  }

 private:
  struct Scattered {
    std::vector<uint32_t> table;  ///< position by number, from the lowest one on; may be empty
    std::vector<std::pair<uint32_t, uint32_t>> sorted;  ///< (number, position)

    uint32_t Find(uint32_t number, uint32_t low) const {
      if (!table.empty()) return number - low < table.size() ? table[number - low] : kNone;
      const auto found =
          std::ranges::lower_bound(sorted, number, {}, &std::pair<uint32_t, uint32_t>::first);
      return found != sorted.end() && found->first == number ? found->second : kNone;
    }
  };

  uint32_t low_ = 0;
  uint32_t in_order_ = 0;  // so many are at their number - low_
  std::unique_ptr<Scattered> scattered_;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_VALIDATE_NUMBER_INDEX_H_
