// SPDX-License-Identifier: Apache-2.0
//
// The version. CMakeLists.txt reads it here.
#ifndef PREPOST_IR_VERSION_H_
#define PREPOST_IR_VERSION_H_

namespace prepost {

inline constexpr const char* kVersion = "0.1.0";
/// What the "generator" of a plan says.
inline constexpr const char* kGenerator = "prepost 0.1.0";

}  // namespace prepost

#endif  // PREPOST_IR_VERSION_H_
