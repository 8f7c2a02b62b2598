package cli

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
)

// program is what can be told of a command without running it.
type program struct {
	torch bool // it imports torch
	gloo  bool // it names gloo, so it may do without GPUs
	cpu   bool // it asks whether there are GPUs, or says nothing of them: it may do without
	moves bool // it changes where Python looks for packages, or a torch lies beside it
}

var (
	importsTorch = lazyre.New(`(?m)^(?:import|from)[ \t]+(?:torch|lightning|pytorch_lightning|deepspeed)\b|[;:][ \t]*(?:import|from)[ \t]+torch\b`)
	// docstrings and other long strings hold words, no statements
	longString = lazyre.New(`(?s)""".*?"""|'''.*?'''`)
	// what lets a program find packages where this look did not
	movesPath  = lazyre.New(`\bsys\.(?:path|meta_path|executable|modules)\b|\bimport site\b|\bsite\.|\bimportlib\b|\bpkgutil\b|\bos\.exec|\bsubprocess\b|\brunpy\b|\bPYTHONPATH\b`)
	asksGPU    = lazyre.New(`is_available|device_count|\bexcept\b`)
	needsGPU   = lazyre.New(`["']nccl["']|\.cuda\(|["']cuda(?::\d+)?["']|cuda\.set_device`)
	maxProgram = int64(4 << 20)
)

// readProgram reads what a command would run: the file that Python is given,
// "-c", "-m", or what a launcher starts.
func readProgram(m *source.Machine, argv []string) program {
	name := filepath.Base(argv[0])
	if launchers[name] {
		return program{torch: true}.started(m, argv[1:])
	}
	if !isPython(name) {
		if py, ok := interpreter(m, argv); ok && strings.HasSuffix(name, ".py") {
			return readProgram(m, append([]string{py}, found(argv[0]))) // as the kernel starts it
		}
		return program{}
	}
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		switch {
		case w == "-m" && i+1 < len(argv):
			p := program{torch: argv[i+1] == "torch" || strings.HasPrefix(argv[i+1], "torch.")}
			if file, ok := moduleFile(m, argv[i+1]); ok {
				p = readSource(m, file)
			}
			p = p.started(m, argv[i+2:])
			p.moves = p.moves || torchIn(m, ".")
			return p
		case w == "-c" && i+1 < len(argv):
			p := scanSource([]byte(argv[i+1]))
			p.moves = p.moves || torchIn(m, ".")
			return p
		case w == "-W" || w == "-X" || w == "--check-hash-based-pycs":
			i++
		case w == "-" || w == "":
			return program{}
		case strings.HasPrefix(w, "-"):
			if strings.ContainsAny(w, "hV?") && !strings.HasPrefix(w, "--") {
				return program{} // it prints and ends
			}
		default:
			return readSource(m, w)
		}
	}
	return program{}
}

// found is the file that a command's name stands for.
func found(name string) string {
	if p, err := run.Find(name); err == nil {
		return p
	}
	return name
}

// moduleFile finds the file that "python -m" runs, when the working directory,
// which comes first, has it.
func moduleFile(m *source.Machine, name string) (string, bool) {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" {
		return "", false
	}
	base := filepath.FromSlash(strings.ReplaceAll(name, ".", "/"))
	for _, f := range []string{base + ".py", filepath.Join(base, "__main__.py")} {
		abs, err := filepath.Abs(f)
		if err != nil {
			return "", false
		}
		if st, err := fs.Stat(m.FS, source.Rel(abs)); err == nil && st.Mode().IsRegular() {
			return abs, true
		}
	}
	return "", false
}

func readSource(m *source.Machine, path string) program {
	abs, err := filepath.Abs(path)
	if err != nil {
		return program{}
	}
	text, err := source.ReadFile(m.FS, abs, maxProgram)
	if err != nil {
		return program{}
	}
	p := scanSource(text)
	p.moves = p.moves || torchIn(m, filepath.Dir(abs)) // the first place where Python looks
	return p
}

// started adds what the programs that a launcher is given may do.
func (p program) started(m *source.Machine, args []string) program {
	for _, w := range args {
		if strings.HasSuffix(w, ".py") {
			q := readSource(m, w)
			p.gloo, p.cpu, p.moves = p.gloo || q.gloo, p.cpu || q.cpu, p.moves || q.moves
		}
	}
	return p
}

// torchIn reports whether a folder holds something that "import torch" finds.
func torchIn(m *source.Machine, dir string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	for _, name := range []string{"torch", "torch.py", "sitecustomize.py"} {
		if _, err := fs.Stat(m.FS, source.Rel(filepath.Join(abs, name))); err == nil {
			return true
		}
	}
	return false
}

func scanSource(text []byte) program {
	code := []byte(longString.ReplaceAllString(string(text), ""))
	return program{torch: importsTorch.Match(code), gloo: bytes.Contains(text, []byte("gloo")), cpu: asksGPU.Match(code) || !needsGPU.Match(code), moves: movesPath.Match(code)}
}

// stopsImport are causes with which "import torch" itself fails.
var stopsImport = []string{"torch-not-installed", "torch-install-damaged", "torch-needs-newer-glibc", "torch-other-machine", "cxx-library-too-old",
	"nccl-library-missing", "nccl-library-too-old", "cuda-library-missing"}

// stopsGPU are causes with which torch imports and cannot use the GPUs that were granted.
var stopsGPU = []string{"torch-cpu-build", "torch-built-without-nccl", "torch-built-without-distributed", "torch-platform-has-no-nccl", "torch-needs-newer-driver",
	"torch-wrong-accelerator", "torch-gpu-arch-unsupported", "gpu-driver-missing", "gpu-not-in-container"}

// certainFault returns the error that the report names, and whether the command
// cannot but run into it.
func certainFault(rep *diag.Report, p program, b *fact.Bundle) (*diag.Finding, bool) {
	f := rep.Top()
	if f == nil || f.Severity != diag.Error || f.Certainty != diag.Proven {
		return nil, false
	}
	among := func(ids []string) bool {
		return slices.Contains(ids, f.ID) || slices.ContainsFunc(f.Explains, func(id string) bool { return slices.Contains(ids, id) })
	}
	switch {
	case among(stopsImport):
		return f, p.torch && !p.moves
	case among(stopsGPU):
		return f, p.torch && !p.gloo && !p.cpu && !p.moves && b.Slurm.GPUsGranted.Or(0) > 0
	}
	return f, false
}
