# shellcheck shell=sh
# Ends a lab: waits until standard input closes (the starter stopped it, ended
# or crashed), kills every process of the lab and removes its folder.
#
#   sh reap.sh DIR CLUSTER
#
# A process belongs to the lab when its environment carries the lab's mark
# (daemons, slurmstepd, the commands that the starter ran) or names its cluster
# (the tasks of jobs, whose environment is the user's), or when it descends from
# such a process. Whoever calls this script is left alone.
dir=$1
cluster=$2
trap '' HUP INT TERM QUIT PIPE
cat >/dev/null

members() {
	{
		grep -lsaE "(NCCLINIC_LAB=$dir|SLURM_CLUSTER_NAME=$cluster)" /proc/[0-9]*/environ |
			sed 's|/proc/\([0-9]*\)/environ|m \1|'
		cat "$dir"/pids/* 2>/dev/null | while read -r pid start; do
			# The 22nd field is the start time: a reused number is somebody else.
			now=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f20)
			[ "$now" = "$start" ] && echo "m $pid"
		done
		cat /proc/[0-9]*/status 2>/dev/null | awk '/^Pid:/ {p = $2} /^PPid:/ {print "c", p, $2}'
	} | awk -v self=$$ '
		$1 == "m" {in_lab[$2] = 1}
		$1 == "c" {parent[$2] = $3}
		END {
			for (again = 1; again;) {
				again = 0
				for (p in parent) if (!(p in in_lab) && (parent[p] in in_lab)) {in_lab[p] = 1; again = 1}
			}
			for (p = self; p > 1; p = parent[p]) keep[p] = 1
			for (p in in_lab) if (p > 1 && (p in parent) && !(p in keep) && !mine(p)) print p
		}
		# The pipeline of this very function.
		function mine(p) {
			for (; p > 1; p = parent[p]) if (p == self) return 1
			return 0
		}'
}

round=0
while [ $round -lt 50 ]; do
	pids=$(members)
	[ -z "$pids" ] && break
	# shellcheck disable=SC2086 # one word per process
	kill -KILL $pids 2>/dev/null
	round=$((round + 1))
	sleep 0.05
done
cd / || exit 1
rm -rf "$dir"
[ -z "$pids" ] && [ ! -e "$dir" ]
