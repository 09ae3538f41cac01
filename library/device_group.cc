// SPDX-License-Identifier: Apache-2.0
//
// One message, at one member. What the others must have reached first is in brackets:
//
//     Begin()            memory and size are known
//     Arm()  [memory]    the plan for the size, lowered; queues made, exchanged with the peers,
//                        filled and validated: kArmed
//     Start() [armed]    doorbells; the final completion: kMoved
//     Complete() [moved] the queues go
//
// Queues and completion events belong to devices, of which each of the two messages under way has
// its own. Queues of NICs stay with the device until it is closed, so that it is replaced from time
// to time; those of libraries' devices are used again for a message of the same size, without an
// exchange. All members see the same sizes in the same order, so that they agree on which message
// that is.
#include "library/device_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "ir/base/count.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/thread.h"
#include "runtime/executor/player.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

/// Lowered plans that are kept, of the last sizes.
constexpr size_t kLoweredMax = 16;
/// Messages until a device that keeps its queues is closed with them, and opened again.
constexpr uint32_t kMessagesPerDevice = 64;
/// Between polls of a message that moves while the next one waits for its peers' queue pairs, and
/// of orders where none does.
constexpr milliseconds kMovingTick{1};
constexpr milliseconds kIdleTick{100};
/// Peers that are still at the message before may take any time; that they are there is the
/// session's business.
constexpr milliseconds kForEver = std::chrono::hours(24 * 365);

/// What is to be played for messages of one size.
struct Lowered {
  std::shared_ptr<const VerifiedPlan> plan;
  std::shared_ptr<const PlayerDevice::Program> program;  ///< null: the CPU drives
};

/// A message under way.
struct Flight {
  uint64_t number = 0;
  NodeMemory memory;
  uint64_t bytes = 0;
  std::shared_ptr<const Lowered> lowered;
  std::unique_ptr<Player> player;  ///< null: not armed
  bool is_started = false;
  bool is_moved = false;
};

struct Slot {
  std::unique_ptr<PlayerDevice> device;  ///< null: not open
  uint32_t messages = 0;
  std::shared_ptr<const Lowered> last = nullptr;  ///< what its last message was played by
};

class DeviceGroup final : public MessageMover {
 public:
  DeviceGroup(DeviceGroupOptions options, std::unique_ptr<GroupDevices> devices, GroupPlans& plans)
      : options_(std::move(options)),
        devices_(std::move(devices)),
        plans_(plans),
        pacer_(options_.wait) {}
  ~DeviceGroup() override { Stop(); }

  void Open(std::unique_ptr<PeerLinks> links, std::span<std::byte> pool,
            std::function<void(Event)> report) override;
  void Join(std::string place) override {
    Tell([&](Orders& orders) { orders.place = std::move(place); });
  }
  void Begin(NodeMemory memory, uint64_t bytes) override {
    Tell([&](Orders& orders) { orders.begun.push_back({.memory = memory, .bytes = bytes}); });
  }
  void Arm(uint64_t number) override {
    Tell([&](Orders& orders) { orders.arm = number + 1; });
  }
  void Start(uint64_t number) override {
    Tell([&](Orders& orders) { orders.start = number + 1; });
  }
  void Complete(uint64_t number) override {
    Tell([&](Orders& orders) { orders.complete = number + 1; });
  }
  void Stop() override;

 private:
  /// What the owner has asked for so far; numbers are of messages, from the first on.
  struct Orders {
    std::optional<std::string> place;
    std::vector<Flight> begun;
    uint64_t arm = 0;
    uint64_t start = 0;
    uint64_t complete = 0;
    bool is_ending = false;
  };

  template <typename Change>
  void Tell(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change(orders_);
    }
    wake_.Signal();
  }
  bool is_ending() {
    const std::lock_guard lock(mutex_);
    return orders_.is_ending;
  }
  void Run();
  Status Work();
  Status FindDevices();
  Orders TakeOrders();
  Status Prepare(Flight& flight);
  Status Advance(Flight& flight, milliseconds timeout);
  Flight* Moving();
  void StartMoving(const Orders& orders);
  Result<PlayerDevice*> DeviceFor(const Flight& flight);
  Result<std::shared_ptr<const Lowered>> LoweredFor(uint64_t bytes, const PlayerDevice& device);
  Status OfMessage(const Flight& flight, const Status& status) const;
  Status WaitForOrders() const;
  bool MayPrepare() { return is_automatic_ || Moving() == nullptr; }

  const DeviceGroupOptions options_;
  const std::unique_ptr<GroupDevices> devices_;
  GroupPlans& plans_;
  std::unique_ptr<PeerLinks> links_;  ///< the thread's while it runs, but for Shut()
  std::span<std::byte> pool_;         ///< messages are received there; may be empty
  std::function<void(Event)> report_;
  EventFd wake_;
  std::mutex mutex_;
  Orders orders_;  ///< under mutex_
  std::thread thread_;

  // The thread's own. Flights go first, then their devices, then what these are made of.
  WaitPacer pacer_;
  uint64_t next_ = 0;  ///< the number of the next message that begins
  std::vector<std::shared_ptr<const Lowered>> lowered_;  ///< the last used first
  std::array<bool, 2> is_noted_ = {};  ///< that CPUs were chosen, that offload was
  std::array<Slot, kGroupDevices> slots_;
  /// Where a message must be polled to its end, peers say over their connections that they have
  /// done so: what the next one exchanges there comes after that.
  bool is_automatic_ = true;
  std::deque<Flight> flights_;
  std::optional<NodeId> lost_peer_;  ///< whose loss the error is
};

void DeviceGroup::Open(std::unique_ptr<PeerLinks> links, std::span<std::byte> pool,
                       std::function<void(Event)> report) {
  links_ = std::move(links);
  pool_ = pool;
  report_ = std::move(report);
  Result<EventFd> wake = EventFd::Make();
  Status status = wake.status();
  if (status.ok()) {
    wake_ = std::move(*wake);
    Result<std::thread> thread = StartThread("the thread of a group", [this] { Run(); });
    status = thread.status();
    if (status.ok()) thread_ = *std::move(thread);
  }
  if (!status.ok()) report_({.kind = Event::Kind::kFailed, .status = status});
}

void DeviceGroup::Stop() {
  if (!thread_.joinable()) return;
  Tell([](Orders& orders) { orders.is_ending = true; });
  // Whoever waits for a peer's queue pairs waits no more, here and there.
  links_->Shut();
  thread_.join();
  links_ = nullptr;
}

void DeviceGroup::Run() {
  const Status status = Work();
  for (Flight& flight : flights_) {
    if (flight.player != nullptr) flight.player->Stop();
  }
  flights_.clear();
  if (status.ok() || is_ending()) return;
  report_({.kind = Event::Kind::kFailed, .status = status, .lost_peer = lost_peer_});
}

Status DeviceGroup::Work() {
  PREPOST_RETURN_IF_ERROR(FindDevices());
  for (;;) {
    const Orders orders = TakeOrders();
    if (orders.is_ending) return {};  // of the signal that it has taken
    std::erase_if(flights_, [&](const Flight& flight) { return flight.number < orders.complete; });
    StartMoving(orders);
    const auto to_arm =
        std::ranges::find_if(flights_, [](const Flight& flight) { return !flight.player; });
    if (to_arm != flights_.end() && to_arm->number < orders.arm && MayPrepare()) {
      const Status status = Prepare(*to_arm);
      if (!status.ok()) return status;
      report_({.kind = Event::Kind::kArmed, .number = to_arm->number});
      continue;
    }
    Flight* const moving = Moving();
    if (moving != nullptr && moving->is_started) {
      const milliseconds timeout = moving->lowered->program != nullptr
                                       ? milliseconds(-1)
                                       : pacer_.Timeout(moving->player->progress());
      PREPOST_RETURN_IF_ERROR(Advance(*moving, timeout));
    } else {
      PREPOST_RETURN_IF_ERROR(WaitForOrders());
    }
  }
}

/// The root says where they are, and the others find them there.
Status DeviceGroup::FindDevices() {
  if (options_.self == options_.root) {
    Result<std::string> place = devices_->Found();
    if (!place.ok()) return place.status();
    report_({.kind = Event::Kind::kPlace, .text = *std::move(place)});
  } else {
    for (;;) {
      const Orders orders = TakeOrders();
      if (orders.is_ending) return {};
      if (orders.place) {
        PREPOST_RETURN_IF_ERROR(devices_->Join(*orders.place));
        break;
      }
      PREPOST_RETURN_IF_ERROR(WaitForOrders());
    }
  }
  report_({.kind = Event::Kind::kOpened});
  return {};
}

DeviceGroup::Orders DeviceGroup::TakeOrders() {
  wake_.Take();
  const std::lock_guard lock(mutex_);
  for (Flight& flight : std::exchange(orders_.begun, {})) {
    flight.number = next_++;
    flights_.push_back(std::move(flight));
  }
  Orders orders;
  orders.place = orders_.place;
  orders.arm = orders_.arm;
  orders.start = orders_.start;
  orders.complete = orders_.complete;
  orders.is_ending = orders_.is_ending;
  return orders;
}

Status DeviceGroup::WaitForOrders() const {
  constexpr int kCheckMs = 1000;  // until a file that the program has closed is noticed
  pollfd wake = {.fd = wake_.fd(), .events = POLLIN, .revents = 0};
  poll(&wake, 1, kCheckMs);
  return (wake.revents & POLLNVAL) == 0 ? Status() : FileClosedError();
}

/// The first message that is armed and not done here; null: none.
Flight* DeviceGroup::Moving() {
  const auto found =
      std::ranges::find_if(flights_, [](const Flight& flight) { return !flight.is_moved; });
  return found == flights_.end() || found->player == nullptr ? nullptr : &*found;
}

/// If it may.
void DeviceGroup::StartMoving(const Orders& orders) {
  Flight* const first = Moving();
  if (first == nullptr || first->is_started || first->number >= orders.start) return;
  first->player->Start();
  first->is_started = true;
}

/// Arms it; meanwhile the message before it starts and moves on, however long peers take for
/// theirs.
Status DeviceGroup::Prepare(Flight& flight) {
  const Result<PlayerDevice*> device = DeviceFor(flight);
  if (!device.ok()) return OfMessage(flight, device.status());
  const Result<std::shared_ptr<const Lowered>> lowered = LoweredFor(flight.bytes, **device);
  if (!lowered.ok()) return OfMessage(flight, lowered.status());
  flight.lowered = *lowered;
  Slot& slot = slots_[flight.number % kGroupDevices];
  Result<std::unique_ptr<PeerLinks>> links = links_->Copy();  // which its player closes
  if (!links.ok()) return OfMessage(flight, links.status());
  Status failure;  // of the message before
  const PlayerContext context = {
      .memory = flight.memory,
      .wake_fd = wake_.fd(),
      .checkpoint =
          [&] {
            const Orders orders = TakeOrders();
            if (orders.is_ending) return Rejected("the group is ending");
            StartMoving(orders);
            Flight* const moving = Moving();
            if (moving != nullptr && moving->is_started)
              failure = Advance(*moving, milliseconds(0));
            return failure;
          },
      .observer = {},
      .checkpoint_interval = Moving() != nullptr ? kMovingTick : kIdleTick};
  PlayerDevice::Task task = {.plan = *flight.lowered->plan,
                             .node = options_.self,
                             .links = *std::move(links),
                             .context = context,
                             .is_kept = true,
                             .is_as_before = slot.last == flight.lowered,
                             .answer_max = is_automatic_ ? options_.answer_max : kForEver};
  Result<std::unique_ptr<Player>> player =
      MakeDevicePlayer(**device, flight.lowered->program.get(), std::move(task));
  if (!failure.ok()) return failure;
  if (!player.ok()) {
    lost_peer_ = links_->ClosedPeer();
    return OfMessage(flight, player.status());
  }
  flight.player = *std::move(player);
  slot.last = flight.lowered;
  return {};
}

/// Polls the message that moves, and waits for up to `timeout` (negative: for ever) or for orders.
Status DeviceGroup::Advance(Flight& flight, milliseconds timeout) {
  // A CPU that has nothing to do in a message, as in a group of one, would wait for ever.
  const Status status = flight.player->done() ? Status() : flight.player->Poll(timeout);
  if (!status.ok()) {
    lost_peer_ = flight.player->lost_peer();
    return OfMessage(flight, status);
  }
  if (!flight.player->done()) return {};
  flight.is_moved = true;
  report_({.kind = Event::Kind::kMoved, .number = flight.number});
  return {};
}

Result<PlayerDevice*> DeviceGroup::DeviceFor(const Flight& flight) {
  const auto index = static_cast<uint32_t>(flight.number % kGroupDevices);
  Slot& slot = slots_[index];
  const bool is_due = slot.device == nullptr ||
                      (slot.device->keeps_queues() && slot.messages % kMessagesPerDevice == 0);
  ++slot.messages;
  if (is_due) {
    slot.device = nullptr;
    slot.last = nullptr;
    Result<std::unique_ptr<PlayerDevice>> opened = devices_->Open(index);
    if (!opened.ok()) return opened.status();
    slot.device = *std::move(opened);
    is_automatic_ = slot.device->is_automatic();
    slot.device->KeepMemory(pool_);
  }
  return slot.device.get();
}

Result<std::shared_ptr<const Lowered>> DeviceGroup::LoweredFor(uint64_t bytes,
                                                               const PlayerDevice& device) {
  const auto found = std::ranges::find_if(
      lowered_, [&](const auto& it) { return it->plan->header().payload.bytes == bytes; });
  if (found != lowered_.end()) {
    std::rotate(lowered_.begin(), found, found + 1);
    return lowered_.front();
  }
  Result<std::shared_ptr<const VerifiedPlan>> plan = plans_.FlatFor(bytes);
  if (!plan.ok()) return plan.status();
  auto lowered = std::make_shared<Lowered>();
  lowered->plan = *std::move(plan);
  auto choice = ChooseExecutor<std::shared_ptr<const PlayerDevice::Program>>(
      {.executor = options_.executor, .device = options_.device, .cpu_because = ""}, *lowered->plan,
      [&] { return device.Lower(*lowered->plan, options_.self); });
  if (!choice.ok())
    return Rejected(fmt::format("its plan does not fit the device: {}", choice.status().message()));
  // The first of each is noted.
  if (!choice->why.empty() && !std::exchange(is_noted_[choice->program ? 1 : 0], true))
    report_({.kind = Event::Kind::kNoted, .text = "executor " + choice->note()});
  lowered->program = std::move(choice->program).value_or(nullptr);
  if (lowered_.size() == kLoweredMax) lowered_.pop_back();
  lowered_.insert(lowered_.begin(), lowered);
  return lowered_.front();
}

Status DeviceGroup::OfMessage(const Flight& flight, const Status& status) const {
  return {status.code(),
          fmt::format("message {} of {} over device {}: {}", flight.number,
                      Count(flight.bytes, "byte"), options_.device, status.ToString())};
}

}  // namespace

std::unique_ptr<MessageMover> MakeDeviceGroup(DeviceGroupOptions options,
                                              std::unique_ptr<GroupDevices> devices,
                                              GroupPlans& plans) {
  return std::make_unique<DeviceGroup>(std::move(options), std::move(devices), plans);
}

}  // namespace prepost
