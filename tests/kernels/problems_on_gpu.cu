// SPDX-License-Identifier: MIT
// The same problems, compiled by nvcc.
#include "problems.cpp"
#include "problems_dropout.cpp"
#include "problems_map.cpp"
#include "problems_norm.cpp"
#include "problems_optimizer.cpp"
