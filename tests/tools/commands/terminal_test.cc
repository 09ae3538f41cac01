// SPDX-License-Identifier: Apache-2.0
//
// Progress on stderr: on terminals that can clear a line, and nowhere else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/command.h"

namespace prepost::terminal_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// What a sweep prints on a terminal with `variables` ("TERM=xterm") in its environment.
std::string OnTerminal(std::vector<std::string> variables) {
  std::vector<std::string> wrapper = {"/usr/bin/env", "-u", "TERM"};
  wrapper.insert(wrapper.end(), variables.begin(), variables.end());
  wrapper.insert(wrapper.end(), {"/usr/bin/python3", "-c",
                                 "import os, pty, sys\n"
                                 "sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"});
  test::Command command(
      {"simulate", "--message-bytes", "1MiB", "--profile", "fractus", "--sweep", "nodes=2,3"},
      wrapper);
  EXPECT_EQ(command.Wait(), 0) << command.out();
  return command.out();
}

TEST(TerminalTest, ProgressIsShownWhereItCanBeCleared) {
  const std::string shown = OnTerminal({"TERM=xterm"});
  EXPECT_THAT(shown, HasSubstr("\x1b[Ksimulated 2 of 2"));
  for (const std::vector<std::string>& variables :
       {std::vector<std::string>{"TERM=dumb"}, {"TERM="}, {}}) {
    const std::string plain = OnTerminal(variables);
    EXPECT_THAT(plain, HasSubstr("modelled, with the profile"));
    EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
    EXPECT_THAT(plain, Not(HasSubstr("simulated 2 of 2")));
  }
}

}  // namespace
}  // namespace prepost::terminal_test
