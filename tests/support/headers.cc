// SPDX-License-Identifier: Apache-2.0
//
// Nothing: tests/CMakeLists.txt has the headers that are compiled before it, for all tests.
