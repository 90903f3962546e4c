# Catch2 3 where it is installed, else the 2.13 that Debian 12 ships; both give the target Catch2::Catch2WithMain.
find_package(Catch2 3 QUIET)
if(NOT Catch2_FOUND)
  find_package(Catch2 2.13 REQUIRED)
endif()
include(Catch)
