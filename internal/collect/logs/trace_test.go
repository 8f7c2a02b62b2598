package logs

import "testing"

// TestRankInMessage: the message of an exception may name a rank where no line
// has a label.
func TestRankInMessage(t *testing.T) {
	l := read(t, Options{}, "rank 0 starts\nTraceback (most recent call last):\n  File \"t.py\", line 4, in <module>\n    f(\"no batch on rank 1\")\n    ^^^^\nValueError: bad batch on rank 1\n")
	if len(l.Exceptions) != 1 {
		t.Fatalf("%+v", l.Exceptions)
	}
	if x := l.Exceptions[0]; x.Start != 2 || len(x.Frames) != 1 || x.Rank != 1 || x.Frames[0].Code != `f("no batch on rank 1")` {
		t.Errorf("%+v", x)
	}
}

// TestRest counts what a program writes behind a traceback, by rank where lines
// are labelled.
func TestRest(t *testing.T) {
	const tb = "Traceback (most recent call last):\n  File \"t.py\", line 4, in <module>\n    f()\nValueError: bad\n"
	for _, tt := range []struct {
		text string
		want int
	}{
		{tb, 0},
		{tb + "srun: error: n1: task 0: Exited with exit code 1\nslurmstepd: error: x\n\n", 0},
		{"before\n" + tb + "one line\nanother\n", 2},
		{tb + tb[:len(tb)-4] + "other\n", 0},
		{"[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 4, in <module>\n[rank1]: ValueError: bad\n[rank0]: a\n[rank0]: b\n", 0},
	} {
		l := read(t, Options{}, tt.text)
		if len(l.Exceptions) == 0 || l.Exceptions[0].Rest != tt.want {
			t.Errorf("want %d of %q: %+v", tt.want, tt.text, l.Exceptions)
		}
	}
}
