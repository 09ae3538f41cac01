// SPDX-License-Identifier: Apache-2.0
//
// Pass: a change of a whole plan into another valid plan of the same multicast. One file each;
// pass_manager.h runs them.
#ifndef PREPOST_COMPILER_PASS_H_
#define PREPOST_COMPILER_PASS_H_

#include <functional>
#include <string>

#include "compiler/spec.h"
#include "ir/plan.h"

namespace prepost {

struct Pass {
  std::string name;
  std::function<Result<Plan>(const Plan&)> run;
};

/// `ready`: how senders know that receives are posted: adds the credits of the mode, or none. See
/// ir/op_rules.cc, also for SendWindowPass().
Pass ReadyPass(SpecReady ready);
/// `send_window`: at most W block sends of a node are in flight.
Pass SendWindowPass(SpecSendWindow send_window);
/// `thin`: removes every `after` entry that follows from the others. See thin_pass.cc.
Pass ThinPass();

}  // namespace prepost

#endif  // PREPOST_COMPILER_PASS_H_
