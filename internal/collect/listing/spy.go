package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	// what "py-spy dump" prints
	spyProc   = lazyre.New(`^Process (\d+): \S`)
	spyThread = lazyre.New(`^Thread (?:0x[0-9A-Fa-f]+|\d+) \([\w+]+\)(?:: "(\w+)")?$`)
	spyFrame  = lazyre.New(`^\s+(\S+) \((\S+\.py:\d+)\)$`)
)

// spyDepth is how many frames of a stack are kept, the innermost first.
const spyDepth = 3

// spy reads stacks of running programs: the main thread of each process.
func (p *Parser) spy(text string, add adder) bool {
	switch {
	case strings.HasPrefix(text, "Process "):
		if m := spyProc.FindStringSubmatch(text); m != nil {
			p.spyPID, p.spyLeft = m[1], 0
			return true
		}
	case p.spyPID == "":
	case strings.HasPrefix(text, "Thread "):
		if m := spyThread.FindStringSubmatch(text); m != nil {
			if p.spyLeft = 0; m[1] == "" || m[1] == "MainThread" {
				p.spyLeft = spyDepth
			}
			return true
		}
	case p.spyLeft > 0:
		if m := spyFrame.FindStringSubmatch(text); m != nil {
			add(kind.Stack, p.spyPID, m[1], m[2])
			p.spyLeft--
			return true
		}
		p.spyLeft = 0
	}
	return false
}
