// SPDX-License-Identifier: Apache-2.0
//
// TempFolder: a new folder for one test, removed with all that is in it.
#ifndef PREPOST_TESTS_SUPPORT_TEMP_FOLDER_H_
#define PREPOST_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

namespace prepost::test {

class TempFolder {
 public:
  TempFolder() : path_(::testing::TempDir() + "prepost-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void WriteBytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.good()) << path;
}

inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// How many regular files are below `path`, at any depth; 0 if it does not exist.
inline size_t CountFiles(const std::string& path) {
  if (!std::filesystem::exists(path)) return 0;
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) ++count;
  }
  return count;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_TEMP_FOLDER_H_
