package install

import (
	"bufio"
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// maxDpkgStatus bounds what is read of dpkg's status file.
const maxDpkgStatus = 6 << 20

// origin says who built a torch, from the records of those who install it.
func (c *collector) origin(t *fact.Torch, d fact.Dist, hasDist bool) {
	at := fact.File(d.Dir)
	if under(t.Dir, "/usr/lib/python3/dist-packages") {
		if o, file, ok := c.debian(); ok {
			t.Origin = fact.Of(o, fact.File(file))
			if v, known := t.Dist.Get(); known {
				v.Installer = "debian"
				t.Dist.V = v
				c.setInstaller(v)
			}
			return
		}
	}
	if rec, ok := c.condaTorch(t); ok {
		// pip over conda leaves both records; INSTALLER says who came last.
		if hasDist && d.Installer != "" && d.Installer != "conda" {
			t.Damage = append(t.Damage, fact.Damage{Kind: fact.DamageTwoInstallers,
				What: path.Base(rec.Dir) + ", and " + path.Base(d.Dir) + " by " + d.Installer, At: fact.File(rec.Dir)})
		} else {
			t.Origin = fact.Of(fact.Origin{Kind: fact.OriginConda, Package: rec.Name, Version: rec.Version, Build: rec.Build, Channel: rec.Channel, URL: rec.URL}, fact.File(rec.Dir))
			if hasDist {
				d.Installer, d.Build, d.Channel = "conda", rec.Build, rec.Channel
				t.Dist.V = d
				c.setInstaller(d)
			}
			return
		}
	}
	if !hasDist {
		switch {
		case t.Kind == fact.PathPth || t.Kind == fact.PathFinder || c.isSource(path.Dir(t.Dir)):
			t.Origin = fact.Of(fact.Origin{Kind: fact.OriginSource, URL: path.Dir(t.Dir)}, viaEvidence(t))
		default:
			t.Origin = fact.Fail[fact.Origin]("no metadata of a distribution beside it", fact.File(path.Dir(t.Dir)))
		}
		return
	}
	var du directURL
	if data, _, err := c.t.read(path.Join(d.Dir, "direct_url.json"), maxSmall); err == nil {
		du = parseDirectURL(data)
	}
	o := fact.Origin{Package: "torch", Version: d.Version, URL: d.URL}
	switch {
	case du.editable || du.dir && d.Installer != "conda" || du.vcs, strings.HasSuffix(d.Dir, ".egg-info"), t.Kind == fact.PathPth:
		o.Kind = fact.OriginSource
	case d.Installer == "conda":
		o.Kind = fact.OriginConda
	default:
		o.Kind = fact.OriginWheel
	}
	t.Origin = fact.Of(o, at)
}

func viaEvidence(t *fact.Torch) fact.Evidence {
	if t.Via != "" {
		return fact.FileExcerpt(path.Dir(t.Dir), mask.Text(t.Via))
	}
	return fact.File(path.Dir(t.Dir))
}

// setInstaller carries what the package manager's records say over to Dists.
func (c *collector) setInstaller(d fact.Dist) {
	for i := range c.b.Dists {
		if c.b.Dists[i].Dir == d.Dir {
			c.b.Dists[i] = d
		}
	}
}

// isSource reports whether a folder is a source tree.
func (c *collector) isSource(dir string) bool {
	return c.t.exists(path.Join(dir, "setup.py")) && (c.t.exists(path.Join(dir, ".git")) || c.t.exists(path.Join(dir, "CMakeLists.txt")))
}

// condaTorch returns conda's record of the torch in its environment.
func (c *collector) condaTorch(t *fact.Torch) (fact.Dist, bool) {
	prefix, ok := c.py.Conda.Get()
	if !ok || !under(t.Dir, prefix) || t.Kind == fact.PathUserSite || c.py.Venv.Or(false) && t.Kind == fact.PathSite {
		return fact.Dist{}, false
	}
	// libtorch has the libraries and is what decides between CPU and CUDA, but
	// pytorch is what people install.
	for _, name := range []string{"pytorch", "libtorch", "pytorch-gpu"} {
		for _, d := range c.b.Dists {
			if d.Name == name && d.Installer == "conda" && d.Entry == -1 {
				return d, true
			}
		}
	}
	return fact.Dist{}, false
}

// debian returns the Debian package that owns /usr/lib/python3/dist-packages/torch.
func (c *collector) debian() (o fact.Origin, file string, ok bool) {
	const info = "/var/lib/dpkg/info"
	for _, pkg := range []string{"python3-torch", "python3-torch-cuda", "python3-torch-rocm"} {
		for _, suffix := range []string{"", ":amd64", ":arm64"} {
			file = path.Join(info, pkg+suffix+".list")
			if !c.t.isFile(file) {
				continue
			}
			o = fact.Origin{Kind: fact.OriginDebian, Package: pkg}
			const status = "/var/lib/dpkg/status"
			f, _, err := c.t.open(status)
			if err != nil {
				c.b.AddProblem(status, err.Error())
				return o, file, true
			}
			defer f.Close()
			o.Version = dpkgVersion(f, pkg)
			return o, file, true
		}
	}
	return o, "", false
}

// dpkgVersion finds the version of an installed package in dpkg's status file.
// It looks for the paragraph as a whole: reading 100,000 lines one by one was a
// twentieth of a check.
func dpkgVersion(r io.Reader, pkg string) string {
	head := []byte("\nPackage: " + pkg + "\n")
	br := bufio.NewReaderSize(io.MultiReader(strings.NewReader("\n"), io.LimitReader(r, maxDpkgStatus)), 64<<10)
	for {
		buf, err := br.Peek(br.Size())
		if i := bytes.Index(buf, head); i >= 0 {
			_, _ = br.Discard(i + len(head)) // it was peeked at
			break
		}
		if err != nil {
			return ""
		}
		_, _ = br.Discard(len(buf) - len(head) + 1)
	}
	for {
		line, err := br.ReadSlice('\n')
		if v, ok := bytes.CutPrefix(line, []byte("Version: ")); ok {
			return fact.Clip(string(trimEOL(v)), 100)
		}
		if err == bufio.ErrBufferFull { // a long line; its rest matches nothing
			continue
		}
		if err != nil || len(trimEOL(line)) == 0 { // the end of the paragraph
			return ""
		}
	}
}
