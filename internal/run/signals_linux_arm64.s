#include "textflag.h"

// noteSignal runs as a signal handler, on the thread's signal stack: it writes
// the siginfo that the kernel gives (R1) to the pipe and returns to where the
// kernel's vdso ends the handler. All registers come back from the kernel.
TEXT noteSignal<>(SB),NOSPLIT|NOFRAME,$0
	MOVW ·signalPipe(SB), R0
	MOVD $128, R2
	MOVD $64, R8 // write
	SVC
	RET

// func handlers() (note, leave uintptr)
TEXT ·handlers(SB),NOSPLIT,$0-16
	MOVD $noteSignal<>(SB), R0
	MOVD R0, note+0(FP)
	MOVD ZR, leave+8(FP)
	RET
