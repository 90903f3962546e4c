// SPDX-License-Identifier: MIT
// Stacks that one scheduler switches between. AddressSanitizer and ThreadSanitizer are told of every switch.
#pragma once
#include <ucontext.h>
#include <cstddef>

#if defined(__has_feature)  // clang announces sanitizers in its own way
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define SIMT_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SIMT_THREAD_SANITIZER 1
#endif

// ucontext changes the signal mask, a system call a switch, and AddressSanitizer then clears its notes of the whole stack.
// Twelve instructions do.
#if defined(__x86_64__)
#define SIMT_ASSEMBLY_SWITCH 1
#endif

namespace simt {

/// Where a stack goes on when it is resumed, as the switch in use and the sanitizers each remember it.
struct suspended_stack {
  ucontext_t context{};
  void* stack_pointer = nullptr;
  void* thread_sanitizer_fiber = nullptr;
  void* address_sanitizer_stack = nullptr;
};

/// A stack on which `body` runs, again each time it has returned and the fiber is resumed.
class fiber {
 public:
  explicit fiber(void (*body)());
  ~fiber();
  fiber(fiber const&) = delete;
  fiber& operator=(fiber const&) = delete;

  /// Scheduler to fiber; returns when the fiber suspends.
  void resume();
  /// Fiber to scheduler; returns when the fiber is resumed.
  void suspend();

 private:
  static void enter();

  void (*body_)();
  char* stack_ = nullptr;
  suspended_stack state_;
};

/// Orders, for ThreadSanitizer, what happened before a release of `sync` before what follows an acquire of it.
void acquire(void* sync);
void release(void* sync);

/// While it lives, ThreadSanitizer does not look: the executor's own bookkeeping is not the program under test.
class unobserved {
 public:
  unobserved();
  ~unobserved();
  unobserved(unobserved const&) = delete;
  unobserved& operator=(unobserved const&) = delete;
};

}  // namespace simt
