// SPDX-License-Identifier: Apache-2.0
//
// How long calls of collectives take in a group of a session: from when the last member makes the
// call to when the last one has its result, by the clock that all members of one machine have in
// common. One process per member; bench/network/calls.py starts them.
#include <time.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <future>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "bench/session_program.h"
#include "prepost/prepost.h"

namespace {

using prepost::CollectiveKind;
using prepost::Session;
using prepost::Status;
using prepost::bench::CpuSeconds;
using prepost::bench::Must;

double Now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Options {
  uint32_t self = 0;
  std::vector<std::string> members;
  std::string collective = "allreduce";
  std::vector<uint64_t> bytes;
  uint32_t repeat = 5;
  std::string waiting = "hybrid";
  bool deterministic = false;
  bool no_local_copies = false;
  bool own_thread = true;
};

const std::map<std::string, CollectiveKind>& Kinds() {
  static const std::map<std::string, CollectiveKind> kinds = {
      {"allreduce", CollectiveKind::kAllreduce},          {"allgather", CollectiveKind::kAllgather},
      {"reduce_scatter", CollectiveKind::kReduceScatter}, {"alltoall", CollectiveKind::kAlltoall},
      {"broadcast", CollectiveKind::kMulticast},          {"barrier", CollectiveKind::kBarrier}};
  return kinds;
}

/// Waits as a program does: without a thread of the session's own, it turns the session itself.
Status Await(Session& session, const Options& options, std::future<Status> future) {
  const auto is_ready = [&] {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (!options.own_thread && !is_ready()) Must(session.Poll(std::chrono::milliseconds(-1)));
  return future.get();
}

/// `bytes`: of the whole vector, which has a part for each member.
void Measure(Session& session, const Options& options, uint64_t bytes) {
  const CollectiveKind kind = Kinds().at(options.collective);
  const uint64_t members = options.members.size();
  const bool has_parts = kind != CollectiveKind::kAllreduce && kind != CollectiveKind::kMulticast;
  const uint64_t count = bytes / 4 / (has_parts ? members : 1);
  std::vector<float> input(bytes / 4 + 1, 1.0f), output(bytes / 4 + 1);
  const prepost::Call call = {
      .kind = kind,
      .input = input.data(),
      .output = kind == CollectiveKind::kMulticast ? input.data() : output.data(),
      .count = count,
      .type = prepost::ElementType::kFloat32,
      .op = prepost::CombineOp::kSum};
  std::vector<double> starts, ends;
  double cpu = 0;
  for (uint32_t i = 0; i < options.repeat + 1; ++i) {
    Must(Await(session, options, session.Barrier(1)));
    if (i == 1) cpu = CpuSeconds();
    starts.push_back(Now());
    Must(Await(session, options, session.Await(1, call)));
    ends.push_back(Now());
  }
  const bool is_right = kind != CollectiveKind::kAllreduce || count == 0 ||
                        (output.front() == static_cast<float>(members) &&
                         output[count - 1] == static_cast<float>(members));
  if (!is_right) Must({prepost::StatusCode::kRejected, "the result is wrong"});
  starts.erase(starts.begin());
  ends.erase(ends.begin());
  const nlohmann::ordered_json json = {{"bytes", bytes},
                                       {"members", members},
                                       {"cpu_seconds", CpuSeconds() - cpu},
                                       {"starts", starts},
                                       {"ends", ends}};
  std::cout << json.dump() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("How long calls of collectives take.");
  app.add_option("self", options.self, "this member's number")->required();
  app.add_option("members", options.members, "HOST of each, with commas")
      ->required()
      ->delimiter(',');
  app.add_option("--collective", options.collective, "which")->check(CLI::IsMember(Kinds()));
  app.add_option("--bytes", options.bytes, "of the whole vector, with commas")
      ->required()
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--repeat", options.repeat, "measurements of each size");
  app.add_option("--waiting", options.waiting, "polling, hybrid, interrupt");
  app.add_flag("--deterministic", options.deterministic, "as GroupOptions");
  app.add_flag("--no-local-copies", options.no_local_copies,
               "TCP between members of one machine, too");
  app.add_flag("--own-thread,!--no-own-thread", options.own_thread, "as SessionOptions");
  CLI11_PARSE(app, argc, argv);
  prepost::SessionOptions session =
      prepost::bench::SessionOf(options.self, options.members, options.waiting);
  session.local_copies = !options.no_local_copies;
  session.own_thread = options.own_thread;
  std::vector<uint32_t> all(options.members.size());
  std::iota(all.begin(), all.end(), 0);
  auto opened = Session::Open(session);
  Must(opened.status());
  std::promise<void> closed;
  prepost::GroupCallbacks callbacks;
  callbacks.closed = [&] { closed.set_value(); };
  callbacks.failed = [](const Status& cause, const prepost::FailedMembers&) { Must(cause); };
  Must((*opened)->CreateGroup(1, all, 0, {.calls = true, .deterministic = options.deterministic},
                              callbacks));
  for (const uint64_t bytes : options.bytes) Measure(**opened, options, bytes);
  Must((*opened)->DestroyGroup(1));
  std::future<void> gone = closed.get_future();
  while (!options.own_thread && gone.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    Must((*opened)->Poll(std::chrono::milliseconds(-1)));
  gone.wait();
  return 0;
}
