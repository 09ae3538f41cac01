// SPDX-License-Identifier: Apache-2.0
//
// What tests of the emulated NIC start from. They go rule by rule (backends/emulated/engine.h).
// What hardware is known to do in common cases is in tests/conformance; theirs are the edges:
// wrap-around, misuse, errors, and the emulation's own promises.
#ifndef PREPOST_TESTS_SUPPORT_ENGINE_FIXTURE_H_
#define PREPOST_TESTS_SUPPORT_ENGINE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/emulated/device.h"
#include "backends/emulated/engine.h"
#include "backends/emulated/fabric.h"
#include "tests/support/test_queue.h"

namespace prepost::emulated {

inline std::vector<nic::Syndrome> Syndromes(const std::vector<nic::Cqe>& cqes) {
  std::vector<nic::Syndrome> syndromes;
  for (const nic::Cqe& cqe : cqes) syndromes.push_back(cqe.syndrome);
  return syndromes;
}

/// A QP of node 0 connected to one of node 1.
class EngineTest : public testing::Test {
 protected:
  void Make(nic::QpConfig near = {.sq_wqebbs = 16, .cd_master = true},
            nic::QpConfig far = {.sq_wqebbs = 16, .rq_wqes = 16}, EngineOptions options = {}) {
    Make(near, far, std::make_unique<Fabric>(2, options));
  }
  void Make(nic::QpConfig near, nic::QpConfig far, std::unique_ptr<Fabric> fabric) {
    fabric_ = std::move(fabric);
    near_ = std::make_unique<test::TestQueue>(device(0), near);
    far_ = std::make_unique<test::TestQueue>(device(1), far);
    test::Connect(device(0), *near_, device(1), *far_);
  }
  std::unique_ptr<test::TestQueue> MakeLoopback(nic::QpConfig config = {.sq_wqebbs = 16,
                                                                        .cd_master = true},
                                                nic::CqConfig cq = {.entries = 64,
                                                                    .ignore_overrun = true}) {
    auto queue = std::make_unique<test::TestQueue>(device(0), config, cq);
    test::Connect(device(0), *queue, device(0), *queue);
    return queue;
  }
  nic::Device& device(uint32_t node) { return fabric_->device(NodeId(node)); }
  void RingAndRun(test::TestQueue& queue) {
    queue.Ring();
    fabric_->RunUntilIdle();
  }
  void ExpectMisuse(const std::string& text) {
    EXPECT_THAT(fabric_->engine().misuses(), testing::Contains(testing::HasSubstr(text)));
  }
  void Fill(test::TestQueue& queue, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) queue.memory()[i] = static_cast<std::byte>(i * 7 + 1);
  }

  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<test::TestQueue> near_;
  std::unique_ptr<test::TestQueue> far_;
};

}  // namespace prepost::emulated

#endif  // PREPOST_TESTS_SUPPORT_ENGINE_FIXTURE_H_
