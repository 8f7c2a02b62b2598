// Package archtest holds the direction of imports, the list of third-party
// modules and the set of packages that must build without an operating system.
package archtest

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ncclinic/ncclinic/"

// mayImport says for each package (longest prefix wins) which of this module's
// packages it may import, by prefix. Data flows one way:
// fact ◄ diag ◄ rules ◄ cli, fact ◄ source ◄ collect ◄ cli, diag ◄ render ◄ cli.
var mayImport = map[string][]string{
	"internal/fact":      {},
	"internal/fact/kind": {},
	"internal/mask":      {},
	"internal/pep440":    {"internal/lazyre"},
	"internal/near":      {},
	"internal/hostlist":  {},
	"internal/nodes":     {"internal/fact", "internal/diag", "internal/hostlist"}, // what the rules say of an allocation
	"internal/lazyre":    {},
	"internal/elfx":      {"internal/elfx"},
	"internal/netsel":    {"internal/fact"},
	"internal/tables":    {"internal/fact", "internal/pep440", "internal/lazyre"},
	"internal/diag":      {"internal/fact"},
	"internal/source":    {"internal/fact", "internal/source", "internal/lazyre"},
	// It writes what tests open.
	"internal/source/packtest": {"internal/elfx", "internal/testenv"},
	"internal/ldso":            {"internal/fact", "internal/source", "internal/elfx"},
	"internal/run":             {"internal/fact", "internal/source"},
	"internal/collect":         {"internal/fact", "internal/source", "internal/mask", "internal/elfx", "internal/ldso", "internal/pep440", "internal/tables", "internal/netsel", "internal/lazyre", "internal/near", "internal/hostlist", "internal/collect"},
	"internal/plan":            {"internal/fact", "internal/tables", "internal/pep440", "internal/lazyre", "internal/near"},
	"internal/render":          {"internal/fact", "internal/diag", "internal/plan"},
	"internal/explain":         {"internal/fact", "internal/diag", "internal/tables", "internal/pep440", "internal/lazyre", "internal/mask"},
	"internal/demo":            {},
	"internal/lint":            {"internal/fact", "internal/diag", "internal/mask", "internal/collect/script", "rules"}, // one script from bytes to findings
	"internal/ruletest":        {"internal", "rules"},
	"rules":                    {"internal/fact", "internal/diag", "internal/mask", "internal/tables", "internal/netsel", "internal/pep440", "internal/lazyre", "internal/near", "internal/hostlist", "rules"},
	"internal/cli":             {"internal", "rules"},
	"cmd":                      {"internal/cli"},
	"internal/testenv":         {},
	"internal/archtest":        {},
	"lab":                      {"lab", "internal/testenv"},
	"e2e":                      {"lab", "internal"},
	"bench":                    {"rules", "internal", "lab", "bench"},
}

// modules are the third-party modules that the program may link, each with the
// reason in the design; test-only modules are not linked and not listed.
var modules = []string{
	"github.com/spf13/cobra", "github.com/spf13/pflag",
	"github.com/clipperhouse/displaywidth", "github.com/clipperhouse/uax29/v2",
	"go.yaml.in/yaml/v3", "golang.org/x/tools",
	"github.com/klauspost/compress", "github.com/ulikunitz/xz", "github.com/pierrec/lz4/v4", "github.com/anchore/go-lzo",
	"github.com/BobuSumisu/aho-corasick", "mvdan.cc/sh/v3",
}

// needsOS are the packages that may depend on a running system; everything
// else builds for js/wasm.
var needsOS = []string{"internal/run", "internal/collect/node", "internal/collect/slurm", "internal/collect/live", "internal/cli", "cmd", "lab", "e2e", "bench", "internal/ruletest", "internal/archtest", "internal/testenv", "internal/source/packtest"}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Standard     bool
	Module       *struct{ Path string }
	GoFiles      []string
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports,Standard,Module,GoFiles"}, args...)...)
	cmd.Dir = "../.."
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.String())
	}
	var ps []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

func longest[V any](m map[string]V, path string) (V, bool) {
	for p := path; ; {
		if v, ok := m[p]; ok {
			return v, true
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			var zero V
			return zero, false
		}
		p = p[:i]
	}
}

func under(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

func TestDirectionOfImports(t *testing.T) {
	for _, p := range list(t, "./...") {
		self := strings.TrimPrefix(p.ImportPath, module)
		allowed, ok := longest(mayImport, self)
		if !ok {
			t.Errorf("%s is in no row of mayImport: say what it may import", self)
			continue
		}
		for _, imp := range p.Imports {
			if dep, ours := strings.CutPrefix(imp, module); ours && !under(allowed, dep) {
				t.Errorf("%s imports %s, which is against the flow of data", self, dep)
			}
			if imp == "os/exec" && self != "internal/run" && !under([]string{"lab", "e2e", "bench", "internal/testenv", "internal/source/packtest"}, self) {
				t.Errorf("%s imports os/exec; only internal/run starts programs", self)
			}
			if self == "internal/fact" && strings.Contains(imp, ".") {
				t.Errorf("internal/fact imports %s; it takes the standard library only", imp)
			}
			if imp == "mvdan.cc/sh/v3/syntax" && self != "internal/collect/script" {
				t.Errorf("%s imports the shell parser; only internal/collect/script does", self)
			}
			if imp == "C" || imp == "plugin" {
				t.Errorf("%s imports %q: the binary must stay static", self, imp)
			}
		}
	}
}

func TestThirdPartyModules(t *testing.T) {
	for _, p := range list(t, "-deps", "./cmd/ncclinic") {
		if p.Standard || p.Module == nil || strings.HasPrefix(p.ImportPath+"/", module) {
			continue
		}
		if !slices.Contains(modules, p.Module.Path) {
			t.Errorf("the program links %s (package %s), which is not in the list of modules", p.Module.Path, p.ImportPath)
		}
	}
}

func TestPurePartBuildsForWasm(t *testing.T) {
	if testing.Short() {
		t.Log("long: builds the pure packages for js/wasm")
		return
	}
	var pure []string
	for _, p := range list(t, "./...") {
		self := strings.TrimPrefix(p.ImportPath, module)
		if len(p.GoFiles) > 0 && !under(needsOS, self) {
			pure = append(pure, p.ImportPath)
		}
	}
	cmd := exec.Command("go", append([]string{"build"}, pure...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
