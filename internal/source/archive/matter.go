package archive

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source/spool"
)

// Class says what is kept of an archive's member that cannot be read again.
type Class uint8

const (
	Ignore Class = iota // not even its name
	Name                // that it is there
	Text                // the whole content
	Lib                 // of a library of torch, CUDA, the C and C++ runtime: all that a look at symbols reads
	Shared              // of any other library or program: what the loader reads
)

// maxText bounds a text that is kept. RECORD of torch has 1.5 MB, dpkg's status file of a large image 6.
const maxText = 8 << 20

var (
	libNames = lazyre.New(`^(lib(torch|c10|shm|caffe2|nccl|rccl|cu|nv|gomp|stdc\+\+|gcc_s|c\.so|m\.so|dl\.so|rt\.so|pthread|python3|amdhip|hsa|fabric|ib)|ld-linux|_C[.\w-]*\.so)`)
	// extensions that are looked at beside torch; see package collect/install.
	extNames  = lazyre.New(`^(flash_attn|amp_C|transformer_engine|selective_scan|causal_conv1d|libtorchaudio|_vllm|fused_adam|cpu_adam)`)
	soName    = lazyre.New(`\.so(\.[0-9][0-9A-Za-z.]*)?$`) // libleveldb.so.1d, but not ld.so.cache
	pyDirs    = lazyre.New(`(^|/)(python3(\.[0-9]+)?|site-packages|dist-packages)$`)
	smallText = map[string]bool{"pyvenv.cfg": true, "patchlevel.h": true, "version.py": true, "site.py": true, "os.py": true, "direct_url.json": true,
		"METADATA": true, "RECORD": true, "WHEEL": true, "INSTALLER": true, "PKG-INFO": true, "REQUESTED": true, "info/index.json": true, "index.json": true}
)

// Classify says what matters of a member by its name, as in an archive of a
// root file system, an environment or a package.
func Classify(name string, size int64) Class {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "./"), "/")
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if skipped(dir) {
		return Ignore
	}
	c := classify(dir, base)
	if c == Text && size > maxText {
		return Name
	}
	return c
}

func classify(dir, base string) Class {
	top, _, _ := strings.Cut(dir, "/")
	parent := path.Base(dir)
	switch {
	case soName.MatchString(base):
		switch {
		case libNames.MatchString(base), extNames.MatchString(base):
			return Lib
		case strings.Contains(base, ".cpython-"), strings.HasSuffix(base, ".abi3.so"):
			return Name // nothing loads it by name
		}
		return Shared
	case strings.HasPrefix(base, "libcuda.so"), strings.HasPrefix(base, "libnccl"):
		return Lib
	case smallText[base], strings.HasSuffix(base, ".pth"):
		return Text
	case strings.HasSuffix(parent, ".dist-info"), strings.HasSuffix(parent, ".egg-info"):
		return Name
	case strings.HasSuffix(base, ".egg-info"):
		return Text
	case parent == "conda-meta", top == "info" && strings.HasSuffix(base, ".json"):
		return Text
	case parent == "bin" || parent == "sbin":
		if strings.HasPrefix(base, "python") || strings.HasPrefix(base, "torchrun") {
			return Shared
		}
		return Name
	case top == "etc", top == ".singularity.d", top == ".enroot":
		return Text
	case base == "__init__.py" && (parent == "torch" || pyDirs.MatchString(path.Dir(dir))):
		if parent == "torch" {
			return Text
		}
		return Name
	case pyDirs.MatchString(dir): // sitecustomize.py, torch.py, finders of editable installs
		if strings.HasSuffix(base, ".py") || strings.HasSuffix(base, ".pyc") {
			return Text
		}
		return Name
	case strings.HasPrefix(dir, "var/lib/dpkg"):
		if base == "status" || parent == "info" && strings.HasPrefix(base, "python3-torch") && strings.HasSuffix(base, ".list") {
			return Text
		}
		return Ignore
	case strings.HasPrefix(base, "python3") && strings.HasSuffix(base, ".zip"):
		return Name
	case dir == "":
		return Text
	}
	return Ignore
}

// skipped are folders in which nothing is looked at.
func skipped(dir string) bool {
	for p := range strings.SplitSeq(dir, "/") {
		switch p {
		case "__pycache__", "node_modules", "man", "doc", "locale", "zoneinfo", "icons", "licenses", "terminfo", ".git", "pkgs":
			return true
		}
	}
	return strings.HasPrefix(dir, "proc/") || strings.HasPrefix(dir, "sys/")
}

// what turns a class into what is kept of the content.
func (c Class) what() (spool.What, bool) {
	switch c {
	case Text:
		return spool.All, true
	case Lib:
		return spool.Symbols, true
	case Shared:
		return spool.Loader, true
	}
	return 0, false
}
