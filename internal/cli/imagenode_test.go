package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

// imageForms packs a root file system as each kind of image, with the environment where that kind keeps it.
func imageForms(t *testing.T, root packtest.Tree, env []string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	enroot := root.With(packtest.Tree{"etc/environment": strings.Join(env, "\n") + "\n"})
	sh := ""
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		sh += fmt.Sprintf("export %s=%q\n", k, v)
	}
	apptainer := root.With(packtest.Tree{".singularity.d/env/10-docker2singularity.sh": sh})
	img := packtest.Image{Config: packtest.Config{Arch: "amd64", Env: env}, Layers: [][]byte{packtest.Gzip(root.Tar())}}
	return map[string]string{
		"folder": enroot.Write(t, t.TempDir()), "tar.gz": put(t, dir, "root.tar.gz", packtest.Gzip(enroot.Tar())),
		"sqsh": put(t, dir, "image.sqsh", enroot.Squashfs(t)), "sif": put(t, dir, "image.sif", packtest.SIF(apptainer.Squashfs(t), "02")),
		"oci": put(t, dir, "oci.tar", packtest.OCI(img).Tar()), "docker": put(t, dir, "save.tar", packtest.DockerSave(img).Tar()),
	}
}

// What an image is on a node is the same in every kind of image, and in both languages.
func TestImageOnNode(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // the test's images are for it
	}
	lib := func(soname string) string { return string(elftest.Lib{Soname: soname}.Bytes()) }
	site := packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.21.5"))
	cu13 := packtest.Site("2.11.0+cu130", "13.0").With(packtest.NVIDIA("2.28.9"))
	old := packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.14.3"))
	old["nvidia/nccl/lib/libnccl.so.2"] = strings.ReplaceAll(old["nvidia/nccl/lib/libnccl.so.2"], "ncclCommInitRank", "ncclXommInitRank")
	compat := packtest.Tree{"usr/local/cuda/compat/libcuda.so.580.65.06": lib("libcuda.so.1"), "usr/local/cuda/compat/libcuda.so.1": "->libcuda.so.580.65.06"}
	real := packtest.Tree{"usr/local/cuda/compat/lib.real/libcuda.so.580.65.06": lib("libcuda.so.1"), "usr/local/cuda/compat/lib.real/libcuda.so.1": "->libcuda.so.580.65.06"}
	older := packtest.Tree{"usr/local/cuda/compat/libcuda.so.535.161.08": lib("libcuda.so.1"), "usr/local/cuda/compat/libcuda.so.1": "->libcuda.so.535.161.08"}
	shadow := packtest.Tree{"usr/local/lib/libnccl.so.2": old["nvidia/nccl/lib/libnccl.so.2"]}
	node := func(driver, gpu, cap, more string) string {
		return fmt.Sprintf(`{"schema":"ncclinic.facts/v1","host":{"arch":{"v":"x86_64"},"os":{"v":"linux"}},"node":{"driver":{"v":{"version":%q}},"gpus":{"v":[{"index":0,"name":%q,"cap":%q}]}%s}}`, driver, gpu, cap, more)
	}
	h100 := node("550.54.15", "NVIDIA H100 80GB HBM3", "9.0", "")
	path, hook := "PATH=/opt/env/bin:/usr/bin", []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}
	home := packtest.Site("2.1.0+cpu", "").Under(".local/lib/python3.11/site-packages").Write(t, t.TempDir())
	for _, c := range []struct {
		name  string
		tree  packtest.Tree // beside the packages
		site  packtest.Tree
		env   []string
		node  string
		home  string
		cause string // "" none
		exit  int    // without a cause
	}{
		{name: "healthy", site: site, node: h100},
		{name: "newer CUDA than the driver", site: cu13, node: h100, cause: "torch-needs-newer-driver"},
		{name: "cuda-compat on the path", site: cu13, tree: compat, env: []string{"LD_LIBRARY_PATH=/usr/local/cuda/compat"}, node: h100},
		{name: "cuda-compat that the hook binds", site: cu13, tree: compat, node: h100, exit: exitUnsure},
		{name: "cuda-compat that GeForce cannot use", site: cu13, tree: compat, node: node("550.54.15", "NVIDIA GeForce RTX 4090", "8.9", ""), cause: "torch-needs-newer-driver"},
		{name: "cuda-compat that is too old itself", site: cu13, tree: older, node: h100, cause: "torch-needs-newer-driver"},
		{name: "cuda-compat of NGC", site: cu13, tree: real, env: []string{"LD_LIBRARY_PATH=/usr/local/cuda/compat/lib:/usr/local/nvidia/lib64"}, node: h100, exit: exitUnsure},
		{name: "cuda-compat on GeForce", site: cu13, tree: compat, env: []string{"LD_LIBRARY_PATH=/usr/local/cuda/compat"}, node: node("550.54.15", "NVIDIA GeForce RTX 4090", "8.9", ""), cause: "gpu-driver-library-mismatch"},
		{name: "cuda-compat older than the driver", site: site, tree: older, env: []string{"LD_LIBRARY_PATH=/usr/local/cuda/compat"}, node: h100, cause: "gpu-driver-library-mismatch"},
		{name: "old NCCL", site: old, node: h100, cause: "nccl-library-too-old"},
		{name: "old NCCL first on the path", site: site, tree: shadow, env: []string{"LD_LIBRARY_PATH=/usr/local/lib"}, node: h100, cause: "nccl-library-too-old"},
		{name: "~/.local", site: site, node: h100, home: home, cause: "env-user-site-shadows"},
		{name: "Slingshot without plugin", site: site, node: node("550.54.15", "NVIDIA H100 80GB HBM3", "9.0", `,"cxi":{"v":["cxi0"]}`), cause: "net-plugin-missing"},
		{name: "Slingshot with plugin", site: site, tree: packtest.Tree{"opt/ofi/lib/libnccl-net.so": lib("libnccl-net.so")}, env: []string{"LD_LIBRARY_PATH=/opt/ofi/lib"}, node: node("550.54.15", "NVIDIA H100 80GB HBM3", "9.0", `,"cxi":{"v":["cxi0"]}`)},
		{name: "EFA without plugin", site: site, node: node("550.54.15", "NVIDIA H100 80GB HBM3", "9.0", `,"rdma":{"v":[{"name":"rdmap16s27","driver":"efa"}]}`), cause: "net-plugin-missing"},
		{name: "V100", site: site, node: node("550.54.15", "Tesla V100-SXM2-32GB", "7.0", ""), cause: "torch-gpu-arch-unsupported"},
		{name: "Grace", site: site, node: strings.Replace(h100, "x86_64", "aarch64", 1), cause: "torch-other-machine"},
	} {
		env := append([]string{path}, append(hook, c.env...)...)
		for kind, file := range imageForms(t, packtest.Root(c.site).With(c.tree), env) {
			facts := put(t, t.TempDir(), "node.json", []byte(c.node))
			want := c.exit
			if c.cause != "" {
				want = exitFound
			}
			h := c.home
			if h == "" {
				h = "none"
			}
			args := []string{"check", file, "--with-node", facts, "--home", h}
			for _, lang := range []string{"en", "zh"} {
				code, out, errs := ncclinic(t, nil, append(args, "--format", "json", "--lang", lang)...)
				var rep struct{ Cause, Verdict string }
				if err := json.Unmarshal([]byte(out), &rep); err != nil {
					t.Fatalf("%s, %s: exit %d, %v, %s", c.name, kind, code, err, errs)
				}
				if rep.Cause != c.cause || code != want {
					_, text, _ := ncclinic(t, nil, args...)
					t.Errorf("%s, %s: %q (%s, exit %d), want %q\n%s", c.name, kind, rep.Cause, rep.Verdict, code, c.cause, text)
				}
			}
		}
	}
}
