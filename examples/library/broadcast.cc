// SPDX-License-Identifier: Apache-2.0
//
// Brings a file from member 0 to all others:
//
//     broadcast SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE FILE
#include <cstdio>
#include <exception>
#include <fstream>
#include <future>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "prepost/prepost.h"

namespace {

/// Throws std::runtime_error.
std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  if (!in || (in.peek() != EOF && !(all << in.rdbuf())))
    throw std::runtime_error("cannot read " + path);
  return std::move(all).str();
}

int Run(char** argv) {
  prepost::SessionOptions options;
  options.self = static_cast<uint32_t>(std::stoul(argv[1]));
  std::istringstream hosts(argv[2]);
  for (std::string host; std::getline(hosts, host, ',');) {
    const size_t colon = host.find(':');
    options.members.push_back({.host = host.substr(0, colon)});
    if (colon != std::string::npos)
      options.members.back().port = static_cast<uint16_t>(std::stoul(host.substr(colon + 1)));
  }
  options.secret = Read(argv[3]);
  auto session = prepost::Session::Open(options);
  if (!session.ok()) {
    std::cerr << session.status().ToString() << "\n";
    return 1;
  }

  std::string message = options.self == 0 ? Read(argv[4]) : "";
  std::promise<prepost::Status> over;
  prepost::GroupCallbacks callbacks;
  callbacks.incoming = [&](uint64_t, uint64_t bytes) {
    message.resize(bytes);
    return message.data();
  };
  callbacks.closed = [&] { over.set_value({}); };
  callbacks.failed = [&](const prepost::Status& cause, const prepost::FailedMembers&) {
    over.set_value(cause);
  };
  std::vector<uint32_t> all;
  for (uint32_t member = 0; member < options.members.size(); ++member) all.push_back(member);
  prepost::Status status = (*session)->CreateGroup(/*number=*/1, all, /*root=*/0, {}, callbacks);
  if (status.ok() && options.self == 0)
    status = (*session)->Send(1, message.data(), message.size()).status();
  // Closed means that every member has every message.
  if (status.ok()) status = (*session)->DestroyGroup(1);
  if (status.ok()) status = over.get_future().get();
  if (!status.ok()) {
    std::cerr << status.ToString() << "\n";
    return 1;
  }
  if (options.self == 0) return 0;
  std::ofstream file(argv[4], std::ios::binary);
  if (file << message << std::flush) return 0;
  std::cerr << "cannot write " << argv[4] << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: broadcast SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE FILE\n";
    return 2;
  }
  try {
    return Run(argv);
  } catch (const std::exception& error) {  // a number or a file
    std::cerr << error.what() << "\n";
    return 1;
  }
}
