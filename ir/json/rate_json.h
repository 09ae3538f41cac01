// SPDX-License-Identifier: Apache-2.0
//
// Rates and latencies in JSON files, as topologies and profiles have them: text with a unit, or a
// plain number.
#ifndef PREPOST_IR_JSON_RATE_JSON_H_
#define PREPOST_IR_JSON_RATE_JSON_H_

#include <functional>

#include "ir/base/status.h"
#include "ir/json/json_reader.h"

namespace prepost {

/// Text as ParseRate() takes it, or a number of bytes/s; more than 0. `take` may refuse it.
JsonForm::ReadScalar ReadRate(std::function<Status(double)> take);
/// Text as ParseLatency() takes it, or a number of seconds; 0 or more. `take` may refuse it.
JsonForm::ReadScalar ReadLatency(std::function<Status(double)> take);
/// A plain number, of any kind. `take` may refuse it.
JsonForm::ReadScalar ReadNumber(std::function<Status(double)> take);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_RATE_JSON_H_
