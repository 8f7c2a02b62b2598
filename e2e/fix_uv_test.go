package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/tables"
	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab/wheels"
)

var wouldInstall = regexp.MustCompile(`torch==([0-9.]+)\+(cu[0-9]+|cpu|rocm[0-9.]+)`)

// TestPlannerAgainstUV asks uv, an independent reading of NVIDIA's driver table,
// which build it takes for a driver, from indexes with the builds of the tables,
// and compares. uv knows no GPUs, so the plan is for one that all builds serve.
// The differences that docs/fix.md lists are the only ones.
func TestPlannerAgainstUV(t *testing.T) {
	uv := filepath.Join(testenv.Cache(t, "tools"), "bin", "uv")
	builds, pypi := map[string][]string{}, map[string]string{}
	for _, v := range []string{"2.6.0", "2.8.0", "2.9.1", "2.11.0", "2.14.1"} {
		builds[v] = tables.WheelTags(v)
		pypi[v] = "cu" + strings.ReplaceAll(tables.PyPICUDA(v), ".", "")
	}
	dir := t.TempDir()
	s, err := wheels.Start(dir, wheels.Indexes("3.11", builds, pypi))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := &fixLab{t: t, dir: dir, server: s, env: append([]string{"HOME=" + dir, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}, s.Env()...)}
	var names []string
	for v, ts := range builds {
		for _, tag := range ts {
			names = append(names, "torch-"+v+"+"+tag+"-cp311-cp311-linux_x86_64.whl")
		}
	}
	ix := plan.ParseIndex("lab", strings.Join(names, "\n"))
	if err := os.MkdirAll(filepath.Join(dir, "cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.must(uv + " venv -q --python /usr/bin/python3 " + dir + "/venv")
	same, newerCUDA, olderTorch, questions := 0, 0, 0, 0
	for _, driver := range []string{"450.203.03", "470.82.01", "525.60.13", "535.161.08", "550.54.15", "560.35.03", "570.124.06", "575.57.08", "580.65.06", "590.48.01", "595.45.04"} {
		for _, wish := range []string{"", "2.6.0", "2.9.1", "2.14.1"} {
			questions++
			req := "torch"
			if wish != "" {
				req += "==" + wish
			}
			out, code := l.sh(dir, uv+" pip install --dry-run --python "+dir+"/venv/bin/python --torch-backend auto "+req, "UV_CUDA_DRIVER_VERSION="+driver)
			p, err := plan.Make(plan.Input{OS: "linux", Machine: "x86_64", Python: "3.11", Wish: wish, Index: ix,
				Nodes: []plan.Node{{Driver: driver, GPUs: []plan.GPU{{Name: "NVIDIA A100-SXM4-80GB"}}}}})
			if err != nil {
				t.Fatal(err)
			}
			m := wouldInstall.FindStringSubmatch(out)
			if m == nil || m[2] == "cpu" {
				// uv falls back to the CPU build where no build fits, or finds nothing.
				if len(p.Impossible) == 0 {
					t.Errorf("%s %s: uv finds no CUDA build (exit %d), the plan is %s+%s\n%s", driver, req, code, p.Options[0].Torch, p.Options[0].Tag, out)
				}
				continue
			}
			if len(p.Impossible) > 0 {
				t.Errorf("%s %s: uv takes %s, the plan says it is impossible: %s", driver, req, m[0], p.Impossible[0].Text("en"))
				continue
			}
			o := p.Options[0]
			switch {
			case o.Torch == m[1] && o.Tag == m[2]:
				same++
			case o.Torch == m[1] && tables.TagCUDA(m[2])[:2] == o.CUDA[:2] && tables.Compare(tables.TagCUDA(m[2]), o.CUDA) > 0 && tables.Compare(driver, tables.ToolkitDriver(tables.TagCUDA(m[2]))) < 0:
				newerCUDA++ // uv takes the newest of the family, by minor-version compatibility
			case tables.Compare(m[1], o.Torch) < 0:
				olderTorch++ // uv stays with the first index that has any torch
			default:
				t.Errorf("%s %s: uv takes %s, the plan is %s+%s", driver, req, m[0], o.Torch, o.Tag)
			}
		}
	}
	t.Logf("%d questions: the same build %d, uv a newer CUDA by minor-version compatibility %d, uv an older torch %d", questions, same, newerCUDA, olderTorch)
	if same == 0 {
		t.Error("uv and the planner never agreed: is the test still asking?")
	}
}

// TestPlannerAgainstUVForAMD asks uv the same for AMD's GPUs: it knows by itself
// which ROCm has kernels for which.
func TestPlannerAgainstUVForAMD(t *testing.T) {
	uv := filepath.Join(testenv.Cache(t, "tools"), "bin", "uv")
	builds, pypi := map[string][]string{}, map[string]string{}
	var names []string
	for _, v := range []string{"2.6.0", "2.7.1", "2.9.1", "2.10.0", "2.14.1"} {
		builds[v] = append(tables.WheelTags(v), tables.ROCmTags(v)...)
		pypi[v] = "cu" + strings.ReplaceAll(tables.PyPICUDA(v), ".", "")
		for _, tag := range builds[v] {
			names = append(names, "torch-"+v+"+"+tag+"-cp311-cp311-linux_x86_64.whl")
		}
	}
	dir := t.TempDir()
	s, err := wheels.Start(dir, wheels.Indexes("3.11", builds, pypi))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := &fixLab{t: t, dir: dir, server: s, env: append([]string{"HOME=" + dir, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}, s.Env()...)}
	ix := plan.ParseIndex("lab", strings.Join(names, "\n"))
	if err := os.MkdirAll(filepath.Join(dir, "cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.must(uv + " venv -q --python /usr/bin/python3 " + dir + "/venv")
	same, olderTorch, none, questions := 0, 0, 0, 0
	for _, gpu := range []struct{ name, gfx string }{{"MI50", "gfx906"}, {"MI100", "gfx908"}, {"MI250X", "gfx90a"}, {"MI300X", "gfx942"}, {"MI355X", "gfx950"}, {"RX 7900 XTX", "gfx1100"}, {"RX 9070 XT", "gfx1201"}, {"gfx1151", "gfx1151"}} {
		for _, wish := range []string{"", "2.6.0", "2.7.1", "2.9.1", "2.10.0", "2.14.1"} {
			questions++
			req := "torch"
			if wish != "" {
				req += "==" + wish
			}
			out, code := l.sh(dir, uv+" pip install --dry-run --python "+dir+"/venv/bin/python --torch-backend auto "+req, "UV_AMD_GPU_ARCHITECTURE="+gpu.gfx)
			p, err := plan.Make(plan.Input{OS: "linux", Machine: "x86_64", Python: "3.11", Wish: wish, Index: ix, Nodes: []plan.Node{{GPUs: []plan.GPU{{Name: gpu.name}}}}})
			if err != nil {
				t.Fatal(err)
			}
			m := wouldInstall.FindStringSubmatch(out)
			switch {
			case m == nil || !strings.HasPrefix(m[2], "rocm"):
				none++
				if len(p.Impossible) == 0 {
					t.Errorf("%s %s: uv finds no ROCm build (exit %d), the plan is %s+%s\n%s", gpu.name, req, code, p.Options[0].Torch, p.Options[0].Tag, out)
				}
			case len(p.Impossible) > 0:
				t.Errorf("%s %s: uv takes %s, the plan says it is impossible: %s", gpu.name, req, m[0], p.Impossible[0].Text("en"))
			case p.Options[0].Torch == m[1] && p.Options[0].Tag == m[2]:
				same++
			case tables.Compare(m[1], p.Options[0].Torch) < 0:
				olderTorch++
			default:
				t.Errorf("%s %s: uv takes %s, the plan is %s+%s", gpu.name, req, m[0], p.Options[0].Torch, p.Options[0].Tag)
			}
		}
	}
	t.Logf("%d questions: the same build %d, neither finds one %d, uv an older torch %d", questions, same, none, olderTorch)
	if same == 0 {
		t.Error("uv and the planner never agreed: is the test still asking?")
	}
}
