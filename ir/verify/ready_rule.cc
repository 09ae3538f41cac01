// SPDX-License-Identifier: Apache-2.0
//
// ready: what the declared mode demands of credits. That sends and credits wait for what they must
// is an order at a node and stands in local_order_rules.cc. As there, no code is shared with what
// makes credits.
#include <fmt/format.h>

#include "ir/base/count.h"
#include "ir/verify/rules.h"

namespace prepost {
namespace {

class ReadyRule {
 public:
  ReadyRule(const MatchedPlan& matched, Findings* findings)
      : plan_(matched.plan),
        header_(matched.plan.header()),
        messages_(matched.messages),
        credits_(matched.credits),
        options_(matched.options),
        findings_(findings) {}

  void Run() {
    for (uint32_t c = 0; c < plan_.channels().size(); ++c) {
      const Channel& channel = plan_.channels()[c];
      const uint32_t begin = messages_.ChannelBegin(ChannelId(c));
      const uint32_t count = messages_.ChannelEnd(ChannelId(c)) - begin;
      if (count == 0) continue;
      if (!header_.ready.has_credits()) {
        if (channel.carries_credits()) {
          ReadyFinding(Place::ChannelAt(c), "{} in ready mode {}, which has none",
                       Count(count, "credit"), Name(header_.ready.mode));
        }
        if (header_.ready.mode == ReadyMode::kBarrier && options_.recv_depth &&
            count > *options_.recv_depth) {
          ReadyFinding(Place::ChannelAt(c),
                       "{} cannot all be posted before the start, the depth is {}",
                       Count(count, "receive"), *options_.recv_depth);
        }
      } else if (!channel.carries_credits()) {
        CheckGrants(c, count);
      } else {
        const uint32_t blocks = credits_.Partner(ChannelId(c));
        if (blocks == CreditTable::kNone) {
          ReadyFinding(Place::ChannelAt(c), "{}, but no channel {}>{} lane {} to grant",
                       Count(count, "credit"), channel.to.value, channel.from.value,
                       NumberOf(Lane::kBlocks));
        } else if (messages_.ChannelBegin(ChannelId(blocks)) ==
                   messages_.ChannelEnd(ChannelId(blocks))) {
          ReadyFinding(Place::ChannelAt(c), "{}, but nothing is sent on the channel to grant",
                       Count(count, "credit"));
        }
        CheckCredits(c);
      }
    }
  }

 private:
  template <typename... Arguments>
  void ReadyFinding(const Place& place, fmt::format_string<Arguments...> format,
                    Arguments&&... arguments) {
    findings_->Add(place, Rule::kReady,
                   [&] { return fmt::format(format, std::forward<Arguments>(arguments)...); });
  }

  /// All receives of block channel c are granted, no more and no fewer.
  void CheckGrants(uint32_t c, uint32_t count) {
    const uint32_t credits = credits_.Partner(ChannelId(c));
    uint64_t granted = 0;
    uint32_t credit_count = 0;
    if (credits != CreditTable::kNone) {
      const uint32_t end = messages_.ChannelEnd(ChannelId(credits));
      credit_count = end - messages_.ChannelBegin(ChannelId(credits));
      if (credit_count != 0) granted = credits_.GrantedUpTo(end - 1);
    }
    if (granted != count) {
      ReadyFinding(Place::ChannelAt(c), "credits grant {}, there are {}", Count(granted, "receive"),
                   count);
    }
    if (header_.ready.mode == ReadyMode::kChannel && credit_count != 1) {
      ReadyFinding(Place::ChannelAt(c), "{} credits in ready mode channel, expected 1",
                   credit_count);
    }
  }

  /// What the mode demands of each credit on credit channel c.
  void CheckCredits(uint32_t c) {
    for (uint32_t m = messages_.ChannelBegin(ChannelId(c)); m < messages_.ChannelEnd(ChannelId(c));
         ++m) {
      const Op& send = plan_.ops()[messages_.send(m)];
      if (header_.ready.mode == ReadyMode::kWindow && send.grants != 1) {
        ReadyFinding(PlaceOf(plan_, messages_.send(m), "grants"),
                     "grants {} in ready mode window, expected 1", send.grants);
      }
      if (header_.ready.mode == ReadyMode::kChannel && send.after_count != 0) {
        ReadyFinding(PlaceOf(plan_, messages_.send(m), "after"),
                     "waits for {} in ready mode channel, expected none",
                     Count(send.after_count, "op"));
      }
    }
  }

  const Plan& plan_;
  const PlanHeader& header_;
  const MessageTable& messages_;
  const CreditTable& credits_;
  const VerifyOptions& options_;
  Findings* findings_;
};

}  // namespace

void CheckReady(const MatchedPlan& matched, Findings* findings) {
  ReadyRule(matched, findings).Run();
}

}  // namespace prepost
