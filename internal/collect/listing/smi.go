package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var smiKey = lazyre.New(`^([A-Za-z][\w /.-]*?)\s+: (\S.*)$`)

// detail reads nvidia-smi -q: what it says about errors of the memory, rows
// that wait to be remapped, the state of the fabric and the compute mode.
// Counts since the card was made ("Aggregate") say nothing about this run.
func (p *Parser) detail(msg string, add adder) bool {
	if strings.HasPrefix(msg, "=") && strings.Contains(msg, "NVSMI LOG") {
		p.smiq, p.smiSec = true, ""
		return true
	}
	if !p.smiq && p.cmdAge < 40 && strings.Contains(p.lastCmd, "nvidia-smi") && strings.Contains(p.lastCmd, " -q") {
		p.smiq = true // cut by grep
	}
	if !p.smiq || len(msg) > 120 {
		return false
	}
	t := strings.TrimSpace(msg)
	if strings.HasPrefix(msg, "GPU ") && strings.Count(t, ":") == 2 {
		p.smiGPU, p.smiSec = strings.TrimPrefix(t, "GPU "), ""
		return true
	}
	m := smiKey.FindStringSubmatch(t)
	if m == nil {
		switch t {
		case "Volatile", "Aggregate", "Remapped Rows", "Retired Pages", "Fabric":
			p.smiSec = t
		case "ECC Errors", "Clocks", "Temperature", "Processes", "Ecc Mode":
			p.smiSec = ""
		}
		return false
	}
	switch k, v := m[1], m[2]; {
	case p.smiSec == "Volatile" && (strings.Contains(k, "Uncorrectable") || k == "Double Bit") && v != "0" && v != "N/A":
		add(kind.Hardware, "ecc", k+": "+v, p.smiGPU)
	case p.smiSec == "Remapped Rows" && v == "Yes" || p.smiSec == "Retired Pages" && strings.HasPrefix(k, "Pending") && v == "Yes":
		add(kind.Hardware, "remap", k+": "+v, p.smiGPU)
	case k == "GPU Recovery Action" && v != "None" && v != "N/A":
		add(kind.Hardware, "recovery", v, p.smiGPU)
	case p.smiSec == "Fabric" && k == "State" && v != "Completed" && v != "N/A":
		add(kind.FM, "", v, "")
	case k == "Compute Mode":
		add(kind.Mode, p.smiGPU, v, "")
	case k == "Product Name":
		add(kind.GPU, p.smiGPU, v, "")
	default:
		return false
	}
	return true
}

var (
	csvDriver = lazyre.New(`^\d{3}\.\d+(?:\.\d+)?$`)
	csvCap    = lazyre.New(`^\d{1,2}\.\d$`)
)

// csv reads a row of nvidia-smi --query-gpu: the name, and of the other fields
// those that can only be a driver or a compute capability.
func (p *Parser) csv(name, rest string, add adder) bool {
	found := false
	for _, f := range strings.Split(rest, ",") {
		switch f = strings.TrimSpace(f); {
		case csvDriver.MatchString(f):
			add(kind.Driver, "", f, "")
			found = true
		case csvCap.MatchString(f) && strings.Contains(p.lastCmd, "cap"):
			add(kind.Capability, "", f, "")
			found = true
		}
	}
	if found || strings.Contains(p.lastCmd, "--query-gpu") {
		add(kind.GPU, "", name, "")
		return true
	}
	return false
}
