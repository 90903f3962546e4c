// SPDX-License-Identifier: MIT
// One include for every test, whichever Catch2 is installed: 3, or 2.13 as Debian 12 has it.
#pragma once
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif
