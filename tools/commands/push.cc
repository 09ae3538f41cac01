// SPDX-License-Identifier: Apache-2.0
//
// prepost push: brings files to many hosts. prepost receive: what it runs on each of them.
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "compiler/schedules/schedule.h"
#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "ir/json/rate_text.h"
#include "planning/files/named_file.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/spec_flags.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "planning/text/table.h"
#include "runtime/base/interrupt.h"
#include "runtime/group/peers_file.h"
#include "tools/commands/commands.h"
#include "tools/flags/path_flags.h"
#include "tools/push/push_hosts.h"
#include "tools/push/push_source.h"
#include "tools/push/pusher.h"
#include "tools/push/receiver.h"
#include "tools/report/quantities.h"

namespace prepost::tools {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr size_t kHostsFileBytesMax = size_t{64} << 20;

struct PushFlags {
  std::vector<std::string> paths;
  std::string name;
  std::vector<std::string> to;
  std::string hosts_path;
  std::string agent;
  PushOptions options;
  std::string block_bytes;
  PathFlags path;
  std::string failure_max;
  double timeout_s = 600;
  double connect_s = 30;
  bool json = false;
  bool has_sums = false;  ///< of all files
};

constexpr size_t kSumsMax = 20;  ///< printed unasked

milliseconds MillisecondsOf(double seconds) {
  return duration_cast<milliseconds>(std::chrono::duration<double>(seconds));
}

/// The words of a command line, as a shell takes them apart: blanks, quotes, backslashes.
Result<std::vector<std::string>> AgentWordsOf(const std::string& text) {
  try {
    return CLI::detail::split_up(text);
  } catch (const std::exception& error) {
    return UsageError(fmt::format("--agent: {}", error.what()));
  }
}

Status ReadHosts(const PushFlags& flags, std::vector<PushHost>* hosts) {
  for (const std::string& part : flags.to) PREPOST_RETURN_IF_ERROR(ParsePushHosts(part, hosts));
  if (!flags.hosts_path.empty()) {
    if (flags.hosts_path == "-" && std::ranges::count(flags.paths, "-") != 0)
      return UsageError("--hosts: stdin is the FILE that is pushed");
    PREPOST_RETURN_IF_ERROR(WithText(flags.hosts_path, kHostsFileBytesMax,
                                     [&](const std::string& text, const std::string& name) {
                                       const size_t before = hosts->size();
                                       const Status status = ParsePushHostsFile(text, name, hosts);
                                       return status.ok() && hosts->size() == before
                                                  ? Rejected("it names no host", name)
                                                  : status;
                                     }));
  }
  return LabelPushHosts(hosts);
}

/// Those of all hosts and of this machine, or none.
Status CheckSites(const PushOptions& options) {
  std::set<std::string> sites;
  for (const PushHost& host : options.hosts) sites.insert(host.site);
  const bool has_none = sites.size() == 1 && sites.contains("");
  if (has_none && options.site.empty()) return {};
  if (has_none) return UsageError("--site: no host's site is named (site=NAME in --hosts)");
  if (sites.contains("")) {
    const auto host = std::ranges::find(options.hosts, "", &PushHost::site);
    return UsageError(fmt::format("host {} has no site, and others do", host->label));
  }
  if (options.site.empty()) {
    return UsageError(fmt::format("the hosts are at {}: --site NAME says where this machine is",
                                  fmt::join(sites, ", ")));
  }
  const Status status = CheckSiteName(options.site, "");
  return status.ok() ? status : UsageError("--site: " + status.message());
}

uint64_t RateOf(const HostVerdict& host) {
  return host.seconds > 0 ? static_cast<uint64_t>(static_cast<double>(host.bytes) / host.seconds)
                          : 0;
}

/// Escaped as b2sum does, so that `b2sum -c` finds the file again, whatever it is called.
std::string SumLine(const PushedFile& file) {
  // A sum that b2sum does not know must not look like one of its own.
  if (file.has_holes()) return fmt::format("sparse:{}  {}", file.sum, Printable(file.name));
  std::string name;
  for (const char byte : file.name) {
    const char* const escaped = byte == '\\'   ? "\\\\"
                                : byte == '\n' ? "\\n"
                                : byte == '\r' ? "\\r"
                                               : "";
    *escaped == 0 ? name += byte : name += escaped;
  }
  const bool is_escaped = name.size() != file.name.size();
  return fmt::format("{}{}  {}", is_escaped ? "\\" : "", file.sum, Printable(name));
}

/// Of a host that has the files.
std::string TextOf(const HostVerdict& host, const PushReport& report) {
  const char* const same = report.by_content ? "same contents" : "same size and time";
  const size_t unsent = report.files.size() - report.files_sent;
  std::string text;
  if (host.was_there) {
    text = fmt::format("unchanged: {}", same);
  } else {
    text = fmt::format("ok: {} in {}, {}/s, verified", FormatBytes(host.bytes),
                       ShortDuration(std::llround(1e9 * host.seconds)), FormatBytes(RateOf(host)));
    if (report.slow_host == host.host)
      text += fmt::format("; the others waited for it: its connections carry {}/s",
                          FormatBytes(static_cast<uint64_t>(host.link_speed)));
    if (unsent > 0) text += fmt::format("; {} unchanged: {}", Count(unsent, "file"), same);
  }
  const char* before = "; not kept: ";
  for (const Unkept& unkept : host.unkept) text += std::exchange(before, ", ") + TextOf(unkept);
  return text;
}

/// Those that failed because others did, a line for all of a kind.
void PrintConsequences(const PushReport& report) {
  std::map<std::string, std::vector<std::string>> hosts;
  for (const HostVerdict& host : report.hosts)
    if (host.is_consequence) hosts[host.status.ToString()].push_back(host.host);
  for (const auto& [text, names] : hosts) {
    std::cout << fmt::format("{}: {}\n", Printable(fmt::format("{}", fmt::join(names, ", "))),
                             Printable(text));
  }
}

void PrintVerdicts(const PushReport& report, bool has_sums) {
  size_t widest = 0;
  for (const HostVerdict& host : report.hosts)
    if (!host.is_consequence) widest = std::max(widest, host.host.size());
  for (const HostVerdict& host : report.hosts) {
    if (host.is_consequence) continue;
    const std::string text =
        host.status.ok() ? TextOf(host, report) : "failed: " + host.status.ToString();
    std::cout << fmt::format("{:<{}}  {}\n", Printable(host.host), widest, Printable(text));
  }
  PrintConsequences(report);
  const auto is_ok = [](const HostVerdict& host) { return host.status.ok(); };
  if (std::ranges::none_of(report.hosts, is_ok)) return;
  if (report.files.size() > kSumsMax && !has_sums) {
    std::cout << fmt::format("{}; --sums prints their sums\n", Count(report.files.size(), "file"));
    return;
  }
  for (const PushedFile& file : report.files) {
    if (!file.sum.empty()) std::cout << SumLine(file) << "\n";
  }
}

/// null: there is none.
nlohmann::ordered_json JsonOf(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

void PrintVerdictsJson(const PushReport& report) {
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const HostVerdict& host : report.hosts) {
    nlohmann::ordered_json entry = {
        {"host", host.host}, {"target", host.target}, {"ok", host.status.ok()}};
    if (!host.status.ok()) {
      entry["error"] = host.status.ToString();
      entry["is_consequence"] = host.is_consequence;
    } else {
      entry["unchanged"] = host.was_there;
      entry["verified"] = !host.was_there || report.by_content;
      entry["bytes"] = host.bytes;
      entry["seconds"] = host.seconds;
      entry["bytes_per_second"] = RateOf(host);
      entry["link_bytes_per_second"] = host.link_speed > 0
                                           ? nlohmann::ordered_json(std::llround(host.link_speed))
                                           : nlohmann::ordered_json();
      entry["not_kept"] = nlohmann::ordered_json::array();
      for (const Unkept& unkept : host.unkept) {
        entry["not_kept"].push_back({{"what", unkept.what},
                                     {"files", unkept.files},
                                     {"first", unkept.file},
                                     {"error", unkept.error}});
      }
    }
    hosts.push_back(std::move(entry));
  }
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const PushedFile& file : report.files) {
    nlohmann::ordered_json entry = {{"name", file.name}};
    if (!file.is_stream) entry["bytes"] = file.bytes;
    if (!file.sum.empty())
      entry[file.has_holes() ? "sparse_blake2b_256" : "blake2b_256"] = file.sum;
    files.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all = {{"hosts", std::move(hosts)},
                                      {"files", std::move(files)},
                                      {"slow_host", JsonOf(report.slow_host)},
                                      {"sequential_because", JsonOf(report.why_sequential)},
                                      {"bytes", report.bytes},
                                      {"seconds", report.seconds}};
  PrintJson(all, std::cout);
}

/// "2026-11-26 14:03:09", for lines that are read later.
std::string TimeNow() { return fmt::format("{:%F %T}", fmt::localtime(std::time(nullptr))); }

/// On the terminal's line, of which it takes no more than that.
void ShowLine(const std::string& line) {
  winsize size = {};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  const std::string shown = Printable(line);
  std::cerr << "\r\033[K" << (is_known ? FirstLetters(shown, size.ws_col - 1u) : shown)
            << std::flush;
}

/// Where there is no terminal, a line every half minute.
std::function<void(const std::string&)> LogLines() {
  static constexpr std::chrono::seconds kFirst{5}, kBetween{30};
  auto next = std::make_shared<std::chrono::steady_clock::time_point>(
      std::chrono::steady_clock::now() + kFirst);
  return [next](const std::string& line) {
    const auto now = std::chrono::steady_clock::now();
    if (now < *next) return;
    *next = now + kBetween;
    std::cerr << fmt::format("prepost: {} {}\n", TimeNow(), Printable(line)) << std::flush;
  };
}

/// Others would connect to one of them for the other.
void NoteSharedAddresses(const std::vector<PushHost>& hosts) {
  std::map<std::string, const PushHost*> first;
  for (const PushHost& host : hosts) {
    if (host.address.empty()) continue;
    const PushHost& other = *first.emplace(host.address, &host).first->second;
    if (other.name == host.name) continue;
    PrintNote(fmt::format("hosts {} and {} have one address, {}: are they one machine?",
                          other.label, host.label, host.address));
  }
}

Status RunPush(PushFlags& flags) {
  PushOptions& options = flags.options;
  PREPOST_RETURN_IF_ERROR(ReadHosts(flags, &options.hosts));
  NoteSharedAddresses(options.hosts);
  if (!options.own_address.empty() && !IsHostName(options.own_address))
    return UsageError(fmt::format("--address: '{}' is no address", options.own_address));
  if (!flags.agent.empty()) {
    Result<std::vector<std::string>> words = AgentWordsOf(flags.agent);
    if (!words.ok()) return words.status();
    options.agent = *std::move(words);
    if (options.agent.empty()) return UsageError("--agent: ' ' names no command");
  }
  if (options.algorithm != "auto") {
    const Status known = FindAlgorithm(options.algorithm).status();
    if (!known.ok()) return UsageError("--algorithm: " + known.message());
  }
  if (!flags.block_bytes.empty()) {
    const Result<uint64_t> bytes = ParseSize(flags.block_bytes);
    if (!bytes.ok()) return UsageError("--block-bytes: " + bytes.status().message());
    options.block_bytes = *bytes;
  }
  PREPOST_RETURN_IF_ERROR(CheckSites(options));
  const Result<PathOptions> paths = flags.path.Options();
  if (!paths.ok()) return paths.status();
  options.paths = *paths;
  const Result<milliseconds> failure_max = ParseFailureMax(flags.failure_max);
  if (!failure_max.ok()) return failure_max.status();
  options.failure_max = *failure_max;
  options.no_progress_max = MillisecondsOf(flags.timeout_s);
  options.connect_max = MillisecondsOf(flags.connect_s);
  // Before anything is started anywhere.
  if (!options.device.empty()) PREPOST_RETURN_IF_ERROR(OpenPlayerDevice(options.device).status());
  Result<PushSource> source = PushSource::Open(flags.paths, flags.name);
  if (!source.ok()) return source.status();
  std::signal(SIGPIPE, SIG_IGN);  // a receiver that ends is noticed otherwise
  Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  options.interrupt_fd = signals->fd();
  const bool shows_progress = ShowsProgress();
  options.progress = shows_progress ? ShowLine : LogLines();
  options.note = [shows_progress](const std::string& text) {
    if (shows_progress) std::cerr << "\r\033[K";
    PrintNote(shows_progress ? text : TimeNow() + " " + text);
  };
  const Result<PushReport> report = Push(*source, options);
  if (shows_progress) std::cerr << "\r\033[K" << std::flush;
  if (!report.ok()) return report.status();
  flags.json ? PrintVerdictsJson(*report) : PrintVerdicts(*report, flags.has_sums);
  const auto failed = static_cast<size_t>(std::ranges::count_if(
      report->hosts, [](const HostVerdict& host) { return !host.status.ok(); }));
  if (failed == 0) return {};
  return Rejected(fmt::format("{} of {} failed", failed, Count(report->hosts.size(), "host")));
}

Status RunReceive() {
  std::signal(SIGPIPE, SIG_IGN);
  Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  FileDescriptor in(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  FileDescriptor out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!in.valid() || !out.valid()) return EnvironmentError("stdin or stdout is closed");
  return Receive(std::move(in), std::move(out), signals->fd());
}

constexpr const char* kAbout =
    "Starts `prepost receive` on each host, through ssh or --agent; the hosts relay the files to "
    "each other, and\n"
    "sum what they received (BLAKE2b-256). Only where all sums are those of what was sent do "
    "files "
    "get their names,\n"
    "at all hosts. Mode, time and holes are kept, and the owner of a file that is replaced; what "
    "a host cannot keep\n"
    "stands in its verdict. Owners of new files, ACLs and extended attributes are not kept.\n"
    "A host that has a file of the same name, size and time already is not sent it again; what "
    "comes from a device\n"
    "is, unless --checksum finds it there.\n\n"
    "TARGET is a folder, which is made if it is missing, and otherwise the one where ssh begins; "
    "~ is the home there;\n"
    "or a named pipe, or with --allow-devices a device, for a single file. FILE may be a block "
    "device, a named pipe, "
    "or - for stdin.\n"
    "Hosts of the file of --hosts are lines of HOST[:TARGET] and, where others reach the host "
    "elsewhere, its ADDRESS;\n"
    "what has blanks stands in double quotes. Where hosts are at several sites, site=NAME at "
    "each of "
    "them and --site\n"
    "for this machine have each block cross to each site once, in whatever order hosts are "
    "named.\n"
    "Without --agent the host localhost is this machine.\n\n"
    "Hosts talk among each other over ports of their choice or --port; they share a secret that "
    "is made for the\n"
    "occasion and travels by the agent, as sums do. Between machines the files are encrypted, "
    "unless --plain or\n"
    "--device is given.\n\n"
    "One line per host says what became of it. Exit code 1: a host failed.\n\n"
    "Examples:\n"
    "  prepost push image.raw --to node1,node2,node3\n"
    "  prepost push image.raw notes.txt --to node1:/srv/images,root@node2:/srv/images\n"
    "  prepost push image.raw --hosts hosts.txt --keep-going --json\n"
    "  tar -c folder | prepost push - --name folder.tar --to node1:/tmp,node2:/tmp\n"
    "  prepost push image.raw --to node1:/dev/sdb,node2:/dev/sdb --allow-devices\n"
    "  prepost push image.raw --hosts hosts.txt --agent 'ip netns exec'\n"
    "  prepost push image.raw --hosts sites.txt --site london --pace 400Mbit/s\n"
    "  prepost push image.raw --to node1,node2 --device verbs:mlx5_0\n"
    "  prepost push README.md --to localhost:/tmp/a,localhost:/tmp/b";

}  // namespace

void AddPush(CLI::App& app, Action* action) {
  auto flags = std::make_shared<PushFlags>();
  CLI::App* command =
      app.add_subcommand("push", "Bring files to many hosts at once, through each other");
  command->footer(kAbout);
  command->add_option("FILE", flags->paths, "Files, block devices, or one pipe; - for stdin")
      ->required();
  command
      ->add_option("--to", flags->to, "Hosts, with commas between them, and where to write there")
      ->type_name("HOST[:TARGET],...");
  command->add_option("--hosts", flags->hosts_path, "More hosts, one a line")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command
      ->add_option(
          "--agent", flags->agent,
          "What runs a command on a host: gets HOST and the command [ssh -o BatchMode=yes]")
      ->type_name("COMMAND")
      ->check(NameOf("a command"));
  command
      ->add_option("--remote-command", flags->options.remote_command,
                   "Prepost on the hosts [prepost]")
      ->type_name("PATH")
      ->check(NameOf("a command"));
  command->add_option("--name", flags->name, "What a single file is called there [as it is here]")
      ->type_name("NAME")
      ->check(NameOf("a file"));
  command->add_flag("--keep-going", flags->options.keep_going,
                    "The other hosts get the files although one fails");
  command->add_flag("--checksum", flags->options.by_content,
                    "Compare what is there by content instead of size and time");
  command->add_flag("--sync", flags->options.sync, "Files are on the disks before they count");
  command->add_flag("--strict", flags->options.is_strict,
                    "A host that cannot keep modes, times or owners has failed");
  command->add_flag("--allow-devices", flags->options.allow_devices, "TARGETs may be devices");
  command
      ->add_option("--address", flags->options.own_address,
                   "Where hosts reach this machine [where it reaches them from]")
      ->type_name("ADDRESS")
      ->check(NameOf("an address"));
  command->add_option("--port", flags->options.port, "Where everybody listens [any free port]")
      ->type_name("P")
      ->check(WholeNumber(1, 65535));
  command->add_option("--algorithm", flags->options.algorithm, "Schedule, as in compile [auto]")
      ->type_name("A");
  command->add_option("--block-bytes", flags->block_bytes, "Size of blocks [chosen]")
      ->type_name("SIZE");
  command
      ->add_option("--device", flags->options.device,
                   "What files go over, of this name at every host: mlx5_0, verbs:NAME, "
                   "fabric:PROVIDER (see devices) [TCP]")
      ->type_name("NAME")
      ->check(NameOf("a device"));
  command->add_flag(
      "--plain", flags->options.is_plain,
      "Do not encrypt the files on their way: where the network does, or all may read "
      "them");
  command->add_option("--site", flags->options.site, "The site of this machine, if hosts have one")
      ->type_name("NAME")
      ->check(NameOf("a site"));
  flags->path.AddTo(*command);
  AddFailureMax(*command, &flags->failure_max);
  command
      ->add_option("--timeout", flags->timeout_s,
                   "Give up when no host writes anything for this many seconds [600]")
      ->type_name("SECONDS")
      ->check(Seconds());
  command
      ->add_option("--connect-timeout", flags->connect_s,
                   "A host that is not there after this many seconds has failed [30]")
      ->type_name("SECONDS")
      ->check(Seconds());
  command->add_flag("--sums", flags->has_sums, "Print the sums of more than 20 files, too");
  command->add_flag("--json", flags->json, "Print the verdicts as JSON");
  command->callback([flags, action] { *action = [flags] { return RunPush(*flags); }; });
}

void AddReceive(CLI::App& app, Action* action) {
  CLI::App* command = app.add_subcommand("receive", "Receive files; started on hosts by push");
  command->footer(
      "Is told by push on stdin what to do, and answers on stdout, a JSON object a line. When its "
      "input ends it removes\n"
      "what it has not completed. Nobody but push need start it.");
  command->callback([action] { *action = [] { return RunReceive(); }; });
}

}  // namespace prepost::tools
