package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/node"
	"github.com/ncclinic/ncclinic/internal/collect/target"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var (
	driverForm = lazyre.New(`^[0-9]{3}(\.[0-9]{1,4}){1,2}$`)
	// platformForm is a platform of Linux images as OCI names them, or its architecture alone.
	platformForm = lazyre.New(`^(linux/)?(amd64|x86_64|arm64|aarch64|386|arm|ppc64le|s390x|riscv64|loong64|mips64le)(/v[0-9]{1,2})?$`)
	capForm      = lazyre.New(`^(?:sm_)?([0-9]{1,2})\.?([0-9])$`)
)

// driverOf makes the number of a driver's branch, "535", the first driver of it.
func driverOf(driver string) string {
	if len(driver) == 3 && strings.Trim(driver, "0123456789") == "" {
		return tables.FirstOf(driver)
	}
	return driver
}

// targetFlags say what of an artefact is meant, and on which node it would run.
type targetFlags struct {
	platform string
	driver   string
	gpus     []string
	withNode string
	home     string
	explain  string
}

func (a *app) addTargetFlags(c *cobra.Command, t *targetFlags) {
	f := c.Flags()
	f.StringVar(&t.platform, "platform", "", a.tr("of a multi-platform image, look at this one: linux/amd64, linux/arm64", "多平台镜像中要检查的平台：linux/amd64、linux/arm64"))
	f.StringVar(&t.driver, "driver", "", a.tr("judge the target for a node with this NVIDIA driver: 535.161.08", "按装有该版本 NVIDIA 驱动的节点来判断：535.161.08"))
	f.StringSliceVar(&t.gpus, "gpu", nil, a.tr("judge the target for a node with these GPUs: V100, H100, or a compute capability such as 8.0", "按装有这些 GPU 的节点来判断：V100、H100，或计算能力（如 8.0）"))
	f.StringVar(&t.withNode, "with-node", "", a.tr(`judge the target for the node of a facts file ("ncclinic facts -o FILE"), or "here"; default for an image: this node when it has an NVIDIA driver; "none": no node`,
		`按事实文件（"ncclinic facts -o FILE"）中的节点来判断，"here" 表示本机；镜像默认取本机（若有 NVIDIA 驱动），"none" 表示不结合节点`))
	f.StringVar(&t.home, "home", "", a.tr(`folder that is bound into an image as the home directory, with its ~/.local (default: yours for .sif, as Apptainer does; "none": nothing)`,
		`绑定进镜像作为家目录的目录，包括其中的 ~/.local（.sif 默认为你的家目录，与 Apptainer 相同；"none" 表示不绑定）`))
	f.StringVar(&t.explain, "explain-load", "", a.tr("show how the dynamic loader searches for this library, such as libnccl.so.2, and which file wins", "显示动态加载器如何查找该库（如 libnccl.so.2）以及最终选中哪个文件"))
}

func (g gatherFlags) alsoList() []string {
	if g.also == "" {
		return nil
	}
	return []string{g.also}
}

// node reports whether the flags name a node.
func (t *targetFlags) node() bool { return t.driver != "" || len(t.gpus) > 0 || t.withNode != "" }

// isTarget reports whether check takes a path as an artefact, not as facts or as
// an environment that is looked at where it lies.
func isTarget(name string) (bool, error) {
	st, err := os.Stat(name)
	if err != nil {
		return false, err
	}
	if st.IsDir() {
		has := func(p string) bool { _, err := os.Lstat(filepath.Join(name, p)); return err == nil }
		env := has("bin/python") || has("bin/python3")
		root := has("usr") && (has("etc/os-release") || has("etc/passwd") || has(".singularity.d"))
		return !env || root, nil
	}
	if !st.Mode().IsRegular() {
		return false, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := f.Read(head)
	text := strings.TrimLeft(strings.TrimPrefix(string(head[:n]), "\ufeff"), " \t\r\n")
	return n > 0 && !strings.HasPrefix(text, "{"), nil
}

// isLibrary reports whether a path is an ELF file.
func isLibrary(name string) bool {
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := f.Read(head)
	return string(head[:n]) == "\x7fELF"
}

// readTarget opens an artefact and reads its facts.
func (a *app) readTarget(ctx context.Context, name string, g gatherFlags, t targetFlags) (*fact.Bundle, error) {
	limit := g.timeout
	if !g.timeoutSet { // an image of many gigabytes has to be read through
		limit = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tg, err := source.Open(ctx, name, source.OpenOptions{Platform: t.platform, Apart: t.node() && t.withNode != "here"})
	if err != nil {
		return nil, a.targetError(name, err)
	}
	defer tg.Close()
	if tg.Kind == source.KindLibrary {
		return nil, usagef("%s: %s", name, a.tr("a shared library alone: check it by itself", "单个动态库：请单独检查"))
	}
	b := &fact.Bundle{Schema: fact.BundleSchema, Tool: Version}
	if tg.FS == nil { // a folder of packages, looked at where it is
		g.python = name
		if b, err = a.gather(ctx, g); err != nil {
			return nil, err
		}
		b.Subject = fact.Subject{Kind: "target", Name: name}
		b.Target = fact.Target{Kind: tg.Kind, Path: name}
		return b, a.addNode(ctx, b, t)
	}
	o := target.Options{Python: g.python, Also: g.alsoList()}
	if tg.IsImage() {
		if o.Home, o.HomeFS, err = a.homeFor(tg, t.home); err != nil {
			return nil, err
		}
	}
	m, err := target.Collect(ctx, tg, o, b)
	if e := tg.Changed(); e != nil {
		return nil, usagef("%s: %w", name, e)
	}
	var not target.NotTorch
	switch {
	case errors.As(err, &not):
		return nil, otherPackage{usagef("%s: %s", name, fmt.Sprintf(a.tr("%s: check judges what has PyTorch in it", "%s：check 只判断含有 PyTorch 的内容"), not.Error()))}
	case errors.Is(err, context.DeadlineExceeded):
		return nil, usagef("%s: %s", name, fmt.Sprintf(a.tr("not read within %s (--timeout 30m gives it more time)", "未能在 %s 内读完（可用 --timeout 30m 延长）"), limit))
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, usagef("%s: %v", name, err)
	}
	if tg.IsImage() {
		var own fact.Bundle
		if err := node.Collect(ctx, m, &own); err != nil {
			b.AddProblem(name, err.Error())
		}
		b.Host.Distro, b.Host.Glibc, b.NCCLConf, b.Node.Plugins = own.Host.Distro, own.Host.Glibc, own.NCCLConf, own.Node.Plugins
		b.Problems = append(b.Problems, own.Problems...)
	}
	if err := a.addNode(ctx, b, t); err != nil {
		return nil, err
	}
	mask.Deep(b)
	b.Taken = time.Now().UTC().Truncate(time.Second)
	return b, nil
}

// targetError says what a path is not, and what would take it.
func (a *app) targetError(name string, err error) error {
	if errors.Is(err, source.ErrUnknownKind) {
		what, begins, cut := strings.Cut(err.Error(), " (it begins with ")
		what = diag.ErrorText(what, a.lang)
		if cut {
			what += fmt.Sprintf(a.tr(" (it begins with %s)", "（开头为 %s）"), strings.TrimSuffix(begins, ")"))
		}
		return usagef("%s%s%s", what, a.tr("; ", "；"), fmt.Sprintf(a.tr("check takes a file that \"ncclinic facts\" wrote, an environment, or one of .sif .sqsh .whl .conda .tar(.gz|.zst|.xz) OCI and docker images (a log? ncclinic explain %s; a batch script? ncclinic lint %s)",
			"check 接受 \"ncclinic facts\" 写出的文件、环境目录，或 .sif .sqsh .whl .conda .tar(.gz|.zst|.xz)、OCI 与 docker 镜像（日志请用 ncclinic explain %s，批处理脚本请用 ncclinic lint %s）"), shellWord(name), shellWord(name)))
	}
	return usageError{err}
}

// homeFor opens the home directory that would be bound into an image.
func (a *app) homeFor(t *source.Target, flag string) (string, fs.FS, error) {
	dir := flag
	if dir == "" {
		if t.Kind != source.KindSIF {
			return "", nil, nil
		}
		dir = a.Getenv("HOME")
	}
	if dir == "none" || dir == "" {
		return "", nil, nil
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		if flag == "" {
			return "", nil, nil
		}
		return "", nil, usagef("--home %s: %s", dir, a.tr("no such folder", "没有这个目录"))
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, usageError{err}
	}
	f, err := source.OpenFolder(abs)
	if err != nil {
		return "", nil, usageError{err}
	}
	return abs, f, nil
}

// addNode puts the driver and the GPUs of the node into b for which it is judged.
func (a *app) addNode(ctx context.Context, b *fact.Bundle, t targetFlags) error {
	switch {
	case t.withNode == "none":
	case t.withNode == "here", t.withNode == "" && b.Target.IsImage() && t.driver == "" && len(t.gpus) == 0:
		m, err := run.NewMachine()
		if err != nil {
			return err
		}
		var nb fact.Bundle
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		err = node.Collect(ctx, m, &nb)
		if t.withNode == "here" || nb.Node.Driver.IsKnown() {
			if err != nil {
				b.AddProblem("--with-node here", err.Error())
			}
			takeNode(b, &nb, "here")
		}
	case t.withNode != "":
		f, err := readableFile(t.withNode)
		if err != nil {
			return err
		}
		defer f.Close()
		nb, err := fact.ReadBundle(f)
		if err != nil {
			return usagef("--with-node %s: %v", t.withNode, err)
		}
		mask.Deep(nb)
		takeNode(b, nb, t.withNode)
	}
	if t.driver != "" {
		t.driver = driverOf(t.driver)
		if !driverForm.MatchString(t.driver) {
			return usagef("--driver: %q %s", t.driver, a.tr("is no driver version such as 535.161.08", "不是 535.161.08 这样的驱动版本"))
		}
		b.Node.Driver = fact.Of(fact.Driver{Version: t.driver}, fact.Evidence{Source: fact.SrcFlag, Path: "--driver", Excerpt: t.driver})
		b.Target.Node = "flags"
	}
	if len(t.gpus) > 0 {
		if err := a.gpusByHand(b, t.gpus); err != nil {
			return err
		}
		b.Target.Node = "flags"
	}
	if w := b.Winner(); w != nil {
		if b.Target.Node == "flags" && !b.Host.Arch.IsKnown() && w.Machine.IsKnown() {
			b.Host.Arch = w.Machine // the node that is meant has the architecture of what is judged
		}
		b.Target.MinDriver = tables.FamilyDriver(w.CUDA.Or(""))
	}
	return nil
}

// gpusByHand puts GPUs that were named into b: NVIDIA's as GPUs of the driver,
// AMD's as what is on the bus, in place of what the node has.
func (a *app) gpusByHand(b *fact.Bundle, names []string) error {
	at := fact.Evidence{Source: fact.SrcFlag, Path: "--gpu", Excerpt: strings.Join(names, ",")}
	if r, not := plan.NotPlanned(names); not {
		return usagef("--gpu: %s", r.Text(a.lang))
	}
	var gs []fact.GPU
	var amd []fact.PCIGPU
	for i, x := range gpusOf(names) {
		g := fact.GPU{Index: i, Name: names[i], Cap: x.Cap, CapFrom: "flag"}
		if name, _, both := strings.Cut(names[i], "="); both {
			g.Name = name
		}
		switch {
		case g.Cap != "" && x.Name == "":
			g.Name = "GPU " + g.Cap
		case g.Cap != "":
		case tables.Maker(names[i]) == tables.AMD:
			amd = append(amd, fact.PCIGPU{Vendor: "amd", Device: names[i]})
			continue
		default:
			if g.Cap = tables.GPUCap(x.Name); g.Cap == "" {
				return usagef("--gpu: %q %s", names[i], a.tr("is not known here; its compute capability, such as 9.0, will do", "未收录；可改为填写计算能力，如 9.0"))
			}
		}
		gs = append(gs, g)
	}
	if len(amd) > 0 {
		n := &b.Node
		n.Driver, n.GPUs, n.SMI, n.DeviceFiles = fact.None[fact.Driver](at), fact.None[[]fact.GPU](at), fact.None[fact.SMI](at), fact.None[[]fact.DeviceFile](at)
		n.PCIGPUs = fact.Of(amd, at)
		return nil
	}
	b.Node.GPUs = fact.Of(gs, at)
	return nil
}

// takeNode takes from nb what an artefact does not change: kernel driver, GPUs, fabric.
func takeNode(b, nb *fact.Bundle, label string) {
	n := &nb.Node
	b.Node.Driver, b.Node.GPUs, b.Node.GPUsBound, b.Node.PCIGPUs = n.Driver, n.GPUs, n.GPUsBound, n.PCIGPUs
	b.Node.Fabric, b.Node.NVSwitches, b.Node.RDMA, b.Node.CXI, b.Node.IMEX, b.Node.Peermem = n.Fabric, n.NVSwitches, n.RDMA, n.CXI, n.IMEX, n.Peermem
	b.Host.Board, b.Host.L4T, b.Host.Kernel, b.Host.Name = nb.Host.Board, nb.Host.L4T, nb.Host.Kernel, nb.Host.Name
	if arch := nb.Host.Arch; arch.IsKnown() {
		b.Host.Arch = arch // torch has to run there
	}
	if !b.Target.IsImage() {
		if v := nb.Host.Glibc; v.IsKnown() {
			b.Host.Glibc = v
		}
		if b.Host.OS.Or("linux") == "linux" {
			b.Host.OS = nb.Host.OS
		}
	}
	b.Target.Node = label
}
