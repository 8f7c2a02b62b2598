package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// maxOthers bounds how many other interpreters are asked for their torch.
const maxOthers = 8

// othersTorch says of each other interpreter that something names which torch
// lies in its site-packages. Only the package folder of its own prefix is
// looked at, not its whole search path: that is enough to tell an environment
// that was meant from one that has no torch either.
func (c *collector) othersTorch() {
	for i := range c.py.Others {
		o := &c.py.Others[i]
		if o.Missing || i >= maxOthers || c.ctx.Err() != nil {
			continue
		}
		prefix := path.Dir(path.Dir(o.Exe))
		lib := path.Join(prefix, "lib")
		list := c.t.list(lib)
		if list.err != nil && !gone(list.err) {
			o.Torch = fact.Fail[string](why(lib, list.err), fact.File(lib))
			continue
		}
		found := false
		for _, name := range list.sorted(func(n string) bool { return strings.HasPrefix(n, "python3") }) {
			for _, site := range []string{"site-packages", "dist-packages"} {
				file := path.Join(lib, name, site, "torch", "version.py")
				if !c.t.isFile(file) {
					continue
				}
				f := c.versionPy(file)
				o.Torch, found = f.version, true
				o.Accel = (&fact.Torch{CUDA: f.cuda, HIP: f.hip, XPU: f.xpu}).Accel()
			}
		}
		if !found {
			o.Torch = fact.None[string](fact.File(lib))
		}
	}
}
