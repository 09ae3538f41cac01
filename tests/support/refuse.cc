// SPDX-License-Identifier: Apache-2.0
//
// Runs a command for which the kernel refuses some system calls, as a container's profile or an
// older kernel does (seccomp; man 2 seccomp):
//
//   refuse CALL=ERROR[,CALL=ERROR...] COMMAND [ARGUMENT...]
//
// ERROR is EPERM, ENOSYS, EAGAIN, ENOTSUP or EACCES. CALL is a system call of the table below, or
// `thread`: clone() of a thread alone, with clone3() as an older kernel has it, so that processes
// can still be started; or `tmpfile`: open() with O_TMPFILE. Exit code 125: it could not begin.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// A call is refused if all bits of `mask` are in its argument (0: always).
struct Refusable {
  std::string_view name;
  uint32_t call = 0;
  size_t argument = 0;
  uint32_t mask = 0;
};

constexpr Refusable kCalls[] = {
    {"close_range", SYS_close_range},
    {"pidfd_open", SYS_pidfd_open},
    {"clone3", SYS_clone3},
    {"clone", SYS_clone},
    {"thread", SYS_clone, 0, CLONE_THREAD},
    {"memfd_create", SYS_memfd_create},
    {"linkat", SYS_linkat},
    {"tmpfile", SYS_openat, 2, O_TMPFILE},
    {"process_vm_readv", SYS_process_vm_readv},
    {"fchmod", SYS_fchmod},
    {"futimens", SYS_utimensat},
    {"fallocate", SYS_fallocate},
    {"eventfd", SYS_eventfd2},
    {"fchown", SYS_fchown},
};

constexpr struct {
  std::string_view name;
  uint32_t error;
} kErrors[] = {{"EPERM", EPERM},
               {"ENOSYS", ENOSYS},
               {"EAGAIN", EAGAIN},
               {"ENOTSUP", ENOTSUP},
               {"EACCES", EACCES}};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "refuse: %s\n", why.c_str());
  std::exit(125);
}

void Refuse(const Refusable& call, uint32_t error, std::vector<sock_filter>& filter) {
  constexpr auto kNumber = static_cast<uint32_t>(offsetof(seccomp_data, nr));
  const auto argument =
      static_cast<uint32_t>(offsetof(seccomp_data, args) + call.argument * sizeof(uint64_t));
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.call, 0,
                            static_cast<uint8_t>(call.mask == 0 ? 1 : 4)));
  if (call.mask != 0) {
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument));  // the lower half
    filter.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, call.mask));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.mask, 0, 1));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
}

std::vector<sock_filter> FilterOf(std::string_view words) {
  std::vector<sock_filter> filter;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    const size_t equals = std::min(word.find('='), word.size());
    const Refusable* call = nullptr;
    uint32_t error = 0;
    for (const Refusable& one : kCalls)
      if (one.name == word.substr(0, equals)) call = &one;
    for (const auto& one : kErrors)
      if (one.name == word.substr(std::min(equals + 1, word.size()))) error = one.error;
    if (call == nullptr || error == 0) Fail("no such call or error: " + std::string(word));
    if (call->name == "thread") Refuse({"clone3", SYS_clone3}, ENOSYS, filter);
    Refuse(*call, error, filter);
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) Fail("usage: refuse CALL=ERROR[,CALL=ERROR...] COMMAND [ARGUMENT...]");
  std::vector<sock_filter> filter = FilterOf(argv[1]);
  const sock_fprog program = {.len = static_cast<unsigned short>(filter.size()),
                              .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    Fail(std::string("no seccomp here: ") + std::strerror(errno));
  }
  execvp(argv[2], argv + 2);
  Fail(std::string(argv[2]) + ": " + std::strerror(errno));
}
