// SPDX-License-Identifier: Apache-2.0
//
// LLVM's parser reads YAML, as a stream of nodes each of which is to be looked at once, in order.
// It goes down into what is nested by calling itself, so how deep that is is bounded first.
#include "compiler/topology/slurm_yaml.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/YAMLParser.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/topology/slurm_tree.h"
#include "ir/base/near_name.h"

namespace prepost {
namespace {

using llvm::dyn_cast;
using llvm::yaml::MappingNode;
using llvm::yaml::Node;
using llvm::yaml::SequenceNode;

constexpr size_t kDepthMax = 100;

bool IsOneOf(char c, std::string_view letters) { return letters.find(c) != letters.npos; }
bool IsOfWord(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         IsOneOf(c, "_-.");
}

/// How deep a text is nested, at least as deep as it is for LLVM: what closes a level counts only
/// where it is surely no part of a text, and texts in quotes and comments are only skipped where
/// they surely are ones. From the first doubt on everything that may open a level counts.
class DepthMeter {
 public:
  explicit DepthMeter(std::string_view text) : text_(text) {}

  /// The first line that is nested more than `max` deep.
  std::optional<size_t> LineDeeperThan(size_t max) {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      Look(text_[at_]);
      if (open_ > max || nested_ > max) return line_;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::string_view kBlanks = " \t", kEnds = "\r\n";

  char Before() const { return at_ == 0 ? '\n' : text_[at_ - 1]; }

  void Look(char c) {
    if (IsOneOf(c, kEnds)) {
      nested_ = 0;
      is_lead_ = true;
      return;
    }
    nested_ = IsOneOf(c, " \t-?:") ? nested_ + 1 : 0;
    if (IsOneOf(c, kBlanks)) return;
    const bool follows_word = IsOfWord(Before());
    if (!is_unclear_ && c == '#' && !follows_word) return SkipComment();
    if (!is_unclear_ && IsOneOf(c, "\"'") && !follows_word) return SkipQuoted(c);
    // Of a host list, n[1-4], unless a word may be something else.
    has_names_ |= IsOneOf(c, "&*!");
    const bool is_of_text = follows_word && !has_names_ && !is_unclear_;
    if (IsOneOf(c, "[{") && !is_of_text) ++open_;
    if (IsOneOf(c, "]}") && open_ > 0 && !is_unclear_) --open_;
    is_lead_ = is_lead_ && IsOneOf(c, "-?");
    last_ = c;
    last_at_ = at_;
  }

  /// Between brackets one may begin without a blank before it, and then it ends nothing else.
  void SkipComment() {
    if (!IsOneOf(Before(), " \t\r\n")) {
      is_unclear_ = true;
      return;
    }
    while (at_ + 1 < text_.size() && !IsOneOf(text_[at_ + 1], kEnds)) ++at_;
  }

  /// Whether what stands here begins something, and goes on with nothing.
  bool IsBegin() const {
    const bool has_blank = last_at_ + 1 < at_;
    if (last_ == ':') return has_blank || (last_at_ > 0 && IsOneOf(text_[last_at_ - 1], "\"'"));
    return open_ > 0 ? IsOneOf(last_, "[{,") : is_lead_;
  }

  /// On one line.
  void SkipQuoted(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && !IsOneOf(text_[end], kEnds))
      end += quote == '"' && text_[end] == '\\' ? size_t{2} : 1;
    const bool is_whole = end < text_.size() && text_[end] == quote &&
                          (quote == '"' || end + 1 == text_.size() || text_[end + 1] != quote);
    if (!IsBegin() || !is_whole) {
      is_unclear_ = true;
      return;
    }
    at_ = last_at_ = end;
    last_ = quote;
    nested_ = 0;
    is_lead_ = false;
  }

  const std::string_view text_;
  size_t at_ = 0, line_ = 1;
  size_t open_ = 0, nested_ = 0;  ///< brackets; indentations and dashes that follow each other
  bool is_unclear_ = false;       ///< what is text and what is not, from here on
  bool has_names_ = false;        ///< anchors, aliases or tags
  bool is_lead_ = true;           ///< of its line there is nothing yet but blanks and dashes
  char last_ = ',';               ///< that is no blank or comment
  size_t last_at_ = 0;
};

class YamlReader {
 public:
  YamlReader(std::string_view text, const std::string& name) : text_(text), name_(name) {
    sources_.setDiagHandler([](const llvm::SMDiagnostic& said,
                               void* self) { static_cast<YamlReader*>(self)->Note(said); },
                            this);
  }

  Result<TopologyImport> Run(const SlurmRates& rates) {
    if (const std::optional<size_t> deep = DepthMeter(text_).LineDeeperThan(kDepthMax))
      return Rejected(fmt::format("it is nested more than {} deep", kDepthMax), WhereOf(*deep));
    if (const size_t nul = text_.find('\0'); nul != std::string_view::npos) {
      const auto line = 1 + std::ranges::count(text_.substr(0, nul), '\n');
      return Rejected("a zero byte", WhereOf(static_cast<size_t>(line)));
    }
    llvm::yaml::Stream stream(llvm::StringRef(text_.data(), text_.size()), sources_,
                              /*ShowColors=*/false);
    auto document = stream.begin();
    Status status = ReadTopologies(document == stream.end() ? nullptr : document->getRoot());
    if (status.ok() && said_.ok() && document != stream.end() && ++document != stream.end()) {
      const Node* const next = document->getRoot();
      status = Rejected("a second document (---): one is read",
                        WhereOf(next == nullptr ? 1 : LineOf(*next)));
    }
    // What LLVM says comes first: after that it ends collections where they do not end.
    if (!said_.ok()) return said_;
    if (!status.ok()) return status;
    if (!taken_) {
      return Rejected("no tree is there: block and flat topologies are not read", WhereOf(1));
    }
    Result<TopologyImport> made = std::move(*taken_).Make(rates);
    if (made.ok() && topologies_ > 1)
      made->notes.push_back(
          fmt::format("of {} topologies '{}' is taken", topologies_, taken_name_));
    return made;
  }

 private:
  void Note(const llvm::SMDiagnostic& said) {
    if (!said_.ok()) return;
    const std::string text = said.getMessage().str();
    said_ = Rejected(text.empty() ? "no YAML" : text,
                     WhereOf(static_cast<size_t>(std::max(said.getLineNo(), 1))));
  }

  std::string WhereOf(size_t line) const { return fmt::format("{}:{}", name_, line); }
  size_t LineOf(const Node& node) const {
    const char* const at = node.getSourceRange().Start.getPointer();
    const auto bytes =
        std::clamp<ptrdiff_t>(at - text_.data(), 0, static_cast<ptrdiff_t>(text_.size()));
    if (at != nullptr && text_.data() + bytes >= counted_to_) {
      line_ += static_cast<size_t>(std::count(counted_to_, text_.data() + bytes, '\n'));
      counted_to_ = text_.data() + bytes;
    }
    return line_;
  }
  /// What is read for what it says, and no reference to what is said elsewhere or otherwise.
  Status CheckPlain(const Node* node, const Node& where) const {
    if (node == nullptr) return {};
    if (llvm::isa<llvm::yaml::AliasNode>(node)) return Wrong(where, "aliases (*name) are not read");
    if (!node->getRawTag().empty())
      return Wrong(where,
                   fmt::format("tags ({}) are not read", node->getRawTag().str().substr(0, 40)));
    return {};
  }
  Status Wrong(const Node& node, std::string what) const {
    return Rejected(std::move(what), WhereOf(LineOf(node)));
  }

  /// Empty and an error of `*status`: it is none.
  std::string Scalar(Node* node, std::string_view key, const Node& where, Status* status) const {
    *status = CheckPlain(node, where);
    if (!status->ok()) return "";
    auto* const scalar = llvm::dyn_cast_or_null<llvm::yaml::ScalarNode>(node);
    llvm::SmallString<64> storage;
    const std::string value = scalar == nullptr ? "" : scalar->getValue(storage).str();
    if (value.empty()) *status = Wrong(where, fmt::format("{} has no value", key));
    return value;
  }

  /// `read`: of each key, with its line; its value's node must be looked at, or skipped.
  template <typename Read>
  Status ReadMapping(Node* node, const Node& where, const std::string& what, Read read) {
    PREPOST_RETURN_IF_ERROR(CheckPlain(node, where));
    auto* const mapping = llvm::dyn_cast_or_null<MappingNode>(node);
    if (mapping == nullptr) return Wrong(where, fmt::format("{} has no keys", what));
    for (llvm::yaml::KeyValueNode& pair : *mapping) {
      Status status;
      Node* const key_node = pair.getKey();
      const std::string key = Scalar(key_node, "a key", pair, &status);
      if (!status.ok()) return status;
      PREPOST_RETURN_IF_ERROR(read(key, pair));
    }
    return {};
  }

  template <typename Read>
  Status ReadList(llvm::yaml::KeyValueNode& pair, const std::string& key, Read read) {
    PREPOST_RETURN_IF_ERROR(CheckPlain(pair.getValue(), pair));
    auto* const list = llvm::dyn_cast_or_null<SequenceNode>(pair.getValue());
    if (list == nullptr) return Wrong(pair, fmt::format("{} is no list", key));
    for (Node& item : *list) PREPOST_RETURN_IF_ERROR(read(item));
    return {};
  }

  Status ReadTopologies(Node* root) {
    if (root != nullptr) PREPOST_RETURN_IF_ERROR(CheckPlain(root, *root));
    auto* const list = llvm::dyn_cast_or_null<SequenceNode>(root);
    if (list == nullptr) {
      return Rejected("expected a list of topologies, as topology.yaml(5) has it", WhereOf(1));
    }
    for (Node& item : *list) PREPOST_RETURN_IF_ERROR(ReadTopology(item));
    return {};
  }

  Status ReadTopology(Node& item) {
    std::string name;
    bool is_default = false;
    std::optional<SlurmTree> tree;
    PREPOST_RETURN_IF_ERROR(
        ReadMapping(&item, item, "a topology",
                    [&](const std::string& key, llvm::yaml::KeyValueNode& pair) -> Status {
                      Status status;
                      if (key == "topology") {
                        name = Scalar(pair.getValue(), key, pair, &status);
                      } else if (key == "cluster_default") {
                        const std::string value = Scalar(pair.getValue(), key, pair, &status);
                        is_default = value == "true" || value == "True" || value == "yes";
                      } else if (key == "tree") {
                        tree.emplace("topology.yaml", name_);
                        return ReadTree(pair, &*tree);
                      } else {
                        pair.skip();  // another kind of topology: block, flat, ring, ...
                      }
                      return status;
                    }));
    ++topologies_;
    if (!tree || (taken_ && (taken_is_default_ || !is_default))) return {};
    taken_.emplace(*std::move(tree));
    taken_name_ = name;
    taken_is_default_ = is_default;
    return {};
  }

  Status ReadTree(llvm::yaml::KeyValueNode& tree, SlurmTree* out) {
    return ReadMapping(
        tree.getValue(), tree, "tree",
        [&](const std::string& key, llvm::yaml::KeyValueNode& pair) -> Status {
          if (key != "switches")
            return Wrong(pair,
                         fmt::format("unknown key '{}', expected switches", key.substr(0, 40)));
          return ReadList(pair, key, [&](Node& item) { return ReadSwitch(item, out); });
        });
  }

  Status ReadSwitch(Node& item, SlurmTree* out) {
    SlurmSwitch read{.line = LineOf(item)};
    PREPOST_RETURN_IF_ERROR(ReadMapping(
        &item, item, "a switch",
        [&](const std::string& key, llvm::yaml::KeyValueNode& pair) -> Status {
          Status status;
          const std::string value = Scalar(pair.getValue(), key, pair, &status);
          if (!status.ok()) return status;
          if (key == "switch") {
            read.name = value;
          } else if (key == "nodes" || key == "children") {
            status = out->ReadNames(value, key == "nodes" ? &read.nodes : &read.switches);
          } else {
            return Wrong(pair, fmt::format("unknown key '{}'{}", key.substr(0, 40),
                                           DidYouMean(key, {"switch", "nodes", "children"})));
          }
          return status.ok() ? status : Wrong(pair, status.message());
        }));
    if (read.name.empty()) return Rejected("switch is missing", WhereOf(read.line));
    return out->Add(std::move(read));
  }

  const std::string_view text_;
  const std::string& name_;
  llvm::SourceMgr sources_;
  Status said_;  ///< by LLVM, first
  std::optional<SlurmTree> taken_;
  std::string taken_name_;
  bool taken_is_default_ = false;
  size_t topologies_ = 0;
  mutable const char* counted_to_ = text_.data();  ///< nodes come in the order of the text
  mutable size_t line_ = 1;
};

}  // namespace

Result<TopologyImport> ReadSlurmYaml(std::string_view text, const std::string& name,
                                     const SlurmRates& rates) {
  return YamlReader(text, name).Run(rates);
}

}  // namespace prepost
