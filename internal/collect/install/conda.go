package install

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// maxCondaMeta bounds what is read of a conda-meta record. That of pytorch has
// megabytes of file names; all that is wanted of it stands before them.
const maxCondaMeta = 256 << 10

// condaPkg is one record of conda-meta.
type condaPkg struct {
	name, version, build string // from the file's name
	channel              string // last part of the channel: conda-forge
	url                  string // masked
	file                 string
}

// splitCondaName takes name-version-build.json apart; names may have dashes.
func splitCondaName(file string) (p condaPkg, ok bool) {
	s, ok := strings.CutSuffix(file, ".json")
	if !ok {
		return p, false
	}
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return p, false
	}
	j := strings.LastIndexByte(s[:i], '-')
	if j <= 0 {
		return p, false
	}
	p = condaPkg{name: s[:j], version: s[j+1 : i], build: s[i+1:]}
	return p, p.version != "" && p.build != ""
}

// parseCondaMeta reads channel and url of a record, of which data may be only
// the beginning. conda and mamba sort the keys, so both may stand far apart.
func parseCondaMeta(data []byte) (channel, url string) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", ""
	}
	for channel == "" || url == "" {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		v, err := d.Token()
		if err != nil {
			break
		}
		if _, nested := v.(json.Delim); nested {
			if skipNested(d) != nil {
				break
			}
			continue
		}
		if s, ok := v.(string); ok {
			switch key {
			case "channel":
				channel = s
			case "url":
				url = s
			}
		}
	}
	return channel, url
}

// skipNested reads to the end of the object or array that was just opened.
func skipNested(d *json.Decoder) error {
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > 1000 {
				return io.ErrUnexpectedEOF
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// channelName takes the name out of a channel's URL:
// https://conda.anaconda.org/conda-forge/linux-64, https://repo.anaconda.com/pkgs/main.
// A plain name stays; "defaults" channels are pkgs/main and pkgs/r.
func channelName(s string) string {
	s = strings.TrimSuffix(s, "/")
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
		if _, rest, ok := strings.Cut(s, "/"); ok {
			s = rest
		}
		parts := strings.Split(s, "/")
		for len(parts) > 2 && parts[0] == "t" { // /t/<token>/channel
			parts = parts[2:]
		}
		if n := len(parts); n > 1 && isSubdir(parts[n-1]) {
			parts = parts[:n-1]
		}
		if n := len(parts); n > 2 {
			parts = parts[n-2:]
		}
		s = strings.Join(parts, "/")
	}
	switch s {
	case "pkgs/main", "pkgs/r", "pkgs/free", "main":
		return "defaults"
	}
	return fact.Clip(mask.Text(s), 100)
}

func isSubdir(s string) bool {
	return s == "noarch" || strings.HasPrefix(s, "linux-") || strings.HasPrefix(s, "osx-") || strings.HasPrefix(s, "win-")
}

// condaPython reads the version from conda-meta/python-3.11.7-….json.
func (c *collector) condaPython(prefix string) (pyver, string, bool) {
	dir := path.Join(prefix, "conda-meta")
	if !c.t.isDir(dir) {
		return pyver{}, "", false
	}
	for name := range c.t.list(dir).names {
		if p, ok := splitCondaName(name); ok && p.name == "python" {
			v, ok := parsePyver(p.version)
			return v, path.Join(dir, name), ok
		}
	}
	return pyver{}, "", false
}

// conda records whether the interpreter, or the base of its virtual
// environment, belongs to a conda environment.
func (c *collector) conda(l layout) {
	dir := path.Join(l.base, "conda-meta")
	if c.t.isDir(dir) {
		c.py.Conda = fact.Of(l.base, fact.File(dir))
		return
	}
	c.py.Conda = fact.None[string](fact.File(dir))
}

// condaWants are conda packages that matter, beside the Python ones of wanted.
var condaWants = map[string]bool{
	"pytorch": true, "pytorch-gpu": true, "pytorch-cpu": true, "libtorch": true, "pytorch-mutex": true, "pytorch-cuda": true,
	"nccl": true, "cuda-version": true, "cudatoolkit": true, "cuda-cudart": true, "cuda-runtime": true, "cudnn": true,
	"libcublas": true, "libnvjitlink": true, "openmpi": true, "mpich": true, "ucx": true, "libfabric": true, "aws-ofi-nccl": true,
}

// condaRecords lists the packages of a conda environment that matter. Only
// records of torch itself are opened.
func (c *collector) condaRecords(prefix string) []condaPkg {
	dir := path.Join(prefix, "conda-meta")
	list := c.t.list(dir)
	if list.err != nil {
		c.b.AddProblem(dir, list.err.Error())
	}
	var out []condaPkg
	for _, name := range list.sorted(func(n string) bool { return strings.HasSuffix(n, ".json") }) {
		p, ok := splitCondaName(name)
		if !ok || !condaWants[p.name] && !wanted(NormalName(p.name)) {
			continue
		}
		p.file = path.Join(dir, name)
		if p.name == "pytorch" || p.name == "libtorch" || p.name == "nccl" {
			data, _, err := c.t.read(p.file, maxCondaMeta)
			if err != nil {
				c.b.AddProblem(p.file, err.Error())
			}
			channel, url := parseCondaMeta(data)
			if channel == "" {
				channel = url
			}
			p.channel, p.url = channelName(channel), fact.Clip(mask.Text(maskCondaToken(url)), 300)
		}
		out = append(out, p)
	}
	return out
}

// maskCondaToken hides the token in https://host/t/<token>/channel.
func maskCondaToken(url string) string {
	i := strings.Index(url, "/t/")
	if i < 0 {
		return url
	}
	rest := url[i+3:]
	_, tail, ok := strings.Cut(rest, "/")
	if !ok {
		return url[:i+3] + mask.Hidden
	}
	return url[:i+3] + mask.Hidden + "/" + tail
}
