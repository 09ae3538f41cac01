// SPDX-License-Identifier: Apache-2.0
//
// Teardown: what was made, to be unmade in reverse order, when all goes or from where something
// failed half-way.
#ifndef PREPOST_BACKENDS_MLX5_TEARDOWN_H_
#define PREPOST_BACKENDS_MLX5_TEARDOWN_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace prepost::mlx5 {

class Teardown {
 public:
  Teardown() = default;
  Teardown(const Teardown&) = delete;
  Teardown& operator=(const Teardown&) = delete;
  ~Teardown() { UnwindTo(0); }

  void Push(std::function<void()> undo) { steps_.push_back(std::move(undo)); }
  size_t size() const { return steps_.size(); }
  /// Undoes the steps from position `size` on, the last one first.
  void UnwindTo(size_t size) {
    while (steps_.size() > size) {
      const std::function<void()> undo = std::move(steps_.back());
      steps_.pop_back();
      undo();
    }
  }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_TEARDOWN_H_
