// SPDX-License-Identifier: Apache-2.0
//
// Place: where in a plan file something stands; the text of it is a JSON pointer.
#ifndef PREPOST_IR_PLACE_H_
#define PREPOST_IR_PLACE_H_

#include <cstdint>
#include <string>

namespace prepost {

/// A place in the plan file, in the order of the file: the header, channels, programs. `leaf` names
/// the last step of the JSON pointer: a header key such as "message/blocks", or a key of the
/// channel, program or op; empty for the thing itself. It is a literal: it lives for ever.
struct Place {
  enum class Section : uint8_t { kHeader, kChannels, kPrograms };
  static constexpr uint32_t kWhole = 0xffffffff;

  Section section = Section::kHeader;
  uint32_t index = 0;    ///< which channel or program
  uint32_t op = kWhole;  ///< kPrograms: which op, or kWhole for the program
  const char* leaf = "";
  uint32_t element = kWhole;  ///< of the array `leaf`

  static Place Header(const char* leaf) { return {.leaf = leaf}; }
  static Place ChannelAt(uint32_t channel, const char* leaf = "") {
    return {.section = Section::kChannels, .index = channel, .leaf = leaf};
  }
  static Place ProgramAt(uint32_t program, const char* leaf = "") {
    return {.section = Section::kPrograms, .index = program, .leaf = leaf};
  }
  static Place OpAt(uint32_t program, uint32_t op, const char* leaf = "",
                    uint32_t element = kWhole) {
    return {.section = Section::kPrograms,
            .index = program,
            .op = op,
            .leaf = leaf,
            .element = element};
  }
  std::string Pointer() const;
};

}  // namespace prepost

#endif  // PREPOST_IR_PLACE_H_
