// SPDX-License-Identifier: Apache-2.0
//
// The topology file: reading and writing JSON as compiler/topology/topology.schema.json describes
// it, as a file of its own or as a section of another.
#ifndef PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_JSON_H_
#define PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_JSON_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "compiler/topology/topology.h"
#include "ir/json/json_reader.h"

namespace prepost {

/// The form of a topology, for a reader of what holds one, and what was read. Neither copied nor
/// moved: the form points into it.
class TopologyForm {
 public:
  /// A section needs neither "format" nor "version". `warnings` may be null.
  enum class Kind : uint8_t { kFile, kSection };
  TopologyForm(Kind kind, std::vector<std::string>* warnings);
  TopologyForm(const TopologyForm&) = delete;
  TopologyForm& operator=(const TopologyForm&) = delete;

  JsonForm* form() { return &form_; }
  /// Whether the reader came to it.
  bool is_there() const { return is_there_; }
  /// The topology of what was read, checked by CheckTopology(). `where` in the Status is a JSON
  /// pointer into it.
  Result<Network> Finish() const;

 private:
  struct RackText {
    std::string name;
    std::vector<std::string> hosts;  // host lists
    std::optional<double> host_rate, up_rate, down_rate;
  };
  struct OverrideText {
    std::vector<std::string> hosts;
    std::optional<double> rate, send_rate, recv_rate;
  };

  struct PathText {
    std::vector<std::string> between;
    std::optional<double> rate, round_trip, latency;
    Network::Link link;  // what else is said
    Network::Policer policer;
  };
  struct RouteText {
    std::vector<std::string> between, over;
  };

  JsonForm::ReadScalar NameInto(std::vector<std::string>& (*names)(TopologyForm*));
  void AddPaths();
  void AddRoutes();
  Status AddRack(size_t index, Network* topology) const;
  void OpenUplinks(Network* topology) const;
  Status AddPathsTo(Network* topology) const;
  Status ApplyOverrides(Network* topology) const;

  JsonForm form_, rack_form_, site_form_, override_form_, path_form_, policer_form_, route_form_;
  bool is_there_ = false;
  bool has_core_latency_ = false;
  bool are_sites_ = false;
  size_t host_list_bytes_ = 0;
  Network head_;  // without racks and hosts
  std::optional<double> host_rate_, up_rate_, down_rate_;
  std::vector<RackText> racks_;
  std::vector<OverrideText> overrides_;
  std::vector<std::string> switches_;  // host lists
  std::vector<PathText> paths_;
  std::vector<RouteText> routes_;
};

/// Reads and checks one topology. Errors: "name:line:col: /pointer: ..." for the form, "name:
/// /pointer: ..." for values.
Result<Network> ReadTopology(std::istream& in, const std::string& name,
                             std::vector<std::string>* warnings = nullptr);

/// Writes a topology that holds CheckTopology(). Reading it back gives the same one if hosts stand
/// rack by rack, in the racks' order; otherwise they then do.
void WriteTopology(const Network& topology, std::ostream& out);

/// The same as one JSON object without format and version, to stand in another file.
std::string TopologySection(const Network& topology);

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_JSON_H_
