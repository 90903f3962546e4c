# Consumers, each configured, built and run: of the installed package, of the sources, with and without a build system.
set(prefix ${CMAKE_CURRENT_BINARY_DIR}/prefix)
set(consumer ${CMAKE_CURRENT_SOURCE_DIR}/package)
add_test(NAME "package: install" COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${prefix})
set_tests_properties("package: install" PROPERTIES FIXTURES_SETUP installed)
foreach(how find_package fetch_content)
  add_test(NAME "package: ${how}" COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${consumer} ${CMAKE_CURRENT_BINARY_DIR}/package/${how}
    --build-generator ${CMAKE_GENERATOR} --build-options -DHOW=${how} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
    -DCMAKE_PREFIX_PATH=${prefix} -DGPUMEM_SOURCE=${PROJECT_SOURCE_DIR} --test-command consumer)
  set_tests_properties("package: ${how}" PROPERTIES FIXTURES_REQUIRED installed)
endforeach()

file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/package)
set(compile_and_run ${CMAKE_COMMAND} -DSOURCE=${consumer}/main.cpp)
add_test(NAME "package: -I include" COMMAND ${compile_and_run} -DPROGRAM=${CMAKE_CURRENT_BINARY_DIR}/package/plain
  "-DCOMMAND=${CMAKE_CXX_COMPILER};-std=c++20;-I${PROJECT_SOURCE_DIR}/include" -P ${PROJECT_SOURCE_DIR}/cmake/compile_and_run.cmake)
add_test(NAME "package: an older standard is refused in one sentence" COMMAND ${CMAKE_CXX_COMPILER} -std=c++17
  -fsyntax-only -I${PROJECT_SOURCE_DIR}/include ${consumer}/main.cpp)
set_tests_properties("package: an older standard is refused in one sentence" PROPERTIES
  PASS_REGULAR_EXPRESSION "gpumem needs C\\+\\+20: add -std=c\\+\\+20" FAIL_REGULAR_EXPRESSION "dtype")
find_program(GPUMEM_PKG_CONFIG NAMES pkg-config pkgconf)
if(GPUMEM_PKG_CONFIG)
  add_test(NAME "package: pkg-config" COMMAND ${compile_and_run} -DPROGRAM=${CMAKE_CURRENT_BINARY_DIR}/package/by_pkg_config
    "-DCOMMAND=${CMAKE_CXX_COMPILER};-std=c++20" -DPKG_CONFIG=${GPUMEM_PKG_CONFIG} -DPREFIX=${prefix}
    -P ${PROJECT_SOURCE_DIR}/cmake/compile_and_run.cmake)
  set_tests_properties("package: pkg-config" PROPERTIES FIXTURES_REQUIRED installed)
endif()

if(CMAKE_CUDA_COMPILER)
  add_test(NAME "package: a .cu file" COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${consumer}/cuda ${CMAKE_CURRENT_BINARY_DIR}/package/cuda
    --build-generator ${CMAKE_GENERATOR} --build-options -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CUDA_COMPILER=${CMAKE_CUDA_COMPILER}
    "-DCMAKE_CUDA_ARCHITECTURES=${CMAKE_CUDA_ARCHITECTURES}" --test-command cuda_consumer)
  set_tests_properties("package: a .cu file" PROPERTIES FIXTURES_REQUIRED installed)
endif()
