// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: the queues of nodes in a page's columns.
//
// Entries are alike: of most of them only numbers differ, and from one to the next by the same. A
// form is what an entry says with the numbers taken out; its numbers are written as differences to
// those of the entry of the same form before it at the same node and engine, and a form with such
// differences is a step. An entry is the number of its step.
#ifndef PREPOST_VIZ_PAGE_DATA_PAGE_QUEUES_H_
#define PREPOST_VIZ_PAGE_DATA_PAGE_QUEUES_H_

#include <llvm/ADT/StringMap.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/verify/verify.h"
#include "viz/page_data/page.h"
#include "viz/page_data/page_columns.h"
#include "viz/queues/queue_contents.h"

namespace prepost::viz {

/// Where the numbers of a form were: decimal, or eight hexadecimal digits.
inline constexpr char kFormNumber = '\1';
inline constexpr char kFormHex = '\2';

/// Entries as forms and steps.
class EntryCoder {
 public:
  /// Another node or engine begins: there is no entry before the next.
  void Begin();
  /// The number of the entry's step.
  uint32_t Step(const DrawnEntry& entry);

  /// Each a form: class, what, detail, fields and which of op (o), waits_for (w), enables (e) and
  /// rearm (r) it has, whose numbers follow those of the texts; between them line ends.
  const std::vector<std::string>& forms() const { return forms_; }
  /// By step: its form, and as many differences as that has numbers.
  const std::vector<std::vector<int64_t>>& steps() const { return steps_; }
  size_t bytes() const { return bytes_; }  ///< about, of forms and steps

 private:
  struct Last {
    uint64_t begun = 0;  ///< which Begin() it is of
    std::vector<int64_t> numbers;
  };

  void AddText(std::string_view text);
  void AddNumber(int64_t number) { numbers_.push_back(number); }

  llvm::StringMap<uint32_t> form_ids_;
  llvm::StringMap<uint32_t> step_ids_;
  std::vector<std::string> forms_;
  std::vector<std::vector<int64_t>> steps_;
  std::vector<Last> last_;  ///< by form
  uint64_t begun_ = 0;
  size_t bytes_ = 0;
  // Of the entry at hand.
  std::string form_;
  std::vector<int64_t> numbers_;
};

/// The queues of nodes, those of the selection first, while there is room for more.
class PageQueues {
 public:
  /// Adds the columns `prefix`queues.node, .engine (0 nic, 1 deferred, 2 cpu) and .count, by node
  /// and engine, of their entries .entries, where a queue begins with an entry of class "queue",
  /// and .steps.
  PageQueues(const VerifiedPlan& plan, const PageOptions& options, const std::string& prefix,
             PageColumns* columns);

  nlohmann::ordered_json TakeForms();
  /// Why some nodes have none.
  std::string Note() const;

 private:
  struct Part {
    NodeId node;
    int engine = 0;
    size_t count = 0;
  };

  void AddNode(NodeId node);
  void Add(int engine, NodeId node, const std::vector<DrawnQueue>& queues);
  void Refuse(int engine, const Status& status);
  void Write(const std::string& prefix, PageColumns* columns) const;

  const VerifiedPlan& plan_;
  const PageOptions& options_;
  EntryCoder coder_;
  std::vector<Part> parts_;
  std::vector<uint32_t> entries_;
  std::vector<std::string> refusals_;
  size_t without_ = 0;  ///< nodes, for lack of room
};

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PAGE_DATA_PAGE_QUEUES_H_
