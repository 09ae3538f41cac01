// SPDX-License-Identifier: Apache-2.0
//
// Faults at random moments in groups whose members are processes, also while they form: every
// survivor hears of a failure once, in the documented time where the machine allows (lateness.h);
// what was reported complete is right, in order and never reported twice; groups without the victim
// go on; and the survivors make a new group at once. Prints its seed, by which kinds take turns:
// half of them in one run and half in the next, and while groups form one in each; or a thousand
// faults with PREPOST_TEST_LONG.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/library/faults_member.h"
#include "tests/library/faults_scene.h"
#include "tests/support/lateness.h"
#include "tests/support/loopback.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::faults_test {
namespace {

using test::Machines;

struct Process {
  pid_t pid = -1;
  int out = -1;
  std::string text = {};
};

/// What all members wait for with their sessions open, before they create groups: its other end
/// closes.
struct Gate {
  Gate() { EXPECT_EQ(pipe(ends), 0); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    close(ends[0]);
    Open();
  }
  void Open() {
    if (ends[1] >= 0) close(std::exchange(ends[1], -1));
  }

  int ends[2];
};

Process Start(const Scene& scene, uint32_t self, Gate& gate, const std::vector<Process>& others) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  std::signal(SIGUSR1, CloseOneConnection);  // before a member could get one
  const pid_t pid = fork();
  if (pid == 0) {
    gate.Open();  // of this process's own
    close(pipes[0]);
    for (const Process& other : others) close(other.out);
    alarm(120);
    if (scene.machines != nullptr) scene.machines->Enter(self);
    RunMember(scene, self, gate.ends[0], pipes[1]);
    _exit(0);
  }
  close(pipes[1]);
  return {.pid = pid, .out = pipes[0]};
}

/// Reads what members say, for up to `max`.
void Read(std::vector<Process>& processes, milliseconds max) {
  std::vector<pollfd> polls;
  for (const Process& process : processes)
    polls.push_back({.fd = process.out, .events = POLLIN, .revents = 0});
  poll(polls.data(), polls.size(), static_cast<int>(max.count()));
  for (size_t i = 0; i < processes.size(); ++i) {
    if (polls[i].revents == 0) continue;
    Process& process = processes[i];
    char buffer[4096];
    const ssize_t got = read(process.out, buffer, sizeof(buffer));
    if (got > 0) {
      process.text.append(buffer, static_cast<size_t>(got));
    } else {
      close(process.out);
      process.out = -1;
    }
  }
}

/// Reads until `done` or it takes too long.
template <typename Done>
bool ReadUntil(std::vector<Process>& processes, Done done) {
  const Clock::time_point due = Clock::now() + 2 * kHangs;
  while (!done() && Clock::now() < due) Read(processes, milliseconds(100));
  return done();
}

/// Connects to a member and says nothing, or rubbish.
void Bother(const Address& member, uint64_t seed) {
  test::Random random(seed);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(7811);
  inet_pton(AF_INET, member.host.c_str(), &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    std::vector<char> junk(random.Below(300));
    for (char& c : junk) c = static_cast<char>(random.Below(256));
    static_cast<void>(send(fd, junk.data(), junk.size(), MSG_NOSIGNAL));
    std::this_thread::sleep_for(milliseconds(random.Below(50)));
  }
  close(fd);
}

/// The numbers behind `word` in a line of `text`; none if there is no such line.
std::vector<long long> NumbersAfter(const std::string& text, const std::string& word) {
  std::vector<long long> numbers;
  const size_t begin = ("\n" + text).find("\n" + word + " ");
  if (begin == std::string::npos) return numbers;
  std::istringstream line(text.substr(begin, text.find('\n', begin) - begin));
  std::string skipped;
  line >> skipped;
  for (long long number = 0; line >> number;) numbers.push_back(number);
  return numbers;
}

/// When it struck: the victim's own word where only it knows.
Clock::time_point BeginOfFault(const Scene& scene, const std::vector<Process>& processes,
                               Clock::time_point struck) {
  const std::vector<long long> own = NumbersAfter(processes[scene.victim].text, "struck");
  if (own.empty()) {
    EXPECT_NE(scene.fault, Fault::kCut) << "no connection was cut";
    return struck;
  }
  return Clock::time_point(Clock::duration(own.front()));
}

/// What the root heard that all members have, all survivors had.
void ExpectNoticesHold(const Scene& scene, const std::vector<Process>& processes) {
  const std::vector<long long> root = NumbersAfter(processes[scene.root].text, "count 1");
  if (!scene.notifies || root.size() < 3) return;
  for (const uint32_t i : scene.Survivors()) {
    const std::vector<long long> member = NumbersAfter(processes[i].text, "count 1");
    if (member.size() > 1) {
      EXPECT_GE(member[1], root[2]) << "member " << i;
    }
  }
}

/// Until the victim has a connection: while the group forms it may have none yet.
void CloseSocketOf(const Scene& scene, std::vector<Process>& processes) {
  const Clock::time_point due = Clock::now() + kHangs;
  const Process& victim = processes[scene.victim];
  while (NumbersAfter(victim.text, "struck").empty() && victim.out >= 0 && Clock::now() < due) {
    kill(victim.pid, SIGUSR1);
    Read(processes, milliseconds(2));
  }
}

void Strike(const Scene& scene, std::vector<Process>& processes) {
  const pid_t victim = processes[scene.victim].pid;
  switch (scene.fault) {
    case Fault::kKill:
      kill(victim, SIGKILL);
      break;
    case Fault::kStop:
      kill(victim, SIGSTOP);
      break;
    case Fault::kCloseSocket:
      CloseSocketOf(scene, processes);
      break;
    case Fault::kUnplug:
      scene.machines->SetLink(scene.victim, false);
      break;
    case Fault::kCutPair:
      scene.machines->SetPair(scene.victim, scene.other, false);
      break;
    case Fault::kLeave:
    case Fault::kNoMemory:
    case Fault::kFullDisk:
    case Fault::kCut:
    case Fault::kWrongPlan:
      break;  // the victim's own
    case Fault::kStranger:
      for (uint32_t i = 0; i < 20; ++i) Bother(scene.addresses[i % scene.members], scene.seed + i);
  }
}

/// Until the members that will do so have ended; returns which these are.
std::vector<uint32_t> WaitForEnd(const Scene& scene, std::vector<Process>& processes) {
  const std::vector<uint32_t> survivors = scene.Survivors();
  std::vector<uint32_t> ending = survivors;
  if (scene.fault == Fault::kStop || scene.fault == Fault::kCutPair) {
    EXPECT_TRUE(ReadUntil(processes, [&] {
      return std::ranges::all_of(survivors, [&](uint32_t i) {
        return processes[i].text.find("failed 1") != std::string::npos;
      });
    })) << "a member does not hear of it";
    // In the middle of the next group. One that was stopped finds out by itself that it is left
    // out.
    if (scene.fault == Fault::kStop) kill(processes[scene.victim].pid, SIGCONT);
    if (scene.fault == Fault::kStop) ending.push_back(scene.victim);
    if (scene.fault == Fault::kCutPair) scene.machines->SetPair(scene.victim, scene.other, true);
  }
  EXPECT_TRUE(ReadUntil(processes, [&] {
    return std::ranges::none_of(ending, [&](uint32_t i) { return processes[i].out >= 0; });
  })) << "a member hangs";
  if (scene.fault == Fault::kUnplug) scene.machines->SetLink(scene.victim, true);
  return ending;
}

/// The failures of the group that a survivor reported; how long after the fault the first one was
/// is added to `heard`.
size_t CheckFailures(const Scene& scene, const std::string& text, Clock::time_point began,
                     std::vector<milliseconds>& heard) {
  const bool is_victims = scene.fault == Fault::kKill || scene.fault == Fault::kStop ||
                          scene.fault == Fault::kUnplug || scene.fault == Fault::kLeave ||
                          scene.fault == Fault::kNoMemory || scene.fault == Fault::kFullDisk;
  size_t failures = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("failed 1")) continue;
    // Those who call on and on and go on do not end after the same call.
    const bool is_end = line.find("destroys the group after") != std::string::npos;
    if (scene.may_go_on() && scene.has_calls() && is_end) continue;
    if (++failures > 1) continue;
    long long at = 0;
    std::sscanf(line.c_str(), "failed 1 %lld", &at);
    const auto after = Clock::duration(at) - began.time_since_epoch();
    heard.push_back(std::chrono::duration_cast<milliseconds>(after));
    if (is_victims) {
      EXPECT_THAT(line, testing::HasSubstr(fmt::format("member {}", scene.victim)));
    }
    if (scene.fault == Fault::kFullDisk) {
      EXPECT_THAT(line, testing::HasSubstr("No space left on device"));
    }
  }
  return failures;
}

/// What members said, in the end.
void Check(const Scene& scene, const std::vector<Process>& processes,
           const std::vector<uint32_t>& ending, Clock::time_point struck,
           const test::Lateness& lateness) {
  const std::vector<uint32_t> survivors = scene.Survivors();
  const Clock::time_point began = BeginOfFault(scene, processes, struck);
  ExpectNoticesHold(scene, processes);
  std::vector<milliseconds> heard;
  size_t failures = 0;
  for (uint32_t i = 0; i < scene.members; ++i) {
    const std::string& text = processes[i].text;
    SCOPED_TRACE(fmt::format("member {} says:\n{}", i, text));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("wrong")));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("broken")));
    if (std::ranges::count(ending, i) == 0) continue;
    EXPECT_THAT(text, testing::HasSubstr("end\n"));
    if (std::ranges::count(survivors, i) == 0) {
      EXPECT_FALSE(NumbersAfter(text, "failed 1").empty());
      continue;
    }
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("failed 2")));
    const size_t own = CheckFailures(scene, text, began, heard);
    if (!scene.may_go_on()) {
      EXPECT_EQ(own, scene.fault == Fault::kStranger ? 0u : 1u);
    }
    failures += own;
  }
  if (failures == 0) {
    std::cout << scene.ToString() << ": the group goes on" << std::endl;
    return;
  }
  EXPECT_EQ(failures, survivors.size()) << "each hears of it, or none does";
  lateness.ExpectInTime(scene.ToString(), std::ranges::max(heard), kFailureMax,
                        scene.is_forming ? kConnectMax : milliseconds(0));
}

void Play(const Scene& scene) {
  SCOPED_TRACE(scene.ToString());
  std::vector<Process> processes;
  Gate gate;
  for (uint32_t i = 0; i < scene.members; ++i)
    processes.push_back(Start(scene, i, gate, processes));
  const test::Lateness lateness;  // its thread is not there while processes are forked
  const auto all_say = [&](const char* line) {
    return ReadUntil(processes, [&] {
      return std::ranges::all_of(processes, [line](const Process& process) {
        return process.text.find(line) != std::string::npos;
      });
    });
  };
  EXPECT_TRUE(all_say("ready\n")) << "a session does not open";
  gate.Open();
  const bool opens = scene.fault != Fault::kWrongPlan && !scene.is_forming;
  EXPECT_TRUE(!opens || all_say("opened 1\n")) << "the group does not open";
  std::this_thread::sleep_for(scene.delay);
  const Clock::time_point struck = Clock::now();
  Strike(scene, processes);
  const std::vector<uint32_t> ending = WaitForEnd(scene, processes);
  for (const Process& process : processes) {
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
    if (process.out >= 0) close(process.out);
  }
  Check(scene, processes, ending, struck, lateness);
}

bool NeedsMachines(Fault fault) { return fault == Fault::kUnplug || fault == Fault::kCutPair; }
/// A machine of its own, or a disk of its own.
bool NeedsRoot(Fault fault) { return NeedsMachines(fault) || fault == Fault::kFullDisk; }

/// Of a pair neither of which is the root: neighbours in the chain, which begins at the root.
void ChoosePair(Scene& scene) {
  if (scene.victim == scene.root) scene.victim = (scene.victim + 1) % scene.members;
  const uint32_t next = (scene.victim + 1) % scene.members;
  scene.other = next != scene.root ? next : (scene.victim + scene.members - 1) % scene.members;
}

/// The fault of a number, without machines.
Scene SceneOf(Fault fault, bool is_forming, uint64_t seed) {
  test::Random random(seed);
  Scene scene;
  scene.fault = fault;
  scene.is_forming = is_forming;
  scene.members = static_cast<uint32_t>(3 + random.Below(kMembersMax - 2));
  scene.root = static_cast<uint32_t>(random.Below(scene.members));
  scene.victim = static_cast<uint32_t>(random.Below(scene.members));
  // The root needs no memory.
  const bool is_receivers = fault == Fault::kNoMemory || fault == Fault::kFullDisk;
  if (is_receivers && scene.victim == scene.root) scene.victim = (scene.victim + 1) % scene.members;
  if (fault == Fault::kCutPair) ChoosePair(scene);
  scene.local_copies = random.Below(uint64_t{1} << scene.members);
  scene.is_disturbed = random.Coin();
  scene.notifies = random.Coin();
  scene.seed = seed;
  scene.delay = milliseconds(random.Below(is_forming ? 60 : 400));
  return scene;
}

/// `faults` of all kinds in turn, from the one with the number `first`.
void PlayAtRandomMoments(bool is_forming, uint64_t first, uint32_t faults) {
  const uint64_t seed = test::TestSeed();
  const std::unique_ptr<Machines> machines = Machines::Make(kMembersMax);
  const char* const only = std::getenv("PREPOST_TEST_FAULT");  // again and again, by its number
  uint32_t played = 0;
  for (uint32_t turn = 0; turn < faults && !testing::Test::HasFailure(); ++turn) {
    const uint64_t i = only == nullptr ? turn : std::strtoull(only, nullptr, 10);
    const auto fault = static_cast<Fault>((first + i) % std::size(kNames));
    Scene scene = SceneOf(fault, is_forming, seed * 7919 + i);
    if (NeedsRoot(fault) && machines == nullptr) {
      std::cout << scene.name() << ": not played, it needs root and ip" << std::endl;
      continue;
    }
    if (NeedsMachines(fault)) scene.machines = machines.get();
    for (uint32_t member = 0; member < scene.members; ++member) {
      scene.addresses.push_back({.host = scene.machines != nullptr
                                             ? Machines::AddressOf(member)
                                             : test::LoopbackAddress(member)});
    }
    Play(scene);
    ++played;
  }
  if (played == 0) GTEST_SKIP() << "no fault of this run can be played without root and ip";
}

// Six of eleven kinds, and the other five in the run after.
TEST(FaultsTest, AtRandomMoments) {
  PlayAtRandomMoments(/*is_forming=*/false, 6 * test::TestSeed(), test::SweepCases(1000, 6));
}

// Most take ten seconds.
TEST(FaultsTest, WhileGroupsForm) {
  PlayAtRandomMoments(/*is_forming=*/true, test::TestSeed(), test::SweepCases(200, 1));
}

}  // namespace
}  // namespace prepost::faults_test
