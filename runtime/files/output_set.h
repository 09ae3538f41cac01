// SPDX-License-Identifier: Apache-2.0
//
// OutputSet: the output files of a run, one per receiving node, as one thing that succeeds or
// leaves nothing. It names them, makes their folders, and in the end renames all or removes all.
// What goes into them is not its business.
#ifndef PREPOST_RUNTIME_FILES_OUTPUT_SET_H_
#define PREPOST_RUNTIME_FILES_OUTPUT_SET_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/collective.h"
#include "ir/ids.h"

namespace prepost {

/// Node i's copy is FOLDER/node-i/NAME. While it is incomplete it has a TemporaryName() in that
/// folder, if it has a name at all (temporary_file.h). Folders may be shared by machines. A
/// node that lacks nothing, the root, gets no copy. Move only; the destructor removes what was not
/// committed.
class OutputSet {
 public:
  struct Options {
    std::string folder;  ///< made, with its parents, if missing
    std::string name;    ///< the input's base name
    uint32_t nodes = 1;
    Roles roles;
  };

  /// Makes the folders, and removes temporary files there whose processes are gone from this
  /// machine (killed before they could clean up). Errors (kRejected): a folder cannot be made or a
  /// copy's name is taken by a folder or a device; nothing is left behind.
  static Result<OutputSet> Create(const Options& options);

  /// A set of one copy only, that of `node`, with `path` as its final name; a link stays a link.
  /// The folder must exist. Errors (kRejected): `path` is there and no regular file.
  static Result<OutputSet> CreateOne(NodeId node, const std::string& path);

  /// Files of these names in `folder`, which is made, with its parents, if it is missing; each in
  /// the place of a node. Otherwise as Create().
  static Result<OutputSet> CreateIn(const std::string& folder,
                                    const std::vector<std::string>& names);

  OutputSet(OutputSet&& other) noexcept;
  OutputSet& operator=(OutputSet&&) = delete;
  ~OutputSet() { Remove(); }

  /// Where node's copy is written. For nodes that get one.
  std::string TemporaryPath(NodeId node) const;
  std::string FinalPath(NodeId node) const;

  /// Gives every copy its final name, replacing older files and links, never what a link points to.
  /// They must all be complete and checked, and have their temporary names.
  /// With `sync` the names are on the disks, too. On an error (kRejected) the copies that were
  /// renamed already are removed, and the older files have their names again; a file system that
  /// neither links nor exchanges files loses those.
  Status Commit(bool sync = false);
  /// Removes the copies again that Commit() has named, unless other files have their names now.
  void Withdraw();
  /// Removes temporary files and the folders that Create() made, as far as they exist and are
  /// empty. Does nothing after Commit(). Several processes that hold copies of one set may do this
  /// at the same time.
  void Remove();

 private:
  struct Copy {
    NodeId node;
    std::string folder;
    std::string name;
    std::string temporary_name;
    std::string older_name = {};  ///< of the file that it replaces, until all are in place
    bool has_older = false;       ///< and there is such a file
    struct stat placed = {};      ///< what has the final name, as far as this set knows
  };

  OutputSet() = default;
  static Status CheckName(const Copy& copy);
  const Copy& CopyOf(NodeId node) const;
  static std::string TemporaryPath(const Copy& copy);
  static std::string FinalPath(const Copy& copy);
  static std::string OlderPath(const Copy& copy);
  static Status Place(Copy* copy);
  static bool IsStillThere(const Copy& copy);
  static void TakeBack(const Copy& copy);
  Status SyncFolders() const;

  std::vector<Copy> copies_;               ///< sorted by node
  std::vector<std::string> made_folders_;  ///< parents first
  bool pending_ = true;                    ///< neither committed, removed nor moved from
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_OUTPUT_SET_H_
