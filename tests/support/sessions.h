// SPDX-License-Identifier: Apache-2.0
//
// Sessions: the members of one session as threads of this process, each at an address of its own,
// and what their groups call back.
#ifndef PREPOST_TESTS_SUPPORT_SESSIONS_H_
#define PREPOST_TESTS_SUPPORT_SESSIONS_H_

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "library/hooked_session.h"
#include "prepost/prepost.h"
#include "tests/support/loopback.h"

namespace prepost::test {

inline std::vector<Address> SessionAddresses(uint32_t members) {
  std::vector<Address> addresses;
  for (uint32_t i = 0; i < members; ++i) addresses.push_back({.host = LoopbackAddress(i)});
  return addresses;
}

/// All that one member's callbacks of one group were called with.
struct GroupLog {
  std::vector<std::vector<std::byte>> messages;  ///< received, in order of their completion
  std::vector<uint64_t> completed;
  std::vector<uint64_t> delivered;
  int opened = 0, closed = 0, passed = 0;
  std::vector<std::string> failures;
  std::optional<uint32_t> failed_member;
  std::vector<uint32_t> failed_members;
  uint64_t failed_messages = 0;
};

/// For tests of many threads that nothing fails in: a busy machine may keep one waiting for long.
inline SessionOptions Patient(SessionOptions options) {
  options.failure_max = std::chrono::milliseconds(30'000);
  return options;
}

/// Callbacks are the sessions' threads': look at logs through Wait().
class Sessions {
 public:
  /// `hook`: on the connections for blocks; outlives the sessions. `prepare`: called with each
  /// member's options, in the thread that opens its session.
  explicit Sessions(uint32_t members, SessionOptions options = {}, TcpHook* hook = nullptr,
                    const std::function<void(SessionOptions&)>& prepare = {}) {
    if (options.members.empty()) options.members = SessionAddresses(members);
    if (options.secret.empty()) options.secret = "a secret of more than 16 bytes";
    for (uint32_t i = 0; i < members; ++i) {
      options.self = i;
      std::thread opening([&, own = options]() mutable {
        if (prepare) prepare(own);
        Result<std::unique_ptr<Session>> session = HookedSession::Open(own, hook);
        EXPECT_TRUE(session.ok()) << session.status().ToString();
        sessions_.push_back(session.ok() ? *std::move(session) : nullptr);
      });
      opening.join();
    }
  }
  ~Sessions() { sessions_.clear(); }

  Session& operator[](uint32_t member) { return *sessions_[member]; }
  /// The member dies.
  void Kill(uint32_t member) { sessions_[member].reset(); }
  bool is_alive(uint32_t member) const { return sessions_[member] != nullptr; }

  /// Callbacks that keep all in the log.
  GroupCallbacks Callbacks(uint32_t member, uint64_t group) {
    Entry& entry = EntryOf(member, group);
    GroupLog& log = entry.log;
    const auto note = [this](auto&& change) {
      const std::lock_guard lock(mutex_);
      change();
      changed_.notify_all();
    };
    GroupCallbacks callbacks;
    callbacks.incoming = [this, &entry](uint64_t, uint64_t bytes) -> void* {
      const std::lock_guard lock(mutex_);
      return entry.memory.emplace_back(std::make_unique<std::vector<std::byte>>(bytes))->data();
    };
    callbacks.complete = [note, &log](uint64_t message, void* memory, uint64_t bytes) {
      note([&] {
        log.completed.push_back(message);
        const auto* const begin = static_cast<const std::byte*>(memory);
        log.messages.emplace_back(begin, begin + bytes);
      });
    };
    callbacks.delivered = [note, &log](uint64_t message) {
      note([&] { log.delivered.push_back(message); });
    };
    callbacks.opened = [note, &log] { note([&] { ++log.opened; }); };
    callbacks.closed = [note, &log] { note([&] { ++log.closed; }); };
    callbacks.failed = [note, &log](const Status& cause, const FailedMembers& where) {
      note([&] {
        log.failures.push_back(cause.ToString());
        log.failed_member = where;
        log.failed_members = where.members;
        log.failed_messages = where.messages;
      });
    };
    return callbacks;
  }
  void Create(uint64_t group, const std::vector<uint32_t>& members, uint32_t root,
              const GroupOptions& options = {}) {
    for (const uint32_t member : members) {
      const Status status =
          sessions_[member]->CreateGroup(group, members, root, options, Callbacks(member, group));
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  }
  void Barrier(uint64_t group, uint32_t member) {
    Entry& entry = EntryOf(member, group);
    GroupLog& log = entry.log;
    const Status status = sessions_[member]->Barrier(group, [this, &log] {
      const std::lock_guard lock(mutex_);
      ++log.passed;
      changed_.notify_all();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  /// Until `done(log)` holds at all of `members`; false after ten seconds.
  template <typename Done>
  bool Wait(uint64_t group, const std::vector<uint32_t>& members, Done done) {
    for (const uint32_t member : members) EntryOf(member, group);
    std::unique_lock lock(mutex_);
    const bool is_done = changed_.wait_for(lock, std::chrono::seconds(10), [&] {
      for (const uint32_t member : members) {
        if (!done(entries_[{member, group}]->log)) return false;
      }
      return true;
    });
    if (is_done) return true;
    for (const uint32_t member : members) {
      for (const std::string& failure : entries_[{member, group}]->log.failures)
        ADD_FAILURE() << "member " << member << ", group " << group << ": " << failure;
    }
    return false;
  }
  /// As it is now.
  GroupLog LogOf(uint32_t member, uint64_t group) {
    const Entry& entry = EntryOf(member, group);
    const std::lock_guard lock(mutex_);
    return entry.log;
  }

 private:
  struct Entry {
    GroupLog log;
    std::vector<std::unique_ptr<std::vector<std::byte>>> memory;  ///< of messages
  };
  Entry& EntryOf(uint32_t member, uint64_t group) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Entry>& entry = entries_[{member, group}];
    if (entry == nullptr) entry = std::make_unique<Entry>();
    return *entry;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<uint32_t, uint64_t>, std::unique_ptr<Entry>> entries_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

inline std::vector<uint32_t> Members(uint32_t count) {
  std::vector<uint32_t> members(count);
  std::iota(members.begin(), members.end(), 0u);
  return members;
}

inline std::vector<std::byte> Bytes(uint64_t bytes, uint64_t seed) {
  std::vector<std::byte> message(bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    message[i] = static_cast<std::byte>((i * 0x9e3779b97f4a7c15u + seed * 77) >> 40);
  return message;
}

/// Sends `messages` from `root` and expects them everywhere, in order, and nothing else.
inline void ExpectDelivery(Sessions& sessions, uint64_t group, const std::vector<uint32_t>& members,
                           uint32_t root, const std::vector<std::vector<std::byte>>& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const Result<uint64_t> sent =
        sessions[root].Send(group, messages[i].data(), messages[i].size());
    ASSERT_TRUE(sent.ok()) << sent.status().ToString();
    EXPECT_EQ(*sent, i);
  }
  ASSERT_TRUE(sessions.Wait(group, members, [&](const GroupLog& log) {
    return log.completed.size() >= messages.size();
  }));
  for (const uint32_t member : members) {
    SCOPED_TRACE(member);
    const GroupLog log = sessions.LogOf(member, group);
    EXPECT_EQ(log.messages, messages);
    for (size_t i = 0; i < log.completed.size(); ++i) EXPECT_EQ(log.completed[i], i);
    EXPECT_TRUE(log.failures.empty());
  }
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_SESSIONS_H_
