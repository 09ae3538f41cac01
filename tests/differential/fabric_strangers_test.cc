// SPDX-License-Identifier: Apache-2.0
//
// A stranger who finds where an endpoint listens, and has no secret, sends it messages while a plan
// is played: no node takes them, and the plan ends as without them.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_tagged.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/fabric/libfabric.h"
#include "backends/registry.h"
#include "tests/support/engines.h"
#include "tests/support/plans.h"

namespace prepost::fabric_strangers_test {
namespace {

using fabric::Fid;
using test::Way;

/// All addresses of this machine at which this process listens.
std::vector<sockaddr_in> Listeners() {
  std::vector<sockaddr_in> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    int listens = 0;
    socklen_t bytes = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || listens == 0) continue;
    sockaddr_in address = {};
    bytes = sizeof(address);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) == 0)
      found.push_back(address);
  }
  return found;
}

/// Sends each target a message without a tag and one with a tag, each as long as a block.
class Stranger {
 public:
  Stranger(const std::string& provider, const std::vector<sockaddr_in>& targets)
      : message_(1000), targets_(targets.size()) {
    fabric::Info hints = fabric::MakeHints();
    hints->caps = FI_MSG | FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    hints->fabric_attr->prov_name = strdup(provider.c_str());
    fi_info* found = nullptr;
    const fabric::Libfabric& library = **fabric::TheLibfabric();
    Must(library.getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found));
    info_ = fabric::Info(found);
    fid_fabric* fabric = nullptr;
    Must(library.fabric(info_->fabric_attr, &fabric, nullptr));
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    Must(fi_domain(fabric, info_.get(), &domain, nullptr));
    domain_.reset(domain);
    fi_av_attr table = {};
    fid_av* addresses = nullptr;
    Must(fi_av_open(domain, &table, &addresses, nullptr));
    addresses_.reset(addresses);
    fi_cq_attr queue = {};
    queue.format = FI_CQ_FORMAT_TAGGED;
    fid_cq* completions = nullptr;
    Must(fi_cq_open(domain, &queue, &completions, nullptr));
    completions_.reset(completions);
    fid_ep* endpoint = nullptr;
    Must(fi_endpoint(domain, info_.get(), &endpoint, nullptr));
    endpoint_.reset(endpoint);
    Must(fi_ep_bind(endpoint, &addresses->fid, 0));
    Must(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV));
    Must(fi_enable(endpoint));
    for (size_t i = 0; i < targets.size(); ++i) {
      sockaddr_in address = targets[i];
      EXPECT_EQ(fi_av_insert(addresses, &address, 1, &targets_[i], 0, nullptr), 1);
    }
    thread_ = std::thread([this] { Send(); });
  }
  ~Stranger() {
    is_over_ = true;
    thread_.join();
  }

  size_t sent() const { return sent_; }
  void WaitUntilSent() const {
    const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (sent_ < 2 * targets_.size() && std::chrono::steady_clock::now() < due)
      std::this_thread::yield();
  }

 private:
  static void Must(int error) { ASSERT_EQ(error, 0); }

  void Send() {
    contexts_.resize(2 * targets_.size());
    size_t posted = 0;
    while (!is_over_ && sent_ < contexts_.size()) {
      if (posted < contexts_.size()) {
        const fi_addr_t target = targets_[posted / 2];
        const ssize_t error = posted % 2 == 0
                                  ? fi_senddata(endpoint_.get(), message_.data(), message_.size(),
                                                nullptr, 0, target, &contexts_[posted])
                                  : fi_tsenddata(endpoint_.get(), message_.data(), message_.size(),
                                                 nullptr, 0, target, 0, &contexts_[posted]);
        if (error == 0) ++posted;
      }
      fi_cq_tagged_entry entry;
      if (fi_cq_read(completions_.get(), &entry, 1) == 1) ++sent_;
      std::this_thread::yield();
    }
  }

  std::vector<std::byte> message_;
  std::vector<fi_addr_t> targets_;
  std::vector<fi_context2> contexts_;
  fabric::Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> addresses_;
  Fid<fid_cq> completions_;
  Fid<fid_ep> endpoint_;
  std::atomic<size_t> sent_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

bool IsFabric(const Way& way) { return way.engine->device.starts_with("fabric:"); }
class FabricStrangersTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, FabricStrangersTest, testing::ValuesIn(test::Ways(IsFabric)),
                         [](const auto& it) { return it.param.name(); });

TEST_P(FabricStrangersTest, SendMessagesThatNobodyTakes) {
  const test::Engine& engine = *GetParam().engine;
  PREPOST_SKIP_IF_NOT_THERE(engine);
  const bool is_automatic = FindListed(engine.listed_name())->is_automatic;
  // The provider's name at the library.
  const std::string name = engine.device.substr(engine.device.find(':') + 1);
  const std::string provider = name == "tcp" ? "tcp;ofi_rxm" : name;
  const VerifiedPlan plan = test::PlanWithWindowsOf1("chain", 3, 100, 1000);
  std::unique_ptr<Stranger> stranger;
  test::PlayOptions options = GetParam().Options(plan);
  options.before_start = [&] {
    stranger = std::make_unique<Stranger>(provider, Listeners());
    // Nodes that make progress only when they are asked take its connections while they play.
    if (is_automatic) stranger->WaitUntilSent();
  };
  ExpectDelivers(engine, plan, options);
  ASSERT_NE(stranger, nullptr);
  EXPECT_GE(stranger->sent(), 1u);
}

}  // namespace
}  // namespace prepost::fabric_strangers_test
