package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	squeuePD = lazyre.New(`^\s*(\d+(?:_\S+)?)\s+.*\b(?:PD|PENDING)\b.*\(([A-Z]\w+)[^()]*\)$`)
	squeueR  = lazyre.New(`^\s*(\d+(?:_\S+)?)\s+\S+\s+\S+\s+\S+\s+(?:R|RUNNING|CG)\s+[\d:-]+\s+\d+\s+\S+$`)
	pendOf   = lazyre.New(`JobState=PENDING Reason=(\w+)`)
)

// queue reads why jobs wait: squeue and scontrol show job.
func (p *Parser) queue(msg string, add adder) bool {
	if strings.HasSuffix(msg, ")") && len(msg) < 300 && strings.Contains(msg, "PD") || strings.HasSuffix(msg, ")") && strings.Contains(msg, "PENDING") {
		if m := squeuePD.FindStringSubmatch(msg); m != nil {
			add(kind.Pending, m[1], m[2], "")
			return true
		}
	}
	if len(msg) < 300 && strings.Contains(p.lastCmd, "squeue") && strings.Contains(msg, " R") {
		if m := squeueR.FindStringSubmatch(msg); m != nil {
			add(kind.Pending, m[1], "running", "")
			return true
		}
	}
	if strings.Contains(msg, "JobState=PENDING") {
		if m := pendOf.FindStringSubmatch(msg); m != nil {
			add(kind.Pending, "", m[1], "")
			return true
		}
	}
	return false
}
