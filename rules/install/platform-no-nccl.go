package install

import (
	"path"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("platform-no-nccl", func(b *fact.Bundle, r *diag.Reporter) {
	name := map[string]string{"windows": "Windows", "darwin": "macOS"}
	a := args(b)
	if os, tag, at := wheelOS(b.Winner()); name[os] != "" && b.Host.OS.Or("linux") == "linux" {
		a["variant"], a["os"], a["os_name"], a["tag"] = "wheel", os, name[os], tag
		r.Hit("torch-platform-has-no-nccl", diag.Proven, a, at)
		return
	}
	os, ok := b.Host.OS.Get()
	if !ok {
		r.Skip("the operating system is not known")
		return
	}
	if name[os] == "" {
		return
	}
	a["os"], a["os_name"] = os, name[os]
	r.Hit("torch-platform-has-no-nccl", diag.Proven, a, b.Host.OS.At)
})

// wheelOS is the operating system for which all tags of torch's wheel are, with
// one of the tags; "" when they are for several or there are none.
func wheelOS(t *fact.Torch) (os, tag string, at fact.Evidence) {
	if t == nil {
		return "", "", at
	}
	for _, x := range t.Dist.V.Tags {
		is := fact.TagOS(x)
		if is == "" || os != "" && os != is {
			return "", "", at
		}
		if os == "" {
			os, tag, at = is, x, fact.FileExcerpt(path.Join(t.Dist.V.Dir, "WHEEL"), "Tag: "+x)
		}
	}
	return os, tag, at
}
