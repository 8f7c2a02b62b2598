package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/ncclinic/ncclinic/internal/fact"
)

const (
	blockSize = 1 << 20
	overlap   = 256       // of blocks that had to be cut inside a line
	wholeSize = 4 << 20   // files up to this size are read line by line
	headSize  = 64 << 10  // of larger files, what is always read at the start
	tailSize  = 512 << 10 // … and at the end
	before    = 24        // lines that are read before a hit
	after     = 60        // … and after it
	cheapMax  = 2000      // windows that lines of no weight may open in one file
	costlyMax = 60000     // windows in one file
)

// block is a piece of a file that ends at a line's end where that is possible.
type block struct {
	buf  []byte
	hits []int32 // offsets of literals, ascending
	nl   int     // newlines in buf
	head bool    // the first block of the file
	cut  bool    // ends inside a line
	done chan struct{}
}

// scanFile reads one stream into the reader.
func (r *reader) scanFile(ctx context.Context, in io.Reader, limit int64) error {
	f := &r.out.Files[r.file]
	lr := &io.LimitedReader{R: in, N: limit}
	sample, err := r.readSample(lr)
	n := len(sample)
	f.Bytes = int64(n)
	eof := err == io.EOF
	if err != nil && !eof {
		// a broken stream, such as half of a gzip file: what was read still counts
		r.looks(sample)
		r.whole(sample)
		f.Lines, f.Said, f.Open = r.lineBase, r.said, r.unended
		return err
	}
	if lr.N <= 0 {
		f.Cut = true
	}
	sample = bytes.TrimPrefix(sample, []byte{0xef, 0xbb, 0xbf})
	if notText(sample[:min(len(sample), 8<<10)]) {
		f.Kind = fact.KindBinary
		if isCore(sample) {
			return errCore
		}
		return errBinary
	}
	r.looks(sample)
	f.Labeled = r.labeled
	if r.fileNode != "" && !r.nodeTold && !bytes.Contains(sample, []byte(r.fileNode)) {
		r.fileNode, f.Node = "", "" // the name of the file only looks like a host
	}
	kind := textKind(f.Path, sample)
	if r.batch {
		kind = fact.KindScript
	}
	if kind != fact.KindLog && len(sample) < wholeSize {
		f.Kind = kind
		r.keepText(kind, sample)
		if kind == fact.KindSource || kind == fact.KindScript {
			f.Lines = bytes.Count(sample, []byte{'\n'})
			return nil
		}
	}
	if len(sample) <= wholeSize && (eof || f.Cut) {
		r.whole(sample)
		f.Lines, f.Said, f.Open = r.lineBase, r.said, r.unended
		return nil
	}
	return r.windows(ctx, sample, lr)
}

// looks decides from the beginning of a file what its lines are wrapped in.
func (r *reader) looks(sample []byte) {
	head := string(sample[:min(len(sample), headSize)])
	if r.mailed = mailed(head); r.mailed {
		head = strings.ReplaceAll("\n"+head, "\n> ", "\n")
	}
	r.labeled = labels(head)
	r.barred = strings.Count("\n"+head, "\n| ")*5 >= strings.Count(head, "\n")*3
}

// readSample reads up to wholeSize bytes and one more into a buffer that files share.
func (r *reader) readSample(in io.Reader) ([]byte, error) {
	if cap(r.buf) == 0 {
		r.buf = make([]byte, 0, 64<<10)
	}
	b := r.buf[:0]
	for {
		n, err := in.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		r.buf = b
		if err != nil {
			if err == io.EOF && len(b) > wholeSize {
				err = nil
			}
			return b, err
		}
		if len(b) > wholeSize {
			return b, nil
		}
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(4*cap(b), wholeSize+1)), b...)
		}
	}
}

var (
	errBinary = errors.New("not a text file")
	errCore   = fmt.Errorf("a core dump, %w", errBinary)
)

// isCore reports whether a file is what the kernel writes of a process that
// crashed: ELF of type ET_CORE, in either byte order.
func isCore(b []byte) bool {
	return len(b) > 17 && string(b[:4]) == "\x7fELF" && (b[5] == 1 && b[16] == 4 && b[17] == 0 || b[5] == 2 && b[16] == 0 && b[17] == 4)
}

// whole takes every line apart.
func (r *reader) whole(b []byte) {
	r.lineBase = 0
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		l := b
		if i >= 0 {
			l = b[:i]
			b = b[i+1:]
		} else {
			b, r.unended = nil, true
		}
		r.lineBase++
		r.pieces(r.lineBase, l)
	}
}

// longLine is what is taken apart as a whole; of longer lines, the ends and
// what stands around literals.
const longLine = 64 << 10

// overlong takes a line apart that is longer than a person ever sees: a
// progress bar without line ends, or a file that is one line.
func (r *reader) overlong(no int, l []byte) {
	const end = 4 << 10
	if bytes.HasPrefix(l, []byte("{\"")) || bytes.HasPrefix(l, []byte("[{\"")) { // a document of some program, which quotes
		if bytes.Contains(l[:end], []byte("ncclinic.report/v")) {
			r.reports++
			return
		}
		defer func(was bool) { r.quotedBlock = was }(r.quotedBlock)
		r.quotedBlock = true
	}
	part := func(from, pos, to int) int { // the piece around pos, as \r cuts the line
		if i := bytes.LastIndexByte(l[from:pos], '\r'); i >= 0 {
			from += i + 1
		}
		if i := bytes.IndexByte(l[pos:to], '\r'); i >= 0 {
			to = pos + i
		}
		r.line(no, l[from:to])
		return to
	}
	done := part(0, 0, end)
	windows := 0
	r.wake.each(l, func(_, pos int) bool {
		if pos >= done {
			done = part(max(done, pos-1500), pos, min(len(l), pos+2500))
			windows++
		}
		return windows < cheapMax
	})
	if tail := len(bytes.TrimRight(l, "\r")); done < tail-1 {
		part(max(done, tail-end), tail-1, tail)
	}
}

// pieces hands over a line, or its parts when a progress bar rewrote it.
func (r *reader) pieces(no int, l []byte) {
	l = bytes.TrimSuffix(l, []byte{'\r'})
	for {
		i := bytes.IndexByte(l, '\r')
		p := l
		if i >= 0 {
			p = l[:i]
		}
		switch {
		case len(p) > maxLine:
			if !r.record(no, bytes.TrimSpace(p)) {
				r.overlong(no, p)
			}
		case i != 0:
			r.line(no, p)
		}
		if i < 0 || i+1 == len(l) {
			return
		}
		l = l[i+1:]
	}
}

// windows reads a large file: blocks are scanned by workers, and their lines
// are taken apart in order where something was found.
func (r *reader) windows(ctx context.Context, first []byte, rest *io.LimitedReader) error {
	workers := r.opt.Workers
	if workers <= 0 {
		workers = 2
	}
	todo := make(chan *block, workers)
	order := make(chan *block, workers+1)
	free := make(chan []byte, workers+4)
	for range workers + 4 {
		free <- nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for b := range todo {
				r.scanBlock(b)
				close(b.done)
			}
		}()
	}
	var readErr error
	go func() {
		defer close(todo)
		defer close(order)
		readErr = cutBlocks(ctx, first, rest, free, func(b *block) bool {
			b.done = make(chan struct{})
			select {
			case order <- b:
			case <-ctx.Done():
				return false
			}
			select {
			case todo <- b:
			case <-ctx.Done():
				return false
			}
			return true
		})
	}()
	w := windowReader{r: r, budget: costlyMax, cheap: cheapMax}
	var held *block
	for b := range order {
		<-b.done
		if held != nil {
			w.block(held, false)
			free <- held.buf[:0]
		}
		held = b
	}
	wg.Wait()
	if held != nil {
		w.block(held, true)
	}
	f := &r.out.Files[r.file]
	f.Lines, f.Said, f.Open = w.base, r.said, r.unended
	f.Bytes = w.bytes
	if rest.N <= 0 {
		f.Cut = true
	}
	return readErr
}

// cutBlocks reads the stream into blocks that end at line ends.
func cutBlocks(ctx context.Context, first []byte, rest io.Reader, free chan []byte, emit func(*block) bool) error {
	var carry []byte
	head := true
	src := io.MultiReader(bytes.NewReader(first), rest)
	for {
		var buf []byte
		select {
		case buf = <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
		if cap(buf) < blockSize+overlap {
			buf = make([]byte, 0, blockSize+overlap)
		}
		buf = append(buf[:0], carry...)
		n, err := io.ReadFull(src, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		b := &block{buf: buf, head: head}
		head = false
		carry = carry[:0]
		end := err != nil
		if !end {
			k := max(bytes.LastIndexByte(buf, '\n'), bytes.LastIndexByte(buf, '\r'))
			switch {
			case k >= 0 && k > len(buf)-blockSize/2:
				carry = append(carry, buf[k+1:]...)
				b.buf = buf[:k+1]
			default:
				// one line longer than a block: cut it, and let the next one see the seam again
				carry = append(carry, buf[len(buf)-overlap:]...)
				b.cut = true
			}
		}
		if len(b.buf) > 0 && !emit(b) {
			return ctx.Err()
		}
		if end {
			if err == io.EOF || err == io.ErrUnexpectedEOF { // of ReadFull: decode has words of its own for half a stream
				return nil
			}
			return err
		}
	}
}

// scanBlock finds literals in a block.
func (r *reader) scanBlock(b *block) {
	b.hits = b.hits[:0]
	last := int32(-1)
	cheap := 0
	r.wake.each(b.buf, func(lit, pos int) bool {
		if r.wakeCheap(lit) {
			cheap++
			if cheap > 64 {
				return true
			}
		}
		if int32(pos) != last {
			b.hits = append(b.hits, int32(pos))
			last = int32(pos)
		}
		return len(b.hits) < 20000
	})
	b.nl = bytes.Count(b.buf, []byte{'\n'})
}

func (e *engine) wakeCheap(lit int) bool { return e.cheap[lit] }

// windowReader takes the lines around hits apart.
type windowReader struct {
	r      *reader
	base   int   // lines before the current block
	bytes  int64 // bytes before the current block
	run    int   // lines of an open window that reach into the next block
	budget int   // windows left
	cheap  int
}

func (w *windowReader) block(b *block, last bool) {
	buf := b.buf
	start := 0 // everything before is done
	line := w.base
	if w.run > 0 {
		start, line = w.lines(buf, 0, line, w.run)
	}
	if b.head {
		e := lineEnd(buf, min(headSize, len(buf)))
		if start < e {
			start, line = w.upTo(buf, start, line, e)
		}
	}
	for _, h := range b.hits {
		pos := int(h)
		if pos < start {
			continue
		}
		if w.budget <= 0 {
			break
		}
		w.budget--
		from := lineStart(buf, pos, before, start)
		line += bytes.Count(buf[start:from], []byte{'\n'})
		start, line = w.hit(buf, from, line, pos)
		start, line = w.lines(buf, start, line, after)
	}
	if last && start < len(buf) {
		from := max(start, lineStart(buf, max(start, len(buf)-tailSize), 0, start))
		line += bytes.Count(buf[start:from], []byte{'\n'})
		w.upTo(buf, from, line, len(buf))
	}
	w.base += b.nl
	if last && !bytes.HasSuffix(buf, []byte{'\n'}) {
		w.base++
		w.r.unended = true
	}
	w.bytes += int64(len(buf))
	if b.cut {
		w.bytes -= overlap
	}
}

// hit takes the line around a literal apart; of an overlong line, what stands
// around it.
func (w *windowReader) hit(buf []byte, from, line, pos int) (int, int) {
	end := lineEnd(buf, pos)
	if end-from <= longLine {
		return w.upTo(buf, from, line, end)
	}
	ls := lineStart(buf, pos, 0, from)
	if ls > from && buf[ls-1] == '\n' && pos-ls < longLine && lineEnd(buf, ls)-ls <= longLine {
		from, line = w.upTo(buf, from, line, ls)
		return w.upTo(buf, from, line, end)
	}
	line += bytes.Count(buf[from:pos], []byte{'\n'})
	a, z := max(from, pos-1500), min(len(buf), pos+2500)
	if i := bytes.LastIndexAny(buf[a:pos], "\r\n"); i >= 0 {
		a += i + 1
	}
	if i := bytes.IndexAny(buf[pos:z], "\r\n"); i >= 0 {
		z = pos + i
	}
	w.r.line(line+1, buf[a:z])
	if z < len(buf) && buf[z] == '\n' {
		return z + 1, line + 1
	}
	return z, line
}

// upTo takes the lines of buf[from:to] apart.
func (w *windowReader) upTo(buf []byte, from, line, to int) (int, int) {
	for from < to {
		i := bytes.IndexByte(buf[from:], '\n')
		e := len(buf)
		if i >= 0 {
			e = from + i
		}
		if e-from > longLine {
			w.r.overlong(line+1, buf[from:e])
		} else {
			w.r.pieces(line+1, buf[from:e])
		}
		if i < 0 {
			return len(buf), line
		}
		from = e + 1
		line++
	}
	return from, line
}

// lines takes n more lines apart, and goes on while a traceback is open.
func (w *windowReader) lines(buf []byte, from, line, n int) (int, int) {
	for n > 0 && from < len(buf) {
		i := bytes.IndexByte(buf[from:], '\n')
		e := len(buf)
		if i >= 0 {
			e = from + i
		}
		if e-from > longLine {
			break // hits in it will be met one by one
		}
		w.r.pieces(line+1, buf[from:e])
		if i < 0 {
			from = len(buf)
			break
		}
		from, line, n = e+1, line+1, n-1
	}
	w.run = n
	return from, line
}

// lineStart goes back to the start of the line at pos and n lines more, not before min.
func lineStart(b []byte, pos, n, min int) int {
	for {
		i := bytes.LastIndexByte(b[min:pos], '\n')
		if i < 0 {
			if pos-min > 64<<10 {
				return pos - 32<<10
			}
			return min
		}
		pos = min + i
		if n == 0 {
			return pos + 1
		}
		n--
	}
}

// lineEnd returns the offset behind the line at pos.
func lineEnd(b []byte, pos int) int {
	i := bytes.IndexByte(b[pos:], '\n')
	if i < 0 {
		return len(b)
	}
	return pos + i + 1
}
