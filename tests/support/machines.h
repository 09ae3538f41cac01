// SPDX-License-Identifier: Apache-2.0
//
// Machines: network namespaces that a bridge joins, for members of groups whose links can be cut
// without a word to any peer, or those of two sites, a bridge each, which a LongLink (long_link.h)
// joins. Needs root and iproute2.
#ifndef PREPOST_TESTS_SUPPORT_MACHINES_H_
#define PREPOST_TESTS_SUPPORT_MACHINES_H_

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace prepost::test {

class Machines {
 public:
  /// `count` machines, in equal parts at `sites`, in their order. Null: not permitted here.
  static std::unique_ptr<Machines> Make(uint32_t count, uint32_t sites = 1) {
    if (geteuid() != 0) return nullptr;
    std::unique_ptr<Machines> machines(new Machines(count, sites));
    bool is_made = true;
    for (uint32_t site = 0; site < sites && is_made; ++site) {
      const std::string name = machines->SwitchOf(site);
      is_made = Ip("netns add {0}", name) && Ip("-n {0} link add bridge type bridge", name) &&
                Ip("-n {0} link set bridge up", name);
    }
    for (uint32_t i = 0; i < count && is_made; ++i) {
      const std::string name = machines->NameOf(i);
      const std::string site = machines->SwitchOf(i * sites / count);
      is_made = Ip("netns add {0}", name) &&
                Ip("-n {1} link add port{2} type veth peer name eth0 netns {0}", name, site, i) &&
                Ip("-n {0} link set port{1} master bridge up", site, i) &&
                Ip("-n {0} addr add {1}/24 dev eth0", name, AddressOf(i)) &&
                Ip("-n {0} link set lo up", name) && machines->SetLink(i, true);
    }
    return is_made ? std::move(machines) : nullptr;
  }
  ~Machines() {
    for (uint32_t i = 0; i < count_ + sites_; ++i) Ip("netns del {0}", NameOf(i));
  }

  /// The namespace of a site's bridge.
  std::string SwitchOf(uint32_t site) const { return NameOf(count_ + site); }

  static std::string AddressOf(uint32_t i) { return fmt::format("10.97.0.{}", i + 1); }
  bool SetLink(uint32_t i, bool is_up) const {
    return Ip("-n {0} link set eth0 {1}", NameOf(i), is_up ? "up" : "down");
  }
  /// What `a` and `b` send each other arrives, or goes nowhere; what they send others does.
  bool SetPair(uint32_t a, uint32_t b, bool is_up) const {
    const auto set = [&](uint32_t from, uint32_t to) {
      return is_up ? Ip("-n {0} neigh del {1} dev eth0", NameOf(from), AddressOf(to))
                   : Ip("-n {0} neigh replace {1} lladdr 02:00:00:00:00:fe nud permanent dev eth0",
                        NameOf(from), AddressOf(to));
    };
    const bool is_set = set(a, b);
    return set(b, a) && is_set;
  }
  /// This process goes there; one that has several threads: this thread, and those that it starts.
  void Enter(uint32_t i) const {
    const int file = open(("/run/netns/" + NameOf(i)).c_str(), O_RDONLY | O_CLOEXEC);
    if (setns(file, CLONE_NEWNET) != 0) _exit(8);
    close(file);
  }

 private:
  Machines(uint32_t count, uint32_t sites) : count_(count), sites_(sites) {}
  std::string NameOf(uint32_t i) const { return fmt::format("prepost-test-{}-{}", owner_, i); }
  template <typename... Values>
  static bool Ip(fmt::format_string<Values...> words, Values&&... values) {
    const std::string command = fmt::format(words, std::forward<Values>(values)...);
    return std::system(("ip " + command + " 2>/dev/null").c_str()) == 0;  // NOLINT
  }

  const uint32_t count_;
  const uint32_t sites_;
  const pid_t owner_ = getpid();
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_MACHINES_H_
