package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// TestJobWaits: each reason for which a job waits is told in one sentence; only
// what waiting does not mend is a fault.
func TestJobWaits(t *testing.T) {
	for _, tt := range []struct{ reason, dependency, id, text string }{
		{"JobHeldUser", "(null)", "job-held", "scontrol release 5"},
		{"JobHeldAdmin", "(null)", "job-held", "only they can release it"},
		{"launch_failed_requeued_held", "(null)", "job-held", "failed to start on its nodes"},
		{"job_requeued_in_held_state", "(null)", "job-held", "put it on hold"},
		{"DependencyNeverSatisfied", "afterok:3(failed)", "job-dependency-failed", "ncclinic job 3"},
		{"DependencyNeverSatisfied", "afterok:2(unfulfilled),afterok:7_4(failed)", "job-dependency-failed", "dependency="},
		{"PartitionTimeLimit", "(null)", "slurm-request-impossible", "asks for 2-00:00:00"},
		{"QOSMaxWallDurationPerJobLimit", "(null)", "slurm-request-impossible", "2-00:00:00"},
		{"PartitionConfig", "(null)", "slurm-request-impossible", "as it is configured"},
		{"PartitionNodeLimit", "(null)", "slurm-request-impossible", "number of nodes"},
		{"BadConstraints", "(null)", "slurm-request-impossible", "features"},
		{"InvalidQOS", "(null)", "slurm-request-impossible", "QOS of the job is not valid"},
		{"ReservationDeleted", "(null)", "slurm-request-impossible", "reservation"},
		{"QOSMaxGRESPerJob", "(null)", "slurm-request-impossible", "one job may have"},
		{"AssocMaxCpuPerJobLimit", "(null)", "slurm-request-impossible", "one job may have"},
		{"QOSMaxCpuPerNode", "(null)", "slurm-request-impossible", "one job may have"},
		{"Resources", "(null)", "job-waits", "squeue --start -j 5"},
		{"Priority", "(null)", "job-waits", "higher priority"},
		{"Dependency", "afterok:3(unfulfilled)", "job-waits", "afterok:3(unfulfilled)"},
		{"BeginTime", "(null)", "job-waits", "--begin"},
		{"ReqNodeNotAvail,_UnavailableNodes:n[4-5]", "(null)", "job-waits", "n[4-5]"},
		{"ReqNodeNotAvail,_Reserved_for_maintenance", "(null)", "job-waits", "maintenance"},
		{"Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions", "(null)", "job-waits", "sinfo -R"},
		{"QOSMaxCpuPerUserLimit", "(null)", "job-waits", "other jobs of yours"},
		{"QOSMaxGRESPerUser", "(null)", "job-waits", "other jobs of yours"},
		{"AssocMaxJobsLimit", "(null)", "job-waits", "other jobs of yours"},
		{"AssocGrpGRES", "(null)", "job-waits", "share"},
		{"QOSGrpNodeLimit", "(null)", "job-waits", "share"},
		{"JobArrayTaskLimit", "(null)", "job-waits", "%N"},
		{"PartitionDown", "(null)", "job-waits", "scontrol show partition gpu"},
		{"Licenses", "(null)", "job-waits", "licenses"},
		{"SomethingOfTheFuture", "(null)", "job-waits", "SomethingOfTheFuture"},
		{"None", "(null)", "job-waits", "squeue -j 5 -o '%i %T %r'"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			show := fmt.Sprintf("JobId=5 JobName=t\n   UserId=ann(1000) GroupId=g(1)\n   JobState=PENDING Reason=%s Dependency=%s\n   RunTime=00:00:00 TimeLimit=2-00:00:00 TimeMin=N/A\n   StartTime=2026-11-30T12:00:00 EndTime=Unknown\n   Partition=gpu AllocNode:Sid=l:1\n   WorkDir=/w\n   StdOut=/w/slurm-5.out\n", tt.reason, tt.dependency)
			rep, text, err := explained(t, answers{"scontrol --details show job": show, "scontrol write batch_script": "#!/bin/bash\ntrue\n"}, fstest.MapFS{}, "en")
			var code exitError
			errors.As(err, &code)
			if want := map[string]int{"": 0, "job-waits": 0}[tt.id]; tt.id == "" || tt.id == "job-waits" {
				if rep.Verdict != diag.OK || int(code) != want || rep.Cause != nil {
					t.Errorf("%s, exit %d", rep.Verdict, code)
				}
			} else if rep.Cause == nil || *rep.Cause != tt.id || code != 1 {
				t.Errorf("%s, exit %d", rep.Verdict, code)
			}
			if tt.id != "" && !slices.ContainsFunc(rep.Findings, func(f diag.Finding) bool { return f.ID == tt.id && len(f.Evidence) > 0 }) || !strings.Contains(strings.Join(strings.Fields(text), " "), tt.text) {
				t.Errorf("no %s with %q in\n%s", tt.id, tt.text, text)
			}
			if strings.Contains(text, "started 2026") || !strings.Contains(text, "expected to start at") {
				t.Errorf("Slurm's guess reads as a fact:\n%s", text)
			}
			if strings.Contains(text[strings.LastIndex(text, "}\n"):], "{") {
				t.Errorf("a placeholder is left in\n%s", text)
			}
		})
	}
}

// TestJobNodesStart: a job whose nodes boot waits for them, not for the scheduler;
// where accounting alone knows the job, nobody knows why it waits.
func TestJobNodesStart(t *testing.T) {
	rep, text, _ := explained(t, answers{"scontrol --details show job": "JobId=5 JobName=t\n   JobState=CONFIGURING Reason=None Dependency=(null)\n   NodeList=n[1-2]\n"}, fstest.MapFS{}, "en")
	if rep.Verdict != diag.OK || len(rep.Findings) != 1 || !strings.Contains(text, "being made ready") || !strings.Contains(text, "sinfo -N -n 'n[1-2]'") {
		t.Errorf("%s\n%s", rep.Verdict, text)
	}
	rep, text, _ = explained(t, answers{"sacct --helpformat": "", "sacct ": sacctHead + "5|5|PENDING|0:0|Unknown|Unknown|1000|1||||/w|train\n"}, fstest.MapFS{}, "en")
	if rep.Verdict != diag.OK || strings.Contains(text, "no reason yet") {
		t.Errorf("%s\n%s", rep.Verdict, text)
	}
}

// TestJobLimitNear: a running job whose time is nearly up is told so.
func TestJobLimitNear(t *testing.T) {
	for _, tt := range []struct {
		ran, limit, text string
	}{
		{"00:10:00", "01:00:00", ""}, {"00:00:10", "00:01:00", ""}, {"22:00:00", "1-00:00:00", ""}, {"00:10:00", "UNLIMITED", ""},
		{"00:55:30", "01:00:00", "in 00:04:30 Slurm ends it"}, {"23:50:00", "1-00:00:00", "in 00:10:00"}, {"01:00:07", "01:00:00", "longer than its limit of 01:00:00"},
	} {
		show := fmt.Sprintf("JobId=5 JobName=t\n   UserId=ann(1000) GroupId=g(1)\n   JobState=RUNNING Reason=None Dependency=(null)\n   RunTime=%s TimeLimit=%s TimeMin=N/A\n   StartTime=2026-11-30T12:00:00 EndTime=Unknown\n   WorkDir=/w\n", tt.ran, tt.limit)
		rep, text, err := explained(t, answers{"scontrol --details show job": show}, fstest.MapFS{}, "en")
		near := slices.ContainsFunc(rep.Findings, func(f diag.Finding) bool { return f.ID == "job-limit-near" })
		if near != (tt.text != "") || !strings.Contains(strings.Join(strings.Fields(text), " "), tt.text) || rep.Verdict != diag.OK || err != nil {
			t.Errorf("%s of %s: %t, %s, %v\n%s", tt.ran, tt.limit, near, rep.Verdict, err, text)
		}
	}
}

// TestJobNamed: ids that people write, and what becomes of a cluster's name.
func TestJobNamed(t *testing.T) {
	var out, errs strings.Builder
	for arg, want := range map[string]string{"3_[1-4]": "names several jobs", "3_1-4": "names several jobs", "3,4": "names several jobs", "3_": "not a job id", "x": "not a job id"} {
		errs.Reset()
		if code := Main([]string{"job", arg, "--lang", "en"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %d, %s", arg, code, errs.String())
		}
	}
	for _, name := range []string{"a,b", "all", "a b", "$(x)"} {
		errs.Reset()
		if code := Main([]string{"job", "3", "-M", name, "--lang", "en"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}); code != exitUsage || !strings.Contains(errs.String(), "one cluster") {
			t.Errorf("%s: %d, %s", name, code, errs.String())
		}
	}
}
