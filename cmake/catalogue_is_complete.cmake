# cmake -DFOLDER=tests/compile_fail -P catalogue_is_complete.cmake
# The catalogue of errors has a section for every file of its folder, every file says what it means and what to do, and
# no line names a place on the machine that wrote it.
cmake_minimum_required(VERSION 3.25)
file(READ ${FOLDER}/README.md catalogue)
file(GLOB sources ${FOLDER}/*.cpp)
list(FILTER sources EXCLUDE REGEX "/readme\\.cpp$")  # the README's own does_not_fit
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  string(FIND "${catalogue}" "\n## ${name}\n" section)
  if(section EQUAL -1)
    message(SEND_ERROR "README.md has no section ${name}: run tests/compile_fail/catalogue.sh")
  endif()
  file(READ ${source} text)
  if(NOT text MATCHES "\n// Meaning: .*\n// Fix: ")
    message(SEND_ERROR "${source} does not say '// Meaning: ' and '// Fix: '")
  endif()
endforeach()
if(catalogue MATCHES "[ (\"](/[a-z]+/[^ ]*)")
  message(SEND_ERROR "README.md names a path of the machine: ${CMAKE_MATCH_1}")
endif()
