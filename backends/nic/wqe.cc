// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/wqe.h"

namespace prepost::nic {

const char* Name(Opcode opcode) {
  switch (opcode) {
    case Opcode::kNop:
      return "NOP";
    case Opcode::kRdmaWrite:
      return "RDMA_WRITE";
    case Opcode::kRdmaWriteImm:
      return "RDMA_WRITE_IMM";
    case Opcode::kSend:
      return "SEND";
    case Opcode::kSendImm:
      return "SEND_IMM";
    case Opcode::kWait:
      return "WAIT";
    case Opcode::kRdmaRead:
      return "RDMA_READ";
    case Opcode::kAtomicFetchAdd:
      return "ATOMIC_FA";
    case Opcode::kRecvEnable:
      return "RECV_EN";
    case Opcode::kSendEnable:
      return "SEND_EN";
  }
  return "?";
}

const char* Name(Syndrome syndrome) {
  switch (syndrome) {
    case Syndrome::kNone:
      return "none";
    case Syndrome::kLocalLength:
      return "local length error";
    case Syndrome::kLocalQpOperation:
      return "local QP operation error";
    case Syndrome::kLocalProtection:
      return "local protection error";
    case Syndrome::kFlushed:
      return "flushed";
    case Syndrome::kRemoteInvalidRequest:
      return "remote invalid request";
    case Syndrome::kRemoteAccess:
      return "remote access error";
    case Syndrome::kRemoteOperation:
      return "remote operation error";
    case Syndrome::kTransportRetryExceeded:
      return "transport retry exceeded";
    case Syndrome::kRnrRetryExceeded:
      return "RNR retry exceeded";
  }
  return "unknown syndrome";
}

}  // namespace prepost::nic
