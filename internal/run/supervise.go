package run

// Ended is how a supervised command ended.
type Ended struct {
	Code   int // exit status; -1 when a signal ended it
	Signal int // signal that ended it, 0: none
	// Streams are what was kept of its output; standard output first, or one for
	// both when they are one file. Nil for a terminal, which is passed on as it is.
	Streams []Captured
}

// Captured is one stream of a supervised command.
type Captured struct {
	Name    string // stdout, stderr, output (both)
	Text    []byte
	Missing int64 // bytes between the beginning and the end that were not kept
}
