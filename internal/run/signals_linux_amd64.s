#include "textflag.h"

// noteSignal runs as a signal handler, on the thread's signal stack: it writes
// the siginfo that the kernel gives (SI) to the pipe and returns. All registers
// come back from the kernel.
TEXT noteSignal<>(SB),NOSPLIT|NOFRAME,$0
	MOVL ·signalPipe(SB), DI
	MOVL $128, DX
	MOVL $1, AX // write
	SYSCALL
	RET

TEXT leaveSignal<>(SB),NOSPLIT|NOFRAME,$0
	MOVL $15, AX // rt_sigreturn
	SYSCALL
	INT $3

// func handlers() (note, leave uintptr)
TEXT ·handlers(SB),NOSPLIT,$0-16
	MOVQ $noteSignal<>(SB), AX
	MOVQ AX, note+0(FP)
	MOVQ $leaveSignal<>(SB), AX
	MOVQ AX, leave+8(FP)
	RET
