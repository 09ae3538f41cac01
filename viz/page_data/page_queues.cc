// SPDX-License-Identifier: Apache-2.0
#include "viz/page_data/page_queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "backends/triggered/deferred_program.h"
#include "runtime/executor/program.h"

namespace prepost::viz {
namespace {

constexpr const char* kEngineNames[] = {"nic", "deferred", "cpu"};
constexpr int kNic = 0, kDeferred = 1, kCpu = 2;
constexpr size_t kHexDigits = 8;
constexpr size_t kDecimalDigitsMax = 15;  // what a browser's numbers hold
constexpr std::string_view kBeforeHex = "imm ";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }
bool IsWord(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The digits at the beginning of `text` that stand for a number and come back as they are.
size_t DigitsAt(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) ++count;
  const bool is_whole = count == text.size() || !IsWord(text[count]);
  return !is_whole || count > kDecimalDigitsMax || (count > 1 && text[0] == '0') ? 0 : count;
}

}  // namespace

// ---- EntryCoder
// -----------------------------------------------------------------------------------

void EntryCoder::Begin() { ++begun_; }

void EntryCoder::AddText(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const bool is_hex = text.substr(0, at).ends_with(kBeforeHex) &&
                        text.size() >= at + kHexDigits &&
                        std::ranges::all_of(text.substr(at, kHexDigits), IsHex) &&
                        (text.size() == at + kHexDigits || !IsWord(text[at + kHexDigits]));
    if (is_hex) {
      AddNumber(std::stoll(std::string(text.substr(at, kHexDigits)), nullptr, 16));
      form_ += kFormHex;
      at += kHexDigits;
      continue;
    }
    const bool begins = IsDigit(text[at]) && (at == 0 || !IsDigit(text[at - 1]));
    if (const size_t digits = begins ? DigitsAt(text.substr(at)) : 0; digits > 0) {
      int64_t number = 0;
      for (const char c : text.substr(at, digits)) number = 10 * number + (c - '0');
      AddNumber(number);
      form_ += kFormNumber;
      at += digits;
      continue;
    }
    form_ += text[at++];
  }
  form_ += '\n';
}

uint32_t EntryCoder::Step(const DrawnEntry& entry) {
  form_.clear();
  numbers_.clear();
  form_ += entry.css_class;
  form_ += '\n';
  AddText(entry.what);
  AddText(entry.detail);
  AddText(entry.fields);
  if (entry.op) {
    form_ += 'o';
    AddNumber(entry.op->value);
  }
  for (const auto& [mark, place] : {std::pair('w', &entry.waits_for), {'e', &entry.enables}}) {
    if (!*place) continue;
    form_ += mark;
    AddNumber(static_cast<int64_t>((*place)->queue));
    AddNumber(static_cast<int64_t>((*place)->index));
  }
  if (entry.rearm != 0) {
    form_ += 'r';
    AddNumber(static_cast<int64_t>(entry.rearm));
  }
  const auto [form, is_new_form] =
      form_ids_.try_emplace(form_, static_cast<uint32_t>(forms_.size()));
  if (is_new_form) {
    forms_.push_back(form_);
    last_.emplace_back();
    bytes_ += form_.size();
  }
  Last& last = last_[form->second];
  if (last.begun != begun_)
    last = {.begun = begun_, .numbers = std::vector<int64_t>(numbers_.size())};
  std::vector<int64_t> step = {form->second};
  std::string key;
  AppendVarint(form->second, &key);
  for (size_t i = 0; i < numbers_.size(); ++i) {
    step.push_back(numbers_[i] - last.numbers[i]);
    AppendVarint(step.back(), &key);
  }
  last.numbers = numbers_;
  const auto [id, is_new] = step_ids_.try_emplace(key, static_cast<uint32_t>(steps_.size()));
  if (is_new) {
    steps_.push_back(std::move(step));
    bytes_ += key.size();
  }
  return id->second;
}

// ---- PageQueues
// -----------------------------------------------------------------------------------

PageQueues::PageQueues(const VerifiedPlan& plan, const PageOptions& options,
                       const std::string& prefix, PageColumns* columns)
    : plan_(plan), options_(options) {
  if (!IsPlainMulticast(plan)) {
    refusals_.push_back(ExpectPlainMulticast(plan).message());
    Write(prefix, columns);
    return;
  }
  // Those that are asked for come first. Of two plans' sides, the other may have more nodes.
  std::vector<NodeId> nodes = options.selection.nodes;
  std::erase_if(nodes, [&](NodeId node) { return node.value >= plan.header().nodes; });
  for (uint32_t node = 0; node < plan.header().nodes; ++node) {
    if (!options.selection.HasNode(NodeId(node)) || options.selection.nodes.empty())
      nodes.emplace_back(node);
  }
  const size_t engines =
      size_t{options.engines.nic.has_value()} + options.engines.deferred + options.engines.cpu;
  for (const NodeId node : nodes) {
    // Each op has one entry or more with each engine.
    const size_t expected = engines * plan.ops(ProgramOf(plan, node)).size();
    if (entries_.size() + expected > options.entries_max || coder_.bytes() > kPageStepBytesMax) {
      ++without_;
    } else {
      AddNode(node);
    }
  }
  Write(prefix, columns);
}

nlohmann::ordered_json PageQueues::TakeForms() {
  nlohmann::ordered_json forms = nlohmann::ordered_json::array();
  for (const std::string& form : coder_.forms()) forms.push_back(form);
  return forms;
}

std::string PageQueues::Note() const {
  std::vector<std::string> notes = refusals_;
  if (without_ > 0) {
    notes.push_back(fmt::format(
        "this page has no room for the queues of {} of the {} nodes: draw with --node N "
        "to have those of node N, with --engine for fewer of each",
        without_, plan_.header().nodes));
  }
  return fmt::format("{}", fmt::join(notes, "; "));
}

void PageQueues::AddNode(NodeId node) {
  const Selection whole = {.nodes = {node}};
  const QueueEngines& engines = options_.engines;
  if (engines.nic) {
    nic::LowerOptions lower = *engines.nic;
    lower.node = node;
    const Result<nic::QueueProgram> program = nic::Lower(plan_, lower);
    if (!program.ok()) {
      Refuse(kNic, program.status());
    } else {
      Add(kNic, node, QueuesOfNic(plan_, whole, program->nodes.front(), /*has_fields=*/true));
    }
  }
  if (engines.deferred) {
    const auto program = triggered::LowerDeferred(plan_, node);
    if (!program.ok()) {
      Refuse(kDeferred, program.status());
    } else {
      Add(kDeferred, node, QueuesOfDeferredWork(plan_, whole, *program));
    }
  }
  if (engines.cpu) Add(kCpu, node, QueuesOfCpu(plan_, whole, node));
}

void PageQueues::Add(int engine, NodeId node, const std::vector<DrawnQueue>& queues) {
  coder_.Begin();
  const size_t before = entries_.size();
  for (const DrawnQueue& queue : queues) {
    entries_.push_back(
        coder_.Step({.css_class = "queue", .what = queue.title, .detail = queue.detail}));
    for (const DrawnEntry& entry : queue.entries) entries_.push_back(coder_.Step(entry));
  }
  parts_.push_back({.node = node, .engine = engine, .count = entries_.size() - before});
}

/// Once of each engine.
void PageQueues::Refuse(int engine, const Status& status) {
  const std::string name = fmt::format("{}: ", kEngineNames[engine]);
  if (std::ranges::none_of(refusals_, [&](const std::string& it) { return it.starts_with(name); }))
    refusals_.push_back(name + status.message());
}

void PageQueues::Write(const std::string& prefix, PageColumns* columns) const {
  columns->Begin(prefix + "queues.node");
  for (const Part& part : parts_) columns->Add(part.node.value);
  columns->Begin(prefix + "queues.engine");
  for (const Part& part : parts_) columns->Add(part.engine);
  columns->Begin(prefix + "queues.count");
  for (const Part& part : parts_) columns->Add(static_cast<int64_t>(part.count));
  columns->Begin(prefix + "queues.entries", PageColumns::Coding::kPlain);
  for (const uint32_t step : entries_) columns->Add(step);
  columns->Begin(prefix + "queues.steps", PageColumns::Coding::kPlain);
  for (const std::vector<int64_t>& step : coder_.steps()) {
    for (const int64_t number : step) columns->Add(number);
  }
}

}  // namespace prepost::viz
