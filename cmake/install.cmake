# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the command, the library with include/prepost/, its CMake package and pkg-config file,
# docs, man pages and the completion of bash; the Python package besides (python/CMakeLists.txt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS prepost RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/bash-completion/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)

if(NOT TARGET prepost_shared)  # the library is part of the program that adds this folder
  return()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/prepost DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS prepost_shared EXPORT prepostTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/prepost)
install(EXPORT prepostTargets NAMESPACE prepost:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/prepostConfig.cmake.in ${PROJECT_BINARY_DIR}/prepostConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
# A minor version below 1.0 may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/prepostConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/prepostConfig.cmake ${PROJECT_BINARY_DIR}/prepostConfigVersion.cmake
        DESTINATION ${package_folder})

# Relative to the file, so that a tree that was moved, or unpacked, is found where it is.
string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(${PROJECT_SOURCE_DIR}/cmake/prepost.pc.in ${PROJECT_BINARY_DIR}/prepost.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/prepost.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `cpack` in the build folder makes a .deb, which depends on the libraries that dpkg-shlibdeps finds.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME prepost)
set(CPACK_PACKAGE_VENDOR Prepost)
set(CPACK_PACKAGE_CONTACT "Prepost's developers <prepost@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "multicast of memory to groups, other collectives, and the plans that they follow")
set(CPACK_PACKAGE_DESCRIPTION "Prepost compiles a multicast, or another collective such as an allreduce, ahead of the transfer into a
program for each node, proves the programs correct, draws and simulates them, and runs them from CPUs or, multicasts, preposted to a NIC. With the library for C++, C and Python.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libgvc6, ibverbs-providers")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, python3-numpy")
include(CPack)
