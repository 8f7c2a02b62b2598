package cli

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// TestJobProgramMissing: however a job says that a program could not be started,
// and whether or not its status shows it, the cause is the same.
func TestJobProgramMissing(t *testing.T) {
	const at = "/var/spool/slurmd/job00005/slurm_script: "
	const wrap = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"
	for _, tt := range []struct {
		name, script, log, state, exit, cause, certainty string
	}{
		{"bash", "#!/bin/bash\ntorchrun train.py\n", at + "line 2: torchrun: command not found\n", "FAILED", "127:0", "env-not-activated", "proven"},
		{"directives", "#!/bin/bash\n#SBATCH -N1\ntorchrun train.py\n", at + "line 3: torchrun: command not found\n", "FAILED", "127:0", "env-not-activated", "proven"},
		{"wrap", wrap + "torchrun train.py\n", at + "4: torchrun: not found\n", "FAILED", "127:0", "env-not-activated", "proven"},
		{"step", wrap + "srun torchrun train.py\n", "slurmstepd: error: execve(): torchrun: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 2\n", "FAILED", "2:0", "env-not-activated", "proven"},
		{"shell in a step", wrap + "srun bash -c 'torchrun train.py'\n", "bash: line 1: torchrun: command not found\nsrun: error: n1: task 0: Exited with exit code 127\n", "FAILED", "127:0", "env-not-activated", "proven"},
		{"labelled", "#!/bin/bash\nsrun --label bash -c 'python train.py'\n", "0: bash: line 1: python: command not found\nsrun: error: n1: task 0: Exited with exit code 127\n", "FAILED", "127:0", "env-not-activated", "proven"},
		{"env", "#!/bin/bash\nenv python train.py\n", "env: ‘python’: No such file or directory\n", "FAILED", "127:0", "env-not-activated", "proven"},
		{"pipe", "#!/bin/bash\npython train.py | tee log\n", at + "line 2: python: command not found\n", "COMPLETED", "0:0", "env-not-activated", "proven"},
		{"pipe with pipefail", "#!/bin/bash\nset -o pipefail\npython train.py | tee log\n", at + "line 3: python: command not found\n", "FAILED", "127:0", "env-not-activated", "proven"},
		{"later command", "#!/bin/bash\npython train.py\ncp a b\n", at + "line 2: python: command not found\n", "COMPLETED", "0:0", "env-not-activated", "proven"},
		{"wrap, later command", wrap + "python train.py; echo done\n", at + "4: python: not found\ndone\n", "COMPLETED", "0:0", "env-not-activated", "proven"},
		{"export", "#!/bin/bash\nsrun --export=NONE python train.py\n", "slurmstepd: error: execve(): python: No such file or directory\n", "FAILED", "2:0", "env-not-exported", "proven"},
		{"exception behind a pipe", "#!/bin/bash\npython -c 'f()' | tee log\n", "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nNameError: name 'f' is not defined\n", "COMPLETED", "0:0", "run-exception", "proven"},
		{"exception, later command", wrap + "python -c 'f()'; echo done\n", "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nNameError: name 'f' is not defined\ndone\n", "COMPLETED", "0:0", "run-exception", "proven"},
		{"exception that was handled", "#!/bin/bash\nset -e\npython t.py\necho done\n", "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nNameError: name 'f' is not defined\ndone\n", "COMPLETED", "0:0", "", ""},
		{"other program", "#!/bin/bash\nmytrain\n", at + "line 2: mytrain: command not found\n", "FAILED", "127:0", "env-program-missing", "proven"},
		{"other program in a step", "#!/bin/bash\nsrun mytrain\n", "slurmstepd-n1: error: execve(): mytrain: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 2\n", "FAILED", "2:0", "env-program-missing", "proven"},
		{"path", "#!/bin/bash\n/opt/e/bin/python train.py\n", at + "line 2: /opt/e/bin/python: No such file or directory\n", "FAILED", "127:0", "env-program-missing", "proven"},
		{"path in a step", "#!/bin/bash\nsrun /opt/e/bin/python train.py\n", "slurmstepd-n1: error: execve(): /opt/e/bin/python: No such file or directory\n", "FAILED", "2:0", "env-program-missing", "proven"},
		{"not executable", "#!/bin/bash\n./t.sh\n", at + "line 2: ./t.sh: Permission denied\n", "FAILED", "126:0", "env-program-missing", "proven"},
		{"not executable in a step", "#!/bin/bash\nsrun ./t.py\n", "slurmstepd: error: execve(): ./t.py: Permission denied\n", "FAILED", "13:0", "env-program-missing", "proven"},
		{"old interpreter", "#!/bin/bash\n/h/new/bin/torchrun t.py\n", at + "line 2: /h/new/bin/torchrun: /h/old/bin/python: bad interpreter: No such file or directory\n", "FAILED", "126:0", "env-program-missing", "proven"},
		{"no program text", "#!/bin/bash\npython3 nosuch.py\n", "python3: can't open file '/w/nosuch.py': [Errno 2] No such file or directory\n", "FAILED", "2:0", "env-program-missing", "proven"},
		{"status alone", "#!/bin/bash\npython train.py 2>/dev/null\n", "begin\n", "FAILED", "127:0", "env-program-missing", "possible"},
		// What must not be taken for it.
		{"redirection", "#!/bin/bash\nset -e\necho a > /nonex/a.sh\n", at + "line 3: /nonex/a.sh: No such file or directory\n", "FAILED", "1:0", "", ""},
		{"harmless", "#!/bin/bash\nneofetch\nsrun python3 t.py\n", at + "line 2: neofetch: command not found\nfine\n", "COMPLETED", "0:0", "", ""},
		{"another python ran", "#!/bin/bash\npython -V\npython3 t.py\necho done\n", at + "line 2: python: command not found\nfine\ndone\n", "COMPLETED", "0:0", "", ""},
		{"no GPU tools", wrap + "nvidia-smi; echo ok\n", at + "4: nvidia-smi: not found\nok\n", "COMPLETED", "0:0", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			show := fmt.Sprintf("JobId=5 JobName=t\n   UserId=ann(1000) GroupId=g(1)\n   JobState=%s Reason=None Dependency=(null)\n   ExitCode=%s\n   StartTime=2026-11-30T08:00:00 EndTime=2026-11-30T08:31:00\n   WorkDir=/w\n   StdOut=/w/slurm-5.out\n", tt.state, tt.exit)
			files := fstest.MapFS{"w/slurm-5.out": {Data: []byte(tt.log), ModTime: time.Date(2026, 11, 30, 8, 30, 0, 0, time.Local)}}
			rep, text, _ := explained(t, answers{"scontrol --details show job": show, "scontrol write batch_script": tt.script}, files, "en")
			cause, certainty := "", ""
			if top := rep.Top(); top != nil {
				cause, certainty = top.ID, string(top.Certainty)
			}
			if cause != tt.cause || certainty != tt.certainty {
				t.Errorf("%s %q %s, want %q %s\n%s", rep.Verdict, cause, certainty, tt.cause, tt.certainty, text)
			}
			for _, r := range rep.Ran {
				if r.Reason == "no batch script was given" {
					t.Errorf("%s: %s", r.Rule, r.Reason)
				}
			}
			if hidden := strings.Contains(text, "that of the last command"); hidden != (rep.Verdict == diag.Broken && tt.state == "COMPLETED") {
				t.Errorf("the state line says that the status hides the failure: %t\n%s", hidden, text)
			}
		})
	}
}
