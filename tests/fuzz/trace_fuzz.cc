// SPDX-License-Identifier: Apache-2.0
//
// A trace file from a stranger, of a plan that is known: read or refused, the same after it is
// written and read again, and drawn whatever times it has.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "compiler/compile.h"
#include "runtime/trace/trace_file.h"
#include "viz/plan/trace_picture.h"
#include "viz/plan/tree.h"

namespace {

using prepost::NodeId;
using prepost::OpTimes;
using prepost::Plan;
using prepost::RunTrace;
using prepost::TraceInfo;

const Plan& ThePlan() {
  static const Plan plan = *prepost::Compile(
      {.nodes = 3, .message_bytes = 20, .block_bytes = 10, .algorithm = "binomial_pipeline"});
  return plan;
}

std::optional<RunTrace> Read(const std::string& text, TraceInfo* info) {
  std::istringstream in(text);
  RunTrace trace = std::move(*RunTrace::Make(ThePlan()));
  const prepost::Status status = prepost::ReadTrace(in, "trace", ThePlan(), &trace, info);
  PREPOST_CHECK(status.ok() || !status.message().empty());
  if (!status.ok()) return std::nullopt;
  return trace;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TraceInfo info, info_again;
  const std::optional<RunTrace> trace =
      Read(std::string(reinterpret_cast<const char*>(data), size), &info);
  if (!trace) return 0;
  std::ostringstream out;
  prepost::WriteTrace(ThePlan(), *trace, {.executor = "cpu", .detail = "tcp", .hosts = info.hosts},
                      out);
  const std::optional<RunTrace> again = Read(out.str(), &info_again);
  PREPOST_CHECK(again.has_value());
  PREPOST_CHECK(info_again.hosts == info.hosts);
  for (uint32_t node = 0; node < 3; ++node) {
    for (size_t op = 0; op < trace->times(NodeId(node)).size(); ++op) {
      const OpTimes& a = trace->times(NodeId(node))[op];
      const OpTimes& b = again->times(NodeId(node))[op];
      PREPOST_CHECK(a.posted_ns == b.posted_ns && a.started_ns == b.started_ns &&
                    a.completed_ns == b.completed_ns);
    }
  }
  PREPOST_CHECK(!prepost::viz::DrawTrace(ThePlan(), *trace, {}).empty());
  PREPOST_CHECK(prepost::viz::DrawTree(ThePlan(), {}, &*trace).ok());
  return 0;
}
