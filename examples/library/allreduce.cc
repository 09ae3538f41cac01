// SPDX-License-Identifier: Apache-2.0
//
// Adds up one number per member and a vector of floats, at all members:
//
//     allreduce SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "prepost/prepost.h"

namespace {

void Check(const prepost::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: allreduce SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE\n");
    return 2;
  }
  prepost::SessionOptions options;
  options.self = static_cast<uint32_t>(std::atoi(argv[1]));
  std::istringstream hosts(argv[2]);
  for (std::string host; std::getline(hosts, host, ',');) {
    const size_t colon = host.find(':');
    options.members.push_back({.host = host.substr(0, colon)});
    if (colon != std::string::npos)
      options.members.back().port = static_cast<uint16_t>(std::stoul(host.substr(colon + 1)));
  }
  std::ifstream secret(argv[3], std::ios::binary);
  options.secret.assign(std::istreambuf_iterator<char>(secret), {});
  auto session = prepost::Session::Open(options);
  Check(session.status());
  prepost::Session& here = **session;

  const auto count = static_cast<uint32_t>(options.members.size());
  std::vector<uint32_t> members(count);
  std::iota(members.begin(), members.end(), 0u);
  std::promise<void> closed;
  prepost::GroupCallbacks callbacks;
  callbacks.closed = [&] { closed.set_value(); };
  callbacks.failed = [](const prepost::Status& cause, const prepost::FailedMembers&) {
    Check(cause);
  };
  Check(here.CreateGroup(1, members, /*root=*/0, {.calls = true}, callbacks));

  // Both calls are under way at once; every member makes them in this order.
  uint64_t rank = options.self, ranks = 0;
  std::vector<float> values(1'000'000, 0.5f + static_cast<float>(options.self)),
      sums(values.size());
  std::future<prepost::Status> first =
      here.Allreduce(1, &rank, &ranks, 1, prepost::ElementType::kUint64, prepost::CombineOp::kSum);
  std::future<prepost::Status> second =
      here.Allreduce(1, values.data(), sums.data(), sums.size(), prepost::ElementType::kFloat32,
                     prepost::CombineOp::kSum);
  Check(first.get());
  Check(second.get());
  std::printf("ranks add up to %llu, values to %g\n", static_cast<unsigned long long>(ranks),
              static_cast<double>(sums.front()));

  // No member leaves before all have their results.
  Check(here.DestroyGroup(1));
  closed.get_future().wait();
  return 0;
}
