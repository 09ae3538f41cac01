// SPDX-License-Identifier: Apache-2.0
#include "planning/text/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace prepost::table_test {
namespace {

std::string Printed(const Table& table) {
  std::ostringstream out;
  table.Print(out);
  return out.str();
}

TEST(TableTest, ColumnsAreAsWideAsWhatStandsInThem) {
  Table table(/*label_min=*/0, /*cell_min=*/0);
  table.Add("", {"first", "b"});
  table.Add("name", {"1", "long cell"});
  table.Add("longer name", {"22", "3"});
  EXPECT_EQ(Printed(table),
            "             first          b\n"
            "name             1  long cell\n"
            "longer name     22          3\n");
}

TEST(TableTest, WidthsHaveAMinimum) {
  Table table(/*label_min=*/4, /*cell_min=*/3);
  table.Add("a", {"1"});
  table.Add("abcdef", {"1234"});
  table.Add("b", {"1", "2"});
  EXPECT_EQ(Printed(table),
            "a          1\n"
            "abcdef  1234\n"
            "b          1    2\n");
}

// Catches columns as wide as a note or a headline, and blanks at the ends of lines.
TEST(TableTest, NotesAndLinesWithoutCellsWidenNothing) {
  Table table(/*label_min=*/0, /*cell_min=*/0);
  table.Add("a headline that is longer than all", {});
  table.Add("a", {"1", ""}, "note");
  table.Add("b", {}, "in place of cells");
  table.Add("c", {"2", ""});
  table.Add("", {});
  EXPECT_EQ(Printed(table),
            "a headline that is longer than all\n"
            "a  1    note\n"
            "b  in place of cells\n"
            "c  2\n"
            "\n");
}

// Without labels the first cell begins the line: a sweep's table.
TEST(TableTest, WithoutLabelsNothingStandsBeforeTheFirstCell) {
  Table table(/*label_min=*/0, /*cell_min=*/4);
  table.Add("", {"n", "time"});
  table.Add("", {"2", "1.5us"});
  EXPECT_EQ(Printed(table),
            "   n   time\n"
            "   2  1.5us\n");
  EXPECT_EQ(Printed(Table(3, 3)), "");
}

}  // namespace
}  // namespace prepost::table_test
