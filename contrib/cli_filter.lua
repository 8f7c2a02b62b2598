-- Lints batch scripts when they are submitted. For slurm.conf:
--
--     CliFilterPlugins=lua
--
-- and this file as cli_filter.lua beside slurm.conf. It warns; a submission is
-- refused only when deny is true and lint finds an error. When ncclinic is
-- missing, slow or broken, the submission goes on. A user switches it off with
-- NCCLINIC_LINT=off.

local program = os.getenv("NCCLINIC") or "ncclinic"
local deny = false -- true: refuse scripts with errors
local seconds = 5 -- how long a submission may wait for lint

-- quote makes one word of a POSIX shell of any string.
local function quote(s)
	return "'" .. string.gsub(s, "'", "'\\''") .. "'"
end

local function lint(path)
	local command = "timeout " .. seconds .. " " .. quote(program) ..
		" lint --color never --fail-on error " .. quote(path) .. " </dev/null 2>/dev/null; echo exit=$?"
	local pipe = io.popen(command, "r")
	if not pipe then
		return 0, ""
	end
	local text = pipe:read("*a") or ""
	pipe:close()
	local out, status = string.match(text, "^(.*)exit=(%d+)\n$")
	return tonumber(status or "0"), out or ""
end

function slurm_cli_setup_defaults(options, early)
	return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
	if options["type"] ~= "sbatch" or options["wrap"] or offset > 0 then
		return slurm.SUCCESS
	end
	if os.getenv("NCCLINIC_LINT") == "off" then
		return slurm.SUCCESS
	end
	local argv = options["argv"]
	local path = type(argv) == "table" and argv[1]
	if not path or path == "-" or path == "" then
		return slurm.SUCCESS -- the script comes on standard input, which sbatch has read
	end
	local status, text = lint(path)
	if status > 1 or not (string.find(text, ": error: ", 1, true) or string.find(text, ": warning: ", 1, true)) then
		return slurm.SUCCESS
	end
	for line in string.gmatch(text, "[^\n]+") do
		slurm.log_info("%s", line)
	end
	if deny and status == 1 then
		slurm.log_error("%s", "refused: see above; NCCLINIC_LINT=off submits anyway")
		return slurm.ERROR
	end
	return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
	return slurm.SUCCESS
end
