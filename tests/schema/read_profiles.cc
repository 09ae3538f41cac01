// SPDX-License-Identifier: Apache-2.0
//
// Reads the profiles named on the command line and prints a line for each: "ok", or the error. For
// profile_test.py, which compares this with the schema.
#include <fstream>
#include <iostream>

#include "sim/cluster/profile.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i]);
    const auto profile = prepost::sim::ReadProfile(in, argv[i]);
    std::cout << (profile.ok() ? "ok" : profile.status().ToString()) << "\n";
  }
  return 0;
}
