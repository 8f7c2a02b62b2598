package install

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// Limits on metadata. That of torch has some 30 KB, nearly all of it description.
const (
	maxMetadata = 128 << 10
	maxSmall    = 64 << 10
	maxDists    = 500
	maxRequires = 200
)

// wantedNames are distributions that matter, by normalised name; wantedPrefixes
// are families of them.
var wantedNames = map[string]bool{
	"torch": true, "torchvision": true, "torchaudio": true, "torchtext": true, "torchdata": true, "torchao": true, "torchtitan": true,
	"triton": true, "pytorch-triton": true, "pytorch-triton-rocm": true, "pytorch-triton-xpu": true, "triton-nightly": true,
	"functorch": true, "apex": true, "xformers": true, "deepspeed": true, "accelerate": true, "transformers": true, "peft": true, "trl": true,
	"lightning": true, "pytorch-lightning": true, "horovod": true, "fairscale": true, "bitsandbytes": true, "vllm": true, "sglang": true, "sgl-kernel": true,
	"transformer-engine": true, "megatron-core": true, "nemo-toolkit": true, "colossalai": true, "ray": true, "mpi4py": true, "nixl": true,
	"intel-extension-for-pytorch": true, "oneccl-bind-pt": true, "oneccl": true, "numpy": true, "ninja": true, "amdsmi": true,
}

var wantedPrefixes = []string{"nvidia-", "torch-", "pytorch-", "flash-attn", "cupy", "jax", "tensorflow", "transformer-engine-", "cuda-"}

func wanted(name string) bool {
	if wantedNames[name] {
		return true
	}
	for _, p := range wantedPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// NormalName normalises a distribution's name as PEP 503 does.
func NormalName(s string) string {
	var b strings.Builder
	sep := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '-' || c == '_' || c == '.':
			sep = true
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
			fallthrough
		default:
			if sep && b.Len() > 0 {
				b.WriteByte('-')
			}
			sep = false
			b.WriteByte(c)
		}
	}
	return b.String()
}

// splitDistName takes the name of a metadata folder apart:
// torch-2.5.1+cu121.dist-info, torch-1.8.0-py3.8.egg-info, torch.egg-info.
func splitDistName(folder string) (name, version string, ok bool) {
	stem, isDist := strings.CutSuffix(folder, ".dist-info")
	if !isDist {
		var isEgg bool
		if stem, isEgg = strings.CutSuffix(folder, ".egg-info"); !isEgg {
			return "", "", false
		}
	}
	name, version, _ = strings.Cut(stem, "-")
	if !isDist {
		version, _, _ = strings.Cut(version, "-")
	}
	return NormalName(name), version, name != ""
}

// distributions fills Dists from the names of metadata folders; only those of
// torch and NCCL are opened.
func (c *collector) distributions() {
	seen := map[string]bool{}
	for i, e := range c.py.Path {
		if !e.Exists || e.Kind == fact.PathStdlib || c.ctx.Err() != nil || !c.t.isDir(e.Dir) {
			continue
		}
		if real := c.t.at(e.Dir).real; seen[real] {
			continue
		} else {
			seen[real] = true
		}
		list := c.t.list(e.Dir)
		for _, folder := range list.sorted(func(n string) bool {
			return strings.HasSuffix(n, ".dist-info") || strings.HasSuffix(n, ".egg-info")
		}) {
			name, version, ok := splitDistName(folder)
			if !ok || !wanted(name) {
				continue
			}
			if len(c.b.Dists) >= maxDists {
				c.b.AddProblem(e.Dir, "too many distributions; the rest was left out")
				return
			}
			d := fact.Dist{Name: name, Version: version, Dir: path.Join(e.Dir, folder), Entry: i}
			switch {
			case name == "torch":
				c.metadata(&d)
			case strings.HasPrefix(name, "nvidia-nccl-"):
				d.Installer = c.line(path.Join(d.Dir, "INSTALLER"))
			}
			c.b.Dists = append(c.b.Dists, d)
		}
	}
	prefix, ok := c.py.Conda.Get()
	if !ok {
		return
	}
	have := map[string]bool{}
	for _, d := range c.b.Dists {
		have[d.Name] = true
	}
	for _, p := range c.condaRecords(prefix) {
		if name := NormalName(p.name); !have[name] && len(c.b.Dists) < maxDists {
			c.b.Dists = append(c.b.Dists, fact.Dist{
				Name: name, Version: p.version, Dir: p.file, Entry: -1,
				Installer: "conda", Build: p.build, Channel: p.channel, URL: p.url,
			})
		}
	}
}

// metadata reads what a metadata folder says about a distribution.
func (c *collector) metadata(d *fact.Dist) {
	for _, name := range []string{"METADATA", "PKG-INFO", ""} { // an old .egg-info is a file itself
		file := path.Join(d.Dir, name)
		if !c.t.isFile(file) {
			continue
		}
		data, _, err := c.t.read(file, maxMetadata)
		if err != nil {
			c.b.AddProblem(file, err.Error())
			break
		}
		m := parseMetadata(data)
		if m.version != "" {
			d.Version = m.version
		}
		d.Requires = m.requires
		break
	}
	if !strings.HasSuffix(d.Dir, ".dist-info") {
		return
	}
	d.Installer = c.line(path.Join(d.Dir, "INSTALLER"))
	if data, _, err := c.t.read(path.Join(d.Dir, "WHEEL"), maxSmall); err == nil {
		d.Tags = parseWheel(data)
	}
	if data, _, err := c.t.read(path.Join(d.Dir, "direct_url.json"), maxSmall); err == nil {
		d.URL = parseDirectURL(data).url
	}
}

// line returns the first line of a small file, "" when there is none.
func (c *collector) line(file string) string {
	if !c.t.isFile(file) {
		return ""
	}
	data, _, err := c.t.read(file, 4<<10)
	if err != nil {
		return ""
	}
	s, _, _ := strings.Cut(string(data), "\n")
	return fact.Clip(strings.TrimSpace(s), 40)
}

// distMeta is what the head of METADATA or PKG-INFO says.
type distMeta struct {
	name, version string
	requires      []string // without those of extras
}

// parseMetadata reads the header lines up to the first empty one.
func parseMetadata(data []byte) distMeta {
	var m distMeta
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || line[0] == ' ' || line[0] == '\t' {
			continue
		}
		value = fact.Clip(strings.TrimSpace(value), 300)
		switch strings.ToLower(key) {
		case "name":
			if m.name == "" {
				m.name = NormalName(value)
			}
		case "version":
			if m.version == "" {
				m.version = value
			}
		case "requires-dist":
			if _, marker, _ := strings.Cut(value, ";"); !strings.Contains(marker, "extra") && len(m.requires) < maxRequires {
				m.requires = append(m.requires, mask.Text(value))
			}
		}
	}
	return m
}

// parseWheel returns the Tag lines of WHEEL.
func parseWheel(data []byte) []string {
	var tags []string
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "Tag:"); ok && len(tags) < 50 {
			tags = append(tags, fact.Clip(strings.TrimSpace(v), 200))
		}
	}
	return tags
}

// directURL is direct_url.json of PEP 610.
type directURL struct {
	url      string // masked
	editable bool
	dir      bool // built from a folder
	vcs      bool // built from a repository
}

func parseDirectURL(data []byte) directURL {
	var v struct {
		URL     string `json:"url"`
		DirInfo *struct {
			Editable bool `json:"editable"`
		} `json:"dir_info"`
		VCSInfo *json.RawMessage `json:"vcs_info"`
	}
	if json.Unmarshal(data, &v) != nil {
		return directURL{}
	}
	d := directURL{url: fact.Clip(mask.Text(v.URL), 300), dir: v.DirInfo != nil, vcs: v.VCSInfo != nil}
	d.editable = d.dir && v.DirInfo.Editable
	return d
}
