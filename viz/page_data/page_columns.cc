// SPDX-License-Identifier: Apache-2.0
#include "viz/page_data/page_columns.h"

#include <llvm/Support/Base64.h>
#include <zlib.h>

#include <utility>
#include <vector>

#include "ir/base/status.h"

namespace prepost::viz {
namespace {

std::vector<char> Deflate(std::string_view raw) {
  std::vector<char> packed(compressBound(raw.size()));
  uLongf bytes = packed.size();
  // Into a buffer that is large enough, so that it cannot fail but for memory.
  PREPOST_CHECK(compress2(reinterpret_cast<Bytef*>(packed.data()), &bytes,
                          reinterpret_cast<const Bytef*>(raw.data()), raw.size(),
                          /*level=*/6) == Z_OK);
  packed.resize(bytes);
  return packed;
}

}  // namespace

void AppendVarint(int64_t value, std::string* bytes) {
  uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ (value < 0 ? ~uint64_t{0} : 0);
  for (; rest >= 0x80; rest >>= 7) *bytes += static_cast<char>(rest | 0x80);
  *bytes += static_cast<char>(rest);
}

void PageColumns::Begin(std::string name, Coding coding) {
  columns_.push_back({.name = std::move(name), .begin = bytes_.size(), .coding = coding});
  last_ = 0;
}

void PageColumns::Add(int64_t value) {
  const auto step = static_cast<uint64_t>(value) - static_cast<uint64_t>(last_);
  if (columns_.back().coding == Coding::kSteps) last_ = value;
  AppendVarint(static_cast<int64_t>(step), &bytes_);
  ++columns_.back().count;
}

void PageColumns::Append(const PageColumns& other) {
  for (Column column : other.columns_) {
    column.begin += bytes_.size();
    columns_.push_back(std::move(column));
  }
  bytes_ += other.bytes_;
}

nlohmann::ordered_json PageColumns::Describe() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const size_t end = i + 1 < columns_.size() ? columns_[i + 1].begin : bytes_.size();
    json.push_back({{"name", columns_[i].name},
                    {"count", columns_[i].count},
                    {"bytes", end - columns_[i].begin}});
    if (columns_[i].coding == Coding::kPlain) json.back()["plain"] = true;
  }
  return json;
}

size_t PackedBytes(const PageColumns& columns) { return Deflate(columns.bytes()).size(); }

std::string PackPage(std::string_view head, const PageColumns& columns) {
  std::string raw;
  raw.reserve(sizeof(uint32_t) + head.size() + columns.bytes().size());
  for (size_t i = 0; i < sizeof(uint32_t); ++i) raw += static_cast<char>(head.size() >> (8 * i));
  raw += head;
  raw += columns.bytes();
  return llvm::encodeBase64(Deflate(raw));
}

}  // namespace prepost::viz
