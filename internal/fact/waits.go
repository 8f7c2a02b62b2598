package fact

import "strings"

// neverStarts are Slurm's reasons for which a job waits and will never start as
// it is, with what is wrong.
var neverStarts = map[string]string{"BadConstraints": "constraints", "PartitionNodeLimit": "nodes", "PartitionConfig": "partition", "PartitionTimeLimit": "time",
	"InvalidAccount": "account", "InvalidQOS": "account", "AccountNotAllowed": "account", "QOSNotAllowed": "account", "ReservationInvalid": "reservation", "ReservationDeleted": "reservation",
	"AssocMaxWallDurationPerJobLimit": "time", "QOSMaxWallDurationPerJobLimit": "time", "MaxMemPerLimit": "limit"}

// NeverStarts reports that a job that waits for this reason (of squeue, or of
// scontrol's Reason=) will not start unless the request or the site's limits
// change, and of what kind the reason is: constraints, nodes, partition, time,
// account, reservation or limit. What one job or one node may have is such a
// limit; what a user or an account may have at once is none.
func NeverStarts(reason string) (kind string, ok bool) {
	if w, ok := neverStarts[reason]; ok {
		return w, true
	}
	if !strings.HasPrefix(reason, "QOS") && !strings.HasPrefix(reason, "Assoc") {
		return "", false
	}
	r := strings.TrimSuffix(reason, "Limit")
	return "limit", strings.HasSuffix(r, "PerJob") || strings.HasSuffix(r, "PerNode") || strings.HasPrefix(r, "QOSMin")
}
