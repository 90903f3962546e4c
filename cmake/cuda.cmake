# Enables CUDA where its compiler is found. CMake 3.25 does not know the feature cuda_std_20 of nvcc 12 and later and
# drops CUDA_STANDARD 20 without a word: link gpumem_cuda, or pass -std=c++20.
include_guard(GLOBAL)
include(CheckLanguage)
find_program(GPUMEM_NVCC NAMES nvcc HINTS ENV CUDAToolkit_ROOT ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
if(GPUMEM_ENABLE_CUDA AND GPUMEM_NVCC AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER ${GPUMEM_NVCC})
endif()
if(GPUMEM_ENABLE_CUDA)
  check_language(CUDA)
endif()
if(GPUMEM_ENABLE_CUDA AND CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80 90)  # before the language: else it takes the compiler's oldest
  endif()
  enable_language(CUDA)
  add_library(gpumem_cuda INTERFACE)
  target_compile_options(gpumem_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
endif()
