// SPDX-License-Identifier: Apache-2.0
//
// Files that push cuts into messages and puts together again, without a network.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>

#include "tests/support/random.h"
#include "tests/support/temp_folder.h"
#include "tools/push/file_extents.h"
#include "tools/push/manifest.h"
#include "tools/push/push_sink.h"
#include "tools/push/push_source.h"
#include "tools/push/write_back.h"

namespace prepost::tools {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;

// Files with holes anywhere, in pieces of any size. Catches an extent that a piece ends in, holes
// at the beginning and the end, empty files, sums that leave out the table of extents.
TEST(PushSinkTest, PutsTogetherWhatTheSourceTakesApart) {
  test::Random random(test::TestSeed());
  for (int round = 0; round < 8; ++round) {
    const test::TempFolder from, to;
    std::vector<std::string> paths;
    for (int i = 0; i < 4; ++i) {
      paths.push_back(from / std::to_string(i));
      std::ofstream file(paths.back(), std::ios::binary);
      for (uint64_t pieces = random.Below(5); pieces > 0; --pieces) {
        file.seekp(static_cast<std::streamoff>(random.Below(40) * 4096));
        file << std::string(1 + random.Below(20000), static_cast<char>('a' + random.Below(26)));
      }
      file.close();
      const auto bytes = static_cast<off_t>(random.Below(60) * 3000);
      ASSERT_EQ(truncate(paths.back().c_str(), bytes), 0);
    }
    Result<PushSource> source = PushSource::Open(paths, "");
    ASSERT_TRUE(source.ok()) << source.status().ToString();
    auto sink = PushSink::Open(source->manifest(), {.target = to / "new"});
    ASSERT_TRUE(sink.ok()) << sink.status().ToString();
    for (;;) {
      std::vector<std::byte> piece(1 + random.Below(30000));
      const Result<size_t> got = source->Read(piece);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      if (*got == 0) break;
      ASSERT_TRUE((*sink)->Write(std::span(piece).first(*got)).ok());
    }
    const Result<std::vector<MessageSum>> sums = (*sink)->Finish();
    ASSERT_TRUE(sums.ok()) << sums.status().ToString();
    EXPECT_EQ(*sums, source->sums());
    EXPECT_TRUE(std::filesystem::is_empty(to / "new"));
    ASSERT_TRUE((*sink)->Commit().ok());
    for (size_t i = 0; i < paths.size(); ++i) {
      std::ifstream file(paths[i], std::ios::binary);
      std::ifstream copy(to / ("new/" + std::to_string(i)), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(copy), {}), text);
      const PushedFile& pushed = source->manifest()[i];
      const FileDescriptor there(open(paths[i].c_str(), O_RDONLY));
      EXPECT_EQ((*sums)[i], *SumFile(there.get(), pushed.bytes, pushed.extents, "file"));
      EXPECT_EQ((*sums)[i] == *SumMemory(std::as_bytes(std::span(text))), !pushed.has_holes());
    }
    const auto there = PushSink::FilesThere(source->manifest(), {.target = to / "new"});
    ASSERT_TRUE(there.ok());
    EXPECT_EQ(there->size(), paths.size());
  }
}

/// A file of `bytes` bytes with a few data at its ends and in the middle.
void MakeSparse(const std::string& path, uint64_t bytes) {
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  const std::vector<std::byte> data(4096, std::byte{7});
  for (const uint64_t offset : {uint64_t{0}, bytes / 2, bytes - data.size()})
    ASSERT_TRUE(WriteExactly(file.get(), offset, data, path).ok());
}

// 1 TiB with a few data, from end to end. Catches zeros of holes that are read or hashed, which
// takes minutes, in each of the steps.
TEST(PushSinkTest, HolesCostNothing) {
  const test::TempFolder from, to;
  MakeSparse(from / "x", uint64_t{1} << 40);
  Result<PushSource> source = PushSource::Open({from / "x"}, "");
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  ASSERT_EQ(source->manifest().front().extents.size(), 3u);
  ASSERT_TRUE(source->AddSums({}).ok());
  source->Choose({0});
  auto sink = PushSink::Open(source->manifest(), {.target = to.path()});
  ASSERT_TRUE(sink.ok()) << sink.status().ToString();
  std::vector<std::byte> data(1 << 20);
  const Result<size_t> got = source->Read(data);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(*got, 3u * 4096u);
  EXPECT_EQ(*source->Read(data), 0u);
  ASSERT_TRUE((*sink)->Write(std::span(data).first(*got)).ok());
  const Result<std::vector<MessageSum>> sums = (*sink)->Finish();
  ASSERT_TRUE(sums.ok()) << sums.status().ToString();
  EXPECT_EQ(*sums, source->sums());
  EXPECT_EQ(sums->front().ToString(), source->manifest().front().sum);
  ASSERT_TRUE((*sink)->Commit().ok());
  EXPECT_EQ(PushSink::FilesThere(source->manifest(), {.target = to.path()})->size(), 1u);
  // One byte in what is a hole at the source.
  const FileDescriptor copy(open((to / "x").c_str(), O_RDWR));
  ASSERT_EQ(pwrite(copy.get(), "x", 1, off_t{1} << 39 | 1 << 20), 1);
  EXPECT_EQ(PushSink::FilesThere(source->manifest(), {.target = to.path()})->size(), 0u);
}

// A host's file system may have holes elsewhere, or none. Catches a comparison by the host's
// extents.
TEST(PushSinkTest, ContentIsComparedWhateverTheHolesThere) {
  const test::TempFolder from, to;
  constexpr uint64_t kBytes = 1'000'000;
  MakeSparse(from / "x", kBytes);
  const Result<PushSource> with_holes = [&] {
    Result<PushSource> source = PushSource::Open({from / "x"}, "");
    EXPECT_TRUE(source.ok() && source->AddSums({}).ok());
    return source;
  }();
  ASSERT_TRUE(with_holes->manifest().front().has_holes());
  std::ifstream file(from / "x", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::ofstream(to / "x", std::ios::binary) << text;
  EXPECT_EQ(PushSink::FilesThere(with_holes->manifest(), {.target = to.path()})->size(), 1u);
  // The other way round.
  Result<PushSource> without = PushSource::Open({to / "x"}, "");
  ASSERT_TRUE(without.ok() && without->AddSums({}).ok());
  ASSERT_FALSE(without->manifest().front().has_holes());
  EXPECT_EQ(without->manifest().front().sum, SumMemory(std::as_bytes(std::span(text)))->ToString());
  EXPECT_EQ(PushSink::FilesThere(without->manifest(), {.target = from.path()})->size(), 1u);
}

// Files of which the system does not say where their data are, as that of a pipe here. Catches data
// that are taken for a hole.
TEST(FileExtentsTest, WhatIsNotKnownIsData) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  const FileDescriptor in(ends[0]), out(ends[1]);
  EXPECT_EQ(*NextData(in.get(), 5, 100), (Extent{5, 95}));
  EXPECT_EQ(*ExtentsOf(in.get(), 100, 10), (std::vector<Extent>{{0, 100}}));
  EXPECT_EQ(NextData(in.get(), 100, 100), std::nullopt);
  const test::TempFolder folder;
  MakeSparse(folder / "x", uint64_t{64} << 20);
  const FileDescriptor file(open((folder / "x").c_str(), O_RDONLY));
  EXPECT_EQ(ExtentsOf(file.get(), uint64_t{64} << 20, 10)->size(), 3u);
  // Of more extents than there may be, the last has the rest with its holes.
  const std::vector<Extent> two = *ExtentsOf(file.get(), uint64_t{64} << 20, 2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].offset + two[1].bytes, uint64_t{64} << 20);
}

// Ctrl-C while extents are listed, data are read and summed, here and at a host. Catches a step
// that only looks at the end.
TEST(PushSourceTest, EveryStepIsInterrupted) {
  const test::TempFolder from;
  MakeSparse(from / "x", uint64_t{64} << 20);
  const FileDescriptor file(open((from / "x").c_str(), O_RDONLY));
  size_t left = 0;
  const auto stop = [&left] {
    return left-- > 0 ? Status() : Status(StatusCode::kInterrupted, "stop");
  };
  EXPECT_EQ(ExtentsOf(file.get(), uint64_t{64} << 20, 100, stop).status().code(),
            StatusCode::kInterrupted);
  left = 0;
  EXPECT_EQ(AreZeros(file.get(), 0, 4096, "x", stop).status().code(), StatusCode::kInterrupted);
  Result<PushSource> source = PushSource::Open({from / "x"}, "");
  ASSERT_TRUE(source.ok());
  for (const size_t before : {0u, 1u, 2u}) {
    left = before;
    EXPECT_EQ(source->AddSums(stop).code(), StatusCode::kInterrupted);
  }
  ASSERT_TRUE(source->AddSums({}).ok());
  left = 3;
  EXPECT_EQ(PushSink::FilesThere(source->manifest(), {.target = from.path(), .checkpoint = stop})
                .status()
                .code(),
            StatusCode::kInterrupted);
}

TEST(PushSinkTest, LessOrMoreThanTheManifestSays) {
  const test::TempFolder to;
  const Manifest manifest = {{.name = "x", .bytes = 10, .mode = 0600, .extents = {{2, 5}}}};
  const std::vector<std::byte> bytes(6);
  auto sink = PushSink::Open(manifest, {.target = to.path()});
  ASSERT_TRUE(sink.ok());
  EXPECT_TRUE((*sink)->Write(std::span(bytes).first(4)).ok());
  EXPECT_THAT((*sink)->Finish().status().ToString(), HasSubstr("not complete"));
  sink = PushSink::Open(manifest, {.target = to.path()});
  EXPECT_THAT((*sink)->Write(bytes).ToString(), HasSubstr("more bytes"));
  sink = Status(StatusCode::kRejected, "gone");
  EXPECT_TRUE(std::filesystem::is_empty(to.path()));
}

// A disk that writes back for minutes. Catches a receiver that says nothing as long as it waits for
// one.
TEST(PushSinkTest, WaitForTheDiskIsNotSilent) {
  const test::TempFolder to;
  std::atomic<int> checks = 0;
  bool is_answered = false;
  const Manifest manifest = {{.name = "x", .bytes = 5, .mode = 0600, .extents = {{0, 5}}}};
  auto sink = PushSink::Open(manifest, {.target = to.path(),
                                        .sync = true,
                                        .checkpoint =
                                            [&] {
                                              ++checks;
                                              return Status();
                                            },
                                        .disk = {.sync = [&](int file) {
                                          const int before = checks;
                                          const auto due = Clock::now() + std::chrono::seconds(60);
                                          while (checks < before + 3 && Clock::now() < due)
                                            poll(nullptr, 0, 1);
                                          is_answered = checks >= before + 3;
                                          return fsync(file);
                                        }}});
  ASSERT_TRUE(sink.ok()) << sink.status().ToString();
  ASSERT_TRUE((*sink)->Write(std::vector<std::byte>(5)).ok());
  ASSERT_TRUE((*sink)->Finish().ok());
  EXPECT_TRUE(is_answered);
  EXPECT_TRUE((*sink)->Commit().ok());
}

// Catches files whose last call has all of them to write.
TEST(PushSinkTest, FilesAreWrittenBackAsTheyCome) {
  using Range = std::pair<uint64_t, uint64_t>;
  const uint64_t step = WriteBack::kStepBytes;
  const std::vector<std::byte> bytes(3 * step + 1);
  for (const bool sync : {true, false}) {
    const test::TempFolder to;
    std::vector<Range> started, waited;
    const auto sync_range = [&](int, off64_t offset, off64_t size, unsigned flags) {
      const auto begin = static_cast<uint64_t>(offset);
      const bool waits = (flags & SYNC_FILE_RANGE_WAIT_AFTER) != 0;
      (waits ? waited : started).emplace_back(begin, begin + static_cast<uint64_t>(size));
      return 0;
    };
    const Manifest manifest = {
        {.name = "x", .bytes = bytes.size(), .mode = 0600, .extents = {{0, bytes.size()}}}};
    auto sink = PushSink::Open(manifest,
                               {.target = to.path(),
                                .sync = sync,
                                .disk = {.sync = [](int) { return 0; }, .sync_range = sync_range}});
    ASSERT_TRUE(sink.ok()) << sink.status().ToString();
    const std::span<const std::byte> all(bytes);
    for (uint64_t begin = 0; begin < all.size(); begin += step / 2)
      ASSERT_TRUE((*sink)->Write(all.subspan(begin, std::min(step / 2, all.size() - begin))).ok());
    ASSERT_TRUE((*sink)->Finish().ok());
    std::vector<Range> expected = {{0, step}, {step, 2 * step}, {2 * step, 3 * step}};
    if (!sync) expected.clear();
    EXPECT_EQ(started, expected);
    if (sync) expected.pop_back();
    EXPECT_EQ(waited, expected);
  }
}

TEST(WriteBackTest, ErrorsOfTheDiskAndSystemsWithoutRanges) {
  int ranges = 0;
  int error = EIO;
  WriteBack write_back({.calls = {.sync = [](int) { return 0; },
                                  .sync_range =
                                      [&](int, off64_t, off64_t, unsigned) {
                                        ++ranges;
                                        errno = error;
                                        return -1;
                                      }}});
  EXPECT_EQ(write_back.Advance(-1, WriteBack::kStepBytes, "x").ToString(),
            "cannot write x: Input/output error");
  EXPECT_TRUE(write_back.Finish(-1, "x").ok());
  error = ENOSYS;
  for (uint64_t i = 1; i < 5; ++i)
    EXPECT_TRUE(write_back.Advance(-1, i * WriteBack::kStepBytes, "x").ok());
  EXPECT_EQ(ranges, 2);
}

// One that hangs for ever looks like any other receiver that says nothing.
TEST(WriteBackTest, DiskThatHangsIsSilent) {
  int checks = 0;
  WriteBack write_back({.checkpoint =
                            [&] {
                              ++checks;
                              return Status();
                            },
                        .answer_max = milliseconds(0)});
  const auto take_long = [] { std::this_thread::sleep_for(milliseconds(500)); };
  EXPECT_TRUE(write_back.WaitFor(take_long, "x").ok());
  EXPECT_EQ(checks, 0);
}

// Found before anything is sent. Catches names that only the last step refuses.
TEST(PushSinkTest, LongNamesAreRefusedEarly) {
  const test::TempFolder folder;
  std::ofstream(folder / "x") << "text";
  const std::string name(256, 'n');
  EXPECT_THAT(PushSource::Open({folder / "x"}, name).status().ToString(),
              HasSubstr("has 256 bytes, but files' have 255 at most"));
  const Manifest manifest = {{.name = name, .bytes = 1, .mode = 0600, .extents = {{0, 1}}}};
  EXPECT_THAT(PushSink::Open(manifest, {.target = folder.path()}).status().ToString(),
              HasSubstr("File name too long"));
  std::ofstream(folder / "\xff") << "text";
  EXPECT_THAT(PushSource::Open({folder / "\xff"}, "").status().ToString(), HasSubstr("--name"));
}

TEST(PushSinkTest, TildeIsTheHome) {
  const std::string home = std::getenv("HOME");  // NOLINT: one thread
  EXPECT_EQ(*TargetHere("~"), home);
  EXPECT_EQ(*TargetHere("~/a b"), home + "/a b");
  EXPECT_EQ(*TargetHere("./~"), "./~");
  EXPECT_EQ(*TargetHere(""), "");
  EXPECT_THAT(TargetHere("~nobody/x").status().ToString(), HasSubstr("other users"));
}

TEST(PushSinkTest, SaysThatNobodyReadsThePipe) {
  const test::TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::string said;
  const Manifest manifest = {{.name = "x", .is_stream = true}};
  const auto sink = PushSink::Open(
      manifest, {.target = folder / "pipe",
                 .checkpoint = [&] { return said.empty() ? Status() : Rejected("enough"); },
                 .waiting = [&](const std::string& text) { said += text; }});
  EXPECT_EQ(sink.status().ToString(), "enough");
  EXPECT_EQ(said, "waits until somebody reads the pipe " + (folder / "pipe"));
}

/// The bytes of `path` as a manifest has them.
Manifest ManifestOf(const std::string& path) {
  return PushSource::Open({path}, "").value().manifest();
}

mode_t ModeOf(const std::string& path) {
  struct stat about = {};
  EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
  return about.st_mode & 07777u;
}

// A link, or a second name, of what another user may not read, of equal size and time. Catches
// modes and times of files that are not the target's.
TEST(PushSinkTest, WhatOthersNamesPointToIsNeitherThereNorChanged) {
  const test::TempFolder folder;
  std::filesystem::create_directory(folder / "to");
  std::ofstream(folder / "x") << "text";
  ASSERT_EQ(chmod((folder / "x").c_str(), 0644), 0);
  const Manifest manifest = ManifestOf(folder / "x");
  const auto time = std::filesystem::last_write_time(folder / "x");
  const std::string victim = folder / "victim";
  for (const bool by_content : {false, true}) {
    Manifest wanted = manifest;
    if (by_content) {
      Result<PushSource> source = PushSource::Open({folder / "x"}, "");
      ASSERT_TRUE(source.ok() && source->AddSums({}).ok());
      wanted = source->manifest();
    }
    for (const bool is_link : {true, false}) {
      std::filesystem::remove(folder / "to/x");
      std::ofstream(victim) << "text";
      ASSERT_EQ(chmod(victim.c_str(), 0600), 0);
      std::filesystem::last_write_time(victim, time);
      if (is_link) {
        std::filesystem::create_symlink("../victim", folder / "to/x");
      } else {
        std::filesystem::create_hard_link(victim, folder / "to/x");
      }
      const auto there = PushSink::FilesThere(wanted, {.target = folder / "to"});
      ASSERT_TRUE(there.ok()) << there.status().ToString();
      EXPECT_TRUE(there->empty()) << by_content << is_link;
      EXPECT_EQ(ModeOf(victim), 0600u) << by_content << is_link;
    }
  }
  // It is replaced as any old file.
  auto sink = PushSink::Open(manifest, {.target = folder / "to"});
  ASSERT_TRUE(sink.ok()) << sink.status().ToString();
  ASSERT_TRUE((*sink)->Write(std::vector<std::byte>(4, std::byte{'y'})).ok());
  ASSERT_TRUE((*sink)->Finish().ok() && (*sink)->Commit().ok());
  EXPECT_EQ(test::ReadText(victim), "text");
  EXPECT_EQ(test::ReadText(folder / "to/x"), "yyyy");
}

// Its node's time says nothing of the bytes.
TEST(PushSinkTest, ADeviceIsThereOnlyByContent) {
  const test::TempFolder folder;
  std::ofstream(folder / "x") << "text";
  Result<PushSource> source = PushSource::Open({folder / "x"}, "");
  ASSERT_TRUE(source.ok());
  const auto is_there = [&](Manifest manifest) {
    manifest[0].is_device = true;
    const Result<Manifest> heard = ManifestFromJson(ToJson(manifest));
    return PushSink::FilesThere(*heard, {.target = folder.path()})->size();
  };
  EXPECT_EQ(is_there(source->manifest()), 0u);
  ASSERT_TRUE(source->AddSums({}).ok());
  EXPECT_EQ(is_there(source->manifest()), 1u);
}

// While the receiver waits for a reader. Catches a file that is overwritten because it has the
// pipe's name now.
TEST(PushSinkTest, APipeThatIsReplacedIsNotFollowed) {
  for (const bool is_link : {true, false}) {
    const test::TempFolder folder;
    const std::string pipe_path = folder / "pipe", victim = folder / "victim";
    std::ofstream(victim) << "text";
    ASSERT_EQ(mkfifo(pipe_path.c_str(), 0600), 0);
    int checks = 0;
    const auto replace = [&] {
      if (++checks > 3) return Rejected("it waits for ever");
      std::filesystem::remove(pipe_path);
      if (is_link) {
        std::filesystem::create_symlink(victim, pipe_path);
      } else {
        std::filesystem::copy_file(victim, pipe_path);
      }
      return Status();
    };
    const Manifest manifest = {{.name = "x", .is_stream = true}};
    auto sink = PushSink::Open(manifest, {.target = pipe_path, .checkpoint = replace});
    if (sink.ok()) static_cast<void>((*sink)->Write(std::vector<std::byte>(2)));
    EXPECT_THAT(sink.status().ToString(), HasSubstr("was replaced or removed"));
    EXPECT_EQ(test::ReadText(victim), "text");
  }
}

// One that its owner can turn to any device of this machine, and one that leads back to itself.
TEST(PushSinkTest, LinksOfOthersLeadToFoldersOnly) {
  const test::TempFolder folder;
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("/dev/null", folder / "b");
  std::filesystem::create_symlink("loop", folder / "loop");
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink("real", folder / "folder");
  const auto open = [&](const std::string& name) {
    const Manifest manifest = {{.name = "x", .is_stream = true}};
    return PushSink::Open(manifest, {.target = folder / name, .allow_devices = true})
        .status()
        .ToString();
  };
  EXPECT_EQ(open("a"), "");
  EXPECT_EQ(open("folder"), "");
  EXPECT_THAT(open("loop"), HasSubstr("Too many levels of symbolic links"));
  for (const char* const name : {"b", "folder"}) {
    if (lchown((folder / name).c_str(), 65534, 65534) != 0)
      GTEST_SKIP() << "only root gives files away";
  }
  EXPECT_THAT(open("a"), HasSubstr("a link of another user"));
  EXPECT_EQ(open("folder"), "");
}

// Catches a disk that is sent in the place of a file, and a pipe that is waited for for ever.
TEST(PushSourceTest, FileThatIsReplacedIsNoticed) {
  for (const bool is_pipe : {true, false}) {
    const test::TempFolder folder;
    const std::string path = folder / "x";
    std::ofstream(path) << "before";
    Result<PushSource> source = PushSource::Open({path}, "");
    ASSERT_TRUE(source.ok());
    std::filesystem::remove(path);
    if (is_pipe) {
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    } else {
      std::filesystem::create_symlink("/dev/null", path);
    }
    std::vector<std::byte> buffer(100);
    EXPECT_THAT(source->Read(buffer).status().ToString(), HasSubstr("was replaced"));
  }
}

TEST(PushSourceTest, FileThatChangesIsNoticed) {
  const test::TempFolder folder;
  const std::string path = folder / "x";
  std::ofstream(path) << "before";
  Result<PushSource> source = PushSource::Open({path}, "");
  ASSERT_TRUE(source.ok());
  std::ofstream(path, std::ios::app) << " and after";
  std::vector<std::byte> buffer(100);
  EXPECT_THAT(source->Read(buffer).status().ToString(), HasSubstr("was changed"));
}

}  // namespace
}  // namespace prepost::tools
