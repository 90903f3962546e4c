// SPDX-License-Identifier: MIT
// Names that system headers are known to define as macros (complex.h, windows.h, termios.h, sys/sysmacros.h). The
// standard headers come first: they may not be poisoned.
#include <compare>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <ostream>
#include <string>
#define I poisoned
#define small poisoned
#define B0 poisoned
#define major poisoned
#define minor poisoned
#define unix poisoned
