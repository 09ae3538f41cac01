// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: the columns of integers of a page's data (page.h), and how the whole is packed.
#ifndef PREPOST_VIZ_PAGE_DATA_PAGE_COLUMNS_H_
#define PREPOST_VIZ_PAGE_DATA_PAGE_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace prepost::viz {

/// As zigzag LEB128, so that small values below 0 are short, too.
void AppendVarint(int64_t value, std::string* bytes);

/// Columns one after the other, each filled before the next is begun.
class PageColumns {
 public:
  /// kSteps: what is written of a value is its difference to the one before. kPlain: itself.
  enum class Coding : uint8_t { kSteps, kPlain };

  void Begin(std::string name, Coding coding = Coding::kSteps);
  void Add(int64_t value);
  /// {"name", "count", "bytes"} of each, and "plain" of those.
  nlohmann::ordered_json Describe() const;
  const std::string& bytes() const { return bytes_; }
  /// Adds all of `other`.
  void Append(const PageColumns& other);

 private:
  struct Column {
    std::string name;
    size_t count = 0;
    size_t begin = 0;  ///< in `bytes_`
    Coding coding = Coding::kSteps;
  };
  std::vector<Column> columns_;
  std::string bytes_;
  int64_t last_ = 0;
};

/// How many bytes they take once they are packed.
size_t PackedBytes(const PageColumns& columns);
/// Base64 of a zlib stream of the head's length, the head and the columns.
std::string PackPage(std::string_view head, const PageColumns& columns);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PAGE_DATA_PAGE_COLUMNS_H_
