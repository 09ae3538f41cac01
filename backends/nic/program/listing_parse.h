// SPDX-License-Identifier: Apache-2.0
//
// ParseListing: a listing (listing.h) read back, whether List() wrote it or a person changed it.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_LISTING_PARSE_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_LISTING_PARSE_H_

#include <istream>
#include <string>

#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"

namespace prepost::nic {

/// The program that was listed: encoded again it has the same bytes and relocations. What it does
/// is not judged. Errors (kRejected): FILE:LINE:COLUMN and what was expected there; `name` stands
/// for FILE. Reads all of `in`; memory is in proportion to that.
Result<QueueProgram> ParseListing(std::istream& in, const std::string& name);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_LISTING_PARSE_H_
