# CUDA where it is found, never required. GPUMEM_NVCC is then the compiler, else it is empty.
#
# nvcc is often not on PATH: CUDACXX, CUDAToolkit_ROOT and /usr/local/cuda are looked at too.
if(GPUMEM_ENABLE_CUDA AND NOT GPUMEM_NVCC)
  if(CMAKE_CUDA_COMPILER)
    set(GPUMEM_NVCC ${CMAKE_CUDA_COMPILER} CACHE FILEPATH "nvcc, or empty")
  elseif(DEFINED ENV{CUDACXX})
    find_program(GPUMEM_NVCC NAMES $ENV{CUDACXX} DOC "nvcc, or empty")
  else()
    find_program(GPUMEM_NVCC NAMES nvcc HINTS ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_PATH
      PATHS /usr/local/cuda PATH_SUFFIXES bin DOC "nvcc, or empty")
  endif()
endif()
if(NOT GPUMEM_ENABLE_CUDA OR NOT GPUMEM_NVCC)
  set(GPUMEM_NVCC "")
endif()

# Enables CUDA in the directory that calls it, and sets GPUMEM_CUDA_FOUND. A macro: enable_language needs file scope.
macro(gpumem_enable_cuda)
  set(GPUMEM_CUDA_FOUND OFF)
  if(GPUMEM_NVCC)
    set(CMAKE_CUDA_COMPILER ${GPUMEM_NVCC})
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 75-virtual 90-real)  # PTX that any later GPU can run, and code for one
      endif()
      enable_language(CUDA)
      set(GPUMEM_CUDA_FOUND ON)
    endif()
  endif()
endmacro()

# How the CUDA sources of a target are compiled: C++20, no warnings, and a program that starts where there is no driver.
# CMake 3.25 knows no cuda_std_20 and drops CUDA_STANDARD 20 without a word; and unless told cxx_std_20 it adds an older
# standard of its own behind ours.
function(gpumem_cuda target)
  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    target_compile_features(${target} PRIVATE cuda_std_20)
  else()
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
endfunction()
