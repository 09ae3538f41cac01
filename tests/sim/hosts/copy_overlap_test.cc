// SPDX-License-Identifier: Apache-2.0
//
// CopyOverlap: what idle time of a core goes to copying, and to whose.
#include "sim/hosts/copy_overlap.h"

#include <gtest/gtest.h>

namespace prepost::sim::copy_overlap_test {
namespace {

TEST(CopyOverlapTest, TakesWhatWorkLeaves) {
  CopyOverlap copies;
  copies.NoteWork(100, 150);
  copies.NoteWork(200, 300);
  EXPECT_EQ(copies.Take(0, 300, 1000), 150);
  EXPECT_EQ(copies.Take(0, 300, 1000), 0);  // once
}

TEST(CopyOverlapTest, TakesNoMoreThanIsToCopyAndNothingBefore) {
  CopyOverlap copies;
  EXPECT_EQ(copies.Take(40, 100, 10), 10);
  EXPECT_EQ(copies.Take(40, 100, 100), 50);
  EXPECT_EQ(copies.Take(0, 100, 100), 40);  // of one that began before the first
}

TEST(CopyOverlapTest, SendsComeFirst) {
  CopyOverlap copies;
  copies.Owe(30);
  EXPECT_EQ(copies.Take(0, 100, 100), 70);
  copies.Owe(30);
  EXPECT_EQ(copies.TakeOwed(110), 20);
}

TEST(CopyOverlapTest, NothingIsCopiedWhileTheCoreIsAway) {
  CopyOverlap copies;
  copies.KnowAbsences({{10, 30}, {50, 60}, {95, 200}, {400, 500}});
  copies.NoteWork(55, 70);
  EXPECT_EQ(copies.Take(0, 100, 1000), 10 + 20 + 25);
  EXPECT_EQ(copies.Take(0, 300, 1000), 100);
}

// However many polls come between: in all as much, if not at the same time.
TEST(CopyOverlapTest, ManyLooksLeaveWhatTheyDoNotTake) {
  CopyOverlap copies;
  for (Picoseconds at = 0; at < 10'000; at += 2) copies.NoteWork(at, at + 1);
  EXPECT_EQ(copies.Take(0, 10'000, 100'000), 5'000);
}

}  // namespace
}  // namespace prepost::sim::copy_overlap_test
