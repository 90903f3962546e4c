# cmake -DPROGRAM=... -DEXPECTED=file -P same_output.cmake: the program prints exactly the file.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE result)
file(READ ${EXPECTED} expected)
if(NOT result EQUAL 0 OR NOT printed STREQUAL expected)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/printed.txt "${printed}")
  message(FATAL_ERROR "exit ${result}; what ${PROGRAM} printed is not ${EXPECTED}; it is in ${CMAKE_CURRENT_BINARY_DIR}/printed.txt")
endif()
