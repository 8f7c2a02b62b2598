package run

import "sync"

// Tape keeps the beginning and the end of a stream of any length.
type Tape struct {
	mu      sync.Mutex
	head    []byte
	headMax int
	ring    []byte // the last bytes; full once its length is its capacity
	at      int    // where the oldest byte of a full ring stands
	tailMax int
	total   int64
}

// NewTape returns a tape that keeps so many bytes of both ends.
func NewTape(head, tail int) *Tape { return &Tape{headMax: head, tailMax: tail} }

// Write implements io.Writer; it never fails.
func (t *Tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.total += int64(n)
	if room := t.headMax - len(t.head); room > 0 {
		k := min(room, len(p))
		t.head = append(t.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > t.tailMax {
		p = p[len(p)-t.tailMax:]
		t.ring, t.at = t.ring[:0], 0
	}
	if room := t.tailMax - len(t.ring); room > 0 {
		k := min(room, len(p))
		t.ring = append(t.ring, p[:k]...) // grows as there is something to keep
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(t.ring[t.at:], p)
		p = p[k:]
		t.at = (t.at + k) % len(t.ring)
	}
	return n, nil
}

// Bytes returns what was kept, and how many bytes between both ends were not.
// Where something is missing the cut is at ends of lines.
func (t *Tape) Bytes() (kept []byte, missing int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := append(append([]byte(nil), t.ring[t.at:]...), t.ring[:t.at]...)
	missing = t.total - int64(len(t.head)) - int64(len(tail))
	if missing == 0 {
		return append(append(kept, t.head...), tail...), 0
	}
	head := t.head
	for i := len(head) - 1; i >= 0; i-- {
		if head[i] == '\n' {
			missing += int64(len(head) - i - 1)
			head = head[:i+1]
			break
		}
	}
	for i, c := range tail {
		if c == '\n' {
			missing += int64(i + 1)
			tail = tail[i+1:]
			break
		}
	}
	return append(append(kept, head...), tail...), missing
}
