// SPDX-License-Identifier: Apache-2.0
#include "compiler/part_rows.h"

#include <fmt/format.h>

#include <utility>

#include "ir/base/count.h"
#include "ir/plan.h"

namespace prepost {

Status PartRows::Add(uint64_t bytes) {
  if (sizes_.size() == kBlocksMax)
    return Rejected(fmt::format("more than {} parts, which no plan has", kBlocksMax));
  sizes_.push_back(bytes);
  return {};
}

void PartRows::EndRow(size_t line) {
  if (sizes_.size() <= (ends_.empty() ? 0 : ends_.back())) return;
  ends_.push_back(sizes_.size());
  lines_.push_back(line);
}

Result<std::vector<uint64_t>> PartRows::Take() {
  EndRow();
  const std::vector<uint64_t> sizes = std::exchange(sizes_, {});
  const std::vector<size_t> ends = std::exchange(ends_, {});
  const std::vector<size_t> lines = std::exchange(lines_, {});
  if (ends.size() <= 1 || ends.size() == sizes.size()) return sizes;
  for (size_t row = 0; row < ends.size(); ++row) {
    const size_t length = ends[row] - (row == 0 ? 0 : ends[row - 1]);
    if (length == ends.size()) continue;
    return Rejected(
        fmt::format("row {} has {}, expected {}: there are {}, one for each member", row + 1,
                    Count(length, "size"), ends.size(), Count(ends.size(), "row")),
        lines[row] == 0 ? "" : fmt::to_string(lines[row]));
  }
  return sizes;
}

}  // namespace prepost
