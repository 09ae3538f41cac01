// SPDX-License-Identifier: Apache-2.0
//
// SpecInput: a spec from a file, from flags, or from both, and the size of the message, for every
// subcommand that compiles.
#ifndef PREPOST_PLANNING_FLAGS_SPEC_FLAGS_H_
#define PREPOST_PLANNING_FLAGS_SPEC_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/choice/choice.h"
#include "compiler/rounds/rounds_reader.h"
#include "compiler/spec.h"
#include "ir/base/status.h"
#include "planning/flags/values.h"
#include "runtime/executor/wait_policy.h"
#include "sim/plan_timer.h"

namespace prepost {

/// The size of a message in `text`, which `flag` gives. Errors: kUsage, no size; kRejected, more
/// than any message has.
Result<uint64_t> ParseMessageBytes(const std::string& flag, const std::string& text);

/// --message-bytes and --message.
class MessageSize {
 public:
  /// `takes_any`: whether --message-bytes may be "any".
  void AddTo(CLI::App& command, bool takes_any);

  /// The one that was given.
  const char* flag() const { return path_.empty() ? "--message-bytes" : "--message"; }
  bool is_given() const { return !bytes_.empty() || !path_.empty(); }
  bool is_any() const { return takes_any_ && bytes_ == "any"; }
  /// What was asked for, or none. Errors: no size, a file that cannot be read. Needs !is_any().
  Result<std::optional<uint64_t>> Bytes() const;

 private:
  std::string bytes_;
  std::string path_;
  bool takes_any_ = false;
};

/// A note on stderr if `spec` asks for a schedule for racks and has no topology that says them.
void NoteOneRack(const Spec& spec);

/// What the flags say beside a file of rounds.
struct RoundsRequest {
  RoundsOptions options;
  SpecReady ready;
  SpecSendWindow send_window;
};

/// What runs the plan that `auto` chooses. Where a command has flags of its own that say it, it
/// says it by these.
struct AutoTarget {
  bool is_offload = true;   ///< preposted, else CPU-driven
  bool is_streams = false;  ///< over connections that buffer: TCP, shared memory
  /// The modelled cluster; null: that of --profile or, without, Fractus with the rate and latency
  /// of the flags. Not owned.
  const sim::Profile* profile = nullptr;
  WaitMode wait = WaitMode::kHybrid;
  nic::LowerOptions lower = {};  ///< what NICs hold
};

/// The heading of help above flags that say what is sent, and how.
inline constexpr const char* kSpecGroup = "What is sent";

/// Which flags SpecFlags has beside those of the multicast.
enum class AutoFlags : uint8_t {
  kAll,    ///< what runs the plan, too: --profile, --executor and --transport
  kLinks,  ///< --rate and --latency
  kNone    ///< a modelled network has its own
};

/// A spec from a file, from flags, or from both.
class SpecFlags {
 public:
  /// Adds --nodes, --root, --block-bytes, --algorithm, --ready, --send-window, --topology and
  /// --order, and what `auto` chooses by: --rules, --block-overhead, and what `others` says. Must
  /// outlive the parsing.
  void AddTo(CLI::App& command, AutoFlags others = AutoFlags::kLinks);

  /// Takes specs of multicasts alone, and says of others what would do: "NAME: why". Only to say it
  /// --collective and --combine are there, not in help. `why` follows the collective's name.
  void RefuseCollectives(CLI::App& command, std::string why);
  /// --collective, --combine, --part-bytes and --deterministic; without them specs are of
  /// multicasts.
  void AddCollectivesTo(CLI::App& command);

  /// True when some flag was given.
  bool any() const { return !FirstGiven().empty(); }
  /// The first that was given, "--nodes"; empty: none. Without `has_topology` not --topology, which
  /// also is a network that a plan runs on.
  std::string FirstGiven(bool has_topology = true) const;
  /// Whether --algorithm or --block-bytes is auto.
  bool asks_auto() const { return algorithm_ == kAutoAlgorithm || block_bytes_ == "auto"; }
  /// The file of --topology, if it was given.
  const std::optional<std::string>& topology() const { return topology_; }
  /// What stands after --order, if it was given.
  const std::optional<std::string>& order() const { return order_; }
  /// The spec file (may be empty), overridden by the flags. `message_bytes`, if given, overrides
  /// both. A topology is read from its file; without a number of nodes, all its hosts are meant.
  /// Errors: kUsage for a flag that does not parse, kRejected for the file; the values are
  /// checked by CheckSpec(). What the spec leaves to `auto` is chosen, and a line on stderr says
  /// what and why.
  Result<Spec> ToSpec(const std::string& spec_path, std::optional<uint64_t> message_bytes,
                      const AutoTarget& target = {}) const;
  /// The second half of ToSpec(), for a spec that Read() gave; `is_quiet`: nothing on stderr.
  Result<Spec> Settle(Spec spec, const std::string& spec_path, const AutoTarget& target,
                      bool is_quiet = false) const;
  /// The same for a plan of every size, with which nothing can be left to `auto`.
  Result<Spec> ToSpecForAnySize(const std::string& spec_path) const;
  /// The same beside a file of rounds, which is the schedule. Errors: kUsage, also for the flags
  /// that choose or place a schedule.
  Result<RoundsRequest> ToRounds(std::optional<uint64_t> message_bytes) const;

  /// The spec of file and flags over `defaults`, not yet checked or chosen for: what neither says
  /// is left to `auto`. Errors: also kUsage for a number of nodes that neither gives.
  Result<Spec> Read(const std::string& spec_path, std::optional<uint64_t> message_bytes,
                    const Spec& defaults = OpenSpec()) const;
  /// What is wrong with `spec`, as CheckSpec() says it: at its place in the file, or with the flag
  /// that says it. kUsage for a size that is missing.
  Status Locate(const Status& status, const Spec& spec, const std::string& spec_path) const;
  /// What `auto` chooses among for `spec`, which Read() gave, of another collective than a
  /// multicast: the choice first. Errors: also a schedule of which the model says nothing.
  Result<std::vector<CollectiveChoice>> CollectiveCandidatesFor(const Spec& spec,
                                                                const std::string& spec_path) const;
  /// What `auto` means for `spec`, which Read() gave. `weighs_rule` is that of ChoiceOptions.
  Result<Choice> ChooseFor(const Spec& spec, const std::string& spec_path, const AutoTarget& target,
                           bool weighs_rule) const;

 private:
  /// All flags, and whether they were given.
  std::vector<std::pair<std::string, bool>> Flags() const;
  /// Topology, order, and what follows from them.
  Status ApplyTopology(const std::string& spec_path, Spec* spec) const;
  /// What --executor and --transport say of `given`.
  Result<AutoTarget> TargetOf(AutoTarget given) const;
  /// --profile, or Fractus, with --rate and --latency.
  Result<sim::Profile> ClusterOf(const Spec& spec) const;
  /// What the model of other collectives goes by. Errors: kUsage for flags that are of multicasts.
  Result<CollectiveParameters> ToCollectiveParameters(const Spec& spec,
                                                      const AutoTarget& target) const;
  /// A collective of another kind, with what is left to `auto` chosen.
  Result<Spec> SettleCollective(Spec spec, const AutoTarget& target, bool is_quiet) const;
  Result<ChoiceOptions> ToChoiceOptions(const Spec& spec, const AutoTarget& given) const;

  bool takes_collectives_ = false;
  std::string why_no_collectives_;
  std::optional<std::string> collective_;
  std::optional<std::string> combine_;
  std::optional<std::string> part_bytes_;
  bool is_deterministic_ = false;
  std::optional<uint32_t> nodes_;
  std::optional<uint32_t> root_;
  std::optional<std::string> block_bytes_;
  std::optional<std::string> algorithm_;
  std::optional<std::string> ready_;
  std::optional<std::string> send_window_;
  std::optional<std::string> topology_;
  std::optional<std::string> order_;
  std::optional<std::string> rules_;
  std::optional<std::string> rate_;
  std::optional<std::string> latency_;
  std::optional<std::string> block_overhead_;
  std::optional<std::string> profile_;
  std::optional<std::string> executor_;
  std::optional<std::string> transport_;
};

/// What a subcommand that takes a SPEC makes a spec of.
struct SpecInput {
  std::string path;
  SpecFlags flags;
  MessageSize size;

  /// SPEC, the flags, --message-bytes and --message. `takes_any`: of MessageSize.
  void AddTo(CLI::App& command, bool takes_any);
  /// Checked, and chosen for by the flags. Needs !size.is_any(). Errors: as of SpecFlags::ToSpec(),
  /// and of the size.
  Result<Spec> ToSpec() const;
  /// Not yet checked or chosen for. The same.
  Result<Spec> Read() const;
};

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_SPEC_FLAGS_H_
