// SPDX-License-Identifier: Apache-2.0
//
// Where a benchmark's figures come from: the line that stands above them.
#ifndef PREPOST_BENCH_PROVENANCE_H_
#define PREPOST_BENCH_PROVENANCE_H_

#include <string>

namespace prepost {

/// "commit 1a2b3c4, 2 cores (MODEL), Linux 6.1": of the source tree and the machine as they are
/// now. "commit unknown" without git.
std::string Provenance();

}  // namespace prepost

#endif  // PREPOST_BENCH_PROVENANCE_H_
