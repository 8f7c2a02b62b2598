package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

// ncclinic runs one command line without an environment.
func ncclinic(t *testing.T, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(args, Streams{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(k string) string { return env[k] }, Terminal: func() (bool, int) { return false, 0 }})
	return code, o.String(), e.String()
}

func put(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func must(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s: no %q in\n%s", what, w, text)
		}
	}
}

func TestCheckWheel(t *testing.T) {
	dir := t.TempDir()
	cuda := put(t, dir, "torch-2.6.0-cp311-cp311-manylinux_2_28_x86_64.whl", packtest.Site("2.6.0+cu124", "12.4").Zip(nil))
	cpu := put(t, dir, "torch-2.6.0-cp311-cp311-manylinux_2_28_aarch64.whl", packtest.Site("2.6.0+cpu", "").Zip(nil))
	put(t, dir, "numpy-2.0.0-cp311-cp311-linux_x86_64.whl", packtest.Tree{"numpy/__init__.py": "", "numpy-2.0.0.dist-info/WHEEL": "Tag: x\n"}.Zip(nil))

	code, out, errs := ncclinic(t, nil, "check", cuda)
	must(t, "CUDA wheel", out, "OK", "wheel", "driver ≥ 525.60.13", "NCCL 2.21.5", "sm_80 sm_90", "cp311-cp311-manylinux_2_28_x86_64")
	if code != exitOK || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	// What only a node or a job has is not missed in a wheel.
	must(t, "CUDA wheel", out, "--driver, --gpu or --with-node")
	for _, w := range []string{"Slurm job", "RDMA", "interpreter", "--live", "no GPU was seen"} {
		if strings.Contains(out, w) {
			t.Errorf("%q is missed in a wheel:\n%s", w, out)
		}
	}
	code, out, _ = ncclinic(t, nil, "check", cuda, "--driver", "535.161.08", "--lang", "zh")
	must(t, "only the driver is named", out, "没有看到 GPU")
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	code, out, _ = ncclinic(t, nil, "check", cuda, "--driver", "470.82.01", "--gpu", "V100,H100", "--lang", "zh")
	must(t, "old driver", out, "torch-needs-newer-driver", "470.82.01", "V100", "驱动")
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
	code, out, _ = ncclinic(t, nil, "check", cuda, "--gpu", "7.0")
	must(t, "old GPU", out, "torch-gpu-arch-unsupported", "sm_80 sm_90")
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
	code, out, _ = ncclinic(t, nil, "check", cpu, "--format", "json")
	var rep struct {
		Verdict string
		Cause   string
		Subject struct{ Kind, Name string }
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil || code != exitFound || rep.Cause != "torch-cpu-build" || rep.Subject.Kind != "target" || rep.Subject.Name != cpu {
		t.Errorf("exit %d, %+v, %v", code, rep, err)
	}

	// A folder of wheels, and what is not torch in it.
	code, out, _ = ncclinic(t, nil, "check", dir)
	must(t, "table", out, "torch-2.6.0-cp311-cp311-manylinux_2_28_x86_64.whl", "12.4", "2.21.5", "≥525.60.13", "8.0 9.0", "BROKEN torch-cpu-build")
	if code != exitFound || strings.Contains(out, "numpy") || len(strings.Split(strings.TrimSpace(out), "\n")) != 3 {
		t.Errorf("exit %d:\n%s", code, out)
	}
	code, out, _ = ncclinic(t, nil, "check", dir, "--format", "json")
	var tab struct {
		Schema  string
		Others  int
		Targets []struct {
			Path, Torch, Verdict string
			NCCL                 *bool
		}
	}
	if err := json.Unmarshal([]byte(out), &tab); err != nil || code != exitFound || tab.Schema != "ncclinic.targets/v1" || tab.Others != 1 || len(tab.Targets) != 2 || tab.Targets[0].Torch == "" {
		t.Errorf("exit %d, %+v, %v", code, tab, err)
	}

	code, _, errs = ncclinic(t, nil, "check", filepath.Join(dir, "numpy-2.0.0-cp311-cp311-linux_x86_64.whl"))
	must(t, "not torch", errs, "numpy 2.0.0", "PyTorch")
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
}

func TestCheckTargetErrors(t *testing.T) {
	dir := t.TempDir()
	log := put(t, dir, "slurm-1.out", []byte("Traceback (most recent call last)\n"))
	whl := packtest.Site("2.6.0", "12.4").Zip(nil)
	cut := put(t, dir, "cut.whl", whl[:len(whl)/2])
	ok := put(t, dir, "torch-2.6.0-cp311-cp311-linux_x86_64.whl", whl)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{log}, []string{log, "ncclinic explain"}},
		{[]string{cut}, []string{cut, "central directory"}},
		{[]string{filepath.Join(dir, "no.sif")}, []string{"no.sif", "no such file"}},
		{[]string{ok, "--driver", "new"}, []string{"--driver", "535.161.08"}},
		{[]string{ok, "--gpu", "Voodoo2"}, []string{"--gpu", "compute capability"}},
		{[]string{ok, "--with-node", log}, []string{"--with-node", log}},
		{[]string{t.TempDir()}, []string{"no bin/python"}},
	} {
		code, out, errs := ncclinic(t, nil, append([]string{"check"}, c.args...)...)
		if code != exitUsage || out != "" {
			t.Errorf("%v: exit %d, %s", c.args, code, out)
		}
		must(t, strings.Join(c.args, " "), errs, c.says...)
	}
	// One of several that cannot be read does not hide the others.
	code, out, _ := ncclinic(t, nil, "check", ok, cut, ok)
	must(t, "table", out, "unreadable", "central directory", "OK")
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
}

func TestCheckImage(t *testing.T) {
	dir := t.TempDir()
	site := packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.21.5"))
	env := packtest.Tree{"etc/environment": "PATH=/opt/env/bin:/usr/bin\nNVIDIA_VISIBLE_DEVICES=all\nNVIDIA_DRIVER_CAPABILITIES=compute,utility\nNVIDIA_REQUIRE_CUDA=cuda>=12.4\n"}
	good := put(t, dir, "good.sqsh", packtest.Root(site).With(env).Squashfs(t))
	old := packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.14.3"))
	old["nvidia/nccl/lib/libnccl.so.2"] = strings.Replace(old["nvidia/nccl/lib/libnccl.so.2"], "ncclCommInitRank", "ncclXommInitRank", -1)
	bad := put(t, dir, "bad.sqsh", packtest.Root(old).With(packtest.Tree{"etc/environment": "PATH=/opt/env/bin:/usr/bin\n"}).Squashfs(t))

	code, out, errs := ncclinic(t, nil, "check", good, "--with-node", "none")
	must(t, "image", out, "OK", "squashfs image", "/opt/env/bin/python", "2.21.5, from /opt/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2")
	if code != exitOK {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	// The facts of an image, taken once, judge it later for a node.
	facts := filepath.Join(dir, "good.json")
	if code, _, errs := ncclinic(t, nil, "facts", good, "--with-node", "none", "-o", facts); code != exitOK {
		t.Fatalf("facts: exit %d, %s", code, errs)
	}
	node := put(t, dir, "node.json", []byte(`{"schema":"ncclinic.facts/v1","host":{"arch":{"v":"x86_64"},"os":{"v":"linux"}},"node":{"driver":{"v":{"version":"470.82.01"}},"gpus":{"v":[{"index":0,"name":"A100","cap":"8.0"}]},"cxi":{"v":["cxi0"]}}}`))
	for _, target := range []string{good, facts} {
		code, out, _ = ncclinic(t, nil, "check", target, "--with-node", node)
		must(t, target, out, "torch-needs-newer-driver", "470.82.01", "net-plugin-missing", "cxi0")
		if code != exitFound {
			t.Errorf("exit %d", code)
		}
	}
	code, out, _ = ncclinic(t, nil, "check", good, "--explain-load", "libnccl.so.2", "--with-node", "none")
	must(t, "explain-load", out, "/opt/env/bin/python3.11", "libtorch_cuda.so", "DT_RUNPATH", "[found, wins]", "version 2.21.5+cuda12.4", "nvidia-nccl-cu12")
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	code, out, _ = ncclinic(t, nil, "check", good, bad, "--with-node", "none")
	must(t, "compare", out, "A", "B", "libnccl.so.2", "2.21.5", "2.14.3", "package nvidia-nccl-cu12", "$NVIDIA_VISIBLE_DEVICES", "nccl-library-too-old")
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
	// Healthy targets that differ are no fault.
	newer := put(t, dir, "newer.sqsh", packtest.Root(packtest.Site("2.7.0+cu126", "12.6").With(packtest.NVIDIA("2.26.2"))).With(env).Squashfs(t))
	code, out, _ = ncclinic(t, nil, "check", good, newer, "--with-node", "none")
	must(t, "compare healthy ones", out, "2.7.0+cu126", "12.6")
	if code != exitOK {
		t.Errorf("two healthy images: exit %d\n%s", code, out)
	}
	code, out, _ = ncclinic(t, nil, "check", good, facts, "--with-node", "none")
	must(t, "compare with itself", out, "No fact that matters differs.")
	if code != exitOK {
		t.Errorf("exit %d\n%s", code, out)
	}
	code, out, _ = ncclinic(t, nil, "check", good, bad, "--with-node", "none", "--format", "json", "--lang", "zh")
	var cmp struct {
		Schema      string
		A, B        struct{ Name, Verdict string }
		Differences []struct{ Fact, A, B string }
	}
	if err := json.Unmarshal([]byte(out), &cmp); err != nil || code != exitFound || cmp.Schema != "ncclinic.compare/v1" || len(cmp.Differences) == 0 || cmp.B.Verdict != "broken" {
		t.Errorf("exit %d, %+v, %v", code, cmp, err)
	}
}

// Apptainer binds the home folder: a torch in ~/.local wins over the image's.
func TestCheckSIFWithHome(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // the test's image is for it
	}
	dir := t.TempDir()
	root := packtest.Root(packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.21.5"))).With(packtest.Tree{".singularity.d/env/10-docker2singularity.sh": "export PATH=\"/opt/env/bin:/usr/bin\"\n"})
	sif := put(t, dir, "torch.sif", packtest.SIF(root.Squashfs(t), "02"))
	home := packtest.Site("2.1.0+cpu", "").Under(".local/lib/python3.11/site-packages").Write(t, t.TempDir())
	code, out, _ := ncclinic(t, map[string]string{"HOME": home}, "check", sif, "--with-node", "none")
	must(t, "home", out, "2.1.0+cpu", home+"/.local/lib/python3.11/site-packages/torch", "env-user-site-shadows")
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
	code, out, _ = ncclinic(t, map[string]string{"HOME": home}, "check", sif, "--with-node", "none", "--home", "none")
	must(t, "--home none", out, "OK", "2.6.0+cu124")
	if code != exitOK {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestCheckLibrary(t *testing.T) {
	dir := t.TempDir()
	lib := packtest.NVIDIA("2.21.5").Sub("nvidia/nccl/lib").Write(t, dir)
	code, out, errs := ncclinic(t, nil, "check", filepath.Join(lib, "libnccl.so.2"))
	must(t, "library", out, "libnccl.so.2 x86_64", "2.21.5+cuda12.4")
	if code != exitOK {
		t.Errorf("exit %d, %s", code, errs)
	}
	torch := packtest.Site("2.6.0", "12.4").Sub("torch/lib").Write(t, t.TempDir())
	code, out, _ = ncclinic(t, nil, "check", filepath.Join(torch, "libtorch_cuda.so"))
	must(t, "without its libraries", out, "not found here", "libnccl.so.2", "libcudart.so.12")
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
	code, out, _ = ncclinic(t, nil, "check", "--explain-load", "libnccl.so.2", filepath.Join(torch, "libtorch_python.so"))
	must(t, "explain-load", out, "libtorch_cuda.so", "libnccl.so.2", "nowhere on the search path")
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
}

// Wheels are explained as they lie beside each other once they are installed.
func TestExplainLoadOfWheels(t *testing.T) {
	dir := t.TempDir()
	torch := put(t, dir, "torch-2.6.0-cp311-cp311-manylinux_2_28_x86_64.whl", packtest.Site("2.6.0+cu124", "12.4").Zip(nil))
	wheels := t.TempDir()
	nccl := func(dir, version, tag string) string {
		tree := packtest.NVIDIA(version)
		tree["nvidia_nccl_cu12-"+version+".dist-info/WHEEL"] = "Tag: py3-none-" + tag + "\n"
		return put(t, dir, "nvidia_nccl_cu12-"+version+"-py3-none-"+tag+".whl", tree.Zip(nil))
	}
	nccl(wheels, "2.18.1", "manylinux1_x86_64")
	nccl(wheels, "2.21.5", "manylinux2014_aarch64")
	nccl(wheels, "2.21.5", "manylinux2014_x86_64")
	other := nccl(dir, "2.27.5", "manylinux2014_x86_64")
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{torch}, exitUnsure, []string{"not there", "nvidia-nccl-cu12==2.21.5", "which torch-2.6.0"}},
		{[]string{torch, "--lang", "zh"}, exitUnsure, []string{"由 nvidia-nccl-cu12==2.21.5 提供"}},
		{[]string{torch, wheels}, exitOK, []string{"/nvidia/nccl/lib/libnccl.so.2 is taken", "version 2.21.5", "DT_RUNPATH"}},
		{[]string{torch, other}, exitOK, []string{"version 2.27.5"}},
		{[]string{other, wheels}, exitUsage, []string{"no wheel of torch"}},
		{[]string{torch, put(t, t.TempDir(), "torch-2.6.0-cp312-cp312-manylinux_2_28_x86_64.whl", nil)}, exitUsage, []string{"several wheels of torch"}},
		{[]string{torch, "--format", "json"}, exitUnsure, []string{`"provider": "nvidia-nccl-cu12==2.21.5"`, `"absent"`}},
		{[]string{put(t, t.TempDir(), "torch-2.6.0-cp311-cp311-manylinux_2_28_x86_64.whl", []byte("PK\x03\x04 and no more"))}, exitUsage, []string{"central directory"}},
	} {
		code, out, errs := ncclinic(t, nil, append([]string{"check", "--explain-load", "libnccl.so.2"}, c.args...)...)
		if code != c.code {
			t.Errorf("%v: exit %d, want %d\n%s%s", c.args, code, c.code, out, errs)
		}
		must(t, strings.Join(c.args, " "), out+errs, c.says...)
	}
	code, out, _ := ncclinic(t, nil, "check", "--explain-load", "libcudart.so.12", torch)
	must(t, "a library of the system", out, "the system's own loader path decides")
	if code != exitUnsure {
		t.Errorf("exit %d", code)
	}
}

// The report about an environment that was named bears its name, not that of this machine.
func TestCheckNamesTheEnvironment(t *testing.T) {
	env := packtest.Prefix(packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.21.5"))).Write(t, t.TempDir())
	_, out, errs := ncclinic(t, nil, "check", env, "--format", "json")
	var rep struct{ Subject struct{ Kind, Name string } }
	if err := json.Unmarshal([]byte(out), &rep); err != nil || rep.Subject.Kind != "environment" || rep.Subject.Name != env {
		t.Errorf("%+v, want %s; %v %s", rep.Subject, env, err, errs)
	}
}

// The fix for an environment without pip does not call it.
func TestFixWithoutPip(t *testing.T) {
	for _, c := range []struct{ cfg, pip, want, not string }{
		{"", "", "/bin/python -m ensurepip --upgrade\n", "uv pip"},
		{"uv = 0.9.1\n", "", "uv pip install --python ", "-m pip"},
		{"", "yes", "/bin/python -m pip install", "ensurepip"},
		{"uv = 0.9.1\n", "yes", "/bin/python -m pip install", "ensurepip"}, // uv venv --seed
	} {
		tree := packtest.Prefix(packtest.Site("2.6.0+cpu", "")).With(packtest.Tree{"pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n" + c.cfg})
		if c.pip != "" {
			tree["lib/python3.11/site-packages/pip/__init__.py"] = ""
		}
		env := tree.Write(t, t.TempDir())
		for _, args := range [][]string{{"check", env}, {"fix", "--python", env, "--driver", "550.54.15", "--gpu", "A100", "--glibc", "2.36", "--arch", "x86_64"}} {
			_, out, errs := ncclinic(t, nil, args...)
			must(t, args[0]+" "+c.cfg, out+errs, c.want)
			if strings.Contains(out, c.not) {
				t.Errorf("%v %q: %q in\n%s", args[0], c.cfg, c.not, out)
			}
		}
	}
}
