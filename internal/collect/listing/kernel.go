package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	// what modprobe, modinfo, dkms and the kernel say about a module that cannot serve
	noModule = lazyre.New(`modinfo: ERROR: Module nvidia\S* not found|modprobe: FATAL: Module nvidia\S* not found|could not insert '?nvidia|insmod: ERROR: could not insert module \S*nvidia|` +
		`/proc/driver/nvidia/version'?: No such file|nvidia\S*: disagrees about version of symbol|NVRM: The NVIDIA probe routine was not called|NVRM: No NVIDIA (?:GPU|graphics adapter) (?:found|probed)|` +
		`^nvidia(?:-open|-srv)?[/,] ?[\d.]+(?:, \S+, \S+)?: (?:added|built)$|nvidia: version magic .* should be`)
	pixiRow = lazyre.New(`^\s*([A-Za-z][\w.-]*)\s+(\d[\w.!+-]*)\s+(\S+)\s+[\d.]+ ?(?:[KMG]i?)?B\s+(?:conda|pypi)\b`)
	echoVar = lazyre.New(`(?:^|[;&|]\s*|'|")(?:echo\s+["']?\$\{?(\w+)\}?["']?|printenv\s+(\w+))\s*['"]?$`)
	plain   = lazyre.New(`^[^\s()<>|]+$`)
)

// kernel reads what module tools and the kernel's log say about the driver's module.
func (p *Parser) kernel(msg string, add adder) bool {
	if !strings.Contains(msg, "nvidia") && !strings.Contains(msg, "NVRM: ") {
		return false
	}
	if len(msg) > 400 || !noModule.MatchString(msg) {
		return false
	}
	add(kind.NoModule, "", msg, "")
	return true
}

// echoes notes which variable "echo $VAR" or "printenv VAR" will show.
func (p *Parser) echoes(cmd string) {
	p.echo = ""
	if m := echoVar.FindStringSubmatch(strings.TrimSpace(cmd)); m != nil && matters(m[1]+m[2]) {
		p.echo = m[1] + m[2]
	}
}

// echoed reads the value: the next line.
func (p *Parser) echoed(msg string, add adder) bool {
	if p.echo == "" {
		return false
	}
	name := p.echo
	p.echo = ""
	if !plain.MatchString(msg) {
		return false
	}
	add(kind.Env, name, msg, "")
	return true
}
