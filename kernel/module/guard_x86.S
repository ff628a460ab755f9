/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* setjmp and longjmp: what a called function must preserve, the stack, and where to return to. */
#include <linux/linkage.h>
#include <linux/objtool.h>

SYM_FUNC_START(asymq_setjmp)
	movq	%rbx, 0(%rdi)
	movq	%rbp, 8(%rdi)
	movq	%r12, 16(%rdi)
	movq	%r13, 24(%rdi)
	movq	%r14, 32(%rdi)
	movq	%r15, 40(%rdi)
	movq	%rsp, 48(%rdi)
	movq	(%rsp), %rax
	movq	%rax, 56(%rdi)
	xorl	%eax, %eax
	RET
SYM_FUNC_END(asymq_setjmp)

/* Returns from asymq_setjmp() once more. */
SYM_FUNC_START(asymq_longjmp)
	movq	0(%rdi), %rbx
	movq	8(%rdi), %rbp
	movq	16(%rdi), %r12
	movq	24(%rdi), %r13
	movq	32(%rdi), %r14
	movq	40(%rdi), %r15
	movq	48(%rdi), %rsp
	movq	56(%rdi), %rax
	movq	%rax, (%rsp)
	movl	$1, %eax
	RET
SYM_FUNC_END(asymq_longjmp)
STACK_FRAME_NON_STANDARD asymq_longjmp

.section .note.GNU-stack,"",@progbits
