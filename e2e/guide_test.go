package e2e

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab"
)

// The guide's blocks are fenced and follow an HTML comment that names them:
//
//	<!-- file: NAME -->    a file that the reader writes; its path is NAME, below the home folder
//	<!-- run: NAME -->     commands, as they are pasted
//	<!-- output: NAME -->  what the block of commands of that name prints
//
// A line of the output that is only "…" stands for any text that the page leaves out.
type guide struct {
	path   string
	blocks []block
}

type block struct {
	kind, name, text string
	line             int
}

const cut = "…"

var guideMark = regexp.MustCompile(`^<!-- (file|run|output): (\S+) -->$`)

func readGuide(t *testing.T, path string) guide {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := guide{path: path}
	s := bufio.NewScanner(bytes.NewReader(b))
	var now *block
	fence := "" // what ends the fenced block that the line is in
	for n := 1; s.Scan(); n++ {
		l := s.Text()
		switch {
		case fence != "" && l == fence:
			if now != nil {
				g.blocks = append(g.blocks, *now)
			}
			now, fence = nil, ""
		case fence != "":
			if now != nil {
				now.text += l + "\n"
			}
		case strings.HasPrefix(l, "```"):
			fence = "```"
		case guideMark.MatchString(l):
			m := guideMark.FindStringSubmatch(l)
			now = &block{kind: m[1], name: m[2], line: n}
		case strings.HasPrefix(l, "<!--"):
			t.Errorf("%s:%d: a comment of unknown form: %s", path, n, l)
		case now != nil:
			t.Errorf("%s:%d: %s %s is not followed by a fenced block", path, now.line, now.kind, now.name)
			now = nil
		}
	}
	if err := s.Err(); err != nil || fence != "" {
		t.Fatalf("%s: %v, open fence %q", path, err, fence)
	}
	return g
}

// find returns the text of a block, and whether there is one.
func (g guide) find(kind, name string) (block, bool) {
	for _, b := range g.blocks {
		if b.kind == kind && b.name == name {
			return b, true
		}
	}
	return block{}, false
}

var guidePages = []string{"../docs/nccl-not-built-in.md", "../docs/nccl-not-built-in.zh-CN.md"}

// TestGuidePages: each block of commands has its output, each command its
// context here, and both languages show the same.
func TestGuidePages(t *testing.T) {
	en, zh := readGuide(t, guidePages[0]), readGuide(t, guidePages[1])
	for _, b := range en.blocks {
		o, ok := zh.find(b.kind, b.name)
		if !ok || o.text != b.text {
			t.Errorf("%s:%d: %s %s is not the same in %s", en.path, b.line, b.kind, b.name, zh.path)
		}
		if b.kind == "run" {
			if _, ok := en.find("output", b.name); !ok {
				t.Errorf("%s:%d: run %s has no output", en.path, b.line, b.name)
			}
		}
		if b.kind == "output" {
			if _, ok := en.find("run", b.name); !ok {
				t.Errorf("%s:%d: output %s has no commands", en.path, b.line, b.name)
			}
		}
	}
	if len(en.blocks) != len(zh.blocks) {
		t.Errorf("%d blocks in %s, %d in %s", len(en.blocks), en.path, len(zh.blocks), zh.path)
	}
	seen := map[string]bool{}
	for _, b := range en.blocks {
		if k := b.kind + b.name; seen[k] {
			t.Errorf("%s:%d: a second %s %s", en.path, b.line, b.kind, b.name)
		} else {
			seen[k] = true
		}
	}
}

// TestGuideLinks: what a page points to in this repository and in itself is there.
func TestGuideLinks(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	link := regexp.MustCompile(`\]\(([^)]*)\)`)
	fenced := regexp.MustCompile("(?ms)^```.*?^```$")
	drop := regexp.MustCompile(`[^\p{L}\p{N}_ -]`) // as the site that shows the page makes anchors
	for _, p := range guidePages {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		text := fenced.ReplaceAllString(string(b), "")
		anchors := map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			anchors["#"+strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			switch to := m[1]; {
			case strings.HasPrefix(to, "https://"):
			case strings.HasPrefix(to, "#"):
				if !anchors[to] {
					t.Errorf("%s: no heading for %s", p, to)
				}
			default:
				if _, err := os.Stat(filepath.Join(filepath.Dir(p), to)); err != nil {
					t.Errorf("%s: %v", p, err)
				}
			}
		}
	}
}

// TestGuideMatches: the comparison of outputs finds differences.
func TestGuideMatches(t *testing.T) {
	h := guideHome{names: map[string]string{"/tmp/x/home": "/home/zhang"}}
	const printed = "a /tmp/x/home/b\nsrun: error: n2: task 0: Exited with exit code 1\nc d\ne in 3ms\n"
	for _, c := range []struct {
		shown string
		same  bool
	}{
		{"a /home/zhang/b\nc d\ne in 5ms\n", true},
		{"a /home/zhang/b c\nd e in 5ms\n", true}, // wrapped elsewhere
		{"a /home/zhang/b\n…\n", true},
		{"…\ne in 1ms\n", true},
		{"a\n…\nc\n…\n", true},
		{"a /home/zhang/b\nc d\n", false},
		{"c d\n…\n", false},
		{"a\n…\nx\n…\n", false},
		{"a\n…\nc d\n", false},
		{"…\nd\n…\nc\n…\n", false},
		{"a /home/wang/b\n…\n", false},
	} {
		if err := h.matches(c.shown, printed); (err == nil) != c.same {
			t.Errorf("%q: %v", c.shown, err)
		}
	}
}

// guideHome is the home folder that the page's commands run in.
type guideHome struct {
	dir   string            // the folder itself; /home/zhang on the page
	names map[string]string // path here -> path on the page
}

// prepareGuide lays out what the page speaks of: an environment with a CUDA
// build, a Python of the site with a CUDA build, folders that hold wheels.
func prepareGuide(t *testing.T, g guide) guideHome {
	t.Helper()
	cuda := prefix(t, "cuda")
	arm := prefix(t, "aarch64")
	tools := testenv.Cache(t, "tools")
	debian(t)
	const lmod = "/usr/share/lmod/lmod/init/bash"
	testenv.File(t, lmod, "lab/deps.sh packages")

	dir := temp(t)
	h := guideHome{dir: dir + "/home", names: map[string]string{
		cuda: "/home/zhang/venvs/cuda",
		arm:  "/home/zhang/venvs/aarch64",

		prefix(t, "cuda-no-nccl"): "/home/zhang/venvs/no-nccl",
	}}
	home := h.dir
	h.names[home] = "/home/zhang"
	link(t, cuda, home+"/venvs/cuda")
	link(t, arm, home+"/venvs/aarch64")
	link(t, prefix(t, "cuda-no-nccl"), home+"/venvs/no-nccl")
	link(t, program, home+"/bin/ncclinic")
	link(t, tools+"/bin/uv", home+"/bin/uv")
	link(t, lab.CacheDir()+"/wheels/nvidia_nccl_cu12-2.21.5-py3-none-manylinux2014_x86_64.whl", home+"/wheels/nvidia_nccl_cu12-2.21.5-py3-none-manylinux2014_x86_64.whl")
	command(t, nil, "/usr/bin/python3", "-m", "venv", "--system-site-packages", home+"/venvs/cpu")
	command(t, nil, "/usr/bin/python3", "-m", "venv", home+"/venvs/trap")

	// The site's Python with its own CUDA build, and a CPU build in ~/.local of
	// another user, because ~/.local is seen by every other block.
	h.names[relocated(t, site(cuda))] = "/sw/python"
	other := dir + "/wang"
	h.names[other] = "/home/wang"
	copyDebianTorch(t, other+"/.local/lib/python3.11/site-packages")

	// A module that puts a CPU build first.
	copyDebianTorch(t, dir+"/sw/pytorch-cpu")
	h.names[dir+"/sw"] = "/sw"
	write(t, dir+"/sw/modules/pytorch-cpu/1.13.lua", `prepend_path("PYTHONPATH", "`+dir+`/sw/pytorch-cpu")`+"\n")

	// What three package indexes offer, as small stand-ins: pip and uv decide
	// by names and versions alone.
	dummyTorch(t, home+"/index/cpu", "2.6.0+cpu", "")
	dummyTorch(t, home+"/index/cu124", "2.6.0+cu124", "12.4")
	dummyTorch(t, home+"/index/pypi", "2.6.0", "12.4")

	for _, b := range g.blocks {
		if b.kind == "file" {
			write(t, filepath.Join(home, b.name), b.text)
		}
	}
	return h
}

// dummyTorch writes a wheel named torch of a few lines.
func dummyTorch(t *testing.T, dir, version, cuda string) {
	t.Helper()
	none := "None"
	if cuda != "" {
		none = "'" + cuda + "'"
	}
	info := "torch-" + version + ".dist-info/"
	files := [][2]string{
		{"torch/__init__.py", "from .version import __version__\nfrom . import version\n"},
		{"torch/version.py", "__version__ = '" + version + "'\ncuda = " + none + "\nhip = None\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: " + version + "\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: guide\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	record := ""
	for _, f := range files {
		sum := sha256.Sum256([]byte(f[1]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(f[1]))
	}
	files = append(files, [2]string{info + "RECORD", record + info + "RECORD,,\n"})
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, f := range files {
		w, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/torch-"+version+"-py3-none-any.whl", buf.String())
}

// run runs a block as a person pastes it into the shell of a login node.
func (h guideHome) run(t *testing.T, c *lab.Cluster, text string, x guideContext) string {
	t.Helper()
	cmd := c.Command(t.Context(), "bash", "--norc")
	path := h.dir + "/bin:/usr/bin:/bin"
	cmd.Env = append(cmd.Env, "HOME="+h.dir, "PATH="+path,
		// The environment with the CUDA build has no numpy, and torch warns of that.
		"PYTHONWARNINGS=ignore",
		"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_CONFIG_FILE=/dev/null", "UV_NO_CONFIG=1", "UV_PYTHON_DOWNLOADS=never")
	if x.user != "" {
		cmd.Env = append(cmd.Env, "HOME="+h.real("/home/"+x.user))
	}
	cmd.Dir = h.dir
	cmd.Args = append(cmd.Args, "-c", h.real(x.before+text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Many blocks show commands that fail; what they print is what counts.
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String()
}

var volatile = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\bn[1-9]\b`), "n1"},
	{regexp.MustCompile(`\b3\.11\.\d+\b`), "3.11.2"},
	{regexp.MustCompile(`\b([Jj]ob) \d+`), "$1 1"},
	{regexp.MustCompile(`\b\d+(\.\d+)?ms\b`), "5ms"},
	{regexp.MustCompile(`(?m)^\S+:\d+:\d+ \[\d+\] `), "n1:1:1 [0] "}, // NCCL: host, pid, tid
	// srun's own line comes when it likes, between those of the program.
	{regexp.MustCompile(`(?m)^srun: error: \S+ task \d+: Exited with exit code \d+\n`), ""},
	{regexp.MustCompile(`ncclinic \d+\.\d+\.\d+\S*`), "ncclinic 0.1.0"},
}

// words makes a text comparable: paths as on the page, nothing that changes
// between runs, and no line breaks, because paths of another length wrap
// elsewhere.
func (h guideHome) words(text string) string {
	text = h.asOnPage(text)
	for _, v := range volatile {
		text = v.re.ReplaceAllString(text, v.with)
	}
	return strings.Join(strings.Fields(text), " ")
}

// asOnPage replaces the paths of this machine by those of the page.
func (h guideHome) asOnPage(text string) string {
	// The longest first: one may stand in another.
	for _, p := range slices.SortedFunc(maps.Keys(h.names), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, p, h.names[p])
	}
	return text
}

// real replaces the page's paths by those of this machine.
func (h guideHome) real(text string) string {
	for _, p := range slices.SortedFunc(maps.Keys(h.names), func(a, b string) int { return len(h.names[b]) - len(h.names[a]) }) {
		text = strings.ReplaceAll(text, h.names[p], p)
	}
	return text
}

// matches compares what was printed with what the page shows of it.
func (h guideHome) matches(shown, got string) error {
	var parts []string
	part := ""
	for l := range strings.Lines(shown) {
		if strings.TrimSpace(l) == cut {
			parts = append(parts, h.words(part))
			part = ""
			continue
		}
		part += l
	}
	parts = append(parts, h.words(part))
	rest := h.words(got)
	for i, p := range parts {
		at := strings.Index(rest, p)
		switch {
		case i == len(parts)-1 && strings.HasSuffix(rest, p) && (i > 0 || rest == p):
			return nil
		case i == len(parts)-1:
			return fmt.Errorf("the end is not %q", p)
		case at < 0 || i == 0 && at > 0:
			return fmt.Errorf("nothing like %q in its place", p)
		}
		rest = rest[at+len(p):]
	}
	return nil
}

// guideContext is where a block of commands runs; the zero value is a login
// node's shell of the user zhang, in the home folder, with nothing active.
type guideContext struct {
	user   string // whose ~ it is
	before string // what the login shell has done
}

var guideContexts = map[string]guideContext{
	"user-site": {user: "wang"},
	"module":    {before: ". /usr/share/lmod/lmod/init/bash; module use /sw/modules\n"},
}

// TestGuide runs every command of the page and compares what it prints.
func TestGuide(t *testing.T) {
	c := slurm(t)
	g := readGuide(t, guidePages[0])
	h := prepareGuide(t, g)
	for _, b := range g.blocks {
		if b.kind != "run" {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			o, ok := g.find("output", b.name)
			if !ok {
				t.Fatal("no output on the page")
			}
			got := h.run(t, c, b.text, guideContexts[b.name])
			if err := h.matches(o.text, got); err != nil {
				t.Errorf("%s:%d: %v; printed was\n%s", g.path, o.line, err, h.asOnPage(got))
			}
		})
	}
}
