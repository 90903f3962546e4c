// SPDX-License-Identifier: MIT
// The same problems, compiled by nvcc.
#include "problems.cpp"
