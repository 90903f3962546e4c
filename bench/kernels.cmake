# The kernel benchmark: CUDA where nvcc is found, else the same source as C++ with the host loops alone.
find_package(benchmark QUIET)
if(benchmark_FOUND)
  set(host_sources kernels_host.cpp kernels_host_map.cpp kernels_host_norm_backward.cpp kernels_host_norm_forward.cpp
    kernels_host_optimizer.cpp kernels_host_softmax.cpp)
  add_executable(gpumem_bench_kernels kernels.cu ${host_sources})
  target_include_directories(gpumem_bench_kernels PRIVATE ../examples/kernels)
  target_link_libraries(gpumem_bench_kernels PRIVATE gpumem gpumem_warnings benchmark::benchmark)
  set_target_properties(gpumem_bench_kernels PROPERTIES OUTPUT_NAME kernels)
  target_compile_features(gpumem_bench_kernels PRIVATE cxx_std_20)
  if(GPUMEM_CUDA_FOUND)
    gpumem_cuda(gpumem_bench_kernels)
  else()
    set_source_files_properties(kernels.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  endif()
  # A square root that may set errno does not vectorise, nor a comparison that may trap. And loops that copy must not
  # become memcpy, whose streaming stores nothing else could be compared with. The machine that is timed is this one, so
  # its vectors are used; preferring wide ones, else arithmetic that hides behind the memory of a GPU would show.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native GPUMEM_HAS_MARCH_NATIVE)
  check_cxx_compiler_flag(-mprefer-vector-width=512 GPUMEM_HAS_PREFER_VECTOR_WIDTH)
  # glibc has a vector exp, in libmvec: g++ uses it where a declaration says so, clang by an option.
  set(vector_exp)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    check_cxx_compiler_flag(-fveclib=libmvec GPUMEM_HAS_VECTOR_EXP)
    set(vector_exp -fveclib=libmvec)
  else()
    include(CheckCXXSourceCompiles)
    check_cxx_source_compiles("extern \"C\" float _ZGVbN4v_expf(float);
      int main() { return reinterpret_cast<long>(&_ZGVbN4v_expf) == 0; }" GPUMEM_HAS_VECTOR_EXP)
  endif()
  set_source_files_properties(${host_sources} PROPERTIES COMPILE_OPTIONS
    "-fno-math-errno;-fno-trapping-math;$<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>;\
$<$<BOOL:${GPUMEM_HAS_MARCH_NATIVE}>:-march=native>;\
$<$<BOOL:${GPUMEM_HAS_PREFER_VECTOR_WIDTH}>:-mprefer-vector-width=512>;\
$<$<BOOL:${GPUMEM_HAS_VECTOR_EXP}>:-DGPUMEM_HAS_VECTOR_EXP;${vector_exp}>")
  if(GPUMEM_BUILD_TESTS)
    add_test(NAME kernels_bench_quick COMMAND gpumem_bench_kernels --gpumem_quick)
  endif()
else()
  message(STATUS "Google Benchmark not found: no kernel benchmark")
endif()

# The kernels against their references on a GPU. It stands here, as the machine that has one may have no Catch2.
if(GPUMEM_CUDA_FOUND)
  add_executable(kernels_gpu_check ../tests/kernels/gpu_check.cu ../tests/kernels/problems_on_gpu.cu)
  target_include_directories(kernels_gpu_check PRIVATE ../examples/kernels)
  target_link_libraries(kernels_gpu_check PRIVATE gpumem)
  gpumem_cuda(kernels_gpu_check)
  if(GPUMEM_BUILD_TESTS)
    add_test(NAME kernels_on_gpu COMMAND kernels_gpu_check)
    set_tests_properties(kernels_on_gpu PROPERTIES SKIP_RETURN_CODE 77 LABELS gpu)
  endif()
endif()
