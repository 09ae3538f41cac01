# SPDX-License-Identifier: Apache-2.0
#
# With PREPOST_BATCHES, sources of a target are compiled several at once: what they include is read, and templates
# are compiled, once for all of them. A source's batch follows from its name, so that a new source moves no other.
#
# Two sources of a batch cannot give one name to two things, also not in unnamed namespaces: one of them is listed below and
# compiled by itself. scripts/test builds one by one where batches do not compile, and says so: then a name is missing here.
set(prepost_by_itself
  backends/emulated/virtual_offload.cc
  backends/mlx5/stand_in.cc
  backends/mlx5/stand_in_commands.cc
  backends/nic/validate_read.cc
  compiler/choice_rules.cc
  compiler/two_tree.cc
  ir/plan_diff.cc
  tests/cli/compare_test.cc
  tests/cli/run_test.cc
  tests/differential/byte_mutation_test.cc
  tests/differential/cpu_executor_test.cc
  tests/differential/offload_test.cc
  tests/unit/device_player_test.cc
  tests/unit/device_profile_test.cc
  tests/unit/executor_test.cc
  tests/unit/fit_test.cc
  tests/unit/member_test.cc
  tests/unit/profile_test.cc
  tests/unit/shm_board_test.cc
  tests/unit/shm_endpoint_test.cc
  tests/unit/verify_test.cc
  tools/calibrate.cc
  tools/choose.cc
  tools/compare.cc
  tools/devices.cc
  tools/file_kind.cc
  tools/fit_print.cc
  tools/groups_print.cc
  tools/import.cc
  tools/noise_flags.cc
  tools/number_check.cc
  tools/probe.cc
  viz/plot.cc
  viz/racks.cc
  viz/trace_picture.cc
)

# prepost_batches(TARGET): called where the target is made, after all of its sources are known; others stay by themselves.
function(prepost_batches target)
  if(NOT PREPOST_BATCHES)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  set(batches 1)
  while(count GREATER_EQUAL 12)  # a power of two, so that it seldom changes
    math(EXPR batches "2 * ${batches}")
    math(EXPR count "${count} / 2")
  endwhile()
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME file)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(source IN_LIST prepost_by_itself OR source MATCHES "^tests/differential/virtual_")  # those name the same units and plans
      continue()
    endif()
    string(MD5 sum ${file})
    string(SUBSTRING ${sum} 0 7 sum)
    math(EXPR batch "0x${sum} % ${batches}")
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${source} PROPERTIES UNITY_GROUP ${target}_${batch})
  endforeach()
endfunction()
