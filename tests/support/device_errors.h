// SPDX-License-Identifier: Apache-2.0
//
// ErrorsOf: the errors that a device has to report by now.
#ifndef PREPOST_TESTS_SUPPORT_DEVICE_ERRORS_H_
#define PREPOST_TESTS_SUPPORT_DEVICE_ERRORS_H_

#include <vector>

#include "backends/nic/device.h"

namespace prepost::test {

inline std::vector<nic::ErrorEvent> ErrorsOf(nic::Device& device) {
  device.AckEvents();
  return device.TakeErrors();
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_DEVICE_ERRORS_H_
