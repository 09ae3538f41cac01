// SPDX-License-Identifier: Apache-2.0
//
// Connections of one process that go through memory which both ends have mapped, as those between
// members of one machine that have introduced themselves do.
#ifndef PREPOST_TESTS_SUPPORT_SHARED_MEMORY_H_
#define PREPOST_TESTS_SUPPORT_SHARED_MEMORY_H_

#include "runtime/base/file_descriptor.h"
#include "runtime/transport/shm/shm_stream.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost::test {

/// Two files for one, which may be closed.
FileDescriptor CopyOf(int fd);
/// Makes the two the ends of one stream.
void Join(ShmStream& a, ShmStream& b);
/// All connections of `mesh` go through streams of a page each way, so that they are often full,
/// and each node has a stage for its blocks.
void ShareMemory(TcpMesh& mesh);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_SHARED_MEMORY_H_
