// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/validate/object_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/nic/program/encode.h"
#include "ir/base/count.h"

namespace prepost::nic {

Bindings ExampleBindings(const NodeProgram& program) {
  Bindings bindings{.lkey = 0x1234, .address = uint64_t{0x7f0012345000}, .epoch = 0xe9};
  for (size_t i = 0; i < program.qps.size(); ++i) {
    bindings.qpns.push_back(kExampleQpn + static_cast<uint32_t>(i));
    bindings.sq_bases.push_back(static_cast<uint16_t>(0xfff0 + 3 * i));
  }
  for (size_t i = 0; i < program.cqs.size(); ++i) {
    bindings.cqns.push_back(kExampleCqn + static_cast<uint32_t>(i));
    bindings.cq_bases.push_back((0xfffff0 + static_cast<uint32_t>(5 * i)) & kCqIndexMask);
  }
  return bindings;
}

namespace {

/// All but the bytes.
QueueObjects ObjectsWithoutBytes(const NodeProgram& program, const Bindings& bindings) {
  QueueObjects out{.node = program.node,
                   .cqs = {},
                   .qps = {},
                   .final_cqn = bindings.cqns[program.final_cq.index()],
                   .message_address = bindings.address,
                   .lkey = bindings.lkey,
                   .epoch = bindings.epoch};
  for (size_t i = 0; i < program.cqs.size(); ++i) {
    out.cqs.push_back({bindings.cqns[i], bindings.cq_bases[i], program.cqs[i].entries,
                       program.cqs[i].completions});
  }
  for (size_t i = 0; i < program.qps.size(); ++i) {
    const QueuePair& qp = program.qps[i];
    out.qps.push_back({.number = bindings.qpns[i],
                       .peer = qp.peer,
                       .lane = qp.lane,
                       .peer_qpn = qp.loopback ? bindings.qpns[i] : 0,
                       .cd_master = !qp.managed,
                       .managed = qp.managed,
                       .sq_base = bindings.sq_bases[i],
                       .sq_wqebbs = qp.sq_wqebbs,
                       .rq_wqes = qp.rq_wqes,
                       .send_cqn = bindings.cqns[qp.send_cq.index()],
                       .recv_cqn = bindings.cqns[qp.recv_cq.index()]});
    for (size_t at = 0; at < qp.sends.size(); ++at) {
      const SendEntry& entry = qp.sends[at];
      if (entry.opcode == Opcode::kSendEnable || entry.count == 0) continue;
      out.qps.back().posted_first.push_back(
          {static_cast<uint32_t>(at), entry.qp.value, entry.count});
    }
  }
  return out;
}

}  // namespace

Result<QueueObjects> MakeQueueObjects(const NodeProgram& program, const Bindings& bindings) {
  QueueObjects out = ObjectsWithoutBytes(program, bindings);
  std::vector<QueuePairImage> images = Encode(program);
  for (size_t i = 0; i < program.qps.size(); ++i) {
    Result<std::vector<std::byte>> sends = Link(std::move(images[i].sq), bindings);
    if (!sends.ok()) return sends.status();
    Result<std::vector<std::byte>> receives = Link(std::move(images[i].rq), bindings);
    if (!receives.ok()) return receives.status();
    out.qps[i].sq = *std::move(sends);
    out.qps[i].rq = *std::move(receives);
  }
  return out;
}

QueueObjects ObjectsOf(const ArmedNode& node) {
  QueueObjects out = ObjectsWithoutBytes(node.program(), node.bindings());
  for (size_t i = 0; i < out.qps.size(); ++i) {
    out.qps[i].sq = node.feed().sends(QpId::FromIndex(i));
    out.qps[i].rq = node.feed().receives(QpId::FromIndex(i));
  }
  return out;
}

Status ValidateArmed(const Plan& plan, const ArmedNode& node) {
  Validator validator(plan);
  validator.Add(ObjectsOf(node));
  return validator.Finish().ToStatus();
}

namespace {

/// Checks what the head of a listing declares for all queues against the plan.
Status CheckHead(const PlanHeader& header, const QueueProgram& program) {
  const Payload& planned = header.payload;
  if (program.payload != planned) {
    return Rejected(fmt::format(
        "the queues are of a message of {} bytes in blocks of {}, the plan "
        "is of {} in blocks of {}",
        program.payload.bytes, program.payload.block_bytes, planned.bytes, planned.block_bytes));
  }
  for (const NodeProgram& node : program.nodes) {
    const bool in_parts = std::ranges::any_of(node.qps, &QueuePair::receives_in_parts);
    if (in_parts && program.rnr_retry < kRnrRetryForEver) {
      return Rejected(fmt::format(
          "node {} posts receives in parts, and what finds none is not retried: RNR retries {}",
          node.node.value, program.rnr_retry));
    }
    for (size_t i = 0; i < node.qps.size(); ++i) {
      const bool is_managed = program.mode == LoweringMode::kManaged && !node.qps[i].loopback;
      if (node.qps[i].managed == is_managed) continue;
      return Rejected(fmt::format("the queues are {}, but {} is {}", Name(program.mode),
                                  Describe(node, QpId::FromIndex(i)),
                                  is_managed ? "not managed" : "managed"));
    }
  }
  if (program.rnr_retry == RnrRetryOf(header)) return {};
  return Rejected(fmt::format("RNR retries are {}, a plan with ready {} has {}", program.rnr_retry,
                              ToString(header.ready), RnrRetryOf(header)));
}

}  // namespace

Result<ValidationReport> ValidateProgram(const Plan& plan, const QueueProgram& program) {
  PREPOST_RETURN_IF_ERROR(CheckHead(plan.header(), program));
  Validator validator(plan);
  const bool has_all = program.nodes.size() == plan.header().nodes;
  for (const NodeProgram& node : program.nodes) {
    if (node.node.value >= plan.header().nodes) {
      return Rejected(fmt::format("node {} is not of the plan, which has {}", node.node.value,
                                  Count(plan.header().nodes, "node")));
    }
    Result<QueueObjects> objects = MakeQueueObjects(node, ExampleBindings(node));
    if (!objects.ok()) return objects.status();
    for (QpObject& qp : objects->qps) {
      if (qp.peer == node.node || !has_all) continue;
      if (qp.peer.index() >= program.nodes.size()) {
        return Rejected(fmt::format("node {} has a QP to node {}, the plan has {}", node.node.value,
                                    qp.peer.value, Count(plan.header().nodes, "node")));
      }
      const Result<QpId> peer = FindQp(program.nodes[qp.peer.index()], node.node, qp.lane);
      if (!peer.ok()) return peer.status();
      qp.peer_qpn = kExampleQpn + peer->value;
    }
    validator.Add(*objects);
  }
  return validator.Finish();
}

}  // namespace prepost::nic
