// SPDX-License-Identifier: Apache-2.0
//
// Nothing: the headers of the programs that measure are precompiled with it (CMakeLists.txt).
