package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	squeuePD = lazyre.New(`^\s*(\d+(?:_\S+)?)\s+.*\b(?:PD|PENDING)\b.*\(([A-Z]\w+)[^()]*\)$`)
	squeueR  = lazyre.New(`^\s*(\d+(?:_\S+)?)\s+\S+\s+\S+\s+\S+\s+(?:R|RUNNING|CG)\s+[\d:-]+\s+\d+\s+\S+$`)
	mailOf   = lazyre.New(`Slurm (?:Array )?Job_id=(\d+)\S* Name=.* (?:Failed|Ended), Run time [\d:-]+, (COMPLETED|FAILED|TIMEOUT|OUT_OF_MEMORY|CANCELLED|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE)\b`)
	pendOf   = lazyre.New(`JobState=PENDING Reason=(\w+)`)
)

// queue reads why jobs wait, from squeue and scontrol show job, and how they
// ended, from the mail that Slurm sends.
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
	if strings.Contains(msg, "Slurm ") && strings.Contains(msg, "Job_id=") && len(msg) < 400 {
		if m := mailOf.FindStringSubmatch(msg); m != nil { // the subject of Slurm's mail
			add(kind.Sacct, m[1], m[2], "")
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
