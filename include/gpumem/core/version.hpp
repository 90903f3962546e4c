// SPDX-License-Identifier: MIT
#pragma once

#define GPUMEM_VERSION_MAJOR 0
#define GPUMEM_VERSION_MINOR 1
#define GPUMEM_VERSION_PATCH 0

#if __cplusplus < 202002L
#error "gpumem needs C++20: add -std=c++20 (nvcc's default is C++17)"
#include <gpumem needs -std=c++20>  // no such file: the compiler stops here, not after hundreds of lines
#endif
