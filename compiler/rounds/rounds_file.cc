// SPDX-License-Identifier: Apache-2.0
#include "compiler/rounds/rounds_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <limits>
#include <streambuf>
#include <string_view>

#include "compiler/rounds/rounds_findings.h"
#include "compiler/spec.h"
#include "ir/base/near_name.h"
#include "ir/base/utf8.h"
#include "ir/json/json_reader.h"
#include "ir/json/json_word.h"
#include "ir/plan.h"
#include "ir/words.h"

namespace prepost {
namespace {

constexpr const char* kRoundsFormat = "prepost.rounds";
constexpr uint32_t kRoundsMajor = 1;
constexpr uint32_t kRoundsMinor = 1;
constexpr const char* kEmptyRound = "-";
constexpr size_t kWordMax = 64;   ///< characters of a word that are kept: no transfer has so many
constexpr size_t kShownMax = 40;  ///< of a wrong word
constexpr uint64_t kBarrenBytesMax = uint64_t{16} << 20;  ///< in a row that give no transfer
constexpr uint32_t kRoundsMax = std::numeric_limits<uint32_t>::max() - 1;

std::string Quoted(std::string_view word) {
  return fmt::format("'{}'", Printable(word.substr(0, kShownMax)));
}

/// Takes the decimal number that `text` begins with; one that fits no plan stays as large as that.
/// False: there is none.
bool TakeNumber(std::string_view* text, uint64_t* number) {
  constexpr uint64_t kEnough = uint64_t{1} << 40;
  size_t digits = 0;
  *number = 0;
  for (; digits < text->size(); ++digits) {
    const char c = (*text)[digits];
    if (c < '0' || c > '9') break;
    *number = std::min(*number * 10 + static_cast<uint64_t>(c - '0'), kEnough);
  }
  text->remove_prefix(digits);
  return digits != 0;
}

bool TakeCharacter(std::string_view* text, char wanted) {
  if (text->empty() || text->front() != wanted) return false;
  text->remove_prefix(1);
  return true;
}

/// Of a program's transfers.
constexpr JsonPlace kNoPlace = {.line = 0, .column = 0};

/// The file while it is read.
class RoundsFileBuilder {
 public:
  explicit RoundsFileBuilder(const std::string& name) { file_.name = name; }

  RoundsFile& file() { return file_; }
  /// No more can be taken: what is read from here on would fit no plan.
  bool is_full() const { return is_full_; }

  bool is_empty() const { return rounds_ == 0; }

  /// The collective that stands before the rounds, and what it combines.
  void SetCollective(CollectiveKind kind) { file_.collective = kind; }
  void SetCombine(const Combine& combine) { file_.combine = combine; }

  void BeginRound(JsonPlace place) {
    if (rounds_ == kRoundsMax) return Refuse(place, fmt::format("more than {} rounds", kRoundsMax));
    ++rounds_;
  }

  /// A word of the round that was begun last; `place` is that of its first character. False: it is
  /// no transfer.
  bool AddTransfer(std::string_view word, JsonPlace place) {
    std::string_view rest = word;
    uint64_t from = 0, to = 0, first = 0;
    bool combines = false;
    bool is_transfer = word.size() <= kWordMax && TakeNumber(&rest, &from) &&
                       TakeCharacter(&rest, '>') && TakeNumber(&rest, &to) &&
                       ((combines = TakeCharacter(&rest, '+')) || TakeCharacter(&rest, ':')) &&
                       TakeNumber(&rest, &first);
    uint64_t last = first;
    if (is_transfer && TakeCharacter(&rest, '-')) is_transfer = TakeNumber(&rest, &last);
    if (!is_transfer || !rest.empty()) {
      Find(place, [&] {
        return fmt::format("expected a transfer FROM>TO:BLOCK such as 0>1:0, found {}{}",
                           Quoted(word), NearCollective(word));
      });
      return false;
    }
    const bool is_node = from < kNodesMax && to < kNodesMax;
    if (!is_node || std::max(first, last) >= kBlocksMax) {
      FindTooLarge(is_node, word, place);
      return false;
    }
    if (last < first) {
      Find(place,
           [&] { return fmt::format("the blocks of {} end before they begin", Quoted(word)); });
      return false;
    }
    Keep({.round = rounds_ - 1,
          .from = static_cast<uint32_t>(from),
          .to = static_cast<uint32_t>(to),
          .block = static_cast<uint32_t>(first),
          .count = static_cast<uint32_t>(last - first + 1),
          .combines = combines},
         place);
    return true;
  }

  /// Of a program: one of the same round as the last one, or of a later one.
  void AddTransfer(const PlannedTransfer& it) {
    if (it.round >= kRoundsMax)
      return Refuse(kNoPlace, fmt::format("more than {} rounds", kRoundsMax));
    rounds_ = it.round + 1;
    const bool is_node = it.from < kNodesMax && it.to < kNodesMax;
    if (is_node && it.block < kBlocksMax && it.count != 0 && it.count <= kBlocksMax - it.block)
      return Keep(it, kNoPlace);
    FindTooLarge(is_node, ToString(it), kNoPlace);
  }

  /// `make` returns the message of a finding in the round that was begun last.
  template <typename Make>
  void Find(JsonPlace place, Make make) {
    findings_.Add([&] {
      return Rejected((is_empty() ? "" : fmt::format("round {}: ", rounds_ - 1)) + make(),
                      place.line == kNoPlace.line
                          ? file_.name
                          : fmt::format("{}:{}:{}", file_.name, place.line, place.column));
    });
  }

  /// Nothing behind `place` is read.
  void Refuse(JsonPlace place, const std::string& message) {
    if (is_full_) return;
    Find(place, [&] { return message; });
    is_full_ = true;
  }

  /// The file, unless something was found, or `read` has failed.
  Result<RoundsFile> Finish(const Status& read) {
    if (!read.ok() && !is_full_) findings_.Add([&] { return read; });
    if (Status status = findings_.ToStatus(); !status.ok()) return status;
    return std::move(file_);
  }

 private:
  void Keep(const PlannedTransfer& transfer, JsonPlace place) {
    if (file_.transfers.size() == kTransfersMax)
      return Refuse(place, fmt::format("more than {} transfers", kTransfersMax));
    range_blocks_ += transfer.count - 1;
    if (range_blocks_ > kRangeBlocksMax) {
      return Refuse(place, fmt::format("ranges have more than {} blocks in all", kRangeBlocksMax));
    }
    file_.transfers.push_back(transfer);
    if (place.line == kNoPlace.line) return;
    constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
    file_.positions.push_back({.line = static_cast<uint32_t>(std::min(place.line, kMost)),
                               .column = static_cast<uint32_t>(std::min(place.column, kMost))});
  }
  /// A word before the first round may have been meant for a collective.
  std::string NearCollective(std::string_view word) const {
    if (rounds_ > 1 || !file_.transfers.empty() || word.size() > kShownMax) return "";
    return DidYouMean(std::string(word), NamesOf<CollectiveKind>());
  }
  /// `is_block`: else one of the nodes of `word`.
  void FindTooLarge(bool is_block, std::string_view word, JsonPlace place) {
    Find(place, [&] {
      return fmt::format("{} of {} is too large, a plan has at most {} {}s",
                         is_block ? "the block" : "a node", Quoted(word),
                         is_block ? kBlocksMax : kNodesMax, is_block ? "block" : "node");
    });
  }

  RoundsFile file_;
  RoundsFindings findings_;
  uint32_t rounds_ = 0;        ///< begun so far
  uint64_t range_blocks_ = 0;  ///< beside the first of each transfer
  bool is_full_ = false;
};

/// The characters of a text and where they stand.
class CharacterReader {
 public:
  explicit CharacterReader(std::istream& in) : in_(*in.rdbuf()) {}

  static constexpr int kEnd = std::char_traits<char>::eof();

  /// The next character, which is not taken, or kEnd.
  int Peek() { return is_barren() ? kEnd : in_.sgetc(); }
  void Take() {
    ++barren_bytes_;
    const bool is_line_end = in_.sbumpc() == '\n';
    ++place_.column;
    if (is_line_end) place_ = {.line = place_.line + 1, .column = 0};
  }
  /// Of the last character taken.
  JsonPlace place() const { return place_; }
  /// What was taken was good for something.
  void SetFruitful() { barren_bytes_ = 0; }
  /// So much was not that this is no file of rounds.
  bool is_barren() const { return barren_bytes_ > kBarrenBytesMax; }

 private:
  std::streambuf& in_;
  JsonPlace place_;
  uint64_t barren_bytes_ = 0;
};

bool IsBlank(int c) { return c == ' ' || c == '\t' || c == '\r'; }

class RoundsTextReader {
 public:
  RoundsTextReader(CharacterReader& characters, RoundsFileBuilder* file)
      : characters_(characters), file_(*file) {}

  void Read() {
    while (!file_.is_full()) {
      const int c = characters_.Peek();
      if (characters_.is_barren()) {
        return file_.Refuse(characters_.place(),
                            fmt::format("more than {} bytes without a transfer", kBarrenBytesMax));
      }
      if (c == CharacterReader::kEnd) return;
      if (c == '#') {
        TakeComment();
      } else if (c == '\n') {
        words_ = 0;
        is_empty_round_ = is_heading_ = false;
        characters_.Take();
      } else if (IsBlank(c)) {
        characters_.Take();
      } else {
        TakeWord();
      }
    }
  }

 private:
  void TakeComment() {
    for (int c = '#'; c != '\n' && c != CharacterReader::kEnd; c = characters_.Peek())
      characters_.Take();
  }

  void TakeWord() {
    word_.clear();
    JsonPlace place = characters_.place();
    ++place.column;
    for (int c = characters_.Peek();
         c != CharacterReader::kEnd && c != '\n' && c != '#' && !IsBlank(c);
         c = characters_.Peek()) {
      if (word_.size() <= kWordMax) word_ += static_cast<char>(c);
      characters_.Take();
    }
    if (is_heading_) return TakeHeading(place);
    if (words_ == 0 && file_.is_empty() && !file_.file().collective) {
      const std::optional<CollectiveKind> kind = EnumeratorOf<CollectiveKind>(word_);
      if (kind) {
        is_heading_ = true;
        return file_.SetCollective(*kind);
      }
    }
    if (words_++ == 0) {
      file_.BeginRound(place);
      is_empty_round_ = word_ == kEmptyRound;
      if (is_empty_round_ || file_.is_full()) return;
    }
    if (is_empty_round_ || word_ == kEmptyRound) {
      file_.Find(place, [&] {
        return fmt::format("'{}' is a round without transfers, found {} beside it", kEmptyRound,
                           is_empty_round_ ? Quoted(word_) : "transfers");
      });
      return;
    }
    if (file_.AddTransfer(word_, place)) characters_.SetFruitful();
  }

  /// A word behind the collective: what it combines.
  void TakeHeading(JsonPlace place) {
    if (file_.file().combine) {
      return file_.Refuse(place, fmt::format("expected the first round on a line of its own, found "
                                             "{} behind the operation",
                                             Quoted(word_)));
    }
    const Result<Combine> combine = ParseCombine(Printable(word_));
    if (!combine.ok()) return file_.Refuse(place, combine.status().message());
    file_.SetCombine(*combine);
  }

  CharacterReader& characters_;
  RoundsFileBuilder& file_;
  std::string word_;
  uint64_t words_ = 0;  ///< of the line so far
  bool is_empty_round_ = false;
  bool is_heading_ = false;  ///< the line has the collective
};

/// From the '{' on, which is not taken yet.
Status ReadRoundsJson(std::istream& in, JsonPlace begin, RoundsFileBuilder* builder,
                      std::vector<std::string>* warnings) {
  using Need = JsonForm::Need;
  RoundsFile& file = builder->file();
  JsonPlace last = begin;
  const auto read_transfer = [&](const JsonScalar& scalar) -> Status {
    if (scalar.kind != JsonScalar::Kind::kString)
      return Rejected("expected a transfer such as \"0>1:0\", found " + scalar.Describe());
    // The place is that of the closing quote, and a transfer has no escapes.
    last = scalar.place;
    last.column -= std::min<uint64_t>(scalar.text.size(), last.column - 1);
    builder->AddTransfer(scalar.text, last);
    return builder->is_full() ? Rejected("too large") : Status();
  };
  JsonForm form, combine;
  Combine given;
  combine.Scalar("op", ReadWord(&given.op)).Scalar("type", ReadWord(&given.type));
  form.Scalar("format", ExpectString(kRoundsFormat))
      .Scalar("version", ExpectVersion(kRoundsMajor, kRoundsMinor, warnings))
      .Scalar(
          "collective",
          [&](const JsonScalar& scalar) { return ReadWord(&file.collective.emplace())(scalar); },
          Need::kOptional)
      .Object("combine", &combine, Need::kOptional)
      .Scalar(
          "nodes",
          [&](const JsonScalar& scalar) {
            return ReadUint32(&file.nodes.emplace(), kNodesMax, 1)(scalar);
          },
          Need::kOptional)
      .Scalar(
          "root",
          [&](const JsonScalar& scalar) {
            return ReadUint32(&file.root.emplace(), kNodesMax - 1)(scalar);
          },
          Need::kOptional)
      .Scalar(
          "blocks",
          [&](const JsonScalar& scalar) {
            return ReadUint32(&file.blocks.emplace(), kBlocksMax, 1)(scalar);
          },
          Need::kOptional)
      .ScalarLists(
          "rounds", [&] { builder->BeginRound(last); }, read_transfer);
  PREPOST_RETURN_IF_ERROR(ReadJson(in, file.name, &form, begin));
  if (!given.is_none()) file.combine = given;
  return {};
}

}  // namespace

std::string ToString(const PlannedTransfer& transfer) {
  std::string text = fmt::format("{}>{}{}{}", transfer.from, transfer.to,
                                 transfer.combines ? '+' : ':', transfer.block);
  if (transfer.count != 1)
    text += fmt::format("-{}", uint64_t{transfer.block} + transfer.count - 1);
  return text;
}

Status RoundsFile::At(size_t transfer, const std::string& message) const {
  const std::string text = fmt::format("round {}: {}", transfers[transfer].round, message);
  if (positions.empty()) return Rejected(text, name);
  const Position& position = positions[transfer];
  return Rejected(text, fmt::format("{}:{}:{}", name, position.line, position.column));
}

std::string RoundsFile::PlaceOf(size_t transfer) const {
  const std::string round = fmt::format(": round {}", transfers[transfer].round);
  if (positions.empty()) return name + round;
  const Position& position = positions[transfer];
  return fmt::format("{}:{}:{}{}", name, position.line, position.column, round);
}

std::string RoundsFile::RoundOf(size_t transfer) const {
  std::string text = fmt::format("round {}", transfers[transfer].round);
  if (!positions.empty()) text += fmt::format(" (line {})", positions[transfer].line);
  return text;
}

Result<RoundsFile> ReadRoundsFile(std::istream& in, const std::string& name,
                                  std::vector<std::string>* warnings) {
  RoundsFileBuilder builder(name);
  try {
    CharacterReader characters(in);
    while (IsBlank(characters.Peek()) || characters.Peek() == '\n') characters.Take();
    if (characters.Peek() == '{')
      return builder.Finish(ReadRoundsJson(in, characters.place(), &builder, warnings));
    RoundsTextReader(characters, &builder).Read();
    return builder.Finish({});
  } catch (const std::ios_base::failure& failure) {  // the stream buffer could not read
    return Rejected(fmt::format("cannot read: {}", failure.code().message()), name);
  }
}

Result<RoundsFile> RoundsOfProgram(std::span<const PlannedTransfer> transfers,
                                   const std::string& name) {
  PREPOST_CHECK(std::ranges::is_sorted(transfers, {}, &PlannedTransfer::round));
  RoundsFileBuilder builder(name);
  for (const PlannedTransfer& transfer : transfers) {
    if (builder.is_full()) break;
    builder.AddTransfer(transfer);
  }
  return builder.Finish({});
}

}  // namespace prepost
