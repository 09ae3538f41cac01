// SPDX-License-Identifier: Apache-2.0
#include "tools/push/line_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

namespace prepost::tools {
namespace {

void SetNonBlocking(const FileDescriptor& file) {
  if (!file.valid()) return;
  const int flags = fcntl(file.get(), F_GETFL);
  fcntl(file.get(), F_SETFL, flags | O_NONBLOCK);
}

/// What a line must not be, before a parser is let loose on it.
Status CheckLine(std::string_view line) {
  size_t depth = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const char byte = line[at];
    if (byte == '[' || byte == '{') {
      if (++depth > LineChannel::kDepthMax)
        return Rejected(fmt::format("values nested deeper than {}", LineChannel::kDepthMax));
    } else if (byte == ']' || byte == '}') {
      if (depth > 0) --depth;
    } else if (byte == '"') {
      const size_t begin = ++at;
      while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2u : 1u;
      if (at >= line.size() || at - begin > LineChannel::kStringBytesMax)
        return Rejected(fmt::format("a string without end, or of more than {} bytes",
                                    LineChannel::kStringBytesMax));
    }
  }
  return {};
}

}  // namespace

LineChannel::LineChannel(FileDescriptor in, FileDescriptor out)
    : in_(std::move(in)), out_(std::move(out)) {
  SetNonBlocking(in_);
  SetNonBlocking(out_);
}

std::string LineChannel::LineOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void LineChannel::Send(const nlohmann::json& value) { SendLine(LineOf(value)); }

void LineChannel::SendLine(const std::string& line) { queued_ += line; }

bool LineChannel::Flush() {
  while (wants_out()) {
    if (!out_.valid()) return false;
    const ssize_t written =
        write(out_.get(), queued_.data() + sent_bytes_, queued_.size() - sent_bytes_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno == EAGAIN;
    sent_bytes_ += static_cast<size_t>(written);
  }
  queued_.clear();
  sent_bytes_ = 0;
  return true;
}

bool LineChannel::FlushAll(int max_ms) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point due = Clock::now() + std::chrono::milliseconds(max_ms);
  while (Flush()) {
    if (!wants_out()) return true;
    if (Clock::now() >= due) return false;
    pollfd writable = {.fd = out_.get(), .events = POLLOUT, .revents = 0};
    poll(&writable, 1, 100);
  }
  return false;
}

bool LineChannel::Fill() {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = read(in_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    if (taken_bytes_ > 0) {
      received_.erase(0, taken_bytes_);
      scanned_bytes_ -= taken_bytes_;
      taken_bytes_ = 0;
    }
    received_.append(buffer.data(), static_cast<size_t>(got));
    // One that never ends is refused by Next().
    if (received_.size() > line_bytes_max_) return true;
  }
}

Result<std::optional<nlohmann::json>> LineChannel::Next() {
  const size_t end = received_.find('\n', scanned_bytes_);
  scanned_bytes_ = std::min(end, received_.size());
  if (end == std::string::npos) {
    if (received_.size() - taken_bytes_ > line_bytes_max_) return Rejected("a line without end");
    return std::optional<nlohmann::json>();
  }
  const std::string_view line(received_.data() + taken_bytes_, end - taken_bytes_);
  taken_bytes_ = scanned_bytes_ = end + 1;
  PREPOST_RETURN_IF_ERROR(CheckLine(line));
  nlohmann::json value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded() || !value.is_object()) {
    return Rejected(
        fmt::format("expected a JSON object in a line, found '{}'", line.substr(0, 200)));
  }
  return std::optional(std::move(value));
}

}  // namespace prepost::tools
