// SPDX-License-Identifier: Apache-2.0
//
// Groups of sessions whose members are threads of this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "prepost/prepost.h"
#include "runtime/session/member_words.h"
#include "tests/support/random.h"
#include "tests/support/sessions.h"
#include "tests/support/tcp_disturbance.h"

namespace prepost::session_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::ExpectDelivery;
using test::GroupLog;
using test::Members;
using test::Patient;
using test::Sessions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As over long paths: catches streams that are not all there when the group opens, that end up at
// another connection, and messages that do not follow each other.
TEST(SessionTest, ConnectionsOfSeveralStreams) {
  const std::vector<uint32_t> members = Members(4);
  for (const bool is_disturbed : {false, true}) {
    SCOPED_TRACE(is_disturbed);
    test::TcpDisturbance disturbance(test::TestSeed());
    SessionOptions options;
    options.local_copies = false;
    options.paths = {.streams = 3, .long_path = std::chrono::microseconds(0)};
    options.sites = {"x", "y", "x", "y"};
    Sessions sessions(4, Patient(options), is_disturbed ? &disturbance : nullptr);
    sessions.Create(1, members, 2, {.block_bytes = 100'000});
    ExpectDelivery(sessions, 1, members, 2,
                   {Bytes(0, 1), Bytes(1, 2), Bytes(99'999, 3), Bytes(1'000'000, 4),
                    Bytes(100'001, 5), Bytes(1'234'567, 6)});
    for (const uint32_t member : members) {
      const Result<PeerPaths> found = sessions[member].Paths(1);
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      EXPECT_EQ(found->network, member == 2 || member == 3 ? 1u : 2u);  // a chain: 2, 0, 1, 3
    }
  }
}

// Members 0, 1, 3 and 4 would copy from memory to memory, member 2 does not: a group has both at
// once.
TEST(SessionTest, CopiesAndConnectionsInOneGroup) {
  const std::vector<uint32_t> members = Members(5);
  for (const bool is_disturbed : {false, true}) {
    SCOPED_TRACE(is_disturbed);
    test::TcpDisturbance disturbance(test::TestSeed());
    Sessions sessions(5, Patient({}), is_disturbed ? &disturbance : nullptr,
                      [](SessionOptions& own) { own.local_copies = own.self != 2; });
    sessions.Create(1, members, 0, {.algorithm = "chain", .block_bytes = 16384});
    ExpectDelivery(sessions, 1, members, 0,
                   {Bytes(0, 1), Bytes(1, 2), Bytes(4095, 3), Bytes(4096, 4), Bytes(16385, 5),
                    Bytes(300'000, 6)});
    const std::vector<std::pair<uint32_t, uint32_t>> paths = {
        {1, 0}, {1, 1}, {0, 2}, {1, 1}, {1, 0}};
    for (const uint32_t member : members) {
      SCOPED_TRACE(member);
      const Result<PeerPaths> found = sessions[member].Paths(1);
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      EXPECT_EQ(found->memory, paths[member].first);
      EXPECT_EQ(found->network, paths[member].second);
      EXPECT_EQ(found->forbidden, 0u);
    }
  }
}

// Every schedule, also those without a rolled plan.
TEST(SessionTest, EveryAlgorithm) {
  const std::vector<uint32_t> members = Members(6);
  Sessions sessions(6);
  uint64_t group = 0;
  for (const char* algorithm :
       {"sequential", "chain", "kary_chain=3", "binomial_tree", "kary_tree=2", "binomial_pipeline",
        "circulant", "two_tree", "scatter_allgather"}) {
    SCOPED_TRACE(algorithm);
    sessions.Create(++group, members, 2, {.algorithm = algorithm, .block_bytes = 1000});
    ExpectDelivery(sessions, group, members, 2,
                   {Bytes(10, 1), Bytes(999, 2), Bytes(12345, 3), Bytes(1000, 4), Bytes(70001, 5)});
  }
}

// Nobody has to wait for a group to open before its first barrier.
TEST(SessionTest, BarriersBeforeTheGroupIsOpen) {
  for (const uint32_t last : {0u, 1u, 2u}) {
    SCOPED_TRACE(last);
    Sessions sessions(3);
    const std::vector<uint32_t> members = Members(3);
    for (uint32_t i = 1; i <= 3; ++i) {
      const uint32_t member = (last + i) % 3;
      ASSERT_TRUE(
          sessions[member].CreateGroup(1, members, 0, {}, sessions.Callbacks(member, 1)).ok());
      sessions.Barrier(1, member);
      sessions.Barrier(1, member);
    }
    ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.passed == 2; }));
  }
}

/// Connections of this process that the kernel asks about after half a minute.
int ConnectionsKeptAlive() {
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    int is_kept = 0, idle = 0;
    socklen_t bytes = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_kept, &bytes) != 0 || is_kept == 0) continue;
    if (getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &bytes) == 0 && idle == 30) ++count;
  }
  return count;
}

// Those of blocks and of notes, at both ends, before the first message and after the last.
TEST(SessionTest, ConnectionsOnWhichNothingMovesAreKeptAlive) {
  ASSERT_EQ(ConnectionsKeptAlive(), 0);
  Sessions sessions(2);
  const std::vector<uint32_t> members = Members(2);
  sessions.Create(1, members, 0, {.algorithm = "chain"});
  ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.opened == 1; }));
  EXPECT_EQ(ConnectionsKeptAlive(), 4);
  ExpectDelivery(sessions, 1, members, 0, {Bytes(5, 1)});
  for (int i = 0; i < 1000 && ConnectionsKeptAlive() != 4; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(ConnectionsKeptAlive(), 4);
}

// Until `failed` has been called, and in it, what is asked of the group is answered with the cause,
// not with "there is none of this number".
TEST(SessionTest, UntilFailedHasBeenCalledTheGroupHasItsCause) {
  Sessions sessions(2);
  std::mutex mutex;
  std::vector<Status> answers;
  for (const uint32_t member : {0u, 1u}) {
    GroupCallbacks callbacks = sessions.Callbacks(member, 1);
    if (member == 0) {
      callbacks.failed = [&, failed = callbacks.failed](const Status& cause,
                                                        const FailedMembers& where) {
        const std::lock_guard lock(mutex);
        answers.push_back(sessions[0].Send(1, "x", 1).status());
        answers.push_back(sessions[0].Barrier(1, {}));
        EXPECT_TRUE(sessions[0].CreateGroup(1, {0}, 0, {}, sessions.Callbacks(0, 3)).ok());
        answers.push_back(sessions[0].Send(1, "x", 1).status());
        failed(cause, where);
      };
    }
    ASSERT_TRUE(sessions[member].CreateGroup(1, Members(2), 0, {}, callbacks).ok());
  }
  ASSERT_TRUE(sessions.Wait(1, Members(2), [](const GroupLog& log) { return log.opened == 1; }));
  sessions.Kill(1);
  ASSERT_TRUE(sessions.Wait(1, {0}, [](const GroupLog& log) { return !log.failures.empty(); }));
  const std::string cause = sessions.LogOf(0, 1).failures.front();
  ASSERT_EQ(answers.size(), 3u);
  for (const size_t i : {0u, 1u}) {
    EXPECT_EQ(answers[i].code(), StatusCode::kRejected);
    EXPECT_THAT(answers[i].message(), HasSubstr("group 1, which has failed: " + cause));
  }
  EXPECT_TRUE(answers[2].ok());  // to the new group of that number
  EXPECT_TRUE(sessions.Wait(3, {0}, [](const GroupLog& log) { return log.completed.size() == 1; }));
}

// A member that never comes, and one whose group is another.
TEST(SessionTest, GroupsThatDoNotForm) {
  SessionOptions options;
  options.connect_max = milliseconds(300);
  Sessions sessions(3, options);
  const std::vector<uint32_t> members = Members(3);
  for (const uint32_t member : {0u, 1u}) {
    ASSERT_TRUE(
        sessions[member].CreateGroup(1, members, 0, {}, sessions.Callbacks(member, 1)).ok());
    ASSERT_TRUE(
        sessions[member]
            .CreateGroup(2, {0, 1}, 0, {.block_bytes = member + 1u}, sessions.Callbacks(member, 2))
            .ok());
  }
  for (const uint64_t group : {1u, 2u}) {
    ASSERT_TRUE(
        sessions.Wait(group, {0, 1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  }
  EXPECT_THAT(sessions.LogOf(0, 1).failures.front(), HasSubstr("member 2 ("));
  // Without the root the others are not there either. Catches a member that cannot say who is
  // missing.
  ASSERT_TRUE(sessions[1].CreateGroup(3, members, 0, {}, sessions.Callbacks(1, 3)).ok());
  ASSERT_TRUE(sessions.Wait(3, {1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_THAT(sessions.LogOf(1, 3).failed_members, ElementsAre(0u));
  EXPECT_THAT(sessions.LogOf(1, 2).failures.front(), HasSubstr("other options or another plan"));
}

// Members that know of nobody where to find them, as behind NAT. Catches one that connects to the
// root, or to another member for gates, of which there are none up to 17.
TEST(SessionTest, TheRootMayOpenAllConnections) {
  for (const uint32_t count : {2u, 20u}) {
    for (const bool is_sealed : {false, true}) {
      const std::vector<std::byte> message = Bytes(1u << 20, 1);
      SCOPED_TRACE(std::to_string(count) + (is_sealed ? " sealed" : ""));
      Sessions sessions(count, {}, nullptr, [](SessionOptions& own) {
        for (uint32_t member = 0; member < own.members.size(); ++member) {
          if (own.self != 1 && member != own.self) own.members[member] = {"127.0.0.1", 1};
        }
      });
      const std::vector<uint32_t> members = Members(count);
      sessions.Create(1, members, /*root=*/1,
                      {.algorithm = "sequential", .seal = is_sealed, .root_connects = true});
      for (const uint32_t member : members) sessions.Barrier(1, member);
      ASSERT_TRUE(sessions[1].Send(1, message.data(), message.size()).ok());
      ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) {
        return log.completed.size() == 1 && log.passed == 1;
      }));
      for (const uint32_t member : members) ASSERT_TRUE(sessions[member].DestroyGroup(1).ok());
      ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.closed == 1; }));
      for (const uint32_t member : members) {
        if (member == 1) continue;
        EXPECT_EQ(sessions.LogOf(member, 1).messages.front(), message);
      }
    }
  }
  Sessions sessions(2);
  EXPECT_THAT(sessions[0].CreateGroup(1, {0, 1}, 0, {.root_connects = true}, {}).message(),
              HasSubstr("algorithm \"sequential\""));
}

void ExpectFailure(Sessions& sessions, uint64_t group, const std::vector<uint32_t>& survivors,
                   uint32_t victim) {
  const auto killed = std::chrono::steady_clock::now();
  sessions.Kill(victim);
  ASSERT_TRUE(
      sessions.Wait(group, survivors, [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - killed, milliseconds(2000));
  for (const uint32_t member : survivors) {
    EXPECT_THAT(sessions.LogOf(member, group).failures.front(),
                HasSubstr("member " + std::to_string(victim)));
    EXPECT_EQ(sessions.LogOf(member, group).failed_member, victim);
  }
}

// The root goes when others have reached it, but it has not created the group. Catches members that
// try to reach it until connect_max.
TEST(SessionTest, RootThatGoesBeforeTheGroupForms) {
  Sessions sessions(3);
  for (const uint32_t member : {1u, 2u}) {
    ASSERT_TRUE(
        sessions[member].CreateGroup(1, Members(3), 0, {}, sessions.Callbacks(member, 1)).ok());
  }
  std::this_thread::sleep_for(milliseconds(300));
  ExpectFailure(sessions, 1, {1, 2}, 0);
}

// A member goes that has not created the group, and that others know from another one.
TEST(SessionTest, MemberOfAnotherGroupGoesBeforeTheGroupForms) {
  for (const uint32_t root : {0u, 2u}) {
    SCOPED_TRACE(root);
    Sessions sessions(3);
    sessions.Create(1, Members(3), 0);
    ASSERT_TRUE(sessions.Wait(1, Members(3), [](const GroupLog& log) { return log.opened == 1; }));
    for (const uint32_t member : {0u, 1u}) {
      ASSERT_TRUE(sessions[member]
                      .CreateGroup(2, Members(3), root, {}, sessions.Callbacks(member, 2))
                      .ok());
    }
    ExpectFailure(sessions, 2, {0, 1}, 2);
  }
}

// The root has given the group up when this one comes. Catches members that wait for the root to
// create it once more, until connect_max.
TEST(SessionTest, MemberThatComesLateHearsOfTheFailure) {
  Sessions sessions(3);
  const std::vector<uint32_t> members = Members(3);
  for (const uint32_t member : {0u, 1u}) {
    ASSERT_TRUE(
        sessions[member]
            .CreateGroup(1, members, 0, {.block_bytes = member + 1u}, sessions.Callbacks(member, 1))
            .ok());
  }
  const auto has_failed = [](const GroupLog& log) { return log.failures.size() == 1; };
  ASSERT_TRUE(sessions.Wait(1, {0, 1}, has_failed));
  ASSERT_TRUE(
      sessions[2].CreateGroup(1, members, 0, {.block_bytes = 1}, sessions.Callbacks(2, 1)).ok());
  ASSERT_TRUE(sessions.Wait(1, {2}, has_failed));
  EXPECT_THAT(sessions.LogOf(2, 1).failures.front(),
              HasSubstr("creates the group with other options or another plan"));
  for (const uint32_t member : members) {
    const GroupCallbacks callbacks = sessions.Callbacks(member, 2);
    ASSERT_TRUE(sessions[member].CreateGroup(1, members, 0, {}, callbacks).ok());
  }
  EXPECT_TRUE(sessions.Wait(2, members, [](const GroupLog& log) { return log.opened == 1; }));
}

/// A member at any free port, that knows of others only what it is told.
class Loner {
 public:
  Loner(uint32_t self, uint32_t members) : self_(self) {
    SessionOptions options = {.self = self, .members = std::vector<Address>(members)};
    options.members[self] = {.host = "127.0.0.1", .port = 0};
    options.secret = "a secret of more than 16 bytes";
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    session_ = *std::move(session);
  }

  Session& session() { return *session_; }
  void Leave() { session_.reset(); }
  void Knows(const std::vector<Loner*>& others) {
    for (Loner* const other : others) Knows(other->self_, other->session_->port());
  }
  void Knows(uint32_t member, uint16_t port) {
    EXPECT_TRUE(session_->SetAddress(member, {.host = "127.0.0.1", .port = port}).ok());
  }
  void Create(const std::vector<uint32_t>& members, const GroupOptions& options) {
    GroupCallbacks callbacks;
    callbacks.incoming = [this](uint64_t, uint64_t bytes) -> void* {
      memory_.resize(bytes);
      return memory_.data();
    };
    callbacks.complete = [this](uint64_t, void* memory, uint64_t bytes) {
      Note([&] {
        log_.messages.emplace_back(static_cast<std::byte*>(memory),
                                   static_cast<std::byte*>(memory) + bytes);
      });
    };
    callbacks.opened = [this] { Note([&] { ++log_.opened; }); };
    callbacks.failed = [this](const Status& cause, std::optional<uint32_t>) {
      Note([&] { log_.failures.push_back(cause.ToString()); });
    };
    EXPECT_TRUE(session_->CreateGroup(1, members, 0, options, callbacks).ok());
  }
  template <typename Done>
  bool Wait(milliseconds max, Done done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, max, [&] { return done(log_); });
  }
  GroupLog log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  template <typename Change>
  void Note(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  const uint32_t self_;
  std::vector<std::byte> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  GroupLog log_;
  std::unique_ptr<Session> session_;
};

// Others form the next group of the same number and members while two have not heard that the last
// one is over: their root has sent a message, which they are about to pass on. Catches connections
// between the two groups, over which this message comes into the new one.
TEST(SessionTest, GroupsOfOneNumberDoNotMix) {
  constexpr milliseconds kSoon{10000};
  const auto has_opened = [](const GroupLog& log) { return log.opened > 0; };
  const auto has_message = [](const GroupLog& log) { return !log.messages.empty(); };
  const auto has_failed = [](const GroupLog& log) { return !log.failures.empty(); };
  const GroupOptions chain = {.algorithm = "chain"};
  const std::vector<uint32_t> members = Members(4);
  // Outlive the members: a root is told that its memory is its own again after others have it.
  const std::vector<std::byte> old_message = Bytes(1000, 1), new_message = Bytes(1000, 2);
  Loner old_root(0, 4), second(1, 4), third(2, 4), old_last(3, 4);
  Loner new_root(0, 4), new_last(3, 4);
  old_root.Knows({&second, &third, &old_last});
  second.Knows({&old_root, &third, &old_last});
  third.Knows({&old_root, &second, &old_last});
  old_last.Knows({&old_root, &second});
  old_last.Knows(2, 1);  // where nobody listens, so that the third waits for this one
  for (Loner* const member : {&old_root, &second, &third, &old_last})
    member->Create(members, chain);
  ASSERT_TRUE(old_root.Wait(kSoon, has_opened));
  ASSERT_TRUE(old_root.session().Send(1, old_message.data(), old_message.size()).ok());

  new_root.Knows({&second, &third, &new_last});
  new_last.Knows({&new_root, &second, &third});
  for (Loner* const member : {&new_root, &new_last}) member->Create(members, chain);
  EXPECT_FALSE(new_last.Wait(milliseconds(500), has_message)) << "of the old group";
  old_root.Leave();
  for (Loner* const member : {&second, &third}) {
    ASSERT_TRUE(member->Wait(kSoon, has_failed));
    member->Knows({&new_root, &new_last});
  }
  second.Create(members, chain);
  third.Create(members, chain);
  ASSERT_TRUE(new_root.session().Send(1, new_message.data(), new_message.size()).ok());
  for (Loner* const member : {&second, &third, &new_last}) {
    EXPECT_TRUE(member->Wait(kSoon, has_message));
    EXPECT_THAT(member->log().messages, ElementsAre(new_message));
  }
  EXPECT_THAT(new_root.log().failures, ElementsAre());
  EXPECT_THAT(new_last.log().failures, ElementsAre());
}

// Members listen at any port and learn of each other when all do. Catches addresses that are taken
// at Open() only, and groups of members that cannot be found.
TEST(SessionTest, AddressesLearnedLate) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (uint32_t self = 0; self < 3; ++self) {
    SessionOptions options = {.self = self, .members = std::vector<Address>(3)};
    options.members[self] = {.host = test::LoopbackAddress(self), .port = 0};
    options.secret = "a secret of more than 16 bytes";
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    EXPECT_NE((*session)->port(), 0);
    sessions.push_back(*std::move(session));
  }
  EXPECT_THAT(sessions[0]->CreateGroup(1, {0, 1, 2}, 0, {}, {}).ToString(),
              HasSubstr("member 1 has no host or no port yet"));
  EXPECT_THAT(sessions[0]->SetAddress(0, {.host = "h"}).ToString(), HasSubstr("this one"));
  EXPECT_THAT(sessions[0]->SetAddress(3, {.host = "h"}).ToString(), HasSubstr("no member 3"));
  EXPECT_THAT(sessions[0]->SetAddress(1, {}).ToString(), HasSubstr("no host"));
  std::atomic<int> completed = 0;
  int received[3] = {7, 0, 0};
  for (uint32_t self = 0; self < 3; ++self) {
    for (uint32_t other = 0; other < 3; ++other) {
      if (other == self) continue;
      const Status set = sessions[self]->SetAddress(
          other, {.host = test::LoopbackAddress(other), .port = sessions[other]->port()});
      ASSERT_TRUE(set.ok()) << set.ToString();
    }
    GroupCallbacks callbacks;
    callbacks.incoming = [&received, self](uint64_t, uint64_t) { return &received[self]; };
    callbacks.complete = [&completed](uint64_t, void*, uint64_t) { ++completed; };
    ASSERT_TRUE(sessions[self]->CreateGroup(1, {0, 1, 2}, 0, {}, std::move(callbacks)).ok());
  }
  ASSERT_TRUE(sessions[0]->Send(1, &received[0], sizeof(int)).ok());
  for (int i = 0; i < 1000 && completed < 3; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_THAT(received, ElementsAre(7, 7, 7));
}

// Members of one machine, one of which is another user's or in another namespace of processes, and
// may not read the memory of the other. Catches blocks that go over TCP without a word.
void ExpectForbidden(const std::function<bool()>& change) {
  SessionOptions options = {
      .members = {{.host = test::LoopbackAddress(0)}, {.host = test::LoopbackAddress(1)}}};
  options.secret = "a secret of more than 16 bytes";
  const auto paths_of = [&](uint32_t self) -> std::optional<PeerPaths> {
    SessionOptions own = options;
    own.self = self;
    std::atomic<bool> is_open = false;
    auto session = Session::Open(own);
    if (!session.ok()) return std::nullopt;
    GroupCallbacks callbacks;
    callbacks.opened = [&] { is_open = true; };
    callbacks.incoming = [](uint64_t, uint64_t) { return nullptr; };
    if (!(*session)->CreateGroup(1, {0, 1}, 0, {}, callbacks).ok()) return std::nullopt;
    for (int i = 0; i < 1000 && !is_open; ++i) std::this_thread::sleep_for(milliseconds(10));
    const Result<PeerPaths> paths = (*session)->Paths(1);
    std::this_thread::sleep_for(milliseconds(300));  // until the other one has opened it, too
    return paths.ok() ? std::optional(*paths) : std::nullopt;
  };
  const pid_t other = fork();
  if (other == 0) {
    if (!change()) _exit(2);
    const std::optional<PeerPaths> paths = paths_of(1);
    _exit(paths && paths->forbidden == 1 && paths->network == 1 && paths->memory == 0 ? 0 : 1);
  }
  const std::optional<PeerPaths> paths = paths_of(0);
  int status = -1;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(paths);
  // Who may read the other's memory, but is another user, does not.
  EXPECT_EQ(paths->memory, 0u);
  EXPECT_EQ(paths->forbidden, 1u);
  EXPECT_EQ(paths->short_memory, 0u);
  EXPECT_EQ(paths->short_network, 1u);
}

TEST(SessionTest, PathsSayWhatIsForbidden) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  ExpectForbidden([] { return setgid(65534) == 0 && setuid(65534) == 0; });
  const pid_t probe = fork();
  if (probe == 0) _exit(unshare(CLONE_NEWPID) == 0 ? 0 : 1);
  int status = -1;
  waitpid(probe, &status, 0);
  if (status != 0) GTEST_SKIP() << "no other namespace of processes: not tried in one";
  ExpectForbidden([] {
    if (unshare(CLONE_NEWPID) != 0) return false;
    const pid_t child = fork();  // the first one that is there
    if (child == 0) return true;
    int status = -1;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  });
}

// Catches memory that has a name, which stays when its processes are killed.
TEST(SessionTest, SharedMemoryHasNoName) {
  Sessions sessions(2);
  const std::vector<uint32_t> members = Members(2);
  sessions.Create(1, members, 0);
  ExpectDelivery(sessions, 1, members, 0, {Bytes(10, 1), Bytes(1'000'000, 2)});
  ASSERT_EQ(sessions[0].Paths(1)->memory, 1u);
  std::ifstream maps("/proc/self/maps");
  int shared = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string addresses, access, rest;
    words >> addresses >> access;
    if (access.back() != 's') continue;
    ++shared;
    EXPECT_THAT(line, testing::AllOf(HasSubstr("/memfd:"), HasSubstr("(deleted)")));
  }
  EXPECT_GE(shared, 4);  // two rings and a stage, at both
}

// The thread of a session polls a while before it sleeps. Catches a call to end that it takes while
// it polls, and then sleeps over.
TEST(SessionTest, EndsAtOnceAlsoWhileItsThreadPolls) {
  for (int round = 0; round < 12; ++round) {
    Sessions sessions(1);
    sessions.Create(1, {0}, 0);
    ASSERT_TRUE(sessions[0].DestroyGroup(1).ok());
    ASSERT_TRUE(sessions.Wait(1, {0}, [](const GroupLog& log) { return log.closed == 1; }));
    const auto begin = std::chrono::steady_clock::now();
    sessions.Kill(0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(800));  // it looks every 1000
  }
}

// The caller's own loop does everything, and nothing happens outside of it.
TEST(SessionTest, TheCallersLoop) {
  SessionOptions options;
  options.own_thread = false;
  Sessions sessions(2, options);
  const std::vector<uint32_t> members = Members(2);
  sessions.Create(1, members, 0);
  const std::vector<std::byte> message = Bytes(1000000, 1);
  ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (sessions.LogOf(1, 1).completed.empty() && std::chrono::steady_clock::now() < due) {
    for (const uint32_t member : members) ASSERT_TRUE(sessions[member].Poll(milliseconds(1)).ok());
  }
  EXPECT_THAT(sessions.LogOf(1, 1).messages, ElementsAre(message));
}

// Catches a file that is not readable though something has come since the last Poll(), which nobody
// had asked for before.
TEST(SessionTest, ItsFileIsReadableWhenSomethingComes) {
  SessionOptions options;
  options.own_thread = false;
  options.waiting = Waiting::kInterrupt;
  Sessions sessions(2, options);
  const std::vector<uint32_t> members = Members(2);
  sessions.Create(1, members, 0);
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto is_due = [&] { return std::chrono::steady_clock::now() >= due; };
  while (!(sessions.LogOf(0, 1).opened && sessions.LogOf(1, 1).opened) && !is_due()) {
    for (const uint32_t member : members) ASSERT_TRUE(sessions[member].Poll(milliseconds(1)).ok());
  }
  const std::vector<std::byte> message = Bytes(1000, 1);
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
    while (sessions.LogOf(1, 1).completed.size() < i && !is_due()) {
      pollfd file = {.fd = sessions[1].fd(), .events = POLLIN, .revents = 0};
      ASSERT_GE(poll(&file, 1, 1000), 0);
      if (file.revents != 0) {
        ASSERT_TRUE(sessions[1].Poll(milliseconds(0)).ok());
      }
    }
    EXPECT_EQ(sessions.LogOf(1, 1).completed.size(), i);
    ASSERT_TRUE(sessions[0].Poll(milliseconds(0)).ok());
  }
}

// Of what transports say. Catches nodes that are taken for members, and names of hosts that are
// changed.
TEST(MemberWordsTest, NodesAreMembers) {
  const std::vector<uint32_t> members = {4, 7};
  EXPECT_EQ(InMemberWords("node 1 got a record from node 0: no node 2", members),
            "member 7 got a record from member 4: no member 2");
  EXPECT_EQ(InMemberWords("all nodes, node 1's; this node: x", members),
            "all members, member 7's; this member: x");
  EXPECT_EQ(InMemberWords("sends (--ready barrier); --ready window=1", members),
            "sends (ready barrier); ready window=1");
  for (const char* const same :
       {"node1 (node-2:7811)", "cannot open /srv/node/x", "a -- b", "nodeless"})
    EXPECT_EQ(InMemberWords(same, members), same);
}

TEST(SessionTest, RefusesWrongArguments) {
  Sessions sessions(3);
  const auto create = [&](const std::vector<uint32_t>& members, uint32_t root,
                          const GroupOptions& options = {}) {
    return sessions[0].CreateGroup(9, members, root, options, {}).ToString();
  };
  EXPECT_THAT(create({0, 1, 1}, 0), HasSubstr("a member stands twice"));
  EXPECT_THAT(create({0, 7}, 0), HasSubstr("there is no member 7"));
  EXPECT_THAT(create({1, 2}, 1), HasSubstr("member 0, which this is, is not in it"));
  EXPECT_THAT(create({0, 1}, 2), HasSubstr("its root, member 2, is not in it"));
  EXPECT_THAT(create({0, 1}, 0, {.algorithm = "binomail_tree"}), HasSubstr("binomial_tree"));
  sessions.Create(1, {1, 0}, 1);
  EXPECT_THAT(sessions[0].Send(1, "x", 1).status().ToString(), HasSubstr("member 1 is its root"));
  EXPECT_THAT(sessions[0].Send(2, "x", 1).status().ToString(), HasSubstr("cannot send to group 2"));
  EXPECT_THAT(sessions[0].CreateGroup(1, {0, 1}, 0, {}, {}).ToString(),
              HasSubstr("group 1 exists already"));
  // Sizes that no plan can carry: too many blocks, and for a NIC, too many transfers. Nothing is
  // read.
  const auto send = [&](uint64_t group, const GroupOptions& options, uint64_t bytes) {
    EXPECT_TRUE(sessions[0].CreateGroup(group, {0, 1, 2}, 0, options, {}).ok());
    return sessions[0].Send(group, "x", bytes).status().ToString();
  };
  EXPECT_THAT(send(3, {}, uint64_t{1} << 46), HasSubstr("blocks, the limit is 16777216"));
  EXPECT_THAT(send(4, {.block_bytes = 1}, 16777217), HasSubstr("blocks, the limit is 16777216"));
  EXPECT_THAT(send(5, {.algorithm = "scatter_allgather", .block_bytes = 1}, 16777217),
              HasSubstr("cannot send to group 5: "));
  EXPECT_THAT(create({0, 1}, 0, {.executor = "gpu"}), HasSubstr("no executor \"gpu\""));
  EXPECT_THAT(create({0, 1}, 0, {.executor = "offload"}), HasSubstr("takes a device"));
  EXPECT_THAT(create({0, 1}, 0, {.device = "mlx5_77"}), HasSubstr("mlx5_77"));
  EXPECT_FALSE(sessions[0].Poll(milliseconds(0)).ok());
  SessionOptions options;
  EXPECT_THAT(Session::Open(options).status().ToString(), HasSubstr("needs members"));
  options.members = {{"127.0.0.1"}};
  options.secret = "short";
  const Status secret = Session::Open(options).status();
  EXPECT_EQ(secret.ToString(), "the secret has 5 bytes, expected 16 to 4096");
  EXPECT_EQ(secret.code(), StatusCode::kUsage);
  options.secret = "a secret of more than 16 bytes";
  options.bind = "nowhere";
  EXPECT_EQ(Session::Open(options).status().ToString(),
            "bind: 'nowhere' is no address of a machine");
}

// Of a group that another member has not created yet: it hears of it then.
TEST(SessionTest, AGroupMayBeAbortedWhileItForms) {
  const std::vector<uint32_t> members = Members(3);
  for (const uint32_t member : {0u, 1u}) {
    SCOPED_TRACE(member);
    Sessions sessions(3);
    for (const uint32_t early : {0u, 1u})
      ASSERT_TRUE(
          sessions[early].CreateGroup(1, members, 0, {}, sessions.Callbacks(early, 1)).ok());
    ASSERT_TRUE(sessions[member].AbortGroup(1, "no").ok());
    const auto has_failed = [](const GroupLog& log) { return log.failures.size() == 1; };
    ASSERT_TRUE(sessions.Wait(1, {member}, has_failed));
    ASSERT_TRUE(sessions[2].CreateGroup(1, members, 0, {}, sessions.Callbacks(2, 1)).ok());
    ASSERT_TRUE(sessions.Wait(1, members, has_failed));
    for (const uint32_t other : members)
      EXPECT_THAT(sessions.LogOf(other, 1).failures.front(),
                  HasSubstr("has aborted the group: no"));
  }
}

}  // namespace
}  // namespace prepost::session_test
