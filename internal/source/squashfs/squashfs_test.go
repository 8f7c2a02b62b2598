package squashfs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// TestIOFS runs the standard library's own test of file systems.
func TestIOFS(t *testing.T) {
	dir := t.TempDir()
	os.CopyFS(dir, fstest.MapFS{"a/b/c.py": {Data: []byte("import torch\n")}, "a/d": {Data: bytes.Repeat([]byte("x"), 300000)}, "e": {}})
	os.Symlink("a/d", filepath.Join(dir, "link"))
	if err := fstest.TestFS(open(t, mksquashfs(t, dir)), "a/b/c.py", "a/d", "e"); err != nil {
		t.Error(err)
	}
}

// TestNameNotUTF8: io/fs says that paths are UTF-8, images do not.
func TestNameNotUTF8(t *testing.T) {
	dir := t.TempDir()
	name := "caf\xe9"
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "\xff.py"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, mksquashfs(t, dir))
	if b, err := fs.ReadFile(s, name+"/\xff.py"); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	if got := describe(t, s); len(got) != 3 {
		t.Errorf("a walk found %q", got)
	}
}
