// Package recorded plays a machine back from files: samples of rules, tests of
// collectors and the demo read GPU nodes with it that are not at hand.
//
// A record is a file tree:
//
//	tree/…      the root file system; "tree/proc/driver/nvidia/version" is /proc/driver/nvidia/version
//	links       symbolic links, one "PATH -> TARGET" a line (txtar and embed hold none)
//	env         the environment, one NAME=value a line
//	cmd/…       what commands answered, one file each; see Parse
//	os.json     what no file says; see OS
//
// All but tree are optional. Lines of links and env that are empty or start
// with # do not count. Where file names may not hold a colon, as in the bus
// address 0000:1b:00.0, keep the record in a txtar archive.
package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// maxSmall bounds env, links, os.json and files of cmd.
const maxSmall = 4 << 20

// Machine returns the machine that a record describes.
func Machine(fsys fs.FS) (*source.Machine, error) {
	m := &source.Machine{Env: map[string]string{}, Home: "/root"}
	var err error
	if m.FS, err = tree(fsys); err != nil {
		return nil, err
	}
	err = eachLine(fsys, "env", func(line string) error {
		k, v, ok := strings.Cut(line, "=")
		if !ok || k == "" {
			return errors.New("not NAME=value")
		}
		m.Env[k] = v
		return nil
	})
	if err != nil {
		return nil, err
	}
	if h := m.Env["HOME"]; h != "" {
		m.Home = h
	}
	r, err := newRunner(fsys, m.Env["PATH"])
	if err != nil {
		return nil, err
	}
	if r != nil {
		m.Runner = r
	}
	o, err := readOS(fsys, m.FS)
	if err != nil {
		return nil, err
	}
	if o != nil {
		m.OS, m.UID = o, o.UID
	}
	return m, nil
}

// maxFile and maxTree bound what is held in memory of a tree.
const (
	maxFile = 64 << 20
	maxTree = 512 << 20
)

// tree reads the files of a record and lays its links over them. Most stores
// of records keep no modes: what lies in a bin folder and what the kernel would
// start gets its x bits here.
func tree(fsys fs.FS) (fs.FS, error) {
	out := fstest.MapFS{}
	root, err := fs.Sub(fsys, "tree")
	if err != nil {
		return nil, err
	}
	size := 0
	err = fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if p == "." && errors.Is(err, fs.ErrNotExist) {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		f := &fstest.MapFile{Mode: i.Mode()}
		if i.Mode().Type() == fs.ModeSymlink {
			to, err := fs.ReadLink(root, p)
			if err != nil {
				return err
			}
			f.Data = []byte(relative(p, to))
		} else {
			if f.Data, err = source.ReadFile(root, p, maxFile); err != nil {
				return err
			}
			if b := path.Base(path.Dir(p)); b == "bin" || b == "sbin" || b == "shims" || bytes.HasPrefix(f.Data, []byte("\x7fELF")) || bytes.HasPrefix(f.Data, []byte("#!")) {
				f.Mode |= 0o555
			}
		}
		if size += len(f.Data); size > maxTree {
			return errors.New("tree is too large")
		}
		out[p] = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachLine(fsys, "links", func(line string) error {
		from, to, ok := strings.Cut(line, " -> ")
		if !ok {
			return errors.New("not PATH -> TARGET")
		}
		from = source.Rel(from)
		if !fs.ValidPath(from) {
			return fmt.Errorf("%q is not a path", from)
		}
		if out[from] != nil {
			return fmt.Errorf("%s is also a file", from)
		}
		out[from] = &fstest.MapFile{Data: []byte(relative(from, strings.TrimSpace(to))), Mode: fs.ModeSymlink | 0o777}
		return nil
	})
	return out, err
}

// relative makes the absolute target of a link relative: fs.FS knows no others.
func relative(from, to string) string {
	if !strings.HasPrefix(to, "/") {
		return to
	}
	return strings.Repeat("../", strings.Count(from, "/")) + source.Rel(to)
}

// eachLine calls f for each line of an optional file.
func eachLine(fsys fs.FS, name string, f func(string) error) error {
	b, err := source.ReadFile(fsys, name, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	return nil
}

// OS answers from os.json.
type OS struct {
	UID     int    `json:"uid"`
	Release string `json:"release"` // of the kernel
	Arch    string `json:"arch"`    // x86_64, aarch64
	NCPU    int    `json:"cpus"`    // that this process may run on
	// Statfses has the file systems by mount point.
	Statfses map[string]fact.FSUsage `json:"statfs"`
	Ifaces   []fact.Iface            `json:"interfaces"`
	// Denied has the paths that may not be opened for reading and writing, and why.
	Denied map[string]string `json:"denied"`

	root fs.FS
}

func readOS(fsys, root fs.FS) (*OS, error) {
	b, err := source.ReadFile(fsys, "os.json", maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	o := &OS{}
	if err := d.Decode(o); err != nil {
		return nil, fmt.Errorf("os.json: %w", err)
	}
	o.root = root
	return o, nil
}

// Statfs implements source.OS: the longest recorded mount point that holds the path.
func (o *OS) Statfs(p string) (fact.FSUsage, error) {
	for at := path.Clean(p); ; at = path.Dir(at) {
		if u, ok := o.Statfses[at]; ok {
			if u.Path == "" {
				u.Path = at
			}
			return u, nil
		}
		if at == "/" || at == "." {
			return fact.FSUsage{}, &fs.PathError{Op: "statfs", Path: p, Err: fs.ErrNotExist}
		}
	}
}

// Interfaces implements source.OS.
func (o *OS) Interfaces() ([]fact.Iface, error) {
	if o.Ifaces == nil {
		return nil, errors.New("interfaces: not recorded")
	}
	return o.Ifaces, nil
}

// Uname implements source.OS.
func (o *OS) Uname() (release, machine string, err error) {
	if o.Release == "" && o.Arch == "" {
		return "", "", errors.New("uname: not recorded")
	}
	return o.Release, o.Arch, nil
}

// Access implements source.OS: what is in the tree may be opened unless it is denied.
func (o *OS) Access(p string) error {
	if why, ok := o.Denied[p]; ok {
		return errors.New(why)
	}
	if _, err := fs.Stat(o.root, source.Rel(p)); err != nil {
		return err
	}
	return nil
}

// CPUs implements source.OS.
func (o *OS) CPUs() int { return o.NCPU }
