package plan

import (
	"fmt"
	"strings"
)

// Tools that put a torch in place.
const (
	Pip        = "pip"
	UV         = "uv"
	UVProject  = "uv-project"
	Conda      = "conda"
	Mamba      = "mamba"
	Micromamba = "micromamba"
	Pixi       = "pixi"
	Poetry     = "poetry"
	Apptainer  = "apptainer"
	Module     = "module"
)

// Tools lists all tools.
var Tools = []string{Pip, UV, UVProject, Conda, Mamba, Micromamba, Pixi, Poetry, Apptainer, Module}

// PyTorchIndex is the address below which the PyTorch project keeps one index per build.
const PyTorchIndex = "https://download.pytorch.org/whl"

// Env is where the torch has to land.
type Env struct {
	Python string // the interpreter that the job uses; "" when not known: python
	Prefix string // of the environment
	Base   string // interpreter of which a venv was made
	Kind   string // venv, conda, system, new (only its version is known), pyenv (an interpreter of the user's own); "" when not known
	Tool   string // see Tools
	NoPip  bool   // a virtual environment without pip
	// UserSite is the user's site-packages when a torch there wins, and UserDists
	// what of torch, torchvision and torchaudio lies in it.
	UserSite  string
	UserDists []string
	// Companions are the installed torchvision and torchaudio, name to version.
	Companions map[string]string
	Project    string // project file that the tool works with, pyproject.toml or pixi.toml
	Text       string // its text
	IndexURL   string // of the site: base of one index per build, or one index; "" is the PyTorch index
	FindLinks  string // folder with the site's wheels
	Image      string // container image that holds the torch
	Login      bool   // no GPU here: what needs one goes through srun
	Gres       string // GRES type for srun, such as a100
	Modules    []string
	Loaded     []string // modules that are loaded now
	Before     string   // file for the state before; "" is torch-before.txt
}

func (e *Env) python() string {
	if e.Python == "" {
		return "python"
	}
	return quote(e.Python)
}

func (e *Env) before() string {
	if e.Before != "" {
		return quote(e.Before)
	}
	return "torch-before.txt"
}

// keep writes the state before once and whole: a list that was cut short would
// be no way back.
func (e *Env) keep(list string) string {
	f := e.before()
	return fmt.Sprintf("[ -e %[1]s ] || { %[2]s > %[1]s.part && mv %[1]s.part %[1]s; }", f, list)
}

// fresh reports whether the plan makes an environment of its own.
func (e *Env) fresh() bool { return e.Kind == "system" || e.Kind == "new" }

// own is the folder of that environment, as a shell word.
func (e *Env) own() string {
	dir := `"$HOME"/venvs/torch`
	switch e.Tool {
	case Conda, Mamba, Micromamba:
		dir = `"$HOME"/envs/torch`
	}
	if e.Kind == "new" {
		dir += strings.Replace(e.Python, "python", "-py", 1)
	}
	return dir
}

// constraints is the file that keeps other packages from replacing torch.
func (e *Env) constraints() string {
	if e.fresh() {
		return e.own() + "/torch-constraints.txt"
	}
	if e.Prefix != "" {
		return quote(e.Prefix + "/torch-constraints.txt")
	}
	return "torch-constraints.txt"
}

// index returns the options that name where a build lies.
func (e *Env) index(o *Option) string {
	switch {
	case e.FindLinks != "":
		return "--find-links " + quote(e.FindLinks)
	case !o.Local && e.IndexURL == "":
		return ""
	}
	return "--index-url " + quote(e.url(o.Tag))
}

func (e *Env) url(tag string) string {
	base := strings.TrimSuffix(e.IndexURL, "/")
	switch {
	case base == "":
		base = PyTorchIndex
	case strings.HasSuffix(base, "/simple"), buildTag(base[strings.LastIndexByte(base, '/')+1:]):
		return base
	}
	return base + "/" + tag
}

// quote makes a word safe to paste into a shell; ordinary ones stay as they are.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./~-") == "" && s[0] != '~' && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
