package install

import (
	"path"
	"strconv"
	"strings"
)

// pyver is a version of Python as far as it is known.
type pyver struct {
	major, minor int
	micro        int    // -1: not known
	abi          string // "t" for a free-threaded build, which has folders of its own
}

func (v pyver) known() bool { return v.major > 0 }

// dir is the name of the folder under lib, python3.13t.
func (v pyver) dir() string {
	return "python" + strconv.Itoa(v.major) + "." + strconv.Itoa(v.minor) + v.abi
}

// zip is the name of the archive that getpath looks for, python313t.zip.
func (v pyver) zip() string {
	return "python" + strconv.Itoa(v.major) + strconv.Itoa(v.minor) + v.abi + ".zip"
}

func (v pyver) String() string {
	s := strconv.Itoa(v.major) + "." + strconv.Itoa(v.minor)
	if v.micro >= 0 {
		s += "." + strconv.Itoa(v.micro)
	}
	return s
}

func (v pyver) same(o pyver) bool { return v.major == o.major && v.minor == o.minor }

func (v pyver) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// parsePyver reads the leading 3.11, 3.11.7, 3.12.0rc1 or 3.11.7.final.0.
func parsePyver(s string) (pyver, bool) {
	v := pyver{micro: -1}
	fields := strings.SplitN(strings.TrimSpace(s), ".", 4)
	if len(fields) < 2 {
		return v, false
	}
	var ok bool
	if v.major, ok = number(fields[0], false); !ok || v.major < 2 || v.major > 9 {
		return v, false
	}
	if v.minor, ok = number(fields[1], true); !ok {
		return v, false
	}
	if len(fields) > 2 {
		if m, ok := number(fields[2], true); ok {
			v.micro = m
		}
	}
	return v, true
}

// number reads a small decimal number; with tail, anything may follow its digits.
func number(s string, tail bool) (int, bool) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == 0 || n > 4 || !tail && n != len(s) {
		return 0, false
	}
	v, err := strconv.Atoi(s[:n])
	return v, err == nil
}

// pyverOfName reads the version from the name of an interpreter: python3.11,
// python3.13t, python3.7m.
func pyverOfName(name string) (pyver, bool) {
	rest, ok := strings.CutPrefix(name, "python")
	if !ok {
		return pyver{micro: -1}, false
	}
	abi := strings.TrimLeft(rest, "0123456789.")
	v, ok := parsePyver(strings.TrimSuffix(rest, abi))
	switch abi {
	case "", "d", "m", "dm", "dbg":
	case "t", "td":
		v.abi = "t"
	default:
		return pyver{micro: -1}, false
	}
	return v, ok
}

// Minor versions to try when only folders can tell; 3.15 is the newest that
// PyTorch names, a few more cost nothing.
const oldestMinor, newestMinor = 5, 19

// pyverOfLib looks which python3.X folder is under prefix. More than one is
// no answer.
func (t *tree) pyverOfLib(prefix string) (pyver, bool) {
	var found []pyver
	for _, lib := range libdirs {
		for minor := newestMinor; minor >= oldestMinor; minor-- {
			for _, abi := range []string{"", "t"} {
				v := pyver{major: 3, minor: minor, micro: -1, abi: abi}
				if abi != "" && minor < 13 || !t.isDir(path.Join(prefix, lib, v.dir())) {
					continue
				}
				if len(found) == 0 || found[len(found)-1] != v {
					found = append(found, v)
				}
			}
		}
		if len(found) > 0 {
			break
		}
	}
	if len(found) != 1 {
		return pyver{micro: -1}, false
	}
	return found[0], true
}

// patchlevel reads PY_VERSION of include/python3.X/patchlevel.h.
func (t *tree) patchlevel(prefix string, v pyver) (pyver, bool) {
	data, _, err := t.read(path.Join(prefix, "include", v.dir(), "patchlevel.h"), 8<<10)
	if err != nil {
		return pyver{micro: -1}, false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "#define" && f[1] == "PY_VERSION" {
			return parsePyver(strings.Trim(f[2], `"`))
		}
	}
	return pyver{micro: -1}, false
}
