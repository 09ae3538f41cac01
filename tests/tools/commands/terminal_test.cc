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

// Catches a sweep that says nothing until its first row is done.
TEST(TerminalTest, ProgressIsShownBeforeTheFirstRowIsDone) {
  test::Command command(
      {"simulate", "--message-bytes", "4GiB", "--block-bytes", "16KiB", "--profile", "fractus",
       "--executor", "cpu", "--sweep", "nodes=8", "--jobs", "1"},
      {"/usr/bin/env", "TERM=xterm", "/usr/bin/python3", "-c",
       // Ends when it has seen what it is to see.
       "import os, pty, signal, sys\n"
       "pid, terminal = pty.fork()\n"
       "if pid == 0: os.execv(sys.argv[1], sys.argv[1:])\n"
       "seen = b''\n"
       "while b'simulated 0 of 1, 1 s' not in seen: seen += os.read(terminal, 4096)\n"
       "os.kill(pid, signal.SIGKILL)\n"});
  EXPECT_EQ(command.Wait(), 0) << command.err();
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
