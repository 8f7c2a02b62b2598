package tables

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// CapSource is where the compute capabilities of capTable come from.
const CapSource = "developer.nvidia.com/cuda-gpus and the CUDA C++ Programming Guide, read 2026-11-30"

// capTable gives the compute capability of GPUs by their product name, for
// drivers and logs that do not tell. The first pattern that
// fits counts. It names data-centre cards first and is not meant to be complete:
// no entry is better than a wrong one.
var capTable = []struct {
	re  *lazyre.Regexp
	cap string
}{
	{lazyre.New(`\b(GB300|B300)\b`), "10.3"},
	{lazyre.New(`\b(GB200|B200|B100)\b`), "10.0"},
	{lazyre.New(`\bGB10\b`), "12.1"},
	{lazyre.New(`\bBlackwell\b|\bRTX 50[5-9]0\b|\bRTX PRO [2-6][05]00\b`), "12.0"},
	{lazyre.New(`\b(GH200|H100|H200|H800|H20)\b`), "9.0"},
	{lazyre.New(`\b(L4|L20|L40|L40S|L40G)\b|\bAda\b|\bRTX 40[5-9]0\b`), "8.9"},
	{lazyre.New(`\bOrin\b`), "8.7"},
	{lazyre.New(`\b(A100|A800|A30)\b`), "8.0"},
	{lazyre.New(`\b(A2|A10|A10G|A16|A40)\b|\bRTX A[2-6]000\b|\bRTX A4500\b|\bRTX A5500\b|\bRTX 30[5-9]0\b`), "8.6"},
	{lazyre.New(`\bT4G?\b|\bRTX 20[6-8]0\b|\bGTX 16[56]0\b|\bQuadro RTX [34568]000\b|\bTITAN RTX\b|\bRTX 8000\b`), "7.5"},
	{lazyre.New(`\bXavier\b`), "7.2"},
	{lazyre.New(`\bV100S?\b|\bTITAN V\b|\bGV100\b`), "7.0"},
	{lazyre.New(`\b(P40|P4)\b|\bGTX 10[5-8]0\b|\bTITAN Xp\b|\bQuadro P[1-6]000\b|\bP[56]000\b`), "6.1"},
	{lazyre.New(`\b(P100|GP100)\b`), "6.0"},
	{lazyre.New(`\b(M60|M40|M4)\b|\bGTX 9[5-8]0\b`), "5.2"},
	{lazyre.New(`\bK80\b`), "3.7"},
	{lazyre.New(`\bK40[cCmMsStT]?\b|\bK20[cCmMsSxX]?[mM]?\b`), "3.5"},
}

// CapOf gives the compute capability of a GPU by its product name, "" when the
// table does not hold it.
func CapOf(name string) string {
	name = strings.ReplaceAll(name, "-", " ") // A100-SXM4-80GB
	for _, c := range capTable {
		if c.re.MatchString(name) {
			return c.cap
		}
	}
	return ""
}
