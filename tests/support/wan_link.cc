// SPDX-License-Identifier: Apache-2.0
//
// wan_link: a LongLink (long_link.h) as a program, for tests and benchmarks in Python.
//
//     wan_link --site A=NAMESPACE --site B=NAMESPACE --path A,B:rate=400e6,delay=30e-3,queue=3e6
//
// Of a path, bits per second, bytes and seconds: rate (0: none), queue, delay (one way), jitter,
// loss, police, burst. "A>B:..." is one direction; what is said later holds. Prints "up" when it
// carries, and what became of frames at the end (SIGTERM, SIGINT), a line of JSON per direction.
// SIGUSR1 cuts it. Needs root.
#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tests/support/long_link.h"

namespace {

using prepost::test::LongCounts;
using prepost::test::LongLink;
using prepost::test::LongPath;
using prepost::test::LongWay;

std::chrono::microseconds ToMicroseconds(double seconds) {
  return std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
}

void Set(LongPath& path, const std::string& key, double value) {
  if (key == "rate") {
    path.rate = value;
  } else if (key == "queue") {
    path.queue = value;
  } else if (key == "delay") {
    path.delay = ToMicroseconds(value);
  } else if (key == "jitter") {
    path.jitter = ToMicroseconds(value);
  } else if (key == "loss") {
    path.loss = value;
  } else if (key == "police") {
    path.police = value;
  } else if (key == "burst") {
    path.burst = value;
  } else {
    throw std::runtime_error("a path has no '" + key + "'");
  }
}

LongPath ParsePath(const std::string& text) {
  LongPath path;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t equals = std::min(word.find('='), word.size() - 1);
    double value = 0;
    const char* const end = word.data() + word.size();
    if (std::from_chars(word.data() + equals + 1, end, value).ptr != end || value < 0)
      throw std::runtime_error("'" + word + "' is no KEY=NUMBER");
    Set(path, word.substr(0, equals), value);
  }
  return path;
}

class Sites {
 public:
  explicit Sites(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos)
        throw std::runtime_error("'" + text + "' is no NAME=NAMESPACE");
      names_.push_back(text.substr(0, equals));
      spaces_.push_back(text.substr(equals + 1));
    }
  }
  size_t Find(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) throw std::runtime_error("there is no site '" + name + "'");
    return static_cast<size_t>(found - names_.begin());
  }
  const std::string& name(size_t site) const { return names_[site]; }
  const std::vector<std::string>& spaces() const { return spaces_; }

 private:
  std::vector<std::string> names_, spaces_;
};

std::vector<LongWay> ParseWays(const std::vector<std::string>& texts, const Sites& sites) {
  std::map<std::pair<size_t, size_t>, LongPath> paths;
  for (const std::string& text : texts) {
    const size_t split = text.find_first_of(",>"), colon = text.find(':');
    if (split == std::string::npos || colon == std::string::npos || split > colon)
      throw std::runtime_error("'" + text + "' is no path as A,B:rate=400e6,delay=30e-3");
    const size_t from = sites.Find(text.substr(0, split));
    const size_t to = sites.Find(text.substr(split + 1, colon - split - 1));
    paths[{from, to}] = ParsePath(text.substr(colon + 1));
    if (text[split] == ',') paths[{to, from}] = paths[{from, to}];
  }
  std::vector<LongWay> ways;
  for (const auto& [ends, path] : paths)
    ways.push_back({.from = ends.first, .to = ends.second, .path = path});
  return ways;
}

void Run(const std::vector<std::string>& site_texts, const std::vector<std::string>& path_texts,
         int mtu, uint64_t seed) {
  const Sites sites(site_texts);
  const std::vector<LongWay> ways = ParseWays(path_texts, sites);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto link = LongLink::Make(sites.spaces(), ways, mtu, seed);
  if (!link.ok()) throw std::runtime_error(link.status().ToString());
  std::cout << "up" << std::endl;
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGUSR1) (*link)->Cut();
  const std::vector<LongCounts> counts = (*link)->Stop();
  for (size_t i = 0; i < ways.size(); ++i) {
    const LongCounts& it = counts[i];
    std::cout << nlohmann::ordered_json({{"from", sites.name(ways[i].from)},
                                         {"to", sites.name(ways[i].to)},
                                         {"frames", it.frames},
                                         {"bytes", it.bytes},
                                         {"policed", it.policed},
                                         {"lost", it.lost},
                                         {"overflowed", it.overflowed},
                                         {"unwritten", it.unwritten},
                                         {"queue_max_bytes", it.queue_max}})
                     .dump()
              << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Long paths between the network namespaces of sites, in user space");
  std::vector<std::string> sites, paths;
  uint64_t seed = 1;
  int mtu = 1500;
  app.add_option("--site", sites, "NAME=NAMESPACE, which has a bridge")->required();
  app.add_option("--path", paths, "A,B:key=value,...")->required()->delimiter('\0');
  app.add_option("--mtu", mtu, "Of the devices");
  app.add_option("--seed", seed, "Of losses and jitter");
  CLI11_PARSE(app, argc, argv);
  try {
    Run(sites, paths, mtu, seed);
  } catch (const std::exception& error) {
    std::cerr << "wan_link: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
