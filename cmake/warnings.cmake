# The warnings that the project's own targets are built with; they never reach a consumer of gpumem::gpumem.
add_library(gpumem_warnings INTERFACE)
target_compile_options(gpumem_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow>)
