package lint

import (
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// right are scripts of many styles that work: none may have an error.
var right = map[string]string{
	"c10d":                  "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --nproc_per_node 4 t.py\n",
	"lightning":             "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun python train.py --trainer.devices=4 --trainer.num_nodes=2\n",
	"loop srun -w":          "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\ni=0\nfor n in $(scontrol show hostnames $SLURM_JOB_NODELIST); do\n srun -N1 -n1 -w $n torchrun --nnodes 2 --node_rank $i --master_addr $MASTER_ADDR --nproc_per_node 4 t.py &\n i=$((i+1))\ndone\nwait\n",
	"export LAUNCHER":       "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nexport LAUNCHER=\"torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --nproc_per_node 4\"\nexport CMD=\"$LAUNCHER t.py\"\nsrun --jobid $SLURM_JOBID bash -c \"$CMD\" 2>&1 | tee -a log\n",
	"escaped":               "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nexport L=\"python -u -m torch.distributed.run --nproc_per_node 4 --nnodes 2 --node_rank \\$SLURM_PROCID --master_addr $MASTER_ADDR --master_port 6000\"\nsrun bash -c \"$L t.py\"\n",
	"node rank var in task": "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun bash -c 'NODE_RANK=$SLURM_NODEID; torchrun --nnodes=2 --node_rank=$NODE_RANK --master_addr=$MASTER_ADDR --nproc_per_node=4 t.py'\n",
	"wrapper":               "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun ./run_node.sh\n",
	"accelerate":            "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun accelerate launch --num_processes 8 --num_machines 2 --rdzv_backend c10d --main_process_ip $MASTER_ADDR --main_process_port 29500 t.py\n",
	"ray":                   "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nsrun -N1 -n1 -w n1 ray start --head --block &\nsleep 10\nsrun -N1 -n1 -w n2 ray start --address n1:6379 --block &\nsleep 5\npython t.py\n",
	"tasks override":        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun -N2 -n2 --ntasks-per-node=1 torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --nproc_per_node 4 t.py\n",
	"ntasks=nodes":          "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun --ntasks=$SLURM_NNODES --ntasks-per-node=1 torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --nproc_per_node 4 t.py\n",
	"heredoc job":           "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\ncat > next.sh <<EOF\n#!/bin/bash\n#SBATCH --nodes=$N\n#SBATCH -o ~/x\nEOF\necho ok\n",
	"resubmit":              "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nif [ -z \"$SLURM_JOB_ID\" ]; then\n  mkdir -p logs\n  DIR=$(cd \"$(dirname \"$0\")\" && pwd)\n  sbatch \"$0\" \"$@\"\n  exit\nfi\npython t.py\n",
	"functions":             "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\ntrain() {\n  local lr=$1\n  torchrun --standalone --nproc_per_node=4 t.py --lr $lr\n}\nfor lr in 1 2; do train $lr; done\n",
	"gpu var":               "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\ntorchrun --standalone --nproc_per_node=$SLURM_GPUS_ON_NODE t.py\n",
	"nproc gpu":             "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\ntorchrun --standalone --nproc_per_node=gpu t.py\n",
	"mps":                   "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:1\ntorchrun --standalone --nproc_per_node=1 t.py\n",
	"background ok":         "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nfor i in 0 1 2 3; do\n  CUDA_VISIBLE_DEVICES=$i python t.py $i &\ndone\nwait\n",
	"trap":                  "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\n#SBATCH --signal=B:USR1@60\nrequeue() { scontrol requeue $SLURM_JOB_ID; }\ntrap requeue USR1\nsrun python t.py &\nwait $!\n",
	"deepspeed hostfile":    "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nscontrol show hostnames $SLURM_JOB_NODELIST | sed \"s/$/ slots=4/\" > hostfile\ndeepspeed --hostfile hostfile t.py\n",
	"mpirun":                "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nmpirun -np 8 --map-by ppr:4:node python t.py\n",
	"pyxis":                 "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun --container-image=nvcr.io/nvidia/pytorch:25.01-py3 --container-mounts=/d:/d bash -c \"torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --nproc_per_node 4 t.py\"\n",
	"array args":            "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nTORCHRUN_ARGS=(\n  --nnodes=$SLURM_NNODES\n  --nproc_per_node=4\n  --rdzv_id=$SLURM_JOB_ID\n  --rdzv_backend=c10d\n  --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT\n)\nsrun torchrun \"${TORCHRUN_ARGS[@]}\" t.py\n",
	"two jobs":              "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nsrun -n1 --gres=gpu:2 --exact torchrun --standalone --nproc_per_node=2 a.py &\nsrun -n1 --gres=gpu:2 --exact torchrun --standalone --nproc_per_node=2 b.py &\nwait\n",
	"ssh loop":              "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nfor h in $(scontrol show hostnames); do ssh $h \"cd $PWD; torchrun --nnodes=2 --rdzv_endpoint=$MASTER_ADDR:1 t.py\" & done; wait\n",
	"commented":             "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\n# srun torchrun --nproc_per_node=99 t.py\n#  export RANK=$SLURM_PROCID\ntorchrun --standalone --nproc_per_node=4 t.py\n",
	"one task":              "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nsrun --ntasks=1 torchrun --standalone --nproc_per_node=4 t.py\n",
	"header cli":            "#!/bin/bash\n#SBATCH --time=1:00:00\nsrun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=$SLURM_GPUS_PER_NODE --rdzv_backend=c10d --rdzv_endpoint=$(hostname):29500 t.py\n",
	"worldsize":             "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nexport WORLD_SIZE=$SLURM_NTASKS\nsrun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID python t.py'\n",
	"python env":            "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun python t.py\n",
	"single node rank":      "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\nsrun torchrun --nnodes=1 --node_rank=$SLURM_NODEID --nproc_per_node=4 --master_addr=localhost t.py\n",
}

// wrong are scripts that fail, each with the rule that says why.
var wrong = map[string][2]string{
	"perrank":            {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nsrun bash -c 'export MASTER_ADDR=$(hostname -s); python t.py'\n", "master-addr-per-rank"},
	"static rank":        {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun torchrun --nnodes=2 --node_rank=$SLURM_PROCID --master_addr=$MASTER_ADDR --nproc_per_node=4 t.py\n", "rank-expanded-in-batch-shell"},
	"dq rank":            {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun bash -c \"torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=$MASTER_ADDR --nproc_per_node=4 t.py\"\n", "rank-expanded-in-batch-shell"},
	"var rank":           {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nNODE_RANK=$SLURM_NODEID\nsrun torchrun --nnodes=2 --node_rank $NODE_RANK --master_addr $MASTER_ADDR --nproc_per_node 4 t.py\n", "rank-expanded-in-batch-shell"},
	"acc static":         {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun accelerate launch --num_processes 8 --num_machines 2 --machine_rank $SLURM_NODEID --main_process_ip $MASTER_ADDR t.py\n", "rank-expanded-in-batch-shell"},
	"acc per task":       {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun accelerate launch --num_processes 8 --num_machines 2 --rdzv_backend c10d --main_process_ip $MASTER_ADDR t.py\n", "torchrun-per-gpu-task"},
	"tpn override false": {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun --ntasks-per-node=1 torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --nproc_per_node 4 t.py\n", "torchrun-per-gpu-task"},
	"ntasks 8":           {"#!/bin/bash\n#SBATCH -N 2\n#SBATCH -n 8\n#SBATCH --gres=gpu:4\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\nsrun torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --nproc_per_node 4 t.py\n", "torchrun-per-gpu-task"},
	"local ds":           {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\ndeepspeed --num_gpus 4 t.py\n", "multinode-launcher-without-srun"},
	"acc batch":          {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\nexport MASTER_PORT=29500\naccelerate launch --multi_gpu --num_machines 2 --num_processes 8 t.py\n", "multinode-launcher-without-srun"},
	"standalone":         {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nsrun torchrun --standalone --nproc_per_node=4 t.py\n", "missing-rdzv"},
	"localhost":          {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n#SBATCH --cpus-per-task=16\nsrun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=localhost:29500 t.py\n", "master-addr-localhost-multinode"},
	"counts":             {"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nexport NGPU=8\npython -m torch.distributed.launch --nproc_per_node=$NGPU t.py\n", "gpu-count-mismatch"},
	"pbs":                {"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\ncd $PBS_O_WORKDIR\npython t.py\n", "foreign-scheduler-var"},
	"tilde":              {"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\n#SBATCH -o ~/l.out\npython t.py\n", "sbatch-var-not-expanded"},
	"cpu":                {"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\npip3 install torch torchvision --index-url https://download.pytorch.org/whl/cpu\npython t.py\n", "cpu-torch-install"},
}

func TestStyles(t *testing.T) {
	s := set(t)
	for name, src := range right {
		for _, f := range File("x", []byte(src), Options{Set: s}).Findings {
			if f.Severity == diag.Error {
				t.Errorf("%s: %s at line %d:\n%s", name, f.ID, f.Where[0].Line, src)
			}
		}
	}
	for name, c := range wrong {
		if got := ids(File("x", []byte(c[0]), Options{Set: s})); !strings.Contains(" "+got+" ", " "+c[1]+" ") {
			t.Errorf("%s: %q lacks %s:\n%s", name, got, c[1], c[0])
		}
	}
}
