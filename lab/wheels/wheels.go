// Package wheels serves small stand-ins for torch's wheels, named as the real
// ones, from indexes that lie where the real ones lie: pip and uv are sent there
// by a proxy, so that commands run as they are printed and nothing leaves the
// machine.
package wheels

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sort"
	"strings"
)

// Wheel is one file of an index.
type Wheel struct {
	Name     string // distribution: torch
	Version  string // 2.6.0+cu124
	Tags     string // cp311-cp311-linux_x86_64
	Requires []string
	Files    map[string]string // path in the wheel to text
}

// File is the wheel's file name.
func (w *Wheel) File() string {
	return strings.ReplaceAll(w.Name, "-", "_") + "-" + w.Version + "-" + w.Tags + ".whl"
}

// Metadata is the text of METADATA.
func (w *Wheel) Metadata() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", w.Name, w.Version)
	for _, r := range w.Requires {
		fmt.Fprintf(&b, "Requires-Dist: %s\n", r)
	}
	return b.String()
}

// Bytes packs the wheel.
func (w *Wheel) Bytes() ([]byte, error) {
	info := strings.ReplaceAll(w.Name, "-", "_") + "-" + w.Version + ".dist-info/"
	files := map[string]string{info + "METADATA": w.Metadata(),
		info + "WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: " + w.Tags + "\n"}
	for k, v := range w.Files {
		files[k] = v
	}
	var names []string
	for k := range files {
		names = append(names, k)
	}
	sort.Strings(names)
	var record strings.Builder
	for _, n := range names {
		sum := sha256.Sum256([]byte(files[n]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", n, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[n]))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	files[info+"RECORD"] = record.String()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, n := range append(names, info+"RECORD") {
		f, err := z.Create(n)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write([]byte(files[n])); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// Torch makes a stand-in for a build of torch: version.py as the real build has
// it, and the few names that a check imports. local is the tag in version.py,
// named whether the file name carries it.
func Torch(version, local string, named bool, tags string) Wheel {
	v := version
	if named {
		v += "+" + local
	}
	cuda, requires := "None", []string{"filelock"}
	if d, ok := strings.CutPrefix(local, "cu"); ok && len(d) == 3 {
		cuda = "'" + d[:2] + "." + d[2:] + "'"
		requires = append(requires, "nvidia-nccl-cu"+d[:2])
	}
	hip := "None"
	if d, ok := strings.CutPrefix(local, "rocm"); ok {
		hip = "'" + d + "'"
	}
	full := version + "+" + local
	nccl := "True"
	if cuda == "None" && hip == "None" {
		nccl = "False"
	}
	return Wheel{Name: "torch", Version: v, Tags: tags, Requires: requires, Files: map[string]string{
		"torch/__init__.py": "from . import version\nfrom .version import __version__\n",
		"torch/version.py": fmt.Sprintf("from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n__version__ = '%s'\ndebug = False\ncuda: Optional[str] = %s\ngit_version = '0'\nhip: Optional[str] = %s\nxpu: Optional[str] = None\n",
			full, cuda, hip),
		"torch/distributed/__init__.py": "def is_nccl_available():\n    return " + nccl + "\n",
	}}
}

// Plain makes a package without code of its own.
func Plain(name, version string, requires ...string) Wheel {
	return Wheel{Name: name, Version: version, Tags: "py3-none-any", Requires: requires,
		Files: map[string]string{strings.ReplaceAll(name, "-", "_") + "_stand_in.py": "\n"}}
}
