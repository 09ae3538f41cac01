// SPDX-License-Identifier: Apache-2.0
//
// A mutator for JSON texts: half of the time it changes one number, so that files stay well-formed
// and reach what comes after the reader; else it leaves the text to libFuzzer.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace {

struct Number {
  size_t begin = 0;
  size_t digits = 0;
};

std::vector<Number> NumbersIn(const std::string& text) {
  std::vector<Number> numbers;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    const bool goes_on = !numbers.empty() && numbers.back().begin + numbers.back().digits == i;
    if (is_digit && goes_on) ++numbers.back().digits;
    if (is_digit && !goes_on) numbers.push_back({.begin = i, .digits = 1});
  }
  return numbers;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  std::minstd_rand random(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<Number> numbers = NumbersIn(text);
  if (numbers.empty() || random() % 2 == 0) return LLVMFuzzerMutate(data, size, size_max);
  const Number number = numbers[random() % numbers.size()];
  const Number other = numbers[random() % numbers.size()];
  const std::string value =
      random() % 2 == 0 ? std::to_string(random() % 8) : text.substr(other.begin, other.digits);
  text.replace(number.begin, number.digits, value);
  size = std::min(text.size(), size_max);
  std::memcpy(data, text.data(), size);
  return size;
}
