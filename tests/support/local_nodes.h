// SPDX-License-Identifier: Apache-2.0
//
// LocalNodes: the endpoints of all nodes of a plan over one of the local transports, in one
// process, with a message, or the inputs of another collective, and buffers per node as a run has
// them. Tests of transports and of executors over them use it.
#ifndef PREPOST_TESTS_SUPPORT_LOCAL_NODES_H_
#define PREPOST_TESTS_SUPPORT_LOCAL_NODES_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/event_fd.h"
#include "runtime/executor/executor.h"
#include "runtime/files/collective_sums.h"
#include "runtime/transport/local_transport.h"
#include "tests/support/random_bytes.h"
#include "tests/support/shared_memory.h"
#include "tests/support/temp_folder.h"

namespace prepost::test {

class LocalNodes {
 public:
  struct Options {
    TransportKind transport = TransportKind::kTcp;
    uint16_t streams = 1;                 ///< of kTcp
    SealCipher seal = SealCipher::kNone;  ///< of kTcp: of all connections
    bool shares_memory = false;           ///< of kTcp: ShareMemory()
    int wake_fd = -1;                     ///< -1: wake()'s
    bool in_files = false;                ///< message and copies; otherwise they are in memory
  };

  LocalNodes(Playable plan, const Options& options)
      : LocalNodes(plan, options, RandomBytes(plan.header().payload.bytes)) {}
  /// `input`: the message, or all nodes' inputs one after the other.
  LocalNodes(Playable plan, const Options& options, std::vector<std::byte> input)
      : header_(plan.header()), message_(std::move(input)) {
    OpenInput(options);
    OpenBuffers(plan, options);
    LocalTcpOptions tcp = {.streams = options.streams};
    static const GroupKey key =  // deriving one takes longer than a small plan
        GroupKey::FromSecret("a secret of 20 bytes", "").value();
    if (options.seal != SealCipher::kNone) tcp.key = key;
    tcp.cipher = options.seal;
    if (options.shares_memory) tcp.change = ShareMemory;
    auto transport = LocalTransport::Make(
        options.transport, plan, {.input = *input_, .buffers = buffers_, .scratch = scratch_}, tcp);
    EXPECT_TRUE(transport.ok()) << transport.status().ToString();
    transport_ = std::move(*transport);
    for (uint32_t node = 0; node < plan.header().nodes; ++node) {
      files_.push_back(transport_->FilesOf(NodeId(node)));
      auto endpoint = transport_->MakeEndpoint(
          NodeId(node), options.wake_fd < 0 ? wake_.fd() : options.wake_fd, /*checkpoint=*/{});
      EXPECT_TRUE(endpoint.ok()) << endpoint.status().ToString();
      endpoints_.push_back(std::move(*endpoint));
    }
  }

  const EventFd& wake() const { return wake_; }
  Endpoint& endpoint(NodeId node) { return *endpoints_[node.index()]; }
  /// As when its process ends.
  void Drop(NodeId node) { endpoints_[node.index()].reset(); }
  /// What the transport says that a node needs; for TCP its connections.
  const std::vector<int>& files(NodeId node) const { return files_[node.index()]; }

  std::span<const std::byte> message() const { return message_; }
  const MappedInput& input() const { return *input_; }
  const NodeBuffer& buffer(NodeId node) const { return buffers_[node.index()]; }
  NodeMemory memory(NodeId node) const {
    if (!is_multicast()) {
      const std::vector<uint64_t> begins = InputOffsets(header_);
      const uint64_t begin = begins[node.index()];
      NodeMemory its{.source = input_->bytes().subspan(begin, begins[node.index() + 1] - begin),
                     .target = buffer(node).bytes(),
                     .scratch = scratch_[node.index()].bytes()};
      if (!header_.combine.is_none()) its.combine = CombineFunctionOf(header_.combine);
      return its;
    }
    if (node == root()) return {.source = input_->bytes(), .target = {}};
    return {.source = buffer(node).bytes(), .target = buffer(node).bytes()};
  }

  void ExpectDelivered() const { ExpectHolds(std::vector(buffers_.size(), message_)); }
  /// `expected`: by node, as the oracle gives it. The root's is not compared.
  void ExpectHolds(const std::vector<std::vector<std::byte>>& expected) const {
    ASSERT_EQ(expected.size(), buffers_.size());
    for (uint32_t node = 0; node < buffers_.size(); ++node) {
      if (NodeId(node) == root()) continue;
      EXPECT_TRUE(std::ranges::equal(buffers_[node].bytes(), expected[node])) << "at node " << node;
    }
  }

 private:
  bool is_multicast() const { return header_.collective.kind == CollectiveKind::kMulticast; }
  NodeId root() const { return header_.collective.root; }
  void OpenInput(const Options& options) {
    std::string path = folder_ / "image";
    if (options.in_files) {
      WriteBytes(path, message_);
    } else {
      input_memory_ = NodeBuffer::Open(root(), message_.size(), nullptr).value();
      ASSERT_TRUE(input_memory_.Reserve().ok());
      std::ranges::copy(message_, input_memory_.bytes().begin());
      path = fmt::format("/proc/self/fd/{}", input_memory_.fd());
    }
    input_ = MappedInput::Open(path).value();
  }

  /// They start out wrong, so that a block that never comes shows.
  void OpenBuffers(Playable plan, const Options& options) {
    const uint32_t nodes = plan.header().nodes;
    if (options.in_files) {
      outputs_.emplace(OutputSet::Create({.folder = folder_ / "copies",
                                          .name = "image",
                                          .nodes = nodes,
                                          .roles = plan.header().roles()})
                           .value());
    }
    buffers_.resize(nodes);
    for (uint32_t node = 0; node < nodes; ++node) {
      if (is_multicast() && NodeId(node) == root()) continue;
      const OutputSet* const outputs = outputs_ ? &*outputs_ : nullptr;
      const NodeBytes bytes = NodeBytesOf(header_, NodeId(node));
      const auto open = [&](uint64_t size) {
        NodeBuffer made = NodeBuffer::Open(NodeId(node), size, outputs).value();
        EXPECT_TRUE(made.Reserve().ok());
        std::ranges::fill(made.bytes(), std::byte{0xee});
        return made;
      };
      buffers_[node] = open(bytes.output);
      if (!is_multicast()) scratch_.push_back(open(bytes.scratch));
    }
  }

  const PlanHeader header_;
  const EventFd wake_ = *EventFd::Make();
  std::vector<std::byte> message_;
  TempFolder folder_;
  NodeBuffer input_memory_;
  std::optional<MappedInput> input_;
  std::optional<OutputSet> outputs_;
  std::vector<NodeBuffer> buffers_;
  std::vector<NodeBuffer> scratch_;  ///< of other collectives than multicasts
  std::unique_ptr<LocalTransport> transport_;
  std::vector<std::vector<int>> files_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

/// Every transport, for INSTANTIATE_TEST_SUITE_P and the names of its tests.
inline auto AllTransports() { return ::testing::Values(TransportKind::kTcp, TransportKind::kShm); }
inline std::string TransportName(const ::testing::TestParamInfo<TransportKind>& param) {
  return std::string(Name(param.param));
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_LOCAL_NODES_H_
