# cmake -DSOURCE_DIR=... -P file_set_is_complete.cmake
# Every header under include/ is in the FILE_SET of the root CMakeLists.txt: one that is not would not be installed.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/include/*.hpp)
file(STRINGS ${SOURCE_DIR}/CMakeLists.txt listed REGEX "^  include/.*\\.hpp$")
list(TRANSFORM listed STRIP)
list(SORT headers)
list(SORT listed)
if(NOT headers STREQUAL listed)
  message(FATAL_ERROR "under include/: ${headers}\nlisted: ${listed}")
endif()
