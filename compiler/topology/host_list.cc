// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/host_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace prepost {
namespace {

constexpr size_t kHostNameBytesMax = 256;
constexpr size_t kDigitsMax = 9;
constexpr std::string_view kDigits = "0123456789";

Status NoList(std::string_view text, const std::string& why) {
  return Rejected(fmt::format("'{}' is no host list: {}", text.substr(0, 80), why));
}

std::optional<uint32_t> ToNumber(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.size() > kDigitsMax)
    return std::nullopt;
  return value;
}

/// The choices of "001-032,040", added to `choices`.
Status ExpandBrackets(std::string_view inside, size_t choices_max,
                      std::vector<std::string>* choices) {
  for (size_t begin = 0; begin <= inside.size();) {
    const size_t end = std::min(inside.find(',', begin), inside.size());
    const std::string_view part = inside.substr(begin, end - begin);
    const std::string_view first = part.substr(0, part.find('-'));
    const std::string_view last =
        first.size() == part.size() ? first : part.substr(first.size() + 1);
    const std::optional<uint32_t> from = ToNumber(first), to = ToNumber(last);
    if (!from || !to) return NoList(part, "expected a number or a range such as 001-032");
    if (*from > *to) return NoList(part, "the range falls");
    if (*to - *from >= choices_max - choices->size())
      return NoList(part, fmt::format("it gives more than {} names", choices_max));
    for (uint32_t number = *from; number <= *to; ++number)
      choices->push_back(fmt::format("{:0{}}", number, first.size()));
    begin = end + 1;
  }
  return {};
}

/// Expands one item, without a comma outside brackets, to `names`.
Status ExpandItem(std::string_view item, size_t names_max, std::vector<std::string>* names) {
  const std::string_view whole = item;
  if (item.empty()) return NoList(whole, "a name is empty");
  std::vector<std::string> expanded = {""};
  while (!item.empty()) {
    const size_t literal = std::min(item.find_first_of("[]"), item.size());
    std::vector<std::string> choices;
    if (literal > 0) {
      choices.emplace_back(item.substr(0, literal));
      if (std::ranges::any_of(choices[0], [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
        return NoList(whole, "a name has no blanks or control characters");
      item.remove_prefix(literal);
    } else {
      const size_t close = item.find(']');
      if (item[0] == ']' || close == std::string_view::npos || item.find('[', 1) < close)
        return NoList(whole, "brackets do not match");
      PREPOST_RETURN_IF_ERROR(ExpandBrackets(item.substr(1, close - 1), names_max, &choices));
      item.remove_prefix(close + 1);
    }
    if (choices.size() * expanded.size() > names_max - names->size())
      return NoList(whole, fmt::format("it gives more than {} names", names_max));
    std::vector<std::string> longer;
    longer.reserve(choices.size() * expanded.size());
    for (const std::string& name : expanded) {
      for (const std::string& choice : choices) longer.push_back(name + choice);
    }
    expanded = std::move(longer);
    if (expanded[0].size() > kHostNameBytesMax)
      return NoList(expanded[0], fmt::format("a name has at most {} bytes", kHostNameBytesMax));
  }
  std::ranges::move(expanded, std::back_inserter(*names));
  return {};
}

}  // namespace

Result<std::vector<std::string>> ExpandHostList(std::string_view text, size_t names_max) {
  std::vector<std::string> names;
  bool in_brackets = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') in_brackets = true;
    if (i < text.size() && text[i] == ']') in_brackets = false;
    if (i < text.size() && (text[i] != ',' || in_brackets)) continue;
    PREPOST_RETURN_IF_ERROR(ExpandItem(text.substr(begin, i - begin), names_max, &names));
    begin = i + 1;
  }
  return names;
}

std::string WriteHostList(std::span<const std::string> names) {
  std::vector<std::string> items;
  for (size_t i = 0; i < names.size();) {
    const std::string_view name = names[i];
    size_t digits = name.size() - (name.find_last_not_of(kDigits) + 1);
    digits = std::min(digits, kDigitsMax - 1);  // so that the range's last number fits, too
    const std::string_view prefix = name.substr(0, name.size() - digits);
    const std::string_view first = name.substr(prefix.size());
    size_t end = i + 1;
    if (digits > 0) {
      const uint32_t number = *ToNumber(first);
      while (end < names.size() &&
             names[end] == fmt::format("{}{:0{}}", prefix, number + (end - i), digits))
        ++end;
    }
    items.push_back(end == i + 1
                        ? std::string(name)
                        : fmt::format("{}[{}-{}]", prefix, first,
                                      std::string_view(names[end - 1]).substr(prefix.size())));
    i = end;
  }
  return fmt::format("{}", fmt::join(items, ","));
}

}  // namespace prepost
