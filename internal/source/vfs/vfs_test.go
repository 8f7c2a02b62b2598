package vfs

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func text(s string) (int64, io.ReaderAt) { return int64(len(s)), strings.NewReader(s) }

func add(t *testing.T, f *FS, name, s string) {
	t.Helper()
	n, r := text(s)
	if err := f.Add(Entry{Name: name, Mode: 0o644, Size: n, Data: r}); err != nil {
		t.Fatal(err)
	}
}

func read(f *FS, name string) string {
	b, err := fs.ReadFile(f, name)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

func TestStandard(t *testing.T) {
	f := New(100)
	add(t, f, "/a/b/c.txt", "hello")
	add(t, f, "./a/d", "")
	if err := f.Add(Entry{Name: "a/l", Mode: fs.ModeSymlink | 0o777, Link: "b/c.txt"}); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(f, "a/b/c.txt", "a/d"); err != nil {
		t.Error(err)
	}
}

func TestLinksStayInside(t *testing.T) {
	f := New(100)
	add(t, f, "etc/passwd", "ours")
	for name, link := range map[string]string{"abs": "/etc/passwd", "up": "../../../../etc/passwd", "d": "/etc", "loop": "loop", "x": "y", "y": "x/z"} {
		if err := f.Add(Entry{Name: name, Mode: fs.ModeSymlink, Link: link}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"abs": "ours", "up": "ours", "d/passwd": "ours", "d/../etc/passwd": "error"} {
		if got := read(f, name); got != want && !(want == "error" && strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"loop", "x", "y"} {
		if got := read(f, name); !strings.Contains(got, "too many levels") {
			t.Errorf("%s: %q", name, got)
		}
	}
	// What is put below a link lands where the link leads, inside of the tree.
	add(t, f, "d/new", "n")
	if got := read(f, "etc/new"); got != "n" {
		t.Errorf("through a link: %q", got)
	}
}

func TestNames(t *testing.T) {
	f := New(3)
	for name, want := range map[string]error{"../x": ErrEscapes, "a/../../x": ErrEscapes, "a\x00b": ErrName, strings.Repeat("a/", 200) + "b": ErrName, strings.Repeat("a", 5000): ErrName} {
		if err := f.Add(Entry{Name: name}); !errors.Is(err, want) {
			t.Errorf("%.20q: %v, want %v", name, err, want)
		}
	}
	add(t, f, "a", "")
	add(t, f, "b/c", "")
	if err := f.Add(Entry{Name: "d"}); !errors.Is(err, ErrFull) {
		t.Errorf("a fourth name: %v", err)
	}
}

func TestLayers(t *testing.T) {
	f := New(100)
	add(t, f, "keep/a", "1")
	add(t, f, "gone/a", "1")
	add(t, f, "opq/low", "1")
	add(t, f, "file", "1")
	f.NextLayer()
	add(t, f, "opq/high", "2") // before the marker, in the same layer
	add(t, f, "gone/b", "2")
	for _, err := range []error{f.Opaque("opq"), f.Whiteout("gone"), f.Whiteout("file"), f.Whiteout("nothing")} {
		if err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{"keep/a": "1", "gone/a": "error", "gone/b": "2", "opq/low": "error", "opq/high": "2", "file": "error"} {
		if got := read(f, name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestReplaceAndHardLink(t *testing.T) {
	f := New(100)
	add(t, f, "d/a", "1")
	if err := f.Link("d/h", "/d/a"); err != nil {
		t.Fatal(err)
	}
	if got := read(f, "d/h"); got != "1" {
		t.Errorf("hard link: %q", got)
	}
	if err := f.Link("e", "d"); err == nil {
		t.Error("a hard link to a folder")
	}
	if err := f.Add(Entry{Name: "d", Mode: fs.ModeDir}); err != nil || read(f, "d/a") != "1" {
		t.Error("a folder that comes again lost its content")
	}
	add(t, f, "d", "file now")
	if got := read(f, "d/a"); !strings.HasPrefix(got, "error") {
		t.Errorf("below a file: %q", got)
	}
}

func TestShortContent(t *testing.T) {
	f := New(10)
	if err := f.Add(Entry{Name: "a", Size: 10, Data: strings.NewReader("abc")}); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(f, "a"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("shorter than said: %v", err)
	}
	if err := f.Add(Entry{Name: "b", Size: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(f, "b"); err == nil {
		t.Error("content from nowhere")
	}
}
