package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// importErrors tells what the words of a failed import mean. The first pattern
// that fits decides, so the exact ones stand before the wide ones.
var importErrors = []struct {
	cause string
	re    *lazyre.Regexp
	sure  diag.Certainty
}{
	{"nccl-library-too-old", lazyre.New(`undefined symbol: nccl[A-Z]`), diag.Proven},
	{"nccl-library-missing", lazyre.New(`libnccl\.so[.0-9]*: cannot open shared object file`), diag.Proven},
	{"cuda-library-shadowed", lazyre.New(`undefined symbol: (__nvJitLink|cublasLt|cublas|cudnn|cusparse|cusolver|cufft)`), diag.Proven},
	{"cuda-library-shadowed", lazyre.New("version `?libnvJitLink\\.so\\.[0-9]+'? not found"), diag.Proven},
	{"cuda-library-missing", lazyre.New(`lib(cudart|cublas|cublasLt|cudnn[a-z_]*|cufft|curand|cusolver|cusparse|cusparseLt|nvJitLink|nvrtc|cupti|nvToolsExt|cufile|nvshmem_host)\.so[.0-9]*: cannot open shared object file`), diag.Proven},
	{"torch-needs-newer-glibc", lazyre.New("version `?GLIBC_[0-9.]+'? not found"), diag.Proven},
	{"cxx-library-too-old", lazyre.New("version `?(GLIBCXX|CXXABI)_[0-9.]+'? not found"), diag.Proven},
	{"torch-other-machine", lazyre.New(`wrong ELF class|Exec format error`), diag.Likely},
	{"torch-not-installed", lazyre.New(`No module named '?torch'?\s*$`), diag.Proven},
	{"torch-install-damaged", lazyre.New(`No module named '?torch\.|cannot import name .* from .*torch|lib(torch|c10|shm)[a-z_]*\.so[.0-9]*: (cannot open shared object file|file too short|invalid ELF header)|undefined symbol: _Z`), diag.Likely},
}

var _ = Checks.Add("live-import-failed", func(b *fact.Bundle, r *diag.Reporter) {
	if b.Live.State.Or("") != "import-failed" {
		return
	}
	for _, x := range importErrors {
		if !x.re.MatchString(b.Live.Error) {
			continue
		}
		a := args(b)
		sameBuild(b, a)
		a["error"] = fact.Clip(lastLine(b.Live.Error), 300)
		delete(a, "site_dir") // the words alone do not justify removing files
		if x.cause == "torch-not-installed" {
			delete(a, "public_version")
		}
		r.Hit(x.cause, x.sure, a, b.Live.State.At.WithExcerpt(a["error"]))
		return
	}
	r.Skip("the import failed with words that no rule knows: " + fact.Clip(lastLine(b.Live.Error), 200))
})

// lastLine returns the last line that says something: a traceback ends with the error.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSpace(s)
}
