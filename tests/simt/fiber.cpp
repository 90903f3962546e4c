// SPDX-License-Identifier: MIT
#include "fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(SIMT_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SIMT_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(char const* file, int line);
void AnnotateIgnoreReadsEnd(char const* file, int line);
void AnnotateIgnoreWritesBegin(char const* file, int line);
void AnnotateIgnoreWritesEnd(char const* file, int line);
}
#define SIMT_NOT_INSTRUMENTED __attribute__((noinline, no_sanitize("thread")))
#else
#define SIMT_NOT_INSTRUMENTED
#endif

namespace simt {
namespace {

#if defined(SIMT_ADDRESS_SANITIZER)
constexpr std::size_t stack_bytes = 256 * 1024;  // red zones make frames larger
#else
constexpr std::size_t stack_bytes = 64 * 1024;
#endif
constexpr std::size_t guard_bytes = 4096;

struct scheduler_stack : suspended_stack {
  void const* bottom = nullptr;
  std::size_t size = 0;
};
scheduler_stack scheduler;
fiber* entering = nullptr;

#if defined(SIMT_ASSEMBLY_SWITCH)
extern "C" void simt_switch_stacks(void** saved, void* next);
__asm__(
    ".text\n.p2align 4\n.globl simt_switch_stacks\n.type simt_switch_stacks,@function\nsimt_switch_stacks:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size simt_switch_stacks,.-simt_switch_stacks\n");
#endif

}  // namespace

fiber::fiber(void (*body)()) : body_(body) {
  void* const memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<char*>(memory);
  mprotect(stack_, guard_bytes, PROT_NONE);
#if defined(SIMT_ASSEMBLY_SWITCH)
  auto* top = reinterpret_cast<std::uintptr_t*>(stack_ + stack_bytes);
  *--top = 0;  // keeps the stack 16-byte aligned at the entry, as a call would
  *--top = reinterpret_cast<std::uintptr_t>(&fiber::enter);
  for (int saved_register = 0; saved_register < 6; ++saved_register) *--top = 0;
  state_.stack_pointer = top;
#else
  getcontext(&state_.context);
  state_.context.uc_stack.ss_sp = stack_;
  state_.context.uc_stack.ss_size = stack_bytes;
  state_.context.uc_link = nullptr;
  makecontext(&state_.context, &fiber::enter, 0);
#endif
#if defined(SIMT_THREAD_SANITIZER)
  state_.thread_sanitizer_fiber = __tsan_create_fiber(0);
#endif
}

fiber::~fiber() {
#if defined(SIMT_THREAD_SANITIZER)
  __tsan_destroy_fiber(state_.thread_sanitizer_fiber);
#endif
  munmap(stack_, stack_bytes);
}

SIMT_NOT_INSTRUMENTED void fiber::enter() {
  fiber* const self = entering;
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.bottom, &scheduler.size);
#endif
  for (;;) {
    self->body_();
    self->suspend();
  }
}

SIMT_NOT_INSTRUMENTED void fiber::resume() {
  entering = this;
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&scheduler.address_sanitizer_stack, stack_, stack_bytes);
#endif
#if defined(SIMT_THREAD_SANITIZER)
  if (scheduler.thread_sanitizer_fiber == nullptr) scheduler.thread_sanitizer_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(state_.thread_sanitizer_fiber, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(SIMT_ASSEMBLY_SWITCH)
  simt_switch_stacks(&scheduler.stack_pointer, state_.stack_pointer);
#else
  swapcontext(&scheduler.context, &state_.context);
#endif
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(scheduler.address_sanitizer_stack, nullptr, nullptr);
#endif
}

SIMT_NOT_INSTRUMENTED void fiber::suspend() {
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&state_.address_sanitizer_stack, scheduler.bottom, scheduler.size);
#endif
#if defined(SIMT_THREAD_SANITIZER)
  __tsan_switch_to_fiber(scheduler.thread_sanitizer_fiber, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(SIMT_ASSEMBLY_SWITCH)
  simt_switch_stacks(&state_.stack_pointer, scheduler.stack_pointer);
#else
  swapcontext(&state_.context, &scheduler.context);
#endif
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(state_.address_sanitizer_stack, nullptr, nullptr);
#endif
}

#if defined(SIMT_THREAD_SANITIZER)
void acquire(void* sync) { __tsan_acquire(sync); }
void release(void* sync) { __tsan_release(sync); }
unobserved::unobserved() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
unobserved::~unobserved() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
void acquire(void*) {}
void release(void*) {}
unobserved::unobserved() = default;
unobserved::~unobserved() = default;
#endif

}  // namespace simt
